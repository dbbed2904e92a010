//! The loops of a stage on a processor, by kind of stage.
//!
//! | file | stage |
//! | --- | --- |
//! | `row.rs` | one row at a time, in vectors |
//! | `product.rs` | a sum of products in register tiles of rows by vectors |
//! | `stencil.rs` | several rows at a time, and stages that stay in registers inside |
//!
//! Each proposes a [`Tiling`](tensorwright_plan::Tiling) of the loops that are
//! [open](tensorwright_plan::Open): those inside of the loops in which the stage is computed.

pub(crate) mod product;
pub(crate) mod row;
pub(crate) mod stencil;

use tensorwright_plan::levels::cpu::AROUND;
use tensorwright_plan::{
    Emitter, Level, Levels, LoopKind, LoopRef, Open, Placement, PlannedLoop, Stages, Tiling,
};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::Axis;
use tensorwright_schedule::nest::LoopNest;

/// Tiles a stage where it is; returns whether that succeeded.
pub(crate) fn tile_alone(
    draft: &mut ScheduleState,
    stage: &str,
    propose: impl FnOnce(&LoopNest, &Open, LoopRef) -> Tiling,
) -> bool {
    let stages = Stages::of(&draft.nest, [stage]);
    let Some((stage, _)) = stages.named(stage) else { return false };
    let mut emitter = Emitter::new(draft, &stages, Levels::CPU);
    let at = LoopRef { stage, level: AROUND };
    emitter.place(stage, Placement::Root, Vec::new()).is_ok()
        && emitter.tile_by(stage, |nest, open| propose(nest, open, at)).is_ok()
        && emitter.finish().is_ok()
}

/// Whole open loops of a level.
fn whole<'a>(
    open: &Open,
    axes: impl IntoIterator<Item = &'a Axis>,
    level: Level,
    kind: LoopKind,
) -> Vec<PlannedLoop> {
    let of = |axis: &Axis| PlannedLoop::new(open.axis(axis), 1, level).kind(kind);
    axes.into_iter().map(of).collect()
}
