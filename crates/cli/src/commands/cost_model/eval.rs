//! `tensorwright cost-model eval`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use tensorwright_pipeline::{ModelEvaluation, Samples, Training, Weights, judge, train};

use crate::args::{Format, OutputArgs};
use crate::failure::{InFormat, Outcome};

/// Evaluate a cost model on samples
///
/// `first` is the time of the model's favourite schedule divided by that of the fastest one; `of
/// five` is the best of its first five. 1 is perfect. The analytical model is evaluated next to it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright cost-model eval samples.jsonl
  tensorwright cost-model eval mine.jsonl --weights weights.json
  tensorwright cost-model eval samples.jsonl --folds 4")]
pub(super) struct EvalArgs {
    /// Files of samples
    #[arg(value_name = "SAMPLES.jsonl", required = true)]
    samples: Vec<PathBuf>,

    /// The weights to evaluate [default: those of this version]
    #[arg(long, value_name = "WEIGHTS.json")]
    weights: Option<PathBuf>,

    /// Cross-validate on these samples in N folds: each program is judged by weights trained on the
    /// other folds
    #[arg(long, value_name = "N", conflicts_with = "weights", value_parser = clap::value_parser!(u16).range(2..=100))]
    folds: Option<u16>,

    #[command(flatten)]
    output: OutputArgs,
}

/// Evaluates a model.
pub(super) fn run(args: &EvalArgs) -> Outcome {
    let format = args.output.format;
    let samples = super::samples(args.samples.iter().map(PathBuf::as_path), format)?;
    let learned = match (&args.weights, args.folds) {
        (Some(path), _) => judge(&samples, &crate::files::weights(path).in_format(format)?),
        (None, Some(folds)) => cross_validated(&samples, folds.into()),
        (None, None) => judge(&samples, Weights::shipped()),
    };
    let computed = judge(&samples, &Weights::unlearned());
    match format {
        Format::Text => text(&learned, &computed)?,
        Format::Json => {
            let both = learned.iter().zip(&computed);
            let row = |(learned, computed): (&ModelEvaluation, &ModelEvaluation)| {
                let numbers = |of: &ModelEvaluation| {
                    serde_json::json!({
                        "correlation": of.correlation, "first": of.first, "best_of_five": of.best_of_five,
                    })
                };
                serde_json::json!({
                    "program": learned.program, "threads": learned.threads, "schedules": learned.schedules,
                    "learned": numbers(learned), "analytical": numbers(computed),
                })
            };
            crate::report::json(&both.map(row).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

/// Judges each program by weights trained on the other folds, in the order of the samples.
fn cross_validated(samples: &Samples, folds: usize) -> Vec<ModelEvaluation> {
    let programs = samples.programs();
    let of_fold = |fold: usize, inside: bool| {
        let is_there = |(place, _): &(usize, &(_, Vec<usize>))| (place % folds == fold) == inside;
        let numbers = programs.iter().enumerate().filter(is_there).flat_map(|(_, (_, n))| n);
        let mut part = samples.clone();
        part.list = numbers.map(|number| samples.list[*number].clone()).collect();
        part
    };
    let judged = |fold: usize| {
        let weights = train(&of_fold(fold, false), &Training::default(), None, &mut |_, _, _| true);
        judge(&of_fold(fold, true), &weights)
    };
    let mut all: Vec<Vec<ModelEvaluation>> = (0..folds).map(judged).collect();
    all.iter_mut().for_each(|fold| fold.reverse());
    (0..programs.len()).filter_map(|place| all.get_mut(place % folds)?.pop()).collect()
}

fn text(learned: &[ModelEvaluation], computed: &[ModelEvaluation]) -> std::io::Result<()> {
    let mut out = crate::terminal::out();
    let width = learned.iter().map(|of| of.program.chars().count()).max().unwrap_or(0).max(8);
    writeln!(
        out,
        "{:width$}  threads  schedules | learned: first  of five  rank | analytical: first  of five  rank",
        "program"
    )?;
    for (a, b) in learned.iter().zip(computed) {
        writeln!(
            out,
            "{:width$}  {:7}  {:9} | {:14.3}  {:7.3}  {:4.2} | {:17.3}  {:7.3}  {:4.2}",
            a.program,
            a.threads,
            a.schedules,
            a.first,
            a.best_of_five,
            a.correlation,
            b.first,
            b.best_of_five,
            b.correlation
        )?;
    }
    let mean = |list: &[ModelEvaluation], of: fn(&ModelEvaluation) -> f64| {
        let sum: f64 = list.iter().map(|judgement| of(judgement).ln()).sum();
        (sum / list.len().max(1) as f64).exp()
    };
    let rank = |list: &[ModelEvaluation]| {
        list.iter().map(|of| of.correlation).sum::<f64>() / list.len().max(1) as f64
    };
    let (first, five) = (|of: &ModelEvaluation| of.first, |of: &ModelEvaluation| of.best_of_five);
    let schedules: usize = learned.iter().map(|of| of.schedules).sum();
    writeln!(
        out,
        "{:width$}  {:7}  {:9} | {:14.3}  {:7.3}  {:4.2} | {:17.3}  {:7.3}  {:4.2}",
        "mean",
        "",
        schedules,
        mean(learned, first),
        mean(learned, five),
        rank(learned),
        mean(computed, first),
        mean(computed, five),
        rank(computed)
    )
}
