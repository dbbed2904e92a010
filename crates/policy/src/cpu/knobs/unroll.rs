//! `unroll`: the unroll factor of the innermost reduction loop.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::primitives::Tail;
use tensorwright_space::parameter::{Discrete, Domain};

use super::{Knob, KnobParameter, Rule, SpaceRequest, Value, one, rank_of_number};
use crate::cpu::group::Group;
use crate::cpu::tiling::Tiling;

/// The maximum number of unrolled statements of a stage: beyond, compile time and instruction cache
/// misses outweigh the gain.
const MOST_STATEMENTS: i64 = 640;

/// The maximum number of terms of a fully unrolled window, whose neighbours share reads.
const MOST_OF_WINDOW: i64 = 32;

/// The unroll factor of the innermost reduction loop.
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

/// The number of terms of a small sliding window, to be unrolled fully.
pub(crate) fn whole_window(group: &Group) -> Option<i64> {
    let term = group.reduce.len().checked_sub(1)?;
    let terms = group.reduce[term].axis.extent;
    let moves = (0..group.spatial.len()).any(|row| group.is_window(row, term));
    (moves && (2..=MOST_OF_WINDOW).contains(&terms)).then_some(terms)
}

/// The innermost reduction loop has a multiple of the unroll factor of iterations.
fn of_terms(group: &Group, tiling: &Tiling, _: &Goal<Cpu>) -> Option<String> {
    let axis = innermost(tiling)?;
    let name = &group.reduce[axis].axis.name;
    let (last, unroll) = (tiling.reduce[axis].last().copied().unwrap_or(1), tiling.unroll);
    if unroll > 1 && last < unroll {
        return Some(format!(
            "the innermost {last} iterations of {name} are fewer than the unroll factor {unroll}"
        ));
    }
    let rounded = rounded(group, tiling)?;
    let same = rounded.last().copied().unwrap_or(1);
    Some(format!(
        "the innermost {last} iterations of {name}, unrolled by {unroll}, are rounded up to {same}"
    ))
}

/// The innermost reduction loop, unless it is vectorized.
fn innermost(tiling: &Tiling) -> Option<usize> {
    tiling.reduce_order.last().copied().filter(|_| !tiling.sums_in_lanes())
}

/// The parts of the innermost reduction loop after rounding up to a multiple of the unroll factor,
/// if the loop can be split into different parts that way.
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

/// Unrolled code stays small.
fn statements(group: &Group, tiling: &Tiling, _: &Goal<Cpu>) -> Option<String> {
    let terms = if group.is_reduction() { tiling.unroll } else { 1 };
    let statements = tiling.accumulators().saturating_mul(terms);
    // Every peeled loop adds a smaller copy of its body.
    let peels = group.spatial.iter().enumerate().filter(|(place, split)| {
        tiling.tail_of(*place) == Tail::Peel && split.axis.extent % tiling.cover(*place) != 0
    });
    let copies = 1i64 << peels.count().min(8);
    let all = statements.saturating_mul(copies).saturating_mul(group.operands.max(1) + 1) / 3;
    (all > MOST_STATEMENTS)
        .then(|| format!("about {all} unrolled statements, limit {MOST_STATEMENTS}"))
}
