//! [`CoreAssignment`]: the processors for building and for timing.

use std::collections::BTreeSet;

use tensorwright::Target;
use tensorwright_runtime::affinity;

use crate::Config;

/// The processors of builders and of the runner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CoreAssignment {
    pub(super) builders: Vec<usize>,
    pub(super) runner: Vec<usize>,
    /// Whether building would disturb timing.
    pub(super) is_crowded: bool,
}

impl CoreAssignment {
    pub(super) fn new(config: &Config) -> Self {
        // The runtime of a device has threads of its own, and a CPU device may use all processors.
        if let Target::Gpu(_) = config.target {
            return Self::crowded();
        }
        let cores = cores(&affinity::allowed(), affinity::siblings);
        Self::of(&cores, config.threads, config.builders)
    }

    /// Keeps the runner and the builders on different cores if there are enough: hardware threads
    /// of one core share its arithmetic units and caches. The runner gets the last cores: the
    /// system prefers the first.
    fn of(cores: &[Vec<usize>], threads: usize, builders: usize) -> Self {
        let Some(rest) = cores.len().checked_sub(threads) else { return Self::crowded() };
        let (first, last) = cores.split_at(rest);
        let building: Vec<usize> = first.iter().flatten().copied().collect();
        // Without information about processors, assume that builds disturb timing.
        if building.len() < builders {
            return Self::crowded();
        }
        let runner = last.iter().filter_map(|core| core.first().copied()).collect();
        Self { builders: building, runner, is_crowded: false }
    }

    fn crowded() -> Self {
        Self { is_crowded: true, ..Self::default() }
    }
}

/// The allowed processors grouped by core, in the order of each core's first one.
fn cores(allowed: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    let mut left: BTreeSet<usize> = allowed.iter().copied().collect();
    let mut cores = Vec::new();
    while let Some(first) = left.pop_first() {
        let mut core = vec![first];
        core.extend(siblings(first).into_iter().filter(|sibling| left.remove(sibling)));
        cores.push(core);
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four cores with two processors each, numbered as Linux does on most machines.
    fn hyper_threads(processor: usize) -> Vec<usize> {
        vec![processor % 4, processor % 4 + 4]
    }

    #[test]
    fn a_builder_never_shares_the_core_that_is_timed() {
        let cores = cores(&[0, 1, 2, 3, 4, 5, 6, 7], hyper_threads);
        assert_eq!(cores, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        let places = CoreAssignment::of(&cores, 1, 1);
        assert_eq!((places.builders, places.runner), (vec![0, 4, 1, 5, 2, 6], vec![3]));
        let places = CoreAssignment::of(&cores, 3, 2);
        assert_eq!((places.builders, places.runner), (vec![0, 4], vec![1, 2, 3]));
        // One core with two processors: building and timing take turns.
        let one = super::cores(&[1, 5], hyper_threads);
        assert!(CoreAssignment::of(&one, 1, 1).is_crowded);
        assert!(CoreAssignment::of(&cores, 4, 1).is_crowded);
        assert!(CoreAssignment::of(&[], 1, 1).is_crowded);
    }

    #[test]
    fn processors_without_siblings_are_cores() {
        let cores = cores(&[2, 0], |processor| vec![processor]);
        assert_eq!(cores, [[0], [2]]);
        let places = CoreAssignment::of(&cores, 1, 1);
        assert_eq!((places.builders, places.runner), (vec![0], vec![2]));
    }
}
