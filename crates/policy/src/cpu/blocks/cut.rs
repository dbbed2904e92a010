//! Blocking of rows, and distribution of blocks among workers.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::primitives::{Parallel, Split, Tail, loops_of};
use tensorwright_schedule::{ScheduleError, ScheduleState};

use super::Block;

/// The number of vectors per step of a stage without register tiles.
pub(super) const VECTORS: i64 = 4;

/// The loops that a row loop is split into.
pub(super) struct Cut {
    /// A loop of one iteration: operands shared by all blocks are packed in it.
    pub(super) all: String,
    /// The loop over blocks.
    pub(super) block: String,
    /// The loop over the rows of a block.
    pub(super) row: String,
}

/// Splits the row loop of a block's root into blocks of `rows` rows.
///
/// # Errors
/// If that is refused.
pub(super) fn cut(
    draft: &mut ScheduleState,
    block: &Block,
    rows: i64,
) -> Result<Cut, ScheduleError> {
    cut_loop(draft, (&block.root, &block.row), rows)
}

/// Splits a loop of a stage into blocks of `size` iterations.
///
/// # Errors
/// If that is refused.
pub(super) fn cut_loop(
    draft: &mut ScheduleState,
    (stage, name): (&str, &str),
    rows: i64,
) -> Result<Cut, ScheduleError> {
    let part = |part: &str| format!("{name}.{part}");
    let cut = Cut { all: part("all"), block: part("block"), row: part("row") };
    let loops = loops_of(&draft.nest, stage);
    let extent = loops.iter().find(|l| draft.nest.var_name(l.var) == name);
    let extent = extent.map_or(1, |l| l.extent);
    let mut split = Split::new(name, &[(extent + rows - 1) / rows, rows]).tail(Tail::Peel);
    split.names = vec![cut.all.clone(), cut.block.clone(), cut.row.clone()];
    draft.apply(stage, split)?;
    Ok(cut)
}

/// Parallelizes the loop over blocks, or the outermost loop if it has enough iterations.
///
/// # Errors
/// If that is refused.
pub(super) fn share(
    draft: &mut ScheduleState,
    block: &Block,
    cut: Cut,
    goal: &Goal<Cpu>,
) -> Result<(), ScheduleError> {
    if goal.workers < 2 {
        return Ok(());
    }
    let loops = loops_of(&draft.nest, &block.root);
    let outermost = loops.first().filter(|l| is_for_all(l.extent, goal));
    let target = outermost.map_or(cut.block, |l| draft.nest.var_name(l.var).to_owned());
    draft.apply(&block.root, Parallel { target })
}

/// Whether a loop around all blocks has enough iterations for all workers.
pub(super) fn is_for_all(extent: i64, goal: &Goal<Cpu>) -> bool {
    extent >= 2 * goal.workers
}
