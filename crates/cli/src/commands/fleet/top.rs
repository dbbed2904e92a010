//! `tensorwright fleet top`: a live view in the terminal.

use std::io::{IsTerminal, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use tensorwright::printable;
use tensorwright_fleet::{Fleet, RunStatus, WorkerStatus};
use tensorwright_outcome::{Outcome, Seconds};
use tensorwright_records::{Result, Url};

use super::snapshot::Snapshot;
use crate::commands::db::table::table;
use crate::commands::tune::stop_on_signals;

/// The most workers and runs to show.
const MOST: usize = 15;

/// How often the loop checks whether to stop.
const TICK: Duration = Duration::from_millis(100);

/// Show workers, runs and throughput, refreshed every two seconds
#[derive(Debug, Args)]
pub(super) struct TopArgs {
    /// The refresh interval in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,

    /// Print once and exit; the default if standard output is not a terminal
    #[arg(long)]
    once: bool,
}

/// Refreshes until it is told to stop.
pub(super) fn run(args: &TopArgs, url: &Url) -> Result<()> {
    let mut fleet = Fleet::connect(url)?;
    let stop = stop_on_signals();
    let is_live = std::io::stdout().is_terminal() && !args.once;
    while !stop.load(Ordering::Relaxed) {
        let text = match Snapshot::take(&mut fleet) {
            Ok(snapshot) => shown(&snapshot),
            // A transient error is retried.
            Err(error) if is_live && tensorwright_fleet::passes(&error) => format!("{error}\n"),
            Err(error) => return Err(error),
        };
        let clear = if is_live { "\x1b[H\x1b[2J" } else { "" };
        // The reader may have closed the pipe.
        if write!(std::io::stdout(), "{clear}{}", printable(&text)).is_err() || !is_live {
            return Ok(());
        }
        let _ = std::io::stdout().flush();
        let mut left = Duration::from_secs(args.every);
        while !left.is_zero() && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
            left = left.saturating_sub(TICK);
        }
    }
    Ok(())
}

fn shown(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for class in &snapshot.classes {
        let rate = snapshot.rate(class).map_or_else(String::new, |rate| format!(", {rate:.1}/s"));
        let kinds = Outcome::KINDS.iter().zip(class.kinds).filter(|(_, count)| *count > 0);
        let kinds: Vec<String> = kinds.map(|(kind, count)| format!("{count} {kind}")).collect();
        text += &format!(
            "{}\n  {} runs, {} waiting, {} held, {} done{rate}; {} workers, {} set aside\n  {}\n",
            class.class,
            class.runs,
            class.ready,
            class.leased,
            class.done,
            class.workers,
            class.quarantined,
            kinds.join(", ")
        );
    }
    text += "\n";
    let head = ["run", "operator", "status", "done", "waiting", "held", "best", "minutes"];
    let rows: Vec<Vec<String>> = snapshot.runs.iter().take(MOST).map(run_row).collect();
    text += &table(&head, &rows);
    text += "\n";
    let head = ["worker", "state", "held", "done", "seen", "GFLOP/s", "why"];
    let rows: Vec<Vec<String>> = snapshot.workers.iter().take(MOST).map(worker_row).collect();
    text += &table(&head, &rows);
    if snapshot.workers.len() > MOST {
        text += &format!("and {} more\n", snapshot.workers.len() - MOST);
    }
    text
}

fn run_row(run: &RunStatus) -> Vec<String> {
    let sizes: Vec<String> =
        run.sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    vec![
        run.run.clone(),
        format!("{} {}", run.def, sizes.join(",")),
        run.status.clone(),
        run.done().to_string(),
        run.waiting.to_string(),
        run.held.to_string(),
        run.best.map_or_else(String::new, |best| format!("{:.2}", Seconds(best))),
        format!("{:.1}", run.age / 60.0),
    ]
}

fn worker_row(worker: &WorkerStatus) -> Vec<String> {
    vec![
        worker.name.clone(),
        worker.state.clone(),
        worker.held.to_string(),
        worker.kinds.iter().sum::<u64>().to_string(),
        format!("{:.0} s", worker.seen),
        worker.probe.map_or_else(String::new, |probe| format!("{probe:.1}")),
        worker.reason.clone().unwrap_or_default(),
    ]
}
