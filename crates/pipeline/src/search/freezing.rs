//! Freezing (section 3.2): decisions about cheap stages are made once, by a pass that computes stages on their own or
//! wherever they are read, and stay as they are.
//!
//! The paper freezes all but log2(N) of N stages, whatever they cost. Where stages cost about the same (a chain of stencils, the
//! demosaicking of a camera), that decides most of the schedule without ever looking at fusion. Here the cheapest stages are
//! frozen as long as they take a small part of the time all together, which is about what can be lost by it. Results are never
//! frozen, however cheap they are: their tiles are where all others may be computed. Nor is anything of a short program: there is no
//! time to win, and what is decided early is decided worse.

use tensorwright_random::Rng;

use crate::enumerate::Space;
use crate::state::Decision;

use super::beam::Beam;
use super::costs::Costs;
use super::options::BeamOptions;

/// Programs with so many stages have none that are frozen.
const SHORT: usize = 12;

/// The part of the time that all frozen stages take together, at most.
const FROZEN: f64 = 0.05;

/// The decisions that stay as they are, by stage.
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
    // What is computed wherever it is read costs nothing itself: it is as cheap as all that read it.
    for stage in (0..count).rev().filter(is_inlined) {
        if space.dag.consumers[stage].iter().all(|reader| frozen[*reader].is_some()) {
            frozen[stage] = Some(Decision::Inline);
        }
    }
    frozen
}
