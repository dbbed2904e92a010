//! The algorithms of a program: rewritings of all of it, and other ways to compute its stages.

use tensorwright_lang::precision::Precision;
use tensorwright_lang::program::Program;
use tensorwright_schedule::primitives::{stages, winograd_choices};
use tensorwright_schedule::{Draft, LoopNest, canonical};

use crate::rewriting::rewritings;

/// An estimated gain below this is not worth other rounding errors.
const WORTH: f64 = 1.25;

/// An algorithm that seems to be slower than the direct sum by more than this is not tried.
const HOPELESS: f64 = 0.8;

/// The most variants of a stage that are tried beside the direct sum.
const MOST_VARIANTS: usize = 2;

/// The algorithms that are worth a try for a program, as drafts that have rewritten it: the most
/// promising first, and the program as it is written among them.
#[must_use]
pub fn alternatives(program: &Program, precision: Precision) -> Vec<Draft> {
    alternatives_of(&canonical(program), precision)
}

/// The algorithms that are worth a try for a canonical nest, or a piece of one.
pub(crate) fn alternatives_of(nest: &LoopNest, precision: Precision) -> Vec<Draft> {
    let mut begun = rewritings(nest, precision);
    // Algorithms are tried on what is left of the program by the most promising rewriting.
    let mut drafts = of_stages(begun.remove(0), precision);
    drafts.extend(begun);
    drafts
}

/// The program as it is, and with other algorithms for its stages; the most promising first.
fn of_stages(begun: Draft, precision: Precision) -> Vec<Draft> {
    let mut drafts = vec![(1.0, begun.clone())];
    if precision == Precision::Fast {
        for variant in 0..MOST_VARIANTS {
            drafts.extend(rewritten(begun.clone(), variant));
        }
    }
    drafts.sort_by(|a, b| b.0.total_cmp(&a.0));
    drafts.into_iter().map(|(_, draft)| draft).collect()
}

/// Every stage that has so many variants by its best one but `variant`, with the estimated gain of
/// the stage that gains the least; `None` if there is no such stage.
fn rewritten(mut draft: Draft, variant: usize) -> Option<(f64, Draft)> {
    let mut least: Option<f64> = None;
    for stage in stages(&draft.nest) {
        let choice = winograd_choices(&draft.nest, &stage).into_iter().nth(variant);
        if let Some((choice, gain)) = choice.filter(|(_, gain)| *gain > HOPELESS)
            && draft.step(&stage, choice)
        {
            // What is not worth other rounding errors comes after the direct sum.
            let gain = if gain < WORTH { gain / WORTH } else { gain };
            least = Some(least.map_or(gain, |least| least.min(gain)));
        }
    }
    least.map(|gain| (gain, draft))
}
