//! Tuning an operator from Python.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tensorwright_records::Journal;
use tensorwright_tuner::{
    Budget, Event, Progress, RemoteWorkers, TuneError, Tuned, Tuner, UnknownMode,
};

use crate::arguments::Arguments;
use crate::command::worker_command;
use crate::definition::Definition;
use crate::error::{Class, diagnosed};
use crate::specialised::Specialised;

/// The default number of trials without a time limit.
const TRIALS: u64 = 200;

/// The options of a tuning run.
pub(crate) struct TuneOptions {
    pub(crate) trials: Option<u64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) mode: Option<String>,
    pub(crate) strategy: Option<String>,
    pub(crate) seed: u64,
    pub(crate) fresh: bool,
    /// Use a fleet; the name of a run to resume, if not empty.
    pub(crate) fleet: Option<String>,
}

/// Tunes a definition for the shapes of arguments. `watch` receives progress; an exception in it
/// (including Ctrl-C) ends the run, which keeps its results. `ended` is called when the records may
/// have changed.
pub(crate) fn tune<'py>(
    definition: &Definition,
    py: Python<'py>,
    arguments: &Arguments,
    options: TuneOptions,
    watch: Option<Py<PyAny>>,
    ended: impl FnOnce(),
) -> PyResult<Bound<'py, PyDict>> {
    let sizes = Specialised::sizes(definition, py, arguments)?;
    let program =
        Specialised::program(definition, &sizes).map_err(|error| diagnosed(py, &error))?;
    let failed = |error: &dyn std::error::Error| {
        Class::Tuning.error(py, definition.signature.says(&error.to_string()))
    };
    let time = match options.seconds {
        None => None,
        Some(seconds) => {
            Some(Duration::try_from_secs_f64(seconds).map_err(|error| failed(&error))?)
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    let choices = &definition.choices;
    let mut tuner =
        Tuner::new(&program, worker_command(py)?)
            .map_err(|error| failed(&error))?
            .sizes(sizes)
            .target(choices.target.clone())
            .threads(choices.threads)
            .precision(choices.precision)
            .budget(Budget::asked(options.trials, time, TRIALS))
            .seed(options.seed)
            .fresh(options.fresh)
            .fleet(options.fleet.map(|run| {
                RemoteWorkers::default().resume(Some(run).filter(|run| !run.is_empty()))
            }))
            .command(format!("tensorwright (Python): {}.tune", definition.signature.name))
            .stop_flag(Arc::clone(&stop));
    if let Some(name) = &options.mode {
        tuner = tuner.mode(name.parse().map_err(|error: UnknownMode| failed(&error))?);
    }
    if let Some(name) = &options.strategy {
        tuner = tuner.strategy(name);
    }
    let db = choices.db.clone();
    let mut raised = None;
    let tuned = py.detach(|| {
        let mut journal = Journal::open(db.as_ref()).map_err(|error| error.to_string())?;
        let tuned = tuner.run(&mut journal, &mut |event| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                tell(py, watch.as_ref(), event)
            });
            if let Err(error) = told {
                stop.store(true, Ordering::Relaxed);
                raised.get_or_insert(error);
            }
        });
        tuned.map_err(|error| match error {
            TuneError::Program(diagnostics) => format!("\n{diagnostics}"),
            other => other.to_string(),
        })
    });
    ended();
    if let Some(error) = raised {
        return Err(error);
    }
    match tuned {
        Ok(tuned) => {
            if let Some((count, why)) = &tuned.waiting {
                let text = format!("{count} records could not be written yet: {why}");
                let text = std::ffi::CString::new(text.replace('\0', " ")).unwrap_or_default();
                PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &text, 2)?;
            }
            result(py, &tuned)
        }
        Err(problem) => Err(Class::Tuning.error(py, definition.signature.says(&problem))),
    }
}

/// Reports an event to Python: its kind, a line of text, and the progress.
fn tell(py: Python<'_>, watch: Option<&Py<PyAny>>, event: &Event<'_>) -> PyResult<()> {
    let Some(watch) = watch else { return Ok(()) };
    let (kind, progress) = match event {
        Event::Started { progress, .. } => ("started", Some(*progress)),
        Event::Trial { progress, .. } => ("trial", Some(*progress)),
        Event::Waiting(progress) => ("waiting", Some(*progress)),
        Event::Finalists { progress, .. } => ("finalists", Some(*progress)),
        Event::RecordsWait(_) | Event::RecordRefused(_) => ("records", None),
        _ => return Ok(()),
    };
    let line = match (event.line(), progress) {
        (Some(line), _) => line,
        (None, Some(progress)) => progress.line(columns(watch.bind(py))),
        (None, None) => return Ok(()),
    };
    watch.bind(py).call1((kind, line, progress.map(share))).map(|_| ())
}

/// The line width of the watcher, if it is limited.
fn columns(watch: &Bound<'_, PyAny>) -> usize {
    let columns = watch.getattr_opt("columns").ok().flatten();
    columns.and_then(|columns| columns.extract().ok()).unwrap_or(usize::MAX)
}

/// The used share of the budget, from 0 to 1.
fn share(progress: &Progress) -> f64 {
    let trials = |budget: u64| progress.trials as f64 / budget.max(1) as f64;
    let by_trials = progress.budget.map_or(0.0, trials);
    let by_time = progress.time.map_or(0.0, |time| {
        progress.elapsed.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE)
    });
    by_trials.max(by_time).min(1.0)
}

fn result<'py>(py: Python<'py>, tuned: &Tuned) -> PyResult<Bound<'py, PyDict>> {
    let (winner, progress) = (&tuned.winner, &tuned.progress);
    let all = PyDict::new(py);
    all.set_item("seconds", winner.seconds)?;
    all.set_item("default_seconds", winner.default_seconds)?;
    all.set_item("trials", progress.trials)?;
    all.set_item("elapsed", progress.elapsed.as_secs_f64())?;
    all.set_item("start_seconds", tuned.phases.start.as_secs_f64())?;
    all.set_item("search_seconds", tuned.phases.search.as_secs_f64())?;
    all.set_item("finals_seconds", tuned.phases.finals.as_secs_f64())?;
    all.set_item("gflops", progress.flops / winner.seconds / 1e9)?;
    all.set_item("roofline", progress.roof_seconds / winner.seconds)?;
    all.set_item("schedule", winner.schedule.to_string())?;
    all.set_item("origin", winner.origin.as_str())?;
    all.set_item("defects", tuned.defects.count)?;
    all.set_item("status", tuned.status.word())?;
    all.set_item("run", &tuned.run)?;
    Ok(all)
}
