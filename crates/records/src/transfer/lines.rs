//! JSON lines: one [`Event`] per line, in an order that can be applied.
//!
//! ```text
//! {"program":{"hash":"3f…","family":"a0…","def":"gemm","sizes":{"K":64,"M":64,"N":64},…}}
//! {"run":{"key":{"program":"3f…",…},"info":{"id":"9c…","strategy":"opevo","seed":1,…}}}
//! {"trial":{"run":"9c…","trial":{"number":0,"point":[3,1,4],"schedule":"…",…}}}
//! {"best":{"key":{…},"best":{"trial":{"run":"9c…","number":0},"seconds":0.0021,…}}}
//! ```

use std::collections::BTreeSet;
use std::io::{BufRead, Write};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::event::{Applied, Event, MAX_TEXT};
use crate::store::{RunFilter, Store, each_of_run};

/// The longest accepted line. JSON may encode a character in six.
pub const MAX_LINE: usize = 8 * MAX_TEXT;

/// The most bad lines to list; the rest are only counted.
const MOST_BAD: usize = 100;

/// Events per transaction.
const BATCH: usize = 5000;

/// Bytes of lines per transaction.
const BATCH_BYTES: usize = 32 << 20;

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The number of added records.
    pub added: u64,
    /// The number of records that existed already.
    pub known: u64,
    /// The number of unusable lines.
    pub bad: u64,
    /// The first of them.
    pub bad_lines: Vec<BadLine>,
}

/// An unusable line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadLine {
    /// Its number, from one.
    pub line: u64,
    /// Why.
    pub reason: String,
}

impl Imported {
    fn refuse(&mut self, line: u64, reason: String) {
        self.bad += 1;
        if self.bad_lines.len() < MOST_BAD {
            self.bad_lines.push(BadLine { line, reason });
        }
    }
}

/// Writes the selected runs with all their records.
///
/// # Errors
/// If the database cannot be read or the file, whose name is for messages, cannot be written.
pub fn write_lines(
    store: &dyn Store,
    runs: &RunFilter,
    out: &mut dyn Write,
    name: &std::path::Path,
) -> Result<u64> {
    let mut lines = 0;
    let mut put = |event: &Event| -> Result<()> {
        lines += 1;
        let failed = |error: std::io::Error| Error::file(name, &error);
        serde_json::to_writer(&mut *out, event).map_err(|error| failed(error.into()))?;
        out.write_all(b"\n").map_err(failed)
    };
    let mut chosen = store.runs(runs)?;
    chosen.reverse();
    let programs: BTreeSet<&str> = chosen.iter().map(|run| run.key.program.as_str()).collect();
    for hash in programs {
        if let Some(program) = store.program(hash)? {
            put(&Event::Program(program))?;
        }
    }
    let mut keys = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for run in chosen {
        let (id, key) = (run.info.id.clone(), run.key);
        put(&Event::Run { key: key.clone(), info: run.info })?;
        each_of_run(store, &id, &mut |trial| put(&Event::Trial { run: id.clone(), trial }))?;
        if let Some(end) = run.end {
            put(&Event::End { run: id.clone(), end })?;
        }
        keys.insert(key);
        ids.insert(id);
    }
    for (key, best) in store.declared()? {
        if ids.contains(&best.trial.run) {
            put(&Event::Best { key, best })?;
        }
    }
    for (key, counts) in store.removed()? {
        if keys.contains(&key) {
            put(&Event::Removed { key, counts })?;
        }
    }
    Ok(lines)
}

/// Imports the lines of [`write_lines`]. Bad lines are skipped and reported.
///
/// # Errors
/// If the file, whose name is for messages, cannot be read, or the database cannot be written.
/// Records written by then stay, and the import can be repeated.
pub fn read_lines(
    store: &mut dyn Store,
    input: &mut dyn BufRead,
    name: &std::path::Path,
) -> Result<Imported> {
    let mut imported = Imported::default();
    let mut batch: Vec<(u64, Event)> = Vec::new();
    let mut bytes = 0;
    let mut line = Vec::new();
    for number in 1.. {
        match next_line(input, &mut line).map_err(|error| Error::file(name, &error))? {
            Next::End => break,
            Next::TooLong => imported.refuse(number, format!("is longer than {MAX_LINE} bytes")),
            Next::Line if line.iter().all(u8::is_ascii_whitespace) => {}
            Next::Line => match serde_json::from_slice(&line) {
                Ok(event) => batch.push((number, event)),
                Err(error) => imported.refuse(number, format!("is not a record: {error}")),
            },
        }
        bytes += line.len();
        if batch.len() >= BATCH || bytes >= BATCH_BYTES {
            flush(store, &mut batch, &mut imported)?;
            bytes = 0;
        }
    }
    flush(store, &mut batch, &mut imported)?;
    imported.bad_lines.sort_by_key(|bad| bad.line);
    Ok(imported)
}

fn flush(
    store: &mut dyn Store,
    batch: &mut Vec<(u64, Event)>,
    imported: &mut Imported,
) -> Result<()> {
    let (numbers, events): (Vec<u64>, Vec<Event>) = batch.drain(..).unzip();
    if events.is_empty() {
        return Ok(());
    }
    for (number, applied) in numbers.into_iter().zip(store.apply(&events)?) {
        match applied {
            Applied::Added => imported.added += 1,
            Applied::Known => imported.known += 1,
            Applied::Refused(error) => imported.refuse(number, error.to_string()),
        }
    }
    Ok(())
}

enum Next {
    Line,
    TooLong,
    End,
}

/// Reads a line without keeping more of it than the limit.
fn next_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> std::io::Result<Next> {
    line.clear();
    let mut too_long = false;
    let mut any = false;
    loop {
        let available = match input.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if available.is_empty() {
            break;
        }
        any = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        too_long |= line.len() + part.len() > MAX_LINE;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        let used = end.map_or(available.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            break;
        }
    }
    Ok(match (any, too_long) {
        (false, _) => Next::End,
        (true, true) => Next::TooLong,
        (true, false) => Next::Line,
    })
}
