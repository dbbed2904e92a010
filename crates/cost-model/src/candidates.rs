//! Training states of a program, good ones and bad ones.

use std::collections::HashSet;

use tensorwright::Schedule;
use tensorwright_pipeline::{
    AnalyticalModel, BeamOptions, CostModel, Machine, NoisyModel, State, search,
};
use tensorwright_policy::cpu::Pipeline;

/// The noise levels of the cost models of later searches, in turn.
const NOISE: [f64; 4] = [0.3, 0.7, 1.2, 2.0];

/// The number of searches per requested state.
const SEARCHES: usize = 4;

/// At most `count` distinct states of a program with their schedules: the best by the analytical
/// model first, then the results of searches with [noisy costs](NoisyModel).
#[must_use]
pub fn candidates(
    pipeline: &Pipeline,
    machine: &Machine,
    count: usize,
    seed: u64,
) -> Vec<(State, Schedule)> {
    let model = AnalyticalModel::new(&pipeline.dag, &pipeline.levels, machine.clone());
    let mut found: Vec<(State, Schedule)> = Vec::new();
    let mut seen = HashSet::new();
    for number in 0..count.saturating_mul(SEARCHES) {
        if found.len() >= count {
            break;
        }
        let seed = seed.wrapping_add(number as u64);
        let noisy;
        let (model, options, most): (&dyn CostModel, _, _) = match number {
            0 => (&model, BeamOptions::beam(), count.div_ceil(4)),
            _ => {
                noisy = NoisyModel::new(&model, NOISE[number % NOISE.len()], seed);
                (&noisy, BeamOptions::greedy(), 1)
            }
        };
        let states =
            search(&pipeline.dag, &pipeline.levels, model, &options.with_seed(seed)).states;
        for (state, _) in states.into_iter().take(most) {
            if let Ok(schedule) = pipeline.decode(&state)
                && seen.insert(schedule.to_string())
            {
                found.push((state, schedule));
            }
        }
    }
    found
}
