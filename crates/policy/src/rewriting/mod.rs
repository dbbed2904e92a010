//! Profitable algebraic rewritings of a program, found by its structure.
//!
//! Rewritings are primitives that replace a stage by others which compute the same values in
//! another way. They precede all other steps of a schedule, so this module returns a list of
//! drafts.

mod constants;
mod products;
mod rows;
mod scatters;
mod softmax;
mod zeros;

use tensorwright_lang::precision::Precision;

use tensorwright_schedule::LoopNest;
use tensorwright_schedule::ScheduleState;

/// The maximum number of factorings to try.
const MOST_FACTORINGS: usize = 2;

/// Drafts with rewritings worth trying on a canonical nest, best guess first. The unchanged nest is
/// always among them.
#[must_use]
pub fn rewritings(nest: &LoopNest, precision: Precision) -> Vec<ScheduleState> {
    let begun = ScheduleState::new(nest.clone());
    let mut without_zeros = begun.clone();
    zeros::leave_out(&mut without_zeros);
    constants::expand(&mut without_zeros);
    scatters::privatize(&mut without_zeros);
    let mut in_rows = without_zeros.clone();
    let mut found = Vec::new();
    if precision == Precision::Fast {
        // Blocked softmax takes its divisors out of the sums itself.
        found.extend(softmax::in_blocks(&without_zeros));
        found.extend(products::factorings(&without_zeros).into_iter().take(MOST_FACTORINGS));
    }
    let is_rewritten = !without_zeros.schedule.steps.is_empty();
    found.push(without_zeros);
    // Measurements decide whether longer rows are faster.
    found.extend(rows::fuse(&mut in_rows).then_some(in_rows));
    found.extend(is_rewritten.then_some(begun));
    found
}
