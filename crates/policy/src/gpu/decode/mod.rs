//! Decodes tilings to schedule steps.

mod fused;
mod launch;
mod levels;
mod stage;
mod sum;
mod tensor;

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::primitives::{Primitive, Reorder};
use tensorwright_space::Rejection;

use super::group::Group;
use super::tensor::{Product, Shape};
use super::tiling::Tiling;
use crate::stages::steps::apply;

pub(crate) use levels::Levels;

/// Adds the steps that compute a group with a tiling.
pub(crate) fn launch(
    draft: &mut ScheduleState,
    group: &Group,
    tiling: &Tiling,
) -> Result<(), Rejection> {
    let mut decoder = Decoder { draft, group, tiling };
    match (&group.epilogue_of, tiling.shares_sum()) {
        (Some(reduction), _) => decoder.fused(reduction),
        (None, true) => decoder.shared_sum(),
        (None, false) => decoder.alone(),
    }
}

/// Adds the blocks and threads of a stage at the root level. Other stages may be computed in its
/// loops before it is [closed](close).
pub(crate) fn open(
    draft: &mut ScheduleState,
    group: &Group,
    tiling: &Tiling,
) -> Result<Levels, Rejection> {
    Decoder { draft, group, tiling }.open()
}

/// Adds the thread body of a stage.
pub(crate) fn close(
    draft: &mut ScheduleState,
    group: &Group,
    tiling: &Tiling,
    levels: &Levels,
) -> Result<(), Rejection> {
    Decoder { draft, group, tiling }.close(levels)
}

/// Adds the steps that compute a group on tensor cores.
pub(crate) fn tensor(
    draft: &mut ScheduleState,
    group: &Group,
    product: &Product,
    shape: &Shape,
) -> Result<(), Rejection> {
    let tiling = Tiling::plain(group);
    Decoder { draft, group, tiling: &tiling }.tensor(product, shape)
}

/// A group that is decoded to a launch.
struct Decoder<'a> {
    draft: &'a mut ScheduleState,
    group: &'a Group,
    tiling: &'a Tiling,
}

impl Decoder<'_> {
    fn apply(&mut self, stage: &str, primitive: impl Into<Primitive>) -> Result<(), Rejection> {
        apply(self.draft, stage, primitive)
    }

    /// Reorders loops, if the order changes.
    fn reorder(&mut self, stage: &str, order: Vec<String>) -> Result<(), Rejection> {
        if order.len() < 2 || self.draft.loop_names(stage) == order {
            return Ok(());
        }
        self.apply(stage, Reorder { order })
    }
}
