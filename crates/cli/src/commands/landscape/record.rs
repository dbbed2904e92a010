//! `tensorwright landscape record`

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use tensorwright_measure::WorkerCommand;
use tensorwright_outcome::Outcome as Became;
use tensorwright_outcome::Seconds;
use tensorwright_space::Point;
use tensorwright_tuner::{LandscapePlan, Tuner, record_landscape};

use crate::args::{Format, OutputArgs, ProgramArgs, TargetArgs};
use crate::commands::space::SpaceOptions;
use crate::commands::tune::{failure, stop_on_signals};
use crate::failure::{InFormat, Outcome};

/// How often progress is printed.
const SELDOM: Duration = Duration::from_secs(5);

/// Measure every legal point of a space once, or a uniform sample
///
/// Results are kept in a partial file next to the landscape until all are there; the same command
/// resumes an interrupted run.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  tensorwright landscape record examples/kernels/gemm.tc --def gemm --size M=256,N=256,K=256 \\
      --preset tiles -o gemm.landscape")]
pub(super) struct RecordArgs {
    #[command(flatten)]
    program: ProgramArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    space: SpaceOptions,

    /// Measure a uniform sample of this many legal points instead of all
    #[arg(long, value_name = "N")]
    sample: Option<usize>,

    /// The seed of the order, the sample and the inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// The output file
    #[arg(short, long, value_name = "FILE.landscape")]
    output: PathBuf,

    #[command(flatten)]
    format: OutputArgs,
}

/// A line of the partial file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    point: Point,
    #[serde(flatten)]
    outcome: Became,
}

/// Records a landscape.
pub(super) fn run(args: &RecordArgs, worker: WorkerCommand) -> Outcome {
    let format = args.format.format;
    let program = crate::commands::program(&args.program).in_format(format)?;
    let target = crate::commands::target(&args.target.target).in_format(format)?;
    let sizes = crate::commands::sizes(&args.program).in_format(format)?;
    let stop = stop_on_signals();
    let tuner = Tuner::new(&program, worker)
        .map_err(|error| failure(&error, format))?
        .sizes(sizes)
        .target(target)
        .threads(args.target.threads.into())
        .seed(args.seed)
        .options(args.space.options());
    let mut plan = LandscapePlan::new(tuner);
    plan.sample = args.sample;
    let partial = partial_path(&args.output);
    let known = read(&partial);
    let wrong = |error: std::io::Error| {
        let text = format!("cannot write {}: {error}", partial.display());
        failure(&std::io::Error::other(text), format)
    };
    let mut file = OpenOptions::new().create(true).append(true).open(&partial).map_err(wrong)?;
    let mut progress = Progress::new(known.len(), format == Format::Text);
    let mut trouble = None;
    let landscape = record_landscape(&plan, known, &stop, &mut |point, outcome, done, total| {
        if trouble.is_none() {
            trouble = append(&mut file, point, outcome).err();
        }
        progress.show(done, total, outcome);
    });
    if let Some(error) = trouble {
        return Err(wrong(error));
    }
    let landscape = landscape.map_err(|error| failure(&error, format))?;
    let bytes = landscape.encode().map_err(|error| failure(&error, format))?;
    std::fs::write(&args.output, &bytes).map_err(|error| {
        let text = format!("cannot write {}: {error}", args.output.display());
        failure(&std::io::Error::other(text), format)
    })?;
    // The landscape is complete; a leftover partial file does no harm.
    let _ = std::fs::remove_file(&partial);
    let points = landscape.points().len();
    match format {
        Format::Text => {
            println!("{points} points in {} bytes: {}", bytes.len(), args.output.display());
        }
        Format::Json => crate::report::json(&serde_json::json!({
            "points": points, "bytes": bytes.len(), "file": args.output,
        }))?,
    }
    Ok(())
}

fn partial_path(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".partial.jsonl");
    PathBuf::from(name)
}

/// The results of an interrupted run; unreadable lines are measured again.
fn read(path: &Path) -> HashMap<Point, Became> {
    let Ok(file) = File::open(path) else { return HashMap::new() };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let line = |text: String| serde_json::from_str::<Line>(&text).ok();
    lines.filter_map(line).map(|line| (line.point, line.outcome)).collect()
}

fn append(file: &mut File, point: &Point, outcome: &Became) -> std::io::Result<()> {
    let line = Line { point: point.clone(), outcome: outcome.clone() };
    let mut text = serde_json::to_string(&line)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

/// Periodic progress output.
struct Progress {
    shows: bool,
    begun: Instant,
    last: Instant,
    before: usize,
    best: f64,
}

impl Progress {
    fn new(before: usize, shows: bool) -> Self {
        let now = Instant::now();
        Self { shows, begun: now, last: now, before, best: f64::INFINITY }
    }

    fn show(&mut self, done: usize, total: usize, outcome: &Became) {
        if let Some(seconds) = outcome.cost() {
            self.best = self.best.min(seconds);
        }
        if !self.shows || (self.last.elapsed() < SELDOM && done < total) {
            return;
        }
        self.last = Instant::now();
        let measured = done.saturating_sub(self.before).max(1);
        let left = self.begun.elapsed().mul_f64((total - done.min(total)) as f64 / measured as f64);
        let best = format!("{:.2}", Seconds(self.best));
        eprintln!("{done}/{total} points | best {best} | {} s left", left.as_secs());
    }
}
