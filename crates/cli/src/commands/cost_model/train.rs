//! `tensorwright cost-model train`

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use tensorwright_pipeline::{Training, train};

use crate::args::{Format, OutputArgs};
use crate::commands::tune::{failure, stop_on_signals};
use crate::failure::{InFormat, Outcome};
use crate::files;

/// Learn the weights of a cost model from samples
///
/// One of six programs is not learned from; the weights that do best on those are kept. Ctrl-C ends early and keeps them.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  tensorwright cost-model train samples.jsonl --output weights.json")]
pub(super) struct TrainArgs {
    /// Files of samples
    #[arg(value_name = "SAMPLES.jsonl", required = true)]
    samples: Vec<PathBuf>,

    /// The file to write
    #[arg(short, long, value_name = "WEIGHTS.json")]
    output: PathBuf,

    /// Start with these weights
    #[arg(long, value_name = "WEIGHTS.json")]
    from: Option<PathBuf>,

    /// How often all programs are gone through
    #[arg(long, value_name = "N", default_value_t = Training::default().epochs)]
    epochs: usize,

    /// Decides what is not learned from, and the first weights
    #[arg(long, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    format: OutputArgs,
}

/// Trains.
pub(super) fn run(args: &TrainArgs) -> Outcome {
    let format = args.format.format;
    let samples = super::samples(args.samples.iter().map(PathBuf::as_path), format)?;
    if samples.programs().iter().all(|(_, numbers)| numbers.len() < 2) {
        let text = "there is nothing to learn from: no program has two schedules\n  help: `tensorwright cost-model measure` \
                    measures more";
        return Err(failure(&std::io::Error::other(text), format));
    }
    let from = args.from.as_ref().map(|path| files::weights(path)).transpose().in_format(format)?;
    let mut training = Training::default();
    training.epochs = args.epochs;
    training.seed = args.seed;
    let stop = stop_on_signals();
    let mut least = f64::INFINITY;
    let weights = train(&samples, &training, from.as_ref(), &mut |epoch, loss, judged| {
        least = least.min(judged);
        if format == Format::Text && (epoch + 1) % 25 == 0 {
            eprintln!(
                "epoch {}: loss {loss:.4}, on programs not learned from {judged:.4}",
                epoch + 1
            );
        }
        !stop.load(Ordering::Relaxed)
    });
    files::write_bytes(&args.output, weights.to_json().as_bytes()).in_format(format)?;
    let about = weights.provenance();
    match format {
        Format::Text => println!(
            "learned from {} schedules of {} programs on {}; loss on those not learned from {least:.4}: {}",
            about.samples,
            about.programs,
            about.machine,
            args.output.display()
        ),
        Format::Json => crate::report::json(&serde_json::json!({
            "samples": about.samples, "programs": about.programs, "loss": least, "file": args.output,
        }))?,
    }
    Ok(())
}
