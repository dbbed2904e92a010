//! Training (section 5.3).
//!
//! Training targets the order of the schedules of one program, above all of the fast ones. The loss
//! is the squared difference between the logarithms of estimated and measured times, after
//! subtracting the mean difference of the program. A sample is weighted by its speed relative to
//! the best of the program. Some programs are held out; the weights that do best on them are kept.

use tensorwright_learn::{Adam, Optimiser};
use tensorwright_random::Rng;

use super::super::Kind;
use super::network::Network;
use super::samples::Samples;
use super::weights::{Provenance, Weights};

/// Training options.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Training {
    /// The units of the hidden layers.
    pub hidden: Vec<usize>,
    /// The number of epochs.
    pub epochs: usize,
    /// The learning rate.
    pub rate: f32,
    /// The weight decay per step.
    pub decay: f32,
    /// One in this many programs is held out for validation.
    pub kept: usize,
    /// The random seed.
    pub seed: u64,
}

impl Default for Training {
    fn default() -> Self {
        Self { hidden: vec![24, 16], epochs: 300, rate: 2e-3, decay: 1e-3, kept: 6, seed: 0 }
    }
}

/// Trains on samples, starting from previous weights if these have the same size. `watch` receives
/// the epoch and the training and validation losses, and returns whether to continue.
pub fn train(
    samples: &Samples,
    training: &Training,
    from: Option<&Weights>,
    watch: &mut dyn FnMut(usize, f64, f64) -> bool,
) -> Weights {
    let network = match from {
        Some(from) if from.hidden() == training.hidden => from.network().clone(),
        _ => Network::new(&training.hidden, training.seed),
    };
    let mut rng = Rng::new(training.seed);
    let mut programs: Vec<Program> = programs(samples);
    rng.shuffle(&mut programs);
    let kept =
        if programs.len() >= 2 * training.kept { programs.len() / training.kept.max(2) } else { 0 };
    let (kept, learned) = programs.split_at(kept);
    let mut optimiser = Adam::with_rate(training.rate);
    let mut order: Vec<usize> = (0..learned.len()).collect();
    let (mut best, mut now) = ((f64::INFINITY, network.clone()), network);
    for epoch in 0..training.epochs {
        rng.shuffle(&mut order);
        let mut loss = 0.0;
        for program in &order {
            loss += step(&mut now, &learned[*program], &mut optimiser, training);
        }
        let mean = |sum: f64, count: usize| sum / count.max(1) as f64;
        let loss = mean(loss, learned.len());
        let judged = kept.iter().map(|program| gradient(&now, program, &mut |_, _| {})).sum();
        let judged = if kept.is_empty() { loss } else { mean(judged, kept.len()) };
        if judged < best.0 {
            best = (judged, now.clone());
        }
        if !watch(epoch, loss, judged) {
            break;
        }
    }
    let provenance = Provenance {
        machine: samples.machine.clone(),
        target: samples.target.clone(),
        programs: learned.len() + kept.len(),
        samples: samples.list.len(),
        seed: training.seed,
    };
    Weights::new(provenance, training.hidden.clone(), best.1)
}

/// The samples of one program.
struct Program {
    /// Features of all stages of all samples.
    features: Vec<f32>,
    /// Costs of all stages by the analytical model, kind by kind.
    costs: Vec<f64>,
    samples: Vec<TrainingSample>,
}

struct TrainingSample {
    /// The number of stages.
    stages: usize,
    /// The logarithm of its time.
    log: f64,
    weight: f64,
}

fn programs(samples: &Samples) -> Vec<Program> {
    let of = |numbers: &[usize]| {
        let list = || numbers.iter().map(|number| &samples.list[*number]);
        let best = list().map(|sample| sample.seconds).fold(f64::INFINITY, f64::min);
        let weights: f64 = list().map(|sample| best / sample.seconds).sum();
        let measured = |sample: &super::Sample| TrainingSample {
            stages: sample.features.len(),
            log: libm::log(sample.seconds),
            weight: best / sample.seconds / weights,
        };
        let priced = |amounts: &Vec<f64>| -> Vec<f64> {
            amounts.iter().zip(&samples.prices).map(|(amount, price)| amount * price).collect()
        };
        Program {
            features: list().flat_map(|sample| sample.features.iter().flatten()).copied().collect(),
            costs: list().flat_map(|sample| sample.amounts.iter().flat_map(priced)).collect(),
            samples: list().map(measured).collect(),
        }
    };
    // A single schedule has no order to learn.
    let found = samples.programs();
    found.iter().filter(|(_, numbers)| numbers.len() > 1).map(|(_, numbers)| of(numbers)).collect()
}

/// One gradient step on one program; returns the loss before it.
fn step(
    network: &mut Network,
    program: &Program,
    optimiser: &mut Adam,
    training: &Training,
) -> f64 {
    let mut found = Vec::new();
    let loss = gradient(network, program, &mut |network, slopes| {
        let mut tape = network.0.tape();
        network.0.forward(&program.features, &mut tape);
        network.0.backward(slopes, &mut tape);
        tape.clip(1.0);
        found = tape.gradient().to_vec();
    });
    let parameters = network.0.parameters_mut();
    let shrink = training.decay;
    found.iter_mut().zip(parameters.iter()).for_each(|(slope, weight)| *slope += shrink * weight);
    optimiser.step(parameters, &found);
    loss
}

/// The loss of a program; its derivatives by the network outputs go to `back`.
fn gradient(network: &Network, program: &Program, back: &mut dyn FnMut(&Network, &[f32])) -> f64 {
    let mut tape = network.0.tape();
    let factors = network.forward(&program.features, &mut tape);
    let kinds = Kind::ALL.len();
    let (mut at, mut errors, mut sums) = (0, Vec::new(), Vec::new());
    for sample in &program.samples {
        let range = at..at + sample.stages * kinds;
        let terms = program.costs[range.clone()].iter().zip(&factors[range.clone()]);
        let sum: f64 = terms.map(|(cost, by)| cost * f64::from(*by)).sum::<f64>().max(1.0);
        at = range.end;
        sums.push(sum);
        errors.push(libm::log(sum) - sample.log);
    }
    let mean: f64 = errors.iter().zip(&program.samples).map(|(e, of)| e * of.weight).sum();
    let centred = |error: &f64| error - mean;
    let loss =
        errors.iter().zip(&program.samples).map(|(e, of)| of.weight * centred(e) * centred(e));
    let loss = loss.sum();
    let mut slopes = vec![0.0; factors.len()];
    let mut at = 0;
    for ((sample, sum), error) in program.samples.iter().zip(&sums).zip(&errors) {
        // The weights add up to 1, so the derivative of the mean cancels.
        let outer = 2.0 * sample.weight * centred(error) / sum;
        for place in at..at + sample.stages * kinds {
            let slope = outer * program.costs[place] * f64::from(factors[place]);
            slopes[place] = Network::slopes(factors[place], slope as f32);
        }
        at += sample.stages * kinds;
    }
    back(network, &slopes);
    loss
}

#[cfg(test)]
mod tests;
