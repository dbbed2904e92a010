//! Traces in Chrome's JSON format, for Perfetto and `chrome://tracing`.
//!
//! Spans entered by a thread are complete events (`X`), nested by time. A span that no thread
//! enters, such as a candidate in a child process, is a pair of asynchronous events (`b`, `e`) with
//! its own id.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The event sink: one event per line, so that a truncated file can be repaired by hand.
#[derive(Clone)]
pub(super) struct Writer(Arc<Mutex<Sink>>);

struct Sink {
    out: Box<dyn Write + Send>,
    is_empty: bool,
    is_finished: bool,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    pub(super) fn new(out: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(Sink { out, is_empty: true, is_finished: false })))
    }

    fn with(&self, write: impl FnOnce(&mut Sink) -> io::Result<()>) {
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A failed trace does not stop the traced program.
        if !sink.is_finished && write(&mut sink).is_err() {
            sink.is_finished = true;
        }
    }

    fn event(&self, event: &Value) {
        self.with(|sink| {
            sink.out.write_all(if sink.is_empty { b"[\n" } else { b",\n" })?;
            sink.is_empty = false;
            serde_json::to_writer(&mut sink.out, event).map_err(io::Error::from)?;
            // Viewers open incomplete traces too.
            sink.out.flush()
        });
    }

    /// Completes the file; later events are dropped.
    pub(super) fn finish(&self) {
        self.with(|sink| {
            sink.out.write_all(if sink.is_empty { b"[]\n" } else { b"\n]\n" })?;
            sink.is_finished = true;
            sink.out.flush()
        });
    }
}

/// The state of an open span.
struct Open {
    fields: Fields,
    /// When the span was made, and when its thread entered it, in microseconds.
    made: f64,
    entered: Option<f64>,
    was_entered: bool,
}

/// A `tracing` layer that writes closed spans.
pub(super) struct Chrome {
    writer: Writer,
    begun: Instant,
}

impl Chrome {
    pub(super) fn new(writer: Writer) -> Self {
        Self { writer, begun: Instant::now() }
    }

    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64() * 1e6
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Chrome {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let open = Open { fields, made: self.now(), entered: None, was_entered: false };
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(open);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            values.record(&mut open.fields);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            (open.entered, open.was_entered) = (Some(self.now()), true);
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(open) = extensions.get_mut::<Open>() else { return };
        let Some(start) = open.entered.take() else { return };
        self.writer.event(&json!({
            "name": span.name(), "cat": span.metadata().target(), "ph": "X",
            "ts": start, "dur": self.now() - start, "pid": std::process::id(), "tid": thread(),
            "args": open.fields.0,
        }));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let extensions = span.extensions();
        let Some(open) = extensions.get::<Open>().filter(|open| !open.was_entered) else { return };
        let event = |phase: &str, at: f64, arguments: &Map<String, Value>| {
            self.writer.event(&json!({
                "name": span.name(), "cat": span.metadata().target(), "ph": phase,
                "ts": at, "pid": std::process::id(), "tid": thread(),
                "id": format!("{:#x}", id.into_u64()), "args": arguments,
            }));
        };
        event("b", open.made, &open.fields.0);
        event("e", self.now(), &Map::new());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let name = fields.0.remove("message");
        self.writer.event(&json!({
            "name": name.unwrap_or_else(|| event.metadata().name().into()),
            "cat": event.metadata().target(), "ph": "i", "s": "t",
            "ts": self.now(), "pid": std::process::id(), "tid": thread(), "args": fields.0,
        }));
    }
}

/// A small id of the current thread.
fn thread() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

/// Fields as JSON.
#[derive(Debug, Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn traced(what: impl FnOnce()) -> Vec<Value> {
        let shared = Shared::default();
        let writer = Writer::new(Box::new(shared.clone()));
        let subscriber = tracing_subscriber::registry().with(Chrome::new(writer.clone()));
        tracing::subscriber::with_default(subscriber, what);
        writer.finish();
        writer.finish();
        serde_json::from_slice(&shared.0.lock().unwrap()).unwrap()
    }

    #[test]
    fn spans_of_a_thread_nest_and_others_have_numbers() {
        let events = traced(|| {
            let first =
                tracing::info_span!("trial", number = 1_u64, outcome = tracing::field::Empty);
            let second = tracing::info_span!("trial", number = 2_u64);
            tracing::info_span!("outer", def = "gemm").in_scope(|| {
                tracing::info_span!("inner").in_scope(|| tracing::info!(seconds = 0.5, "best"));
            });
            first.record("outcome", "measured");
            drop((first, second));
        });
        let shape = |event: &Value| format!("{}{}", event["ph"].as_str().unwrap(), event["name"]);
        let shapes: Vec<String> = events.iter().map(shape).collect();
        let trial = ["b\"trial\"", "e\"trial\""];
        assert_eq!(shapes[..3], ["i\"best\"", "X\"inner\"", "X\"outer\""]);
        assert_eq!(shapes[3..], [trial, trial].concat());
        assert_eq!(events[0]["args"], json!({ "seconds": 0.5 }));
        assert_eq!(events[2]["args"], json!({ "def": "gemm" }));
        assert_eq!(events[3]["args"], json!({ "number": 1, "outcome": "measured" }));
        assert_eq!(events[3]["id"], events[4]["id"]);
        assert_ne!(events[3]["id"], events[5]["id"]);
        let (inner, outer) = (&events[1], &events[2]);
        let span = |event: &Value| (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        let ((a, da), (b, db)) = (span(inner), span(outer));
        assert!(b <= a && a + da <= b + db, "{inner} is not in {outer}");
    }

    #[test]
    fn a_trace_of_nothing_is_json() {
        assert_eq!(traced(|| {}), [Value::Null; 0]);
    }
}
