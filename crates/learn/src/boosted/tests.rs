//! Tests of boosting on known functions.

use super::*;

/// Rows of uniform features, and a function of them that has steps, products and useless features.
fn table(count: usize, features: usize, seed: u64) -> (Vec<f32>, Vec<f32>) {
    let mut random = SplitMix::new(seed);
    let rows: Vec<f32> = (0..count * features).map(|_| random.unit() as f32).collect();
    let value = |row: &[f32]| 4.0 * row[0] * row[1] + f32::from(row[2] > 0.3) - row[3];
    let targets = rows.chunks(features).map(value).collect();
    (rows, targets)
}

/// The fraction of pairs in the right order.
fn concordance(predictions: &[f32], targets: &[f32]) -> f64 {
    let (mut right, mut all) = (0.0, 0.0);
    for i in 0..targets.len() {
        for j in 0..i {
            all += 1.0;
            let same = (predictions[i] > predictions[j]) == (targets[i] > targets[j]);
            right += f64::from(u8::from(same));
        }
    }
    right / all
}

fn r_squared(predictions: &[f32], targets: &[f32]) -> f64 {
    let mean = targets.iter().sum::<f32>() / targets.len() as f32;
    let errors: f32 = predictions.iter().zip(targets).map(|(p, t)| (p - t) * (p - t)).sum();
    let spread: f32 = targets.iter().map(|t| (t - mean) * (t - mean)).sum();
    1.0 - f64::from(errors / spread)
}

#[test]
fn values_are_learnt() {
    let (rows, targets) = table(600, 8, 1);
    let model = Boosted::fit(&rows, 8, &targets, &Boosting::default(), 1);
    let (rows, targets) = table(400, 8, 2);
    let quality = r_squared(&model.predict(&rows), &targets);
    assert!(quality > 0.93, "{quality}");
    let importance = model.importance();
    let useful: f64 = importance[..4].iter().sum();
    assert!(useful > 0.95, "{importance:?}");
}

#[test]
fn orders_are_learnt() {
    let (rows, targets) = table(600, 8, 1);
    let objective = Objective::Pairwise { opponents: 8 };
    let boosting = Boosting { objective, ..Boosting::default() };
    let model = Boosted::fit(&rows, 8, &targets, &boosting, 1);
    let (rows, targets) = table(400, 8, 2);
    let quality = concordance(&model.predict(&rows), &targets);
    assert!(quality > 0.91, "{quality}");
}

#[test]
fn a_seed_determines_the_model() {
    let (rows, targets) = table(200, 5, 3);
    for objective in [Objective::Squared, Objective::Pairwise { opponents: 2 }] {
        let boosting = Boosting { objective, ..Boosting::default() };
        let fit = |seed| Boosted::fit(&rows, 5, &targets, &boosting, seed);
        assert_eq!(fit(1), fit(1));
        assert_ne!(fit(1), fit(2));
    }
}

#[test]
fn without_shrinkage_and_penalties_one_deep_tree_repeats_the_table() {
    let (rows, targets) = table(60, 4, 4);
    let boosting = Boosting {
        trees: 1,
        depth: Boosting::DEEPEST,
        rate: 1.0,
        l2: 0.0,
        min_gain: 0.0,
        min_weight: 1.0,
        rows: 1.0,
        features: 1.0,
        ..Boosting::default()
    };
    let model = Boosted::fit(&rows, 4, &targets, &boosting, 1);
    for (prediction, target) in model.predict(&rows).iter().zip(&targets) {
        assert!((prediction - target).abs() < 1e-4);
    }
}

#[test]
fn strange_tables_are_no_trouble() {
    let fit = |rows: &[f32], features, targets: &[f32]| {
        Boosted::fit(rows, features, targets, &Boosting::default(), 1)
    };
    assert_eq!(fit(&[], 3, &[]).predict(&[1.0, 2.0, 3.0]), [0.0]);
    assert_eq!(fit(&[], 0, &[1.0]).predict(&[]), [] as [f32; 0]);
    assert_eq!(fit(&[1.0, 1.0, 1.0], 1, &[2.0, 4.0, 6.0]).predict(&[5.0]), [4.0]);
    assert_eq!(fit(&[1.0, 2.0, 3.0], 1, &[2.0, f32::NAN, f32::INFINITY]).predict(&[5.0]), [2.0]);

    let mut rows: Vec<f32> = (0..40).map(|x| x as f32).collect();
    rows[7] = f32::NAN;
    rows[8] = f32::INFINITY;
    rows[9] = f32::NEG_INFINITY;
    let targets: Vec<f32> = (0..40).map(|x| (x % 7) as f32).collect();
    let predictions = fit(&rows, 1, &targets).predict(&rows);
    assert!(predictions.iter().all(|prediction| prediction.is_finite()));
}
