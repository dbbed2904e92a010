//! `tensorwright model`

mod eval;
mod measure;
mod train;

use std::path::Path;

use clap::{Args, Subcommand};
use tensorwright::Diagnostics;
use tensorwright_measure::WorkerCommand;
use tensorwright_pipeline::{Samples, Weights};

use crate::args::Format;
use crate::commands::tune::failure;
use crate::failure::{Failure, InFormat, Outcome};
use crate::files;

/// The largest files of samples and of weights that are read.
const MOST_SAMPLES: u64 = 1 << 30;
const MOST_WEIGHTS: u64 = 64 << 20;

/// Cost models of pipelines: measure schedules, learn from them, and judge what was learned
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright model measure samples.jsonl --random 100
  tensorwright model measure mine.jsonl --file examples/kernels/harris.tc --size H=512,W=512
  tensorwright model train samples.jsonl --output weights.json
  tensorwright model eval mine.jsonl --weights weights.json")]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    command: ModelCommand,
}

#[derive(Debug, Subcommand)]
enum ModelCommand {
    Measure(measure::MeasureArgs),
    Train(train::TrainArgs),
    Eval(eval::EvalArgs),
}

/// Runs a subcommand.
pub(crate) fn run(args: &ModelArgs, worker: WorkerCommand) -> Outcome {
    match &args.command {
        ModelCommand::Measure(args) => measure::run(args, worker),
        ModelCommand::Train(args) => train::run(args),
        ModelCommand::Eval(args) => eval::run(args),
    }
}

/// Reads samples; several files are taken together.
fn samples<'p>(
    paths: impl IntoIterator<Item = &'p Path>,
    format: Format,
) -> Result<Samples, Failure> {
    let mut all: Option<Samples> = None;
    for path in paths {
        let found = read_samples(path).in_format(format)?;
        let found = found.map_err(|text| failure(&std::io::Error::other(text), format))?;
        match &mut all {
            None => all = Some(found),
            Some(all) if all.prices == found.prices => all.list.extend(found.list),
            Some(_) => {
                let text = format!(
                    "{} was measured on another kind of machine\n  help: learn from samples of one kind at a time",
                    path.display()
                );
                return Err(failure(&std::io::Error::other(text), format));
            }
        }
    }
    Ok(all.unwrap_or_default())
}

fn read_samples(path: &Path) -> Result<Result<Samples, String>, Diagnostics> {
    let help = "`tensorwright model measure` makes it";
    let text = files::own_text(path, MOST_SAMPLES, help)?;
    Ok(Samples::parse(&text).map_err(|error| format!("{}: {error}", path.display())))
}

/// Reads weights.
pub(crate) fn weights(path: &Path, format: Format) -> Result<Weights, Failure> {
    let help = "`tensorwright model train` makes it";
    let text = files::own_text(path, MOST_WEIGHTS, help).in_format(format)?;
    Weights::parse(&text).map_err(|error| {
        failure(&std::io::Error::other(format!("{}: {error}", path.display())), format)
    })
}
