//! Fusion of adjacent rows of a sum into longer ones.
//!
//! A convolution with a window of one is a matrix product: fused, the image is one long row per
//! channel.

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::{Owner, Role};
use tensorwright_schedule::primitives::{Fuse, stages};

/// Rows with a multiple of this length need no fusion.
const LANES: i64 = 16;

/// Fuses spatial loops of all sums where that makes rows longer; returns whether it fused any.
pub(super) fn fuse(draft: &mut ScheduleState) -> bool {
    let mut fused = false;
    for stage in stages(&draft.nest) {
        while let Some((outer, inner)) = pair(draft, &stage) {
            if !draft.step(&stage, Fuse { outer, inner, name: None }) {
                break;
            }
            fused = true;
        }
    }
    fused
}

/// Two directly nested loops that move through every tensor like a single loop.
fn pair(draft: &ScheduleState, stage: &str) -> Option<(String, String)> {
    let accesses = Accesses::of(&draft.nest, stage)?;
    accesses.of_role(Role::Reduce).next()?;
    // An epilogue has loops of its own, which would have to be fused too.
    if draft.nest.buffer(accesses.write.buffer).owner != Owner::Output {
        return None;
    }
    let as_one = |(outer, inner): (&Axis, &Axis)| {
        let follows = |access: &Access| match (access.stride(outer), access.stride(inner)) {
            (Some(outer), Some(step)) => outer == step.saturating_mul(inner.extent),
            _ => false,
        };
        let both = outer.role == Role::Spatial && inner.role == Role::Spatial;
        both && outer.extent > 1
            && inner.extent > 1
            && inner.extent % LANES != 0
            && accesses.write.stride(inner) == Some(1)
            && accesses.reads.iter().chain([&accesses.write]).all(follows)
    };
    let mut pairs = accesses.axes.windows(2).filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
    let (outer, inner) = pairs.find(|pair| as_one(*pair))?;
    Some((outer.name.clone(), inner.name.clone()))
}
