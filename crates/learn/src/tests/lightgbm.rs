//! Comparison with LightGBM on the table of `fixtures/boosted.py`.

use crate::{Boosted, Boosting, Objective};

const FEATURES: usize = 10;
const TRAINING: usize = 700;

struct Fixture {
    rows: Vec<f32>,
    targets: Vec<f32>,
    /// LightGBM's scores on the test rows.
    r2: f64,
    spearman: f64,
}

fn fixture() -> Fixture {
    let text = include_str!("fixtures/boosted.csv");
    let (head, body) = text.split_once('\n').unwrap();
    let figure = |name| {
        let mut words = head.split(' ').skip_while(|word| *word != name);
        words.nth(1).unwrap().parse().unwrap()
    };
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for line in body.lines() {
        let values: Vec<f32> = line.split(',').map(|value| value.parse().unwrap()).collect();
        rows.extend(&values[..FEATURES]);
        targets.push(values[FEATURES]);
    }
    Fixture { rows, targets, r2: figure("r2"), spearman: figure("spearman") }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn r2(predicted: &[f32], targets: &[f32]) -> f64 {
    let targets: Vec<f64> = targets.iter().map(|value| f64::from(*value)).collect();
    let errors = predicted.iter().zip(&targets).map(|(p, t)| (f64::from(*p) - t).powi(2));
    let mean = mean(&targets);
    1.0 - errors.sum::<f64>() / targets.iter().map(|t| (t - mean).powi(2)).sum::<f64>()
}

/// Ranks of values; ties share the mean rank.
fn ranks(values: &[f32]) -> Vec<f64> {
    let below = |value: f32| values.iter().filter(|other| **other < value).count() as f64;
    let equal = |value: f32| values.iter().filter(|other| **other == value).count() as f64;
    values.iter().map(|value| below(*value) + (equal(*value) - 1.0) / 2.0).collect()
}

fn spearman(predicted: &[f32], targets: &[f32]) -> f64 {
    let (a, b) = (ranks(predicted), ranks(targets));
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    let covariance: f64 = a.iter().zip(&b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
    let spread = |ranks: &[f64], mean: f64| ranks.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
    covariance / (spread(&a, mean_a) * spread(&b, mean_b)).sqrt()
}

/// Trains with LightGBM's parameters, and predicts the test rows.
fn predict(fixture: &Fixture, objective: Objective) -> Vec<f32> {
    let boosting = Boosting { objective, rows: 1.0, features: 1.0, ..Boosting::default() };
    let (training, test) = fixture.rows.split_at(TRAINING * FEATURES);
    Boosted::fit(training, FEATURES, &fixture.targets[..TRAINING], &boosting, 1).predict(test)
}

#[test]
fn values_are_as_good_as_those_of_lightgbm() {
    let fixture = fixture();
    let predicted = predict(&fixture, Objective::Squared);
    let targets = &fixture.targets[TRAINING..];
    let (ours_r2, ours_spearman) = (r2(&predicted, targets), spearman(&predicted, targets));
    println!(
        "r2 {ours_r2:.4} ({}), spearman {ours_spearman:.4} ({})",
        fixture.r2, fixture.spearman
    );
    assert!(ours_r2 > fixture.r2 - 0.02, "{ours_r2}, LightGBM {}", fixture.r2);
    assert!(ours_spearman > fixture.spearman - 0.02, "{ours_spearman}");
}

#[test]
fn orders_are_as_good_as_those_of_lightgbm() {
    let fixture = fixture();
    let predicted = predict(&fixture, Objective::Pairwise { opponents: 8 });
    let ours = spearman(&predicted, &fixture.targets[TRAINING..]);
    println!("spearman {ours:.4}, LightGBM {}", fixture.spearman);
    assert!(ours > fixture.spearman - 0.03, "{ours}, LightGBM {}", fixture.spearman);
}
