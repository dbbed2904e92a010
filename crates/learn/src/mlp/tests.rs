//! Tests of gradients and training of the network.

use super::*;
use crate::{AdaDelta, Adam};

fn uniform(random: &mut SplitMix, count: usize) -> Vec<f32> {
    (0..count).map(|_| (2.0 * random.unit() - 1.0) as f32).collect()
}

/// The loss of a network in double precision, straight from the definition, for finite differences:
/// those of single precision are lost in rounding errors.
fn loss_in_double(sizes: &[usize], parameters: &[f64], rows: &[f32], targets: &[f32]) -> f64 {
    let mut total = 0.0;
    for (row, target) in rows.chunks(sizes[0]).zip(targets.chunks(sizes[sizes.len() - 1])) {
        let mut values: Vec<f64> = row.iter().map(|value| f64::from(*value)).collect();
        let mut start = 0;
        for (place, pair) in sizes.windows(2).enumerate() {
            let biases = start + pair[0] * pair[1];
            let outputs = (0..pair[1]).map(|output| {
                let weight = |input: usize| parameters[start + input * pair[1] + output];
                let sum: f64 = (0..pair[0]).map(|input| values[input] * weight(input)).sum();
                let sum = sum + parameters[biases + output];
                if place + 2 < sizes.len() { sum.max(0.0) } else { sum }
            });
            values = outputs.collect();
            start = biases + pair[1];
        }
        let differences = values.iter().zip(target).map(|(a, b)| a - f64::from(*b));
        total += differences.map(|difference| difference * difference).sum::<f64>();
    }
    total / targets.len() as f64
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for sizes in [&[3, 2][..], &[5, 9, 4], &[7, 16, 11, 3], &[6, 12, 12, 12, 5]] {
        let mut random = SplitMix::new(11);
        let mut network = Mlp::new(sizes, 3);
        // Biases must also be tested away from zero.
        for parameter in network.parameters_mut() {
            *parameter += 0.1 * (random.unit() as f32 - 0.5);
        }
        let rows = uniform(&mut random, 6 * sizes[0]);
        let targets = uniform(&mut random, 6 * sizes[sizes.len() - 1]);
        let mut tape = network.tape();
        let mut gradient = Vec::new();
        let outputs = network.forward(&rows, &mut tape);
        let loss = squared_error(outputs, &targets, &mut gradient);
        network.backward(&gradient, &mut tape);

        let mut parameters: Vec<f64> =
            network.parameters().iter().map(|value| f64::from(*value)).collect();
        let expected = loss_in_double(sizes, &parameters, &rows, &targets);
        assert!((f64::from(loss) - expected).abs() < 1e-5);
        for place in 0..parameters.len() {
            let (step, old) = (1e-6, parameters[place]);
            parameters[place] = old + step;
            let above = loss_in_double(sizes, &parameters, &rows, &targets);
            parameters[place] = old - step;
            let below = loss_in_double(sizes, &parameters, &rows, &targets);
            parameters[place] = old;
            let difference = (above - below) / (2.0 * step);
            let slope = f64::from(tape.gradient()[place]);
            assert!((slope - difference).abs() < 1e-4, "{sizes:?} {place}: {slope} {difference}");
        }
    }
}

#[test]
fn a_row_alone_gives_the_same_bits_as_among_others() {
    let network = Mlp::new(&[10, 33, 20, 7], 5);
    let rows = uniform(&mut SplitMix::new(2), 10 * 9);
    let (mut together, mut alone) = (network.tape(), network.tape());
    let outputs = network.forward(&rows, &mut together);
    for (row, outputs) in rows.chunks(10).zip(outputs.chunks(7)) {
        assert_eq!(network.forward(row, &mut alone), outputs);
    }
}

/// Trains a network on a function of four variables, and returns its last loss.
fn train(optimiser: &mut impl Optimiser, seed: u64) -> (f32, Mlp) {
    let mut random = SplitMix::new(seed);
    let mut network = Mlp::new(&[4, 32, 32, 1], seed);
    let (mut tape, mut gradient) = (network.tape(), Vec::new());
    let mut loss = f32::INFINITY;
    for _ in 0..1500 {
        let rows = uniform(&mut random, 32 * 4);
        let value = |row: &[f32]| row[0] * row[1] + row[2].max(0.0) - 0.5 * row[3];
        let targets: Vec<f32> = rows.chunks(4).map(value).collect();
        loss = squared_error(network.forward(&rows, &mut tape), &targets, &mut gradient);
        network.backward(&gradient, &mut tape);
        tape.clip(10.0);
        network.descend(&tape, optimiser);
    }
    (loss, network)
}

#[test]
fn both_optimisers_learn_and_repeat_themselves() {
    // The targets' variance is 0.3.
    let (loss, network) = train(&mut AdaDelta::default(), 1);
    assert!(loss < 0.01, "AdaDelta: {loss}");
    assert_eq!(network, train(&mut AdaDelta::default(), 1).1);
    let (loss, _) = train(&mut Adam::with_rate(3e-3), 1);
    assert!(loss < 0.01, "Adam: {loss}");
}

#[test]
fn copies_follow_and_then_go_their_own_way() {
    let mut network = Mlp::new(&[2, 4, 1], 1);
    let mut target = Mlp::new(&[2, 4, 1], 2);
    assert_ne!(network, target);
    target.copy_from(&network);
    assert_eq!(network, target);
    network.parameters_mut()[0] += 1.0;
    assert_ne!(network, target);
}

#[test]
fn odd_shapes_are_no_trouble() {
    for sizes in [&[][..], &[3], &[0, 2], &[2, 0], &[1, 1]] {
        let network = Mlp::new(sizes, 1);
        let mut tape = network.tape();
        let outputs = network.forward(&[1.0, 2.0, 3.0], &mut tape).len();
        network.backward(&vec![1.0; outputs + 1], &mut tape);
        assert_eq!(tape.gradient().len(), network.parameters().len());
    }
}

#[test]
fn clipping_shortens_only_what_is_too_long() {
    let mut tape = Tape { gradient: vec![3.0, 4.0], ..Tape::default() };
    tape.clip(10.0);
    assert_eq!(tape.gradient(), [3.0, 4.0]);
    tape.clip(1.0);
    assert!((tape.gradient()[0] - 0.6).abs() < 1e-6);
}

#[test]
fn probabilities_add_up() {
    let mut values = [1.0, 1000.0, 1000.0, -50.0];
    softmax(&mut values);
    assert_eq!(values, [0.0, 0.5, 0.5, 0.0]);
    softmax(&mut []);
}
