//! What all blocks have in common: rows that are cut, and workers that share them.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::primitives::{Parallel, Split, Tail, loops_of};
use tensorwright_schedule::{Draft, ScheduleError};

use super::Block;

/// The vectors of a row that a stage without tiles computes at a time.
pub(super) const VECTORS: i64 = 4;

/// The loops that rows are cut into.
pub(super) struct Cut {
    /// One iteration: in it, operands that all blocks share are copied once.
    pub(super) all: String,
    /// Blocks.
    pub(super) block: String,
    /// The rows of a block.
    pub(super) row: String,
}

/// Cuts the rows of a block's root into blocks of so many.
///
/// # Errors
/// If that is refused.
pub(super) fn cut(draft: &mut Draft, block: &Block, rows: i64) -> Result<Cut, ScheduleError> {
    cut_loop(draft, (&block.root, &block.row), rows)
}

/// Cuts a loop of a stage into blocks of so many iterations.
///
/// # Errors
/// If that is refused.
pub(super) fn cut_loop(
    draft: &mut Draft,
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

/// Shares blocks, or the outermost loop if it has enough iterations, between workers.
///
/// # Errors
/// If that is refused.
pub(super) fn share(
    draft: &mut Draft,
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

/// Whether a loop around all blocks has iterations enough for all workers.
pub(super) fn is_for_all(extent: i64, goal: &Goal<Cpu>) -> bool {
    extent >= 2 * goal.workers
}
