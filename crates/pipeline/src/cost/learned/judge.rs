//! Evaluation of cost models on programs with many measured schedules.

use super::super::Kind;
use super::network::{Network, cost};
use super::samples::Samples;
use super::weights::Weights;

/// The quality of a model's choices on one program.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelEvaluation {
    /// The program.
    pub program: String,
    /// The number of threads.
    pub threads: usize,
    /// The number of measured schedules.
    pub schedules: usize,
    /// Spearman's rank correlation between estimated and measured times.
    pub correlation: f64,
    /// The time of the first choice relative to the best schedule.
    pub first: f64,
    /// The time of the best of the first five choices relative to the best schedule.
    pub best_of_five: f64,
}

/// Evaluates weights on samples, program by program.
#[must_use]
pub fn judge(samples: &Samples, weights: &Weights) -> Vec<ModelEvaluation> {
    let network = weights.network();
    let of = |((program, threads), numbers): &((&str, usize), Vec<usize>)| {
        let expected: Vec<f64> =
            numbers.iter().map(|number| expected(samples, *number, network)).collect();
        let seconds: Vec<f64> =
            numbers.iter().map(|number| samples.list[*number].seconds).collect();
        let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by(|a, b| expected[*a].total_cmp(&expected[*b]));
        let least = |count: usize| {
            let chosen = order.iter().take(count).map(|place| seconds[*place]);
            chosen.fold(f64::INFINITY, f64::min) / best
        };
        ModelEvaluation {
            program: (*program).to_owned(),
            threads: *threads,
            schedules: numbers.len(),
            correlation: correlation(&ranks(&expected), &ranks(&seconds)),
            first: least(1),
            best_of_five: least(5),
        }
    };
    samples.programs().iter().map(of).collect()
}

/// The estimated cost of a sample.
fn expected(samples: &Samples, number: usize, network: &Network) -> f64 {
    let sample = &samples.list[number];
    let features: Vec<f32> = sample.features.iter().flatten().copied().collect();
    let factors = network.factors(&features);
    let of_stage =
        |(amounts, factors): (&Vec<f64>, &[f32])| cost(amounts, &samples.prices, factors);
    sample.amounts.iter().zip(factors.chunks(Kind::ALL.len())).map(of_stage).sum::<f64>()
}

/// The rank of every value; ties share the mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for run in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let below = values.iter().filter(|value| **value < values[run[0]]).count();
        let rank = below as f64 + (run.len() - 1) as f64 / 2.0;
        run.iter().for_each(|place| ranks[*place] = rank);
    }
    ranks
}

/// The correlation of two lists of ranks; 0 if one is constant.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = (a.len().max(1) - 1) as f64 / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    let scale = (product(a, a) * product(b, b)).sqrt();
    if scale > 0.0 { product(a, b) / scale } else { 0.0 }
}
