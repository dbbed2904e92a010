//! `unroll`: how many iterations of the innermost loop over terms are written out.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::primitives::Tail;
use tensorwright_space::parameter::{Discrete, Domain};

use super::{Knob, KnobParameter, Rule, SpaceRequest, Value, one, rank_of_number};
use crate::cpu::group::Group;
use crate::cpu::tiling::Tiling;

/// The most statements of a stage that are written out: beyond, compiling takes longer than the
/// instruction cache can repay.
const MOST_STATEMENTS: i64 = 640;

/// The most terms of a window that are all written out, so that neighbours share what they read.
const MOST_OF_WINDOW: i64 = 32;

/// How many iterations of the innermost loop over terms are written out.
#[derive(Debug)]
pub(super) struct UnrollKnob;

impl Knob for UnrollKnob {
    fn knob_parameters(&self, group: &Group, _: SpaceRequest<'_>) -> Vec<KnobParameter> {
        let Some(longest) = group.reduce.iter().map(|split| split.axis.extent).max() else {
            return Vec::new();
        };
        let factors = [1, 2, 3, 4, 8].into_iter().filter(|factor| *factor <= longest);
        let mut factors: Vec<i64> = factors.chain(whole_window(group)).collect();
        factors.sort_unstable();
        factors.dedup();
        one("unroll", Discrete::new(factors))
    }

    fn read(&self, tiling: &mut Tiling, _: &Group, _: usize, value: Value<'_>) {
        tiling.unroll = value.number(1);
    }

    fn write(&self, tiling: &Tiling, _: &Group, _: usize, domain: &Domain) -> u32 {
        rank_of_number(domain, tiling.unroll)
    }

    fn rules(&self) -> &'static [Rule] {
        &[("unroll", statements), ("unroll.terms", of_terms)]
    }
}

/// All terms of a window that moves with a loop over results, if they are few.
pub(crate) fn whole_window(group: &Group) -> Option<i64> {
    let term = group.reduce.len().checked_sub(1)?;
    let terms = group.reduce[term].axis.extent;
    let moves = (0..group.spatial.len()).any(|row| group.is_window(row, term));
    (moves && (2..=MOST_OF_WINDOW).contains(&terms)).then_some(terms)
}

/// The innermost loop over terms has as many iterations as are written out, in whole blocks.
fn of_terms(group: &Group, tiling: &Tiling, _: &Goal<Cpu>) -> Option<String> {
    let axis = innermost(tiling)?;
    let name = &group.reduce[axis].axis.name;
    let (last, unroll) = (tiling.reduce[axis].last().copied().unwrap_or(1), tiling.unroll);
    if unroll > 1 && last < unroll {
        return Some(format!(
            "{name} has {last} iterations inside, fewer than the {unroll} to write out"
        ));
    }
    let rounded = rounded(group, tiling)?;
    let same = rounded.last().copied().unwrap_or(1);
    Some(format!(
        "{last} iterations of {name} inside, {unroll} written out, are the same as {same}"
    ))
}

/// The innermost loop over terms, if it is not that of the lanes.
fn innermost(tiling: &Tiling) -> Option<usize> {
    tiling.reduce_order.last().copied().filter(|_| !tiling.sums_in_lanes())
}

/// The innermost loop over terms is rounded up to whole blocks of what is written out: its parts then, if
/// these are others that the loop can be split into.
pub(crate) fn rounded(group: &Group, tiling: &Tiling) -> Option<Vec<i64>> {
    let axis = innermost(tiling)?;
    let (parts, unroll) = (&tiling.reduce[axis], tiling.unroll.max(1));
    let [_, inner @ .., last] = parts.as_slice() else { return None };
    let up = (last + unroll - 1) / unroll * unroll;
    let wanted: Vec<i64> = inner.iter().copied().chain([up]).collect();
    if up == *last {
        return None;
    }
    group.reduce[axis].exactly(&wanted)
}

/// Code that is written out stays small.
fn statements(group: &Group, tiling: &Tiling, _: &Goal<Cpu>) -> Option<String> {
    let terms = if group.is_reduction() { tiling.unroll } else { 1 };
    let statements = tiling.accumulators().saturating_mul(terms);
    // Every peeled loop makes a smaller copy of what is inside.
    let peels = group.spatial.iter().enumerate().filter(|(place, split)| {
        tiling.tail_of(*place) == Tail::Peel && split.axis.extent % tiling.cover(*place) != 0
    });
    let copies = 1i64 << peels.count().min(8);
    let all = statements.saturating_mul(copies).saturating_mul(group.operands.max(1) + 1) / 3;
    (all > MOST_STATEMENTS)
        .then(|| format!("about {all} statements are written out, more than {MOST_STATEMENTS}"))
}
