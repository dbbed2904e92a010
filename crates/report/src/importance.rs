//! Parameter importance: the variance that each parameter explains.
//!
//! For each parameter, candidates are grouped by its value. The share of the variance of
//! log-seconds between the groups is what the parameter explains alone. With many values and few
//! candidates, any grouping explains something by chance; epsilon squared (Kelley, 1935) corrects
//! for that. Shares need not sum to one: parameters interact, and a search does not try their
//! values independently.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::curve::{median, rounded};
use crate::meta::Parameter;

/// The fewest candidates that give a meaningful result.
const FEWEST: usize = 8;

/// The most parameters to list, and the number of them whose values are shown.
const MOST_LISTED: usize = 16;
const MOST_SHOWN: usize = 6;

/// The most values to show per parameter.
const MOST_VALUES: usize = 8;

/// Parameter importance: the variance that each parameter explains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Importance {
    /// The number of candidates it is computed from.
    pub candidates: usize,
    /// The parameters, the most important first.
    pub parameters: Vec<Influence>,
    /// The number of parameters not listed.
    pub left_out: usize,
}

/// The importance of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Influence {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The share of the variance of log-seconds: 0 to 1.
    pub share: f64,
    /// The number of tried values.
    pub tried: usize,
    /// All of its values in order, or the fastest if there are many.
    pub values: Vec<Effect>,
}

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// The value.
    pub value: String,
    /// The candidates with it.
    pub count: usize,
    /// The median seconds of a call with it.
    pub seconds: f64,
}

/// The importance of the parameters; `None` if too little was measured.
pub(crate) fn importance(
    candidates: &[(Vec<u32>, f64)],
    parameters: &[Parameter],
) -> Option<Importance> {
    // The default schedule and schedules from other records may be outside the space.
    let dimensions = candidates.iter().map(|(point, _)| point.len()).max()?;
    let candidates: Vec<_> =
        candidates.iter().filter(|(point, _)| point.len() == dimensions).cloned().collect();
    if candidates.len() < FEWEST || dimensions == 0 {
        return None;
    }
    let mut all: Vec<Influence> = (0..dimensions)
        .filter_map(|at| influence(&candidates, at, &name_of(parameters, at)))
        .collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all.iter_mut().skip(MOST_SHOWN).for_each(|parameter| parameter.values.clear());
    let left_out = all.len().saturating_sub(MOST_LISTED);
    all.truncate(MOST_LISTED);
    let something = !all.is_empty();
    something.then_some(Importance { candidates: candidates.len(), parameters: all, left_out })
}

/// The parameter at an index of the points, even if the run does not describe it.
pub(crate) fn name_of(parameters: &[Parameter], at: usize) -> Parameter {
    let unknown = || Parameter { name: format!("parameter {at}"), ..Parameter::default() };
    parameters.get(at).cloned().unwrap_or_else(unknown)
}

/// The importance of one parameter; `None` if only one of its values was tried.
fn influence(
    candidates: &[(Vec<u32>, f64)],
    at: usize,
    parameter: &Parameter,
) -> Option<Influence> {
    let mut groups: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (point, seconds) in candidates {
        groups.entry(*point.get(at)?).or_default().push(*seconds);
    }
    if groups.len() < 2 {
        return None;
    }
    let share = explained(&groups);
    let tried = groups.len();
    let effects = groups.into_iter().filter_map(|(rank, mut seconds)| {
        let value = parameter.value(rank);
        let count = seconds.len();
        Some(Effect { value, count, seconds: rounded(median(&mut seconds)?) })
    });
    let mut values: Vec<Effect> = effects.collect();
    if values.len() > MOST_VALUES {
        values.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        values.truncate(MOST_VALUES);
    }
    let Parameter { name, kind, .. } = parameter.clone();
    Some(Influence { name, kind, share, tried, values })
}

/// Epsilon squared of log-seconds by group, in thousandths.
fn explained(groups: &BTreeMap<u32, Vec<f64>>) -> f64 {
    let logs: Vec<Vec<f64>> =
        groups.values().map(|group| group.iter().map(|seconds| seconds.ln()).collect()).collect();
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let (sum, count) =
            values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        sum / count
    };
    let count = logs.iter().map(Vec::len).sum::<usize>() as f64;
    let overall = mean(&mut logs.iter().flatten().copied());
    let total: f64 = logs.iter().flatten().map(|log| (log - overall).powi(2)).sum();
    let within: f64 = logs
        .iter()
        .map(|group| {
            let centre = mean(&mut group.iter().copied());
            group.iter().map(|log| (log - centre).powi(2)).sum::<f64>()
        })
        .sum();
    let freedom = count - logs.len() as f64;
    if total <= f64::EPSILON || freedom < 1.0 {
        return 0.0;
    }
    let by_chance = (logs.len() as f64 - 1.0) * within / freedom;
    let share = ((total - within - by_chance) / total).clamp(0.0, 1.0);
    (share * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_that_decides_explains_everything() {
        let candidates: Vec<(Vec<u32>, f64)> =
            (0..60).map(|i| (vec![i % 3, i % 5, 7], f64::from(1 + i % 3))).collect();
        let unroll = Parameter { name: "unroll".into(), ..Parameter::default() };
        let importance = importance(&candidates, &[unroll]).unwrap();
        let shares: Vec<_> =
            importance.parameters.iter().map(|one| (one.name.as_str(), one.share)).collect();
        assert_eq!(shares, [("unroll", 1.0), ("parameter 1", 0.0)]);
        let effects: Vec<_> =
            importance.parameters[0].values.iter().map(|e| (e.count, e.seconds)).collect();
        assert_eq!(effects, [(20, 1.0), (20, 2.0), (20, 3.0)]);
    }

    #[test]
    fn many_values_do_not_explain_by_being_many() {
        // Every candidate has its own value: nothing can be inferred.
        let candidates: Vec<(Vec<u32>, f64)> =
            (0..50).map(|i| (vec![i], 1.0 + f64::from(i * 17 % 50))).collect();
        assert_eq!(importance(&candidates, &[]).unwrap().parameters[0].share, 0.0);
        // Random groups of two.
        let candidates: Vec<(Vec<u32>, f64)> =
            (0..100).map(|i| (vec![i / 2], 1.0 + f64::from(i * 37 % 101))).collect();
        assert!(importance(&candidates, &[]).unwrap().parameters[0].share < 0.2);
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(importance(&[], &[]), None);
        assert_eq!(importance(&[(vec![1], 1.0), (vec![2], 2.0)], &[]), None);
        let same: Vec<(Vec<u32>, f64)> = (0..20).map(|_| (vec![1], 1.0)).collect();
        assert_eq!(importance(&same, &[]), None);
    }

    #[test]
    fn schedules_that_are_no_points_are_left_out() {
        let mut candidates: Vec<(Vec<u32>, f64)> =
            (0..20).map(|n| (vec![n % 2, n % 5], f64::from(1 + n % 2))).collect();
        candidates.push((Vec::new(), 9.0));
        let found = importance(&candidates, &[]).unwrap();
        assert_eq!(found.candidates, 20);
        assert_eq!(found.parameters[0].name, "parameter 0");
        assert!(found.parameters[0].share > 0.99, "{found:?}");
    }
}
