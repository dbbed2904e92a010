//! `tensorwright db show`

use std::collections::BTreeMap;
use std::io::Write;

use tensorwright::printable;
use tensorwright_outcome::Seconds;
use tensorwright_records::{
    Error, Location, Origin, RunFilter, RunId, RunSummary, Store, Trial, TrialId,
};
use tensorwright_tuner::{RecordNames, described};

use super::table::{counted, moment, sizes, table};
use super::{ShowArgs, existing, failed, problem};
use crate::args::Format;
use crate::failure::{Failure, Outcome};
use crate::report;

/// Shows a run or a trial.
pub(super) fn run(db: Option<&Location>, args: &ShowArgs) -> Outcome {
    let format = args.output.format;
    let store = existing(db, format)?;
    let run = chosen(&*store, &args.run, format)?;
    match args.trial {
        Some(number) => show_trial(&*store, &run, number, format),
        None => show_run(&*store, &run, args),
    }
}

/// The only run whose name has the given prefix.
fn chosen(store: &dyn Store, name: &str, format: Format) -> Result<RunSummary, Failure> {
    let filter = RunFilter { id: Some(name.to_owned()), limit: 5, ..RunFilter::default() };
    let mut runs = store.runs(&filter).map_err(|error| failed(&error, format))?;
    if runs.len() > 1 {
        let names: Vec<&str> = runs.iter().map(|run| run.info.id.as_str()).collect();
        let message = format!("{} runs or more begin with `{name}`", runs.len());
        return Err(problem(message, &format!("write more of it: {}", names.join(", ")), format));
    }
    runs.pop().ok_or_else(|| failed(&Error::UnknownRun(RunId::named(name)), format))
}

fn show_trial(store: &dyn Store, run: &RunSummary, number: u64, format: Format) -> Outcome {
    let fail = |error| failed(&error, format);
    let id = TrialId { run: run.info.id.clone(), number };
    let after = number.checked_sub(1);
    let found = store.trials(&id.run, after, 1).map_err(fail)?.pop();
    let mut trial = found
        .filter(|trial| trial.number == number)
        .ok_or_else(|| fail(Error::UnknownTrial(id)))?;
    name_as_text(store, run, std::slice::from_mut(&mut trial)).map_err(fail)?;
    if format == Format::Json {
        return Ok(report::json(&trial)?);
    }
    let mut out = Vec::new();
    let Trial { origin, algorithm, point, outcome, elapsed, schedule, .. } = &trial;
    writeln!(out, "outcome   {outcome}")?;
    if let Some(timing) = outcome.timing() {
        writeln!(out, "clock     {}", Seconds(timing.raw_seconds))?;
    }
    writeln!(
        out,
        "origin    {origin}\nelapsed   {elapsed:.1} s\nalgorithm {algorithm}\npoint     {point:?}\n\n{schedule}"
    )?;
    print(&out)
}

/// Renames axes and tensors in trials from positional names to those of the program.
fn name_as_text(
    store: &dyn Store,
    run: &RunSummary,
    trials: &mut [Trial],
) -> tensorwright_records::Result<()> {
    let about = store.program(&run.key.program)?;
    let Some(program) = about.as_ref().and_then(described) else { return Ok(()) };
    let names = RecordNames::new(&program, || None);
    for trial in trials {
        if let Some(schedule) = names.own(&trial.schedule) {
            trial.schedule = schedule.to_string();
        }
        trial.algorithm = names.told(&trial.algorithm);
    }
    Ok(())
}

fn show_run(store: &dyn Store, run: &RunSummary, args: &ShowArgs) -> Outcome {
    let format = args.output.format;
    let fail = |error| failed(&error, format);
    let TrialSummary { mut fastest, outcomes, origins } =
        survey(store, run, args.top).map_err(fail)?;
    name_as_text(store, run, &mut fastest).map_err(fail)?;
    if format == Format::Json {
        return Ok(report::json(&serde_json::json!({
            "run": run,
            "outcomes": outcomes,
            "origins": origins,
            "fastest": fastest,
        }))?);
    }
    super::warn_of_damage(store);
    let mut out = Vec::new();
    let ended = run.end.as_ref().map_or_else(
        || "still running, or killed".to_owned(),
        |end| format!("{} {}", moment(end.ended), end.status),
    );
    writeln!(out, "run       {}", run.info.id)?;
    let threads = counted(run.key.threads.into(), "thread");
    writeln!(out, "program   {} {}, {threads}", run.def, sizes(&run.sizes))?;
    writeln!(out, "machine   {}", run.key.target)?;
    writeln!(out, "compiler  {}, precision {}", run.key.compiler, run.key.precision)?;
    writeln!(out, "strategy  {}, seed {}", run.info.strategy, run.info.seed)?;
    writeln!(out, "began     {}\nended     {ended}", moment(run.info.started))?;
    writeln!(out, "trials    {} ({})", run.trials, listed(outcomes))?;
    writeln!(out, "origins   {}", listed(origins))?;
    if !fastest.is_empty() {
        let row = |trial: &Trial| {
            vec![
                trial.number.to_string(),
                Seconds(trial.outcome.cost().unwrap_or_default()).to_string(),
                format!("{:.1} s", trial.elapsed),
                origin(trial),
                trial.algorithm.clone(),
            ]
        };
        let rows: Vec<Vec<String>> = fastest.iter().map(row).collect();
        write!(out, "\n{}", table(&["trial", "time", "elapsed", "origin", "algorithm"], &rows))?;
    }
    print(&out)
}

/// Prints text from records with control characters escaped.
fn print(text: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(text);
    Ok(crate::terminal::out().write_all(printable(&text).as_bytes())?)
}

/// A summary of the trials of a run.
struct TrialSummary {
    /// The fastest fully timed trials.
    fastest: Vec<Trial>,
    /// Counts by outcome.
    outcomes: BTreeMap<String, u64>,
    /// Counts by origin.
    origins: BTreeMap<String, u64>,
}

/// Counts as text: `3 measured, 1 crashed`.
fn listed(counts: BTreeMap<String, u64>) -> String {
    let counts: Vec<String> =
        counts.into_iter().map(|(name, count)| format!("{count} {name}")).collect();
    counts.join(", ")
}

/// The origin of a trial.
fn origin(trial: &Trial) -> String {
    match trial.origin {
        Origin::Unknown => "unknown".to_owned(),
        ref known => known.to_string(),
    }
}

/// Summarizes the trials of a run.
fn survey(
    store: &dyn Store,
    run: &RunSummary,
    top: usize,
) -> tensorwright_records::Result<TrialSummary> {
    let filter = RunFilter { id: Some(run.info.id.to_string()), ..RunFilter::default() };
    let (mut outcomes, mut origins) = (BTreeMap::new(), BTreeMap::new());
    let mut fastest: Vec<Trial> = Vec::new();
    let cost = |trial: &Trial| trial.outcome.cost().unwrap_or(f64::INFINITY);
    store.each_trial(&filter, &mut |_, trial| {
        *outcomes.entry(trial.outcome.kind().to_owned()).or_default() += 1;
        *origins.entry(origin(&trial)).or_default() += 1;
        if trial.outcome.timing().is_some_and(|timing| !timing.cut) {
            fastest.push(trial);
        }
        // Sorting in between bounds the memory of a long run.
        if fastest.len() > 2 * top.saturating_add(1000) {
            fastest.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
            fastest.truncate(top);
        }
        Ok(())
    })?;
    fastest.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    fastest.truncate(top);
    Ok(TrialSummary { fastest, outcomes, origins })
}
