//! `tensorwright cost-model train`

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use tensorwright_pipeline::{Training, train};

use crate::args::{Format, OutputArgs};
use crate::commands::tune::{failure, stop_on_signals};
use crate::failure::{InFormat, Outcome};
use crate::files;

/// Train the weights of a cost model on samples
///
/// One program in six is held out for validation; the weights with the best validation result are
/// kept. Ctrl-C stops early and keeps them.
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

    /// Initial weights
    #[arg(long, value_name = "WEIGHTS.json")]
    from: Option<PathBuf>,

    /// Training epochs
    #[arg(long, value_name = "N", default_value_t = Training::default().epochs)]
    epochs: usize,

    /// The seed of the held-out programs and of the initial weights
    #[arg(long, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    format: OutputArgs,
}

/// Trains weights.
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
            eprintln!("epoch {}: training loss {loss:.4}, validation loss {judged:.4}", epoch + 1);
        }
        !stop.load(Ordering::Relaxed)
    });
    files::write_bytes(&args.output, weights.to_json().as_bytes()).in_format(format)?;
    let about = weights.provenance();
    match format {
        Format::Text => println!(
            "trained on {} schedules of {} programs on {}; validation loss {least:.4}: {}",
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
