//! Which rewritings of a program are worth trying, found by the structure of its stages.
//!
//! Rewritings are the primitives that replace a stage by others which compute the same in another
//! way. They come before all other steps of a schedule, so what is found here is a list of
//! beginnings.

mod constants;
mod products;
mod rows;
mod scatters;
mod softmax;
mod zeros;

use tensorwright_lang::precision::Precision;

use tensorwright_schedule::Draft;
use tensorwright_schedule::LoopNest;

/// How many ways of factoring are worth trying.
const MOST_FACTORINGS: usize = 2;

/// The beginnings of schedules that are worth trying on a canonical nest, best guess first. Doing
/// nothing is always among them.
#[must_use]
pub fn rewritings(nest: &LoopNest, precision: Precision) -> Vec<Draft> {
    let begun = Draft::new(nest.clone());
    let mut without_zeros = begun.clone();
    zeros::leave_out(&mut without_zeros);
    constants::expand(&mut without_zeros);
    scatters::privatize(&mut without_zeros);
    let mut in_rows = without_zeros.clone();
    let mut found = Vec::new();
    if precision == Precision::Fast {
        // A softmax in blocks takes its divisors out of sums by itself.
        found.extend(softmax::in_blocks(&without_zeros));
        found.extend(products::factorings(&without_zeros).into_iter().take(MOST_FACTORINGS));
    }
    let is_rewritten = !without_zeros.schedule.steps.is_empty();
    found.push(without_zeros);
    // Whether longer rows pay depends on how short they are: that is for measurements to say.
    found.extend(rows::fuse(&mut in_rows).then_some(in_rows));
    found.extend(is_rewritten.then_some(begun));
    found
}
