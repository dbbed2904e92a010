//! CSV export: one line per trial, for spreadsheets and data frames.

use std::io::Write;
use std::path::Path;

use serde_json::Value;

use crate::answer::RunSummary;
use crate::error::{Error, Result};
use crate::model::Trial;
use crate::store::{RunFilter, Store};

const COLUMNS: [&str; 26] = [
    "def",
    "sizes",
    "program",
    "family",
    "target",
    "threads",
    "compiler",
    "precision",
    "run",
    "strategy",
    "seed",
    "number",
    "origin",
    "outcome",
    "seconds",
    "raw_seconds",
    "spread",
    "runs",
    "roofline",
    "cut",
    "reason",
    "elapsed",
    "algorithm",
    "point",
    "values",
    "schedule",
];

/// Writes the trials of the selected runs; returns their number.
///
/// # Errors
/// If the database cannot be read or the file, whose name is for messages, cannot be written.
pub fn write_csv(
    store: &dyn Store,
    runs: &RunFilter,
    out: &mut dyn Write,
    name: &Path,
) -> Result<u64> {
    let failed = |error: std::io::Error| Error::file(name, &error);
    let not_written = |error: csv::Error| failed(error.into());
    let mut lines = csv::Writer::from_writer(out);
    lines.write_record(COLUMNS).map_err(not_written)?;
    let mut trials = 0;
    store.each_trial(runs, &mut |run, trial| {
        trials += 1;
        lines.write_record(fields(run, &trial)).map_err(not_written)
    })?;
    lines.flush().map_err(failed)?;
    Ok(trials)
}

/// The fields of a line, in the order of [`COLUMNS`].
fn fields(run: &RunSummary, trial: &Trial) -> [String; COLUMNS.len()] {
    let sizes: Vec<String> = run.sizes.iter().map(|(name, n)| format!("{name}={n}")).collect();
    let point: Vec<String> = trial.point.iter().map(u32::to_string).collect();
    let timing = trial.outcome.timing();
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    [
        run.def.clone(),
        sizes.join(" "),
        run.key.program.clone(),
        run.key.family.clone(),
        run.key.target.clone(),
        run.key.threads.to_string(),
        run.key.compiler.clone(),
        run.key.precision.to_string(),
        run.info.id.to_string(),
        run.info.strategy.clone(),
        run.info.seed.to_string(),
        trial.number.to_string(),
        trial.origin.to_string(),
        trial.outcome.kind().to_owned(),
        number(timing.map(|timing| timing.seconds)),
        number(timing.map(|timing| timing.raw_seconds)),
        number(timing.map(|timing| timing.spread)),
        timing.map(|timing| timing.runs.to_string()).unwrap_or_default(),
        number(timing.and_then(|timing| timing.roofline)),
        timing.map(|timing| timing.cut.to_string()).unwrap_or_default(),
        trial.outcome.reason().unwrap_or_default(),
        trial.elapsed.to_string(),
        trial.algorithm.clone(),
        point.join(" "),
        values(&run.info.meta, trial),
        trial.schedule.clone(),
    ]
}

/// The values of a point with the recorded names of their parameters: `C.m=8; unroll=4`. A value
/// that was not recorded is shown as its rank, `#3`.
fn values(meta: &Value, trial: &Trial) -> String {
    let mut algorithms = meta.get("algorithms").and_then(Value::as_array).into_iter().flatten();
    let own = |algorithm: &&Value| {
        algorithm.get("name").and_then(Value::as_str) == Some(trial.algorithm.as_str())
    };
    // Older runs have one unnamed space.
    let space = algorithms.find(own).unwrap_or(meta);
    let parameters = space.get("parameters").and_then(Value::as_array);
    let Some(parameters) = parameters else { return String::new() };
    let value = |(rank, parameter): (&u32, &Value)| {
        let name = parameter.get("name").and_then(Value::as_str).unwrap_or("(unnamed)");
        match parameter.get("values").and_then(|values| values.get(*rank as usize)) {
            Some(Value::String(value)) => format!("{name}={value}"),
            Some(value) => format!("{name}={value}"),
            None => format!("{name}=#{rank}"),
        }
    };
    let values: Vec<String> = trial.point.iter().zip(parameters).map(value).collect();
    values.join("; ")
}
