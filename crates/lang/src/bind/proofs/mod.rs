//! What holds for all sizes that vary, and the conditions for the rest of it.
//!
//! ```text
//! N in 1..=4096, likely 512
//! N + 3 >= 0        proven
//! N - 2 >= 0        not for N = 1: a condition, since it holds for the likely size
//! N - 600 >= 0      neither
//! ```

mod extreme;
mod nonaffine;

use std::cell::RefCell;

use crate::dtype::DType;
use crate::hir;
use crate::infer::{self, Access, Claim, Guard, Premises};
use crate::ops::CompareOp;
use crate::program::{Atom, AxisId, Expr, Index, Interval, Size, SizeCondition, TensorId, Term};

pub(super) use extreme::{Ends, Replace, extreme};
pub(super) use nonaffine::value as nonaffine_value;

/// The sizes that vary, and the conditions on them so far.
pub(super) struct Proofs<'a> {
    pub(super) sizes: &'a [Size],
    tensors: &'a [hir::Tensor],
    intervals: Vec<Interval>,
    conditions: RefCell<Vec<SizeCondition>>,
}

/// The largest magnitude of a coefficient or a constant, as [`Index::is_small`].
const SMALL: i128 = 1 << 48;

impl<'a> Proofs<'a> {
    pub(super) fn new(sizes: &'a [Size], tensors: &'a [hir::Tensor]) -> Self {
        let intervals = sizes.iter().map(Size::interval).collect();
        Self { sizes, tensors, intervals, conditions: RefCell::default() }
    }

    /// The conditions, without those that follow from the others.
    pub(super) fn into_conditions(self) -> Vec<SizeCondition> {
        let mut kept = self.conditions.take();
        // Equations last: they imply more than they are implied by.
        kept.sort_by_key(|condition| matches!(condition, SizeCondition::Zero(_)));
        let mut number = 0;
        while number < kept.len() {
            let condition = kept.remove(number);
            self.conditions.replace(kept.clone());
            let follows = match &condition {
                SizeCondition::AtLeastZero(index) => self.is_not_negative(index),
                SizeCondition::Zero(index) => self.is_zero(index),
            };
            if !follows {
                kept.insert(number, condition);
                number += 1;
            }
        }
        kept.sort();
        kept
    }

    fn dtype(&self, tensor: TensorId) -> DType {
        self.tensors[tensor.0 as usize].dtype
    }

    /// The values of an index over all sizes; index variables may have any value from zero on.
    pub(super) fn interval(&self, index: &Index) -> Interval {
        let dtype = |id| self.dtype(id);
        let (sizes, conditions, ranges) = (self.intervals.as_slice(), &[], &[]);
        Premises { sizes, conditions, ranges, dtype: &dtype }.interval(index)
    }

    /// The value for the likely sizes, of a function of sizes.
    pub(super) fn at_likely(&self, index: &Index) -> Option<i64> {
        let axis = |axis: AxisId| {
            let size = axis.size().and_then(|number| self.sizes.get(number));
            size.map_or(0, |size| size.range.likely / size.range.multiple)
        };
        let value = self.is_of_sizes(index).then(|| index.eval(&axis, &mut |_| Err(())));
        i64::try_from(value?.ok()?).ok()
    }

    /// Whether an index depends on sizes and numbers alone.
    pub(super) fn is_of_sizes(&self, index: &Index) -> bool {
        let mut others = index.has_value();
        index.walk_axes(&mut |axis| others |= axis.size().is_none());
        !others
    }

    /// Whether coefficients and constants are small for all sizes.
    pub(super) fn is_small(&self, index: &Index) -> bool {
        let mut constant = Index::constant(index.constant_term());
        let mut small = index.is_small();
        for term in index.terms() {
            let atom = Index::atom(term.atom.clone());
            let factor = i128::from(term.coefficient);
            if self.is_of_sizes(&atom) {
                match atom.scale(term.coefficient).and_then(|term| constant.add(&term)) {
                    Some(sum) => constant = sum,
                    None => return false,
                }
            } else if let Atom::Product(_, size) = &term.atom {
                let scale = self.interval(&Index::axis(*size)).scale(factor);
                small &= scale.magnitude() <= SMALL;
            }
        }
        small && self.interval(&constant).magnitude() <= SMALL
    }

    /// Whether claims and guards contradict each other, for these ranges of index variables.
    pub(super) fn refute(&self, claims: &[Claim], guards: &[Guard<'_>], ranges: &[Ends]) -> bool {
        let dtype = |id| self.dtype(id);
        let conditions = self.conditions.borrow();
        let sizes = self.intervals.as_slice();
        Premises { sizes, conditions: &conditions, ranges, dtype: &dtype }.refute(claims, guards)
    }

    /// Whether a function of sizes is at least zero for all of them.
    pub(super) fn is_not_negative(&self, index: &Index) -> bool {
        let below = Claim::new(CompareOp::Lt, index, &Index::constant(0));
        self.interval(index).lo >= 0 || self.refute(&[below], &[], &[])
    }

    fn is_zero(&self, index: &Index) -> bool {
        let minus = index.scale(-1);
        self.is_not_negative(index) && minus.is_some_and(|minus| self.is_not_negative(&minus))
    }

    /// Whether a comparison of functions of sizes holds for all of them.
    pub(super) fn holds(&self, op: CompareOp, lhs: &Index, rhs: &Index) -> bool {
        let Some(difference) = lhs.sub(rhs) else { return false };
        rows(op, &difference).is_some_and(|rows| rows.iter().all(|row| self.is_not_negative(row)))
    }

    /// The result of a comparison of functions of sizes, if it is the same for all of them.
    pub(super) fn decides(&self, op: CompareOp, lhs: &Index, rhs: &Index) -> Option<bool> {
        if !self.is_of_sizes(lhs) || !self.is_of_sizes(rhs) {
            return None;
        }
        let proven = |op: CompareOp| match op {
            CompareOp::Ne => {
                self.holds(CompareOp::Lt, lhs, rhs) || self.holds(CompareOp::Gt, lhs, rhs)
            }
            op => self.holds(op, lhs, rhs),
        };
        if proven(op) {
            return Some(true);
        }
        proven(op.negate()).then_some(false)
    }

    /// Makes a comparison of functions of sizes come out as for the likely sizes.
    pub(super) fn decide_as_likely(&self, op: CompareOp, lhs: &Index, rhs: &Index) -> bool {
        let (Some(left), Some(right)) = (self.at_likely(lhs), self.at_likely(rhs)) else {
            return false;
        };
        let op = if op.holds(Some(left.cmp(&right))) { op } else { op.negate() };
        let op = match op {
            CompareOp::Ne if left < right => CompareOp::Lt,
            CompareOp::Ne => CompareOp::Gt,
            op => op,
        };
        let Some(difference) = lhs.sub(rhs) else { return false };
        match op {
            CompareOp::Eq => self.require_zero(&difference),
            op => {
                rows(op, &difference).is_some_and(|rows| rows.iter().all(|row| self.require(row)))
            }
        }
    }

    /// Proves that a function of sizes is at least zero, or makes it a condition; `false` if it
    /// does not hold for the likely sizes.
    pub(super) fn require(&self, index: &Index) -> bool {
        if self.is_not_negative(index) {
            return true;
        }
        if self.at_likely(index) < Some(0) {
            return false;
        }
        if let Some((is_least, [a, b])) = cases(index) {
            // The lesser is at least zero if both are; the greater, if one is.
            return if is_least {
                self.require(&a) && self.require(&b)
            } else {
                self.is_not_negative(&a) || self.require(&b) || self.require(&a)
            };
        }
        self.conditions.borrow_mut().push(SizeCondition::AtLeastZero(simplified(index)));
        true
    }

    /// As [`Proofs::require`], for zero.
    pub(super) fn require_zero(&self, index: &Index) -> bool {
        if self.is_zero(index) {
            return true;
        }
        let holds = self.at_likely(index) == Some(0);
        if holds {
            self.conditions.borrow_mut().push(SizeCondition::Zero(index.clone()));
        }
        holds
    }

    /// Whether an access stays in its tensor for these ranges of index variables.
    pub(super) fn is_inside(&self, access: &Access<'_, Index>, ranges: &[Ends]) -> bool {
        [Side::Below, Side::Above].into_iter().all(|side| self.is_within(access, ranges, side))
    }

    /// Whether an access stays on one side of its tensor.
    fn is_within(&self, access: &Access<'_, Index>, ranges: &[Ends], side: Side) -> bool {
        let margin = side.margin(access, ranges);
        margin.is_some_and(|margin| self.interval(&margin).lo >= 0)
            || self.refute(&[side.outside(access)], &access.guards, ranges)
    }

    /// Proves that an access stays in its tensor, or makes conditions of what is missing; `false`
    /// if it cannot be said as conditions that hold for the likely sizes.
    pub(super) fn require_inside(&self, access: &Access<'_, Index>, ranges: &[Ends]) -> bool {
        [Side::Below, Side::Above].into_iter().all(|side| {
            let margin = || side.margin(access, ranges);
            self.is_within(access, ranges, side)
                || self.contradict(&side.outside(access), &access.guards, ranges)
                    && self.is_within(access, ranges, side)
                || margin().is_some_and(|margin| self.require(&margin))
                || self.exclude(access, ranges, side) && self.is_within(access, ranges, side)
        })
    }

    /// Makes a condition of sizes for which a claim contradicts the guards.
    fn contradict(&self, claim: &Claim, guards: &[Guard<'_>], ranges: &[Ends]) -> bool {
        let necessary = {
            let dtype = |id| self.dtype(id);
            let (sizes, conditions) = (self.intervals.as_slice(), self.conditions.borrow());
            let premises = Premises { sizes, conditions: &conditions, ranges, dtype: &dtype };
            premises.necessary(std::slice::from_ref(claim), guards)
        };
        let negations: Option<Vec<Index>> = necessary
            .into_iter()
            .map(|rows| {
                let negated = rows.iter().filter_map(|row| row.scale(-1)?.sub(&Index::constant(1)));
                let holding = negated.filter(|row| self.at_likely(row) >= Some(0));
                holding.min_by_key(|row| row.terms().len())
            })
            .collect();
        negations.is_some_and(|all| all.iter().all(|row| self.require(row)))
    }

    /// Makes the guards of an access fail where its subscript is greatest, or least, as they do for
    /// the likely sizes: `x(e+1)` where `e % 2 == 0` needs an even extent.
    fn exclude(&self, access: &Access<'_, Index>, ranges: &[Ends], side: Side) -> bool {
        let end = |(var, ends): (usize, &Ends)| {
            let (lo, hi) = ends.as_ref()?;
            let rises = access.index.coefficient_of(AxisId(var as u32)).unwrap_or(1) >= 0;
            if rises == (side == Side::Above) {
                hi.sub(&Index::constant(1))
            } else {
                Some(lo.clone())
            }
        };
        let corner: Vec<Option<Index>> = ranges.iter().enumerate().map(end).collect();
        let at = |index: &Index| index.rewrite(&mut Replace { with: &corner });
        infer::facts(&access.guards).into_iter().all(|facts| {
            facts.into_iter().any(|(op, lhs, rhs)| {
                let (Some(lhs), Some(rhs)) = (at(lhs), at(rhs)) else { return false };
                let (left, right) = (self.at_likely(&lhs), self.at_likely(&rhs));
                let Some((left, right)) = left.zip(right) else { return false };
                !op.holds(Some(left.cmp(&right))) && self.decide_as_likely(op, &lhs, &rhs)
            })
        })
    }

    /// The names of the sizes in an index, in an order that does not depend on it.
    pub(super) fn names(&self, indices: &[&Index]) -> Vec<String> {
        let mut found = vec![false; self.sizes.len()];
        let mut look = |axis: AxisId| {
            if let Some(is) = axis.size().and_then(|number| found.get_mut(number)) {
                *is = true;
            }
        };
        for index in indices {
            index.walk_axes(&mut look);
            index.walk_values(&mut |value| match value {
                Expr::Index(index, _) => index.walk_axes(&mut look),
                Expr::CompareIndex(_, a, b) => {
                    a.walk_axes(&mut look);
                    b.walk_axes(&mut look);
                }
                _ => {}
            });
        }
        let named = self.sizes.iter().zip(found).filter(|(_, found)| *found);
        named.map(|(size, _)| format!("`{}`", size.name)).collect()
    }
}

/// The ends of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Below zero.
    Below,
    /// From the extent on.
    Above,
}

impl Side {
    /// The claim that an access is outside.
    fn outside(self, access: &Access<'_, Index>) -> Claim {
        match self {
            Side::Below => Claim::new(CompareOp::Lt, &access.index, &Index::constant(0)),
            Side::Above => Claim::new(CompareOp::Ge, &access.index, &access.extent),
        }
    }

    /// How far an access stays inside at least, without its guards.
    fn margin(self, access: &Access<'_, Index>, ranges: &[Ends]) -> Option<Index> {
        match self {
            Side::Below => extreme(&access.index, ranges, false),
            Side::Above => {
                let last = access.extent.sub(&Index::constant(1))?;
                last.sub(&extreme(&access.index, ranges, true)?)
            }
        }
    }
}

/// The comparison of a difference with zero, as functions that are at least zero; `None` for
/// inequality.
pub(super) fn rows(op: CompareOp, difference: &Index) -> Option<Vec<Index>> {
    let less = |by: i64| difference.scale(-1)?.sub(&Index::constant(by));
    let more = |by: i64| difference.sub(&Index::constant(by));
    Some(match op {
        CompareOp::Eq => vec![less(0)?, more(0)?],
        CompareOp::Ne => return None,
        CompareOp::Lt => vec![less(1)?],
        CompareOp::Le => vec![less(0)?],
        CompareOp::Gt => vec![more(1)?],
        CompareOp::Ge => vec![more(0)?],
    })
}

/// A simpler function that is at least zero for the same sizes.
///
/// ```text
/// 2*N - 3         N - 2
/// (N - K)/2 - 1   N - K - 2
/// ```
fn simplified(index: &Index) -> Index {
    let divisor = index.terms().iter().fold(0, |g, term| gcd(g, term.coefficient.unsigned_abs()));
    let divided = i64::try_from(divisor).ok().filter(|divisor| *divisor > 1);
    let index = divided.and_then(|divisor| index.div(divisor)).unwrap_or_else(|| index.clone());
    let constant = index.constant_term();
    let inner = match index.terms() {
        // inner / divisor >= -constant
        [Term { atom: Atom::Div(inner, divisor), coefficient: 1 }] => {
            let least = constant.checked_neg().and_then(|least| least.checked_mul(*divisor));
            least.and_then(|least| inner.sub(&Index::constant(least)))
        }
        // inner / divisor <= constant
        [Term { atom: Atom::Div(inner, divisor), coefficient: -1 }] => {
            let most = constant.checked_add(1).and_then(|end| end.checked_mul(*divisor));
            most.and_then(|end| Index::constant(end.checked_sub(1)?).sub(inner))
        }
        _ => None,
    };
    inner.map_or(index, |inner| simplified(&inner))
}

/// The operands of the first minimum or maximum of a sum, in its place; and whether the sum is the
/// lesser of both.
fn cases(index: &Index) -> Option<(bool, [Index; 2])> {
    index.terms().iter().find_map(|term| {
        let (is_min, a, b) = match &term.atom {
            Atom::Min(a, b) => (true, a, b),
            Atom::Max(a, b) => (false, a, b),
            _ => return None,
        };
        let rest = index.without(&term.atom);
        let with = |operand: &Index| rest.add(&operand.scale(term.coefficient)?);
        Some((is_min == (term.coefficient > 0), [with(a)?, with(b)?]))
    })
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
