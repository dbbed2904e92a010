//! Diverse batch selection (AutoTVM section 4, "Diversity-Aware Exploration").

use std::collections::HashSet;

use tensorwright_space::Point;

/// The bonus of a candidate whose values are all new to the batch, relative to the spread of
/// scores. The paper gives no value for its alpha.
const ALPHA: f32 = 0.3;

/// Greedily selects `count` candidates with a high sum of scores and many different parameter
/// values. The objective is submodular, so greedy selection is close to optimal.
pub(super) fn choose(mut candidates: Vec<(Point, f32)>, count: usize) -> Vec<Point> {
    let scores = || candidates.iter().map(|(_, score)| *score);
    let spread = scores().fold(f32::MIN, f32::max) - scores().fold(f32::MAX, f32::min);
    let parameters = candidates.first().map_or(1, |(point, _)| point.ranks().len().max(1));
    let bonus = ALPHA * spread.max(0.0) / parameters as f32;
    let mut covered: HashSet<(usize, u32)> = HashSet::new();
    let mut chosen = Vec::new();
    while chosen.len() < count && !candidates.is_empty() {
        let gain = |(point, score): &(Point, f32)| {
            let new = values(point).filter(|value| !covered.contains(value)).count();
            score + bonus * new as f32
        };
        let gains: Vec<f32> = candidates.iter().map(gain).collect();
        let best = (0..gains.len()).reduce(|a, b| if gains[b] > gains[a] { b } else { a });
        let (point, _) = candidates.remove(best.unwrap_or(0));
        covered.extend(values(&point));
        chosen.push(point);
    }
    chosen
}

/// The values of a point with their parameter indices.
fn values(point: &Point) -> impl Iterator<Item = (usize, u32)> {
    point.ranks().iter().copied().enumerate()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_that_is_different_beats_one_that_is_hardly_better() {
        let candidate = |ranks: [u32; 2], score| (Point::new(ranks), score);
        let candidates = vec![
            candidate([1, 1], 1.0),
            candidate([1, 2], 0.9),
            candidate([5, 5], 0.89),
            candidate([1, 3], 0.0),
        ];
        let chosen = choose(candidates, 2);
        assert_eq!(chosen, [Point::new([1, 1]), Point::new([5, 5])]);
        assert!(choose(Vec::new(), 3).is_empty());
        assert_eq!(choose(vec![candidate([0, 0], f32::NAN)], 3).len(), 1);
    }
}
