//! `tensorwright compare`

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use tensorwright::Diagnostics;
use tensorwright_landscape::{Comparison, Experiment, Landscape};
use tensorwright_search::Strategy;
use tensorwright_search::registry::STRATEGIES;

use crate::args::{Format, OutputArgs, strategies};
use crate::failure::{InFormat, Outcome};
use crate::{files, report};

/// Compare search strategies on recorded landscapes
///
/// Runs every strategy on every landscape with every seed. Nothing is built or measured, so results
/// are reproducible. Prints the trials needed to reach shares of the optimum's speed, the share
/// reached after given numbers of trials, and the strategy's own time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright compare --landscape bench/landscapes/gemm.landscape
  tensorwright compare --landscape a.landscape b.landscape --strategies opevo,g-bfs,portfolio
  tensorwright compare --landscape gemm.landscape --seeds 5 --trials 200 --format json")]
pub(crate) struct CompareArgs {
    /// The recorded landscapes
    #[arg(long = "landscape", value_name = "FILE", required = true, num_args = 1..)]
    landscapes: Vec<PathBuf>,

    /// The strategies, or `all`
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "all", value_parser = strategies(&[("all", "all of them")]))]
    strategies: Vec<String>,

    /// Runs per strategy, with seeds 0, 1, 2, ...
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,

    /// Trials per run
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    trials: u32,

    /// Points per proposal
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    batch: u16,

    /// Start from the landscape's points near the default schedule
    #[arg(long)]
    start: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// Compares strategies.
pub(crate) fn run(args: &CompareArgs) -> Outcome {
    let format = args.output.format;
    let asked = |s: &&Strategy| args.strategies.iter().any(|name| name == "all" || name == s.name);
    let strategies: Vec<&Strategy> = STRATEGIES.iter().filter(asked).collect();
    let landscapes: Result<Vec<Landscape>, Diagnostics> =
        args.landscapes.iter().map(|path| files::landscape(path)).collect();
    let landscapes = landscapes.in_format(format)?;
    let experiment = Experiment {
        seeds: args.seeds,
        trials: args.trials as usize,
        batch: args.batch.into(),
        start: args.start,
        threads: std::thread::available_parallelism().map_or(1, Into::into),
    };
    let mut all = Vec::new();
    for (path, landscape) in args.landscapes.iter().zip(&landscapes) {
        let name = path.display().to_string();
        let comparison = compare(&name, landscape, &strategies, &experiment);
        match format {
            Format::Json => {
                all.push(serde_json::json!({ "landscape": name, "comparison": comparison }));
            }
            Format::Text => {
                let mut out = crate::terminal::out();
                writeln!(out, "{name}\n{comparison}")?;
            }
        }
    }
    if format == Format::Json {
        report::json(&serde_json::json!({ "comparisons": all }))?;
    }
    Ok(())
}

fn compare(
    name: &str,
    landscape: &Landscape,
    strategies: &[&Strategy],
    experiment: &Experiment,
) -> Comparison {
    let begin = Instant::now();
    let told = AtomicU64::new(0);
    let terminal = std::io::stderr().is_terminal();
    let progress = |done: usize, all: usize| {
        let seconds = begin.elapsed().as_secs();
        // At most once a second, by whichever thread comes first; once a minute if output is a
        // file.
        let pause = if terminal { 1 } else { 60 };
        let before = told.load(Ordering::Relaxed);
        let due = seconds >= before + pause;
        if due
            && told.compare_exchange(before, seconds, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            let left = begin.elapsed().mul_f64((all - done) as f64 / done.max(1) as f64);
            let (start, end) = if terminal { ("\r\x1b[K", "") } else { ("", "\n") };
            eprint!("{start}{name}: {done} of {all} runs, about {} s left{end}", left.as_secs());
        }
    };
    let comparison = Comparison::run(landscape, strategies, experiment, &thread_seconds, &progress);
    if terminal && told.load(Ordering::Relaxed) > 0 {
        eprint!("\r\x1b[K");
    }
    comparison
}

/// The CPU time of this thread, which excludes other work on the machine.
fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).map_or(0.0, |time| time.as_secs_f64())
}
