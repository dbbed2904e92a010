//! The q-random walk ends where OpEvo's appendix A says: at v with probability
//! S = (1-q)(I-Q)^-1 p, where p is the start and Q_vu = q/|S(u)| for neighbours u and v.

use crate::q_random_walk;
use tensorwright_space::parameter::{Discrete, Factorization, Permutation, Splits};
use tensorwright_space::{Parameter, Rng};

/// The matrix Q of appendix A: its columns add up to q.
fn transitions(parameter: &Parameter, q: f64) -> Vec<Vec<f64>> {
    let count = parameter.count() as usize;
    let mut matrix = vec![vec![0.0; count]; count];
    for from in 0..parameter.count() {
        let near = parameter.neighbours(from);
        for to in &near {
            matrix[*to as usize][from as usize] = q / near.len() as f64;
        }
    }
    matrix
}

/// Solves (I-Q) S = (1-q) p by elimination with pivots.
fn closed_form(parameter: &Parameter, start: u32, q: f64) -> Vec<f64> {
    let transitions = transitions(parameter, q);
    let n = transitions.len();
    let identity = |row: usize, column: usize| if row == column { 1.0 } else { 0.0 };
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|row| {
            let mut all: Vec<f64> =
                (0..n).map(|column| identity(row, column) - transitions[row][column]).collect();
            all.push(if row == start as usize { 1.0 - q } else { 0.0 });
            all
        })
        .collect();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))
            .unwrap();
        rows.swap(column, pivot);
        for row in (0..n).filter(|row| *row != column) {
            let factor = rows[row][column] / rows[column][column];
            let pivot = rows[column].clone();
            rows[row].iter_mut().zip(pivot).for_each(|(cell, other)| *cell -= factor * other);
        }
    }
    (0..n).map(|row| rows[row][n] / rows[row][row]).collect()
}

/// Equation 4: (1-q)(p + Qp + QQp + ...).
fn power_series(parameter: &Parameter, start: u32, q: f64) -> Vec<f64> {
    let transitions = transitions(parameter, q);
    let mut at: Vec<f64> = vec![0.0; transitions.len()];
    at[start as usize] = 1.0;
    let mut sum = vec![0.0; at.len()];
    for _ in 0..2000 {
        sum.iter_mut().zip(&at).for_each(|(sum, at)| *sum += (1.0 - q) * at);
        at = transitions.iter().map(|row| row.iter().zip(&at).map(|(t, a)| t * a).sum()).collect();
    }
    sum
}

/// The deviation of the walks from a distribution, in standard deviations of the chi-square
/// statistic.
fn distance(parameter: &Parameter, (start, q): (u32, f64), expected: &[f64], walks: u32) -> f64 {
    let mut rng = Rng::new(u64::from(walks));
    let mut counts = vec![0u32; expected.len()];
    (0..walks).for_each(|_| counts[q_random_walk(parameter, start, q, &mut rng) as usize] += 1);
    let terms = counts.iter().zip(expected).map(|(count, share)| {
        let expected = share * f64::from(walks);
        (f64::from(*count) - expected).powi(2) / expected
    });
    let freedom = (expected.len() - 1) as f64;
    (terms.sum::<f64>() - freedom) / (2.0 * freedom).sqrt()
}

/// The parameter of OpEvo's figures 1a and 2.
fn figure() -> Parameter {
    Parameter::new("tile", Factorization::new(8, 3, Splits::Divisible))
}

#[test]
fn the_closed_form_is_the_sum_of_all_walks() {
    let order = Parameter::new("order", Permutation::new(["i", "j", "k", "l"]));
    let row = Parameter::new("unroll", Discrete::new(0..7));
    let odd = Parameter::new("tile", Factorization::new(49, 3, Splits::Covering));
    for parameter in [figure(), order, row, odd] {
        for q in [0.1, 0.5, 0.9] {
            for start in [0, parameter.count() - 1] {
                let closed = closed_form(&parameter, start, q);
                let series = power_series(&parameter, start, q);
                let total: f64 = closed.iter().sum();
                assert!((total - 1.0).abs() < 1e-9);
                assert!(closed.iter().zip(&series).all(|(a, b)| (a - b).abs() < 1e-9));
            }
        }
    }
}

#[test]
fn walks_on_c_8_nu_3_end_as_the_closed_form_says() {
    let parameter = figure();
    assert_eq!(parameter.count(), 10);
    for (start, q, walks) in [(9, 0.5, 1_000_000), (9, 0.7, 100_000), (3, 0.5, 100_000)] {
        let expected = closed_form(&parameter, start, q);
        let distance = distance(&parameter, (start, q), &expected, walks);
        assert!(distance.abs() < 4.0, "from {start} with {q}: {distance}");
    }
    // Another q has another distribution, and the test would notice.
    let other = closed_form(&parameter, 9, 0.53);
    assert!(distance(&parameter, (9, 0.5), &other, 100_000) > 10.0);
}

/// Section 4.3: of (2,1,4), (2,2,2) and (2,4,1), which are equally far from (8,1,1), the one with
/// the most neighbours is the likeliest.
#[test]
fn values_with_more_neighbours_are_likelier() {
    let splits = Factorization::new(8, 3, Splits::Divisible);
    let rank = |value: &[u64]| splits.rank(value).unwrap() as usize;
    let shares = closed_form(&figure(), rank(&[8, 1, 1]) as u32, 0.5);
    assert!(shares[rank(&[2, 2, 2])] > shares[rank(&[2, 1, 4])]);
    assert!((shares[rank(&[2, 4, 1])] - shares[rank(&[2, 1, 4])]).abs() < 1e-12);
}

#[test]
fn walks_without_a_step_or_an_end_end() {
    let mut rng = Rng::new(2);
    let only = Parameter::new("one", Discrete::new([1]));
    assert_eq!(q_random_walk(&only, 0, 0.9, &mut rng), 0);
    assert_eq!(q_random_walk(&figure(), 4, 0.0, &mut rng), 4);
    assert!(q_random_walk(&figure(), 4, 1.0, &mut rng) < 10);
    assert!(q_random_walk(&figure(), 4, f64::NAN, &mut rng) < 10);
}
