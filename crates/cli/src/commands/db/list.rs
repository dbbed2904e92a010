//! `tensorwright db ls`

use std::io::Write;

use tensorwright::printable;
use tensorwright_outcome::Seconds;
use tensorwright_records::{KeySummary, Location, RunFilter, RunSummary};

use super::table::{gflops, moment, sizes, table};
use super::{LsArgs, existing, failed};
use crate::args::Format;
use crate::failure::Outcome;
use crate::report;

/// Lists keys or runs.
pub(super) fn run(db: Option<&Location>, args: &LsArgs) -> Outcome {
    let format = args.output.format;
    let store = existing(db, format)?;
    let fail = |error| failed(&error, format);
    if args.runs {
        let filter = RunFilter { def: args.def.clone(), ..RunFilter::default() };
        let runs = store.runs(&filter).map_err(fail)?;
        return match format {
            Format::Json => Ok(report::json(&serde_json::json!({ "runs": runs }))?),
            Format::Text => {
                Ok(write!(crate::terminal::out(), "{}", printable(&runs_table(&runs)))?)
            }
        };
    }
    let mut keys = store.keys().map_err(fail)?;
    keys.retain(|summary| args.def.as_ref().is_none_or(|def| summary.program.def == *def));
    match format {
        Format::Json => report::json(&serde_json::json!({
            "file": store.location().to_string(),
            "bytes": store.bytes().map_err(fail)?,
            "keys": keys,
        }))?,
        Format::Text => write!(crate::terminal::out(), "{}", printable(&keys_table(&keys)))?,
    }
    super::warn_of_damage(&*store);
    Ok(())
}

fn keys_table(keys: &[KeySummary]) -> String {
    let head = [
        "def",
        "sizes",
        "threads",
        "trials",
        "best",
        "GFLOP/s",
        "machine",
        "compiler",
        "precision",
    ];
    let row = |summary: &KeySummary| {
        let seconds = summary.best.as_ref().map(|best| best.seconds);
        let none = || "-".to_owned();
        vec![
            summary.program.def.clone(),
            sizes(&summary.program.sizes),
            summary.key.threads.to_string(),
            (summary.trials + summary.removed).to_string(),
            seconds.map_or_else(none, |seconds| Seconds(seconds).to_string()),
            seconds.map_or_else(none, |seconds| gflops(summary.program.flops, seconds)),
            summary.key.target.split(" [").next().unwrap_or_default().to_owned(),
            summary.key.compiler.clone(),
            summary.key.precision.to_string(),
        ]
    };
    table(&head, &keys.iter().map(row).collect::<Vec<_>>())
}

fn runs_table(runs: &[RunSummary]) -> String {
    let head =
        ["run", "began (UTC)", "def", "sizes", "threads", "strategy", "seed", "trials", "ended"];
    let row = |run: &RunSummary| {
        vec![
            // Enough to tell runs apart; `show` takes a prefix.
            run.info.id.as_str().chars().take(10).collect(),
            moment(run.info.started),
            run.def.clone(),
            sizes(&run.sizes),
            run.key.threads.to_string(),
            run.info.strategy.clone(),
            run.info.seed.to_string(),
            run.trials.to_string(),
            run.end.as_ref().map_or_else(|| "-".to_owned(), |end| end.status.clone()),
        ]
    };
    table(&head, &runs.iter().map(row).collect::<Vec<_>>())
}
