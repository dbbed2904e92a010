//! Which stages are computed by another algorithm than the one that the program names.

use tensorwright_lang::precision::Precision;

use super::Draft;
use crate::primitives::{stages, winograd_choices};
use crate::target::Target;

/// An estimated gain below this is not worth other rounding errors.
const WORTH: f64 = 1.25;

/// An algorithm that seems to be slower than the direct sum by more than this is not tried.
const HOPELESS: f64 = 0.8;

/// The most variants of a stage that are tried beside the direct sum.
const MOST_VARIANTS: usize = 2;

/// The drafts that are worth a try, the most promising first.
pub(super) fn alternatives(begun: Draft, target: &Target) -> Vec<Draft> {
    let mut drafts = vec![(1.0, begun.clone())];
    if target.precision == Precision::Fast {
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
