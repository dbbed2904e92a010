//! Candidate algorithms: whole-program rewritings and per-stage variants.

use tensorwright_lang::precision::Precision;
use tensorwright_lang::program::Program;
use tensorwright_schedule::primitives::{stages, winograd_choices};
use tensorwright_schedule::{LoopNest, ScheduleState, canonical};

use crate::rewriting::rewritings;

/// Gains below this factor are not worth a change in rounding errors.
const WORTH: f64 = 1.25;

/// Algorithms estimated slower than the direct sum by more than this factor are not tried.
const HOPELESS: f64 = 0.8;

/// The maximum number of variants of a stage besides the direct sum.
const MOST_VARIANTS: usize = 2;

/// Drafts for the algorithms worth trying on a program, most promising first. The program as
/// written is always among them.
#[must_use]
pub fn alternatives(program: &Program, precision: Precision) -> Vec<ScheduleState> {
    alternatives_of(&canonical(program), precision)
}

/// Drafts for the algorithms worth trying on a canonical nest, or on a piece of one.
pub(crate) fn alternatives_of(nest: &LoopNest, precision: Precision) -> Vec<ScheduleState> {
    let mut begun = rewritings(nest, precision);
    // Stage variants are tried on the most promising rewriting of the program.
    let mut drafts = of_stages(begun.remove(0), precision);
    drafts.extend(begun);
    drafts
}

/// The draft as it is, and with other algorithms for its stages; most promising first.
fn of_stages(begun: ScheduleState, precision: Precision) -> Vec<ScheduleState> {
    let mut drafts = vec![(1.0, begun.clone())];
    if precision == Precision::Fast {
        for variant in 0..MOST_VARIANTS {
            drafts.extend(rewritten(begun.clone(), variant));
        }
    }
    drafts.sort_by(|a, b| b.0.total_cmp(&a.0));
    drafts.into_iter().map(|(_, draft)| draft).collect()
}

/// Rewrites every stage that has more than `variant` variants, each by its best one after skipping
/// `variant`. Also returns the smallest estimated gain of these stages; `None` if there is no such
/// stage.
fn rewritten(mut draft: ScheduleState, variant: usize) -> Option<(f64, ScheduleState)> {
    let mut least: Option<f64> = None;
    for stage in stages(&draft.nest) {
        let choice = winograd_choices(&draft.nest, &stage).into_iter().nth(variant);
        if let Some((choice, gain)) = choice.filter(|(_, gain)| *gain > HOPELESS)
            && draft.step(&stage, choice)
        {
            // Variants not worth a change in rounding errors come after the direct sum.
            let gain = if gain < WORTH { gain / WORTH } else { gain };
            least = Some(least.map_or(gain, |least| least.min(gain)));
        }
    }
    least.map(|gain| (gain, draft))
}
