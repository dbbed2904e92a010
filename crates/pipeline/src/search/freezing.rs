//! Freezing (section 3.2): decisions about cheap stages are fixed before the search.
//!
//! A pass that only inlines stages or computes them at the root level makes these decisions.
//!
//! The paper freezes all but log2(N) of N stages, whatever they cost. If stages cost about the same
//! (a chain of stencils, a demosaicking pipeline), that decides most of the schedule without
//! considering fusion. Here the cheapest stages are frozen as long as their total cost is a small
//! fraction of the time, which bounds the loss. Outputs are never frozen, however cheap: all other
//! stages may be computed in their tiles. Short programs have no frozen stages: there is no time to
//! gain, and early decisions are worse.

use tensorwright_random::Rng;

use crate::enumerate::Space;
use crate::state::Decision;

use super::beam::Beam;
use super::costs::Costs;
use super::options::BeamOptions;

/// Programs with at most this many stages have no frozen stages.
const SHORT: usize = 12;

/// The maximum fraction of the time of all frozen stages.
const FROZEN: f64 = 0.05;

/// The frozen decisions, by stage.
pub(super) fn frozen(
    space: &Space<'_>,
    costs: &mut Costs<'_>,
    rng: &mut Rng,
    options: &BeamOptions,
    goes_on: &mut dyn FnMut() -> bool,
) -> Vec<Option<Decision>> {
    let count = space.dag.stages.len();
    let open = vec![None; count];
    if count <= SHORT {
        return open;
    }
    let greedy = BeamOptions { width: 1, passes: 1, ..options.clone() };
    let found = Beam::new(space, &greedy, &open, false).pass(0, costs, rng, goes_on);
    let Some((state, _)) = found.first() else { return open };
    let of_stages = costs.of_stages(state);
    let is_inlined = |stage: &usize| state.decision(*stage) == Some(&Decision::Inline);
    let may_freeze = |stage: &usize| !is_inlined(stage) && !space.dag.stages[*stage].is_output;
    let mut cheapest: Vec<usize> = (0..count).filter(may_freeze).collect();
    cheapest.sort_by(|a, b| of_stages[*a].total_cmp(&of_stages[*b]));
    let mut frozen = open;
    let mut left = FROZEN * of_stages.iter().sum::<f64>();
    for stage in cheapest {
        left -= of_stages[stage];
        if left < 0.0 {
            break;
        }
        frozen[stage] = state.decision(stage).cloned();
    }
    // Inlined stages cost nothing themselves: they are as cheap as all their readers.
    for stage in (0..count).rev().filter(is_inlined) {
        if space.dag.consumers[stage].iter().all(|reader| frozen[*reader].is_some()) {
            frozen[stage] = Some(Decision::Inline);
        }
    }
    frozen
}
