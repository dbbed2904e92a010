#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use super::super::super::features::Features;
use super::super::{Sample, judge};
use super::*;
use crate::cost::Machine;
use tensorwright_machine::{Cpu, Goal};

/// Synthetic schedules on a machine where rows take four times the estimate, and bytes from memory
/// half.
fn samples(programs: usize) -> Samples {
    let machine = Machine::of(&Goal::new(Cpu::avx512()));
    let mut samples = Samples::new("made up", "avx512", &machine);
    let mut rng = Rng::new(5);
    for program in 0..programs {
        for _ in 0..12 {
            let mut seconds = 0.0;
            let (mut features, mut amounts) = (Vec::new(), Vec::new());
            for _ in 0..3 {
                let of = |kind: &Kind, rng: &mut Rng| match kind {
                    Kind::Rows => 1e4 * rng.unit(),
                    Kind::LoadedFar => 2e6 * rng.unit(),
                    Kind::Issue => 1e5 * rng.unit(),
                    _ => 0.0,
                };
                let own: Vec<f64> = Kind::ALL.iter().map(|kind| of(kind, &mut rng)).collect();
                for ((kind, amount), price) in Kind::ALL.iter().zip(&own).zip(&samples.prices) {
                    let factor = match kind {
                        Kind::Rows => 4.0,
                        Kind::LoadedFar => 0.5,
                        _ => 1.0,
                    };
                    seconds += amount * price * factor * 1e-9;
                }
                let logs = own.iter().map(|amount| libm::log2(1.0 + amount) as f32 / 16.0);
                let others = Features::names().len() - Kind::ALL.len();
                features
                    .push((0..others).map(|at| f32::from(u8::from(at == 0))).chain(logs).collect());
                amounts.push(own);
            }
            let program = format!("p{program}");
            samples.list.push(Sample { program, threads: 1, seconds, features, amounts });
        }
    }
    samples
}

#[test]
fn the_gradient_is_that_of_finite_differences() {
    let samples = samples(1);
    let program = &programs(&samples)[0];
    let mut network = Network::new(&[5], 3);
    // The last layer starts with zeros: only its own derivatives are nonzero.
    network
        .0
        .parameters_mut()
        .iter_mut()
        .enumerate()
        .for_each(|(n, w)| *w += 0.01 * (n % 7) as f32);
    let mut found = Vec::new();
    gradient(&network, program, &mut |network, slopes| {
        let mut tape = network.0.tape();
        network.0.forward(&program.features, &mut tape);
        network.0.backward(slopes, &mut tape);
        found = tape.gradient().to_vec();
    });
    let longest = found.iter().fold(0.0f32, |most, slope| most.max(slope.abs()));
    for place in (0..found.len()).step_by(7) {
        let moved = |by: f32| {
            let mut network = network.clone();
            network.0.parameters_mut()[place] += by;
            gradient(&network, program, &mut |_, _| {})
        };
        // Single precision: differences of 0.01 are accurate to about a thousandth of the largest
        // slope.
        let expected = (moved(0.01) - moved(-0.01)) / 0.02;
        let error = (f64::from(found[place]) - expected).abs();
        assert!(error <= 0.02 * f64::from(longest), "{place}: {} {expected}", found[place]);
    }
}

#[test]
fn prices_that_differ_from_those_of_the_analytical_model_are_learned() {
    let all = samples(60);
    let (mut learned_from, mut unseen) = (all.clone(), all);
    learned_from.list.truncate(40 * 12);
    unseen.list.drain(..40 * 12);
    let training = Training { epochs: 120, ..Training::default() };
    let mut losses = Vec::new();
    let weights = train(&learned_from, &training, None, &mut |_, loss, _| {
        losses.push(loss);
        true
    });
    assert!(losses[losses.len() - 1] < 0.2 * losses[0], "{losses:?}");
    let mean = |weights: &Weights| {
        let all = judge(&unseen, weights);
        all.iter().map(|of| of.correlation).sum::<f64>() / all.len() as f64
    };
    let (before, after) = (mean(&Weights::unlearned()), mean(&weights));
    assert!(after > 0.97 && after > before, "{before} {after}");
}

#[test]
fn samples_survive_a_file_and_a_writer_that_was_interrupted() {
    let samples = samples(1);
    let lines: String = samples.list.iter().map(Sample::to_line).collect();
    let text = samples.header() + &lines;
    let read = Samples::parse(&text).unwrap();
    let text_again: String = read.list.iter().map(|sample| sample.program.clone()).collect();
    assert_eq!((read.list.len(), text_again), (12, "p0".repeat(12)));
    // Files keep times to a few units of the last place.
    let is_same = |(a, b): (&Sample, &Sample)| {
        a.features == b.features && (a.seconds / b.seconds - 1.0).abs() < 1e-15
    };
    assert!(read.list.iter().zip(&samples.list).all(is_same));
    assert_eq!(Samples::parse(&text[..text.len() - 20]).unwrap().list.len(), 11);
    let error = Samples::parse(&text.replacen("\"seconds\":", "\"seconds\":-", 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2 is not a cost-model sample: its time is not a positive number\n  help: `tensorwright cost-model measure` makes samples \
         for this version"
    );
}

#[test]
fn the_shipped_weights_can_be_read() {
    let text = include_str!("../../../../weights/cpu.json");
    let weights = Weights::parse(text).unwrap();
    assert_eq!(&weights, Weights::shipped());
    let error = Weights::parse(&text.replacen("\"format\":1", "\"format\":2", 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a cost-model weights file: format version 2, expected 1\n  help: `tensorwright cost-model train` makes weights \
         for this version"
    );
}
