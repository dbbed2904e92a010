//! Rule-based schedules, without a model.
//!
//! They cover large programs, and stages without reductions to tile.
//!
//! [`complete`] processes the stages in one pass:
//!
//! 1. `groups`: cheap stages are inlined; a reduction with a single element-wise reader (bias,
//!    ReLU) is computed inside the tiles of that epilogue.
//! 2. `access`: chooses the loop to vectorize, and finds which loops reuse which reads.
//! 3. `tile`: chooses a register tile that fits the registers, with little waste on these sizes;
//!    packs panels of strided reads.
//! 4. The outermost loops are parallel if there is enough to do.
//!
//! `recurrence` handles stages with loop-carried dependences, `scatter` those with computed store
//! positions: they vectorize and parallelize other loops.
//!
//! Every step is tried on the nest and skipped if refused, so the result always applies.

mod groups;
mod recurrence;
mod scatter;
mod share;
mod tile;
mod transform;

pub use tile::PACK_ROW_BYTES;

use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::{Schedule, ScheduleState, canonical, lower};

use crate::alternatives;
use crate::cpu::blocks::{self, Block, Shape};
use crate::cpu::rows::{Chain, RowTiling};
use crate::stages::kinds::{is_in_order, is_movement, is_recurrence, is_scatter};
use share::parallelize;

/// The rule-based schedule of a program. It applies to the canonical nest, and the result can be
/// lowered.
#[must_use]
pub fn schedule_by_rules(program: &Program, goal: &Goal<Cpu>) -> Schedule {
    let begun = alternatives(program, goal.precision).into_iter().next();
    complete(begun.unwrap_or_else(|| ScheduleState::new(canonical(program))), goal).schedule
}

/// Schedules the unscheduled stages of a draft by rules. The draft may contain rewritings, whose
/// loops must be unchanged.
#[must_use]
pub fn complete(mut draft: ScheduleState, goal: &Goal<Cpu>) -> ScheduleState {
    let begun = draft.clone();
    let groups = groups::place(&mut draft);
    let blocks = in_blocks(&mut draft, goal);
    let is_alone = |group: &&groups::Group| {
        !transform::is_inside(&begun, &group.root) && !blocks.iter().any(|b| b.has(&group.root))
    };
    for group in groups.iter().filter(is_alone) {
        alone(&mut draft, group, goal);
    }
    // A stage can exceed the code size limit of lowering; plain loops can always be lowered.
    if lower(draft.nest.clone()).is_ok() { draft } else { begun }
}

/// Schedules a group that shares no loops with others.
fn alone(draft: &mut ScheduleState, group: &groups::Group, goal: &Goal<Cpu>) {
    if is_in_order(draft, &group.root)
        || group.reduction.is_none() && is_movement(draft, &group.root)
    {
        movement(draft, &group.root, goal);
    } else {
        tile::schedule(draft, group, goal);
        parallelize(draft, &group.root);
    }
}

/// Schedules some stages by rules at their current location, and leaves all others unchanged.
pub(crate) fn complete_stages(draft: &mut ScheduleState, stages: &[String], goal: &Goal<Cpu>) {
    let begun = draft.clone();
    for group in groups::of(draft, stages) {
        if !transform::is_inside(&begun, &group.root) {
            alone(draft, &group, goal);
        }
    }
}

/// Computes stages in blocks of rows if possible.
fn in_blocks(draft: &mut ScheduleState, goal: &Goal<Cpu>) -> Vec<Block> {
    let mut blocks = blocks::find(draft, &[], goal);
    blocks.retain(|block| {
        let apart = |_: &Chain| RowTiling::apart();
        let applies = |shape: &Shape| {
            let mut trial = draft.clone();
            blocks::compute(&mut trial, block, *shape, (&[], &apart), goal).ok()?;
            Some(trial)
        };
        let found = block.shapes.iter().find_map(applies);
        found.map(|trial| *draft = trial).is_some()
    });
    blocks
}

/// Schedules a stage without terms by rules.
pub fn movement(draft: &mut ScheduleState, stage: &str, goal: &Goal<Cpu>) {
    if store_of(&draft.nest, stage).is_none() || transform::is_inside(draft, stage) {
        return;
    }
    if is_recurrence(draft, stage) {
        let made = recurrence::schedule(draft, stage, goal);
        complete_stages(draft, &made, goal);
    } else if is_scatter(draft, stage) {
        scatter::schedule(draft, stage, goal);
    } else if !transform::schedule(draft, stage, goal) {
        tile::rows(draft, stage, goal);
    }
    parallelize(draft, stage);
}
