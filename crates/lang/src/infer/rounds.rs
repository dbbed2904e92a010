//! Range inference in rounds (Tensor Comprehensions, section 3.1).
//!
//! Variables with a `where` range are settled from the start. Each round considers the subscripts
//! with exactly one unsettled variable, takes for it the largest range from zero that stays in
//! bounds for all values of the settled variables, and intersects the limits of several subscripts.
//! Rounds repeat until nothing changes.
//!
//! A subscript whose guard contains other unsettled variables waits for them as long as other
//! subscripts make progress.

use super::access::Access;
use super::facts::Guard;
use super::query::{Limit, Range, RangeContext};
use crate::dtype::DType;
use crate::program::{Atom, AxisId, Expr, Index, TensorId};

/// A range and its origin.
#[derive(Debug, Clone)]
pub(crate) struct SettledRange {
    pub(crate) range: Range,
    pub(crate) origin: Origin,
}

/// The origin of a range.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// A `where` clause.
    Given,
    /// The accesses (by number) that set the upper end, in this round.
    Accesses { round: u32, limits: Vec<usize>, below: bool },
}

/// Infers ranges: a settled range per variable, or `None` where there is none.
pub(crate) fn infer(
    given: &[Option<Range>],
    accesses: &[Access<'_>],
    dtype: &impl Fn(TensorId) -> DType,
) -> Vec<Option<SettledRange>> {
    let mut settled: Vec<Option<SettledRange>> = given
        .iter()
        .map(|range| range.map(|range| SettledRange { range, origin: Origin::Given }))
        .collect();
    let variables: Vec<Mentions> = accesses.iter().map(mentions).collect();
    for round in 1.. {
        let found = one_round(&settled, accesses, &variables, dtype, true);
        let found = if found.is_empty() {
            one_round(&settled, accesses, &variables, dtype, false)
        } else {
            found
        };
        if found.is_empty() {
            break;
        }
        for (var, (hi, limits, below)) in found {
            let origin = Origin::Accesses { round, limits, below };
            settled[var] = Some(SettledRange { range: Range { lo: 0, hi }, origin });
        }
    }
    settled
}

/// The variables of a subscript and of its guards, as sets of bits; a statement has at most 32.
pub(crate) struct Mentions {
    pub(crate) subscript: u64,
    pub(crate) guards: u64,
    /// Whether the subscript can determine a range: it is pure index arithmetic.
    determines: bool,
}

pub(crate) fn mentions<E>(access: &Access<'_, E>) -> Mentions {
    let guards = access.guards.iter().fold(0, |set, guard| set | guard_axes(guard));
    Mentions { subscript: index_axes(&access.index), guards, determines: !access.index.has_value() }
}

/// The accesses of a round: those with exactly one unsettled variable, and that variable.
pub(crate) fn of_round(
    variables: &[Mentions],
    unsettled: u64,
    wait_for_guards: bool,
) -> impl Iterator<Item = (usize, AxisId)> {
    variables.iter().enumerate().filter_map(move |(number, mentions)| {
        let open = mentions.subscript & unsettled;
        let waits = wait_for_guards && mentions.guards & unsettled & !open != 0;
        let counts = mentions.determines && open.count_ones() == 1 && !waits;
        counts.then(|| (number, AxisId(open.trailing_zeros())))
    })
}

/// The index variables of an index, without sizes that vary.
pub(crate) fn index_axes(index: &Index) -> u64 {
    let mut set = 0;
    index.walk_axes(&mut |axis| {
        if axis.size().is_none() {
            set |= 1 << axis.0;
        }
    });
    set
}

fn guard_axes(guard: &Guard<'_>) -> u64 {
    let mut set = 0;
    guard.condition.walk(&mut |expr| {
        if let Expr::CompareIndex(_, lhs, rhs) = expr {
            set |= index_axes(lhs) | index_axes(rhs);
        }
    });
    set
}

type UpperBounds = Vec<(usize, (i64, Vec<usize>, bool))>;

fn one_round(
    settled: &[Option<SettledRange>],
    accesses: &[Access<'_>],
    variables: &[Mentions],
    dtype: &impl Fn(TensorId) -> DType,
    wait_for_guards: bool,
) -> UpperBounds {
    let ranges: Vec<Option<Range>> = settled.iter().map(|s| s.as_ref().map(|s| s.range)).collect();
    let unsettled: u64 =
        (0..ranges.len()).filter(|var| ranges[*var].is_none()).map(|var| 1 << var).sum();
    let known = RangeContext { ranges: &ranges, dtype };
    let mut found: Vec<Option<(i64, Vec<usize>, bool)>> = vec![None; ranges.len()];
    for (number, var) in of_round(variables, unsettled, wait_for_guards) {
        let (hi, below) = match known.limit(&accesses[number], var) {
            Limit::None => continue,
            Limit::Above(at) => (at, false),
            Limit::Below(at) => (at, true),
        };
        match &mut found[var.0 as usize] {
            Some((least, limits, _)) if *least == hi => limits.push(number),
            Some((least, ..)) if *least < hi => {}
            slot => *slot = Some((hi, vec![number], below)),
        }
    }
    let found = found.into_iter().enumerate();
    found.filter_map(|(var, found)| Some((var, found?))).collect()
}

/// The coefficient of an axis as a direct term of an index.
pub(crate) fn coefficient(index: &Index, axis: AxisId) -> i64 {
    index
        .terms()
        .iter()
        .find(|term| term.atom == Atom::Axis(axis))
        .map_or(0, |term| term.coefficient)
}
