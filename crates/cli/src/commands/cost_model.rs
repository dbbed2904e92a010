//! `tensorwright cost-model`

mod eval;
mod measure;
mod train;

use std::path::Path;

use clap::{Args, Subcommand};
use tensorwright_measure::WorkerCommand;
use tensorwright_pipeline::Samples;

use crate::args::Format;
use crate::commands::tune::failure;
use crate::failure::{Failure, InFormat, Outcome};
use crate::files;

/// Cost models of pipelines: measure samples, train weights, evaluate them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright cost-model measure samples.jsonl --random 100
  tensorwright cost-model measure mine.jsonl --file examples/kernels/harris.tc --size H=512,W=512
  tensorwright cost-model train samples.jsonl --output weights.json
  tensorwright cost-model eval mine.jsonl --weights weights.json")]
pub(crate) struct CostModelArgs {
    #[command(subcommand)]
    command: CostModelCommand,
}

#[derive(Debug, Subcommand)]
enum CostModelCommand {
    Measure(measure::MeasureArgs),
    Train(train::TrainArgs),
    Eval(eval::EvalArgs),
}

/// Runs a subcommand.
pub(crate) fn run(args: &CostModelArgs, worker: WorkerCommand) -> Outcome {
    match &args.command {
        CostModelCommand::Measure(args) => measure::run(args, worker),
        CostModelCommand::Train(args) => train::run(args),
        CostModelCommand::Eval(args) => eval::run(args),
    }
}

/// Reads and merges files of samples.
fn samples<'p>(
    paths: impl IntoIterator<Item = &'p Path>,
    format: Format,
) -> Result<Samples, Failure> {
    let mut all: Option<Samples> = None;
    for path in paths {
        let found = files::samples(path).in_format(format)?;
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
