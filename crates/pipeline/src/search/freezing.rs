//! Freezing (section 3.2): decisions about cheap stages are made once, by a pass that computes stages on their own or
//! wherever they are read, and stay as they are.
//!
//! The paper freezes all but log2(N) of N stages. A chain of equal stages shows what that costs where stages gain from each
//! other: those that take nearly as long as the last one that stays open stay open as well. So do a dozen in any case,
//! since a processor has few options per stage.

use tensorwright_random::Rng;

use crate::enumerate::Space;
use crate::state::{Decision, State};

use super::beam::Beam;
use super::costs::Costs;
use super::options::Options;

/// So many stages are never frozen.
const LEAST_OPEN: usize = 12;

/// A stage that takes this part of the time of one that stays open stays open too.
const NEARLY: f64 = 0.5;

/// The decisions that stay as they are, by stage.
pub(super) fn frozen(
    space: &Space<'_>,
    costs: &mut Costs<'_>,
    rng: &mut Rng,
    options: &Options,
    goes_on: &mut dyn FnMut() -> bool,
) -> Vec<Option<Decision>> {
    let count = space.dag.stages.len();
    let mut frozen = vec![None; count];
    if count <= LEAST_OPEN {
        return frozen;
    }
    let greedy = Options { width: 1, passes: 1, ..options.clone() };
    let open = vec![None; count];
    let found = Beam::new(space, &greedy, &open, false).pass(0, costs, rng, goes_on);
    let Some((state, _)) = found.first() else { return frozen };
    let of_stages = costs.of_stages(state);
    let mut sorted = of_stages.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let keep = (count.ilog2() as usize).max(LEAST_OPEN);
    let least = sorted.get(keep - 1).map_or(0.0, |cost| cost * NEARLY);
    for (stage, cost) in of_stages.into_iter().enumerate() {
        if cost < least {
            frozen[stage] = decided(state, stage);
        }
    }
    frozen
}

/// A decision that may stay as it is: it depends on nothing that is still open.
fn decided(state: &State, stage: usize) -> Option<Decision> {
    state.decision(stage).cloned()
}
