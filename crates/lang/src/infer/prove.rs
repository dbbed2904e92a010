//! Proves statements about all sizes that vary, by contradiction.
//!
//! ```text
//! 0 <= i, i <= N-2, i+1 >= N, 2 <= N <= 4096       no solution: x(i+1) stays below N
//! ```
//!
//! Sizes are variables of the system of inequalities, and the ends of ranges are rows.

use super::facts::{Fact, Guard, alternatives};
use super::query::{Builder, Key, nearest};
use super::system::Linear;
use crate::dtype::DType;
use crate::ops::CompareOp;
use crate::program::{AxisId, Expr, Index, Interval, SizeCondition, TensorId};

/// A comparison of two indices.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) op: CompareOp,
    pub(crate) lhs: Index,
    pub(crate) rhs: Index,
}

impl Claim {
    pub(crate) fn new(op: CompareOp, lhs: &Index, rhs: &Index) -> Self {
        Self { op, lhs: lhs.clone(), rhs: rhs.clone() }
    }
}

/// What is known in a proof.
pub(crate) struct Premises<'a, D> {
    /// The values of each size that varies.
    pub(crate) sizes: &'a [Interval],
    /// What all sizes satisfy.
    pub(crate) conditions: &'a [SizeCondition],
    /// The first value of each index variable and one past the last; an unsettled one is at least
    /// zero.
    pub(crate) ranges: &'a [Option<(Index, Index)>],
    pub(crate) dtype: &'a D,
}

impl<D: Fn(TensorId) -> DType> Premises<'_, D> {
    /// Whether the claims and the guards hold together for no values of sizes, index variables and
    /// data.
    pub(crate) fn refute(&self, claims: &[Claim], guards: &[Guard<'_>]) -> bool {
        let near = nearest(guards);
        self.refute_under(claims, near)
            || near.len() < guards.len() && self.refute_under(claims, guards)
    }

    fn refute_under(&self, claims: &[Claim], guards: &[Guard<'_>]) -> bool {
        alternatives(guards).iter().all(|facts| self.system(claims, facts).has_no_point())
    }

    /// For each alternative of guards that the claims do not contradict, functions of sizes that
    /// are at least zero wherever both hold.
    pub(crate) fn necessary(&self, claims: &[Claim], guards: &[Guard<'_>]) -> Vec<Vec<Index>> {
        let alternatives = alternatives(guards);
        let open = alternatives.iter().filter(|facts| !self.system(claims, facts).has_no_point());
        open.filter_map(|facts| self.system(claims, facts).of_sizes()).collect()
    }

    fn system<'b>(&'b self, claims: &'b [Claim], facts: &[Fact<'b>]) -> Builder<'b> {
        let mut builder = Builder::default();
        for Claim { op, lhs, rhs } in claims {
            builder.fact(&Fact { op: *op, lhs, rhs });
        }
        facts.iter().for_each(|fact| builder.fact(fact));
        self.bound_variables(&mut builder);
        builder
    }

    /// Adds the bounds of each variable, and the conditions on sizes.
    fn bound_variables<'b>(&'b self, builder: &mut Builder<'b>) {
        for condition in self.conditions {
            let (SizeCondition::AtLeastZero(index) | SizeCondition::Zero(index)) = condition;
            let Some(row) = builder.linear(index) else { continue };
            if matches!(condition, SizeCondition::Zero(_)) {
                builder.rows.extend(row.combine(-1, &Linear::default(), 0));
            }
            builder.rows.push(row);
        }
        let mut var = 0;
        // Ends of ranges may add variables.
        while let Some(key) = builder.vars.keys.get(var).copied() {
            match key {
                Key::Axis(axis) if axis.size().is_none() => {
                    self.bound_axis(builder, var, axis);
                }
                Key::Axis(axis) => {
                    let Interval { lo, hi } = self.interval(&Index::axis(axis));
                    builder.bound(var, (Some(lo), Some(hi)));
                }
                key => {
                    let bounds = key.bounds(&|index| self.interval(index), self.dtype);
                    builder.bound(var, bounds);
                }
            }
            var += 1;
        }
    }

    fn bound_axis<'b>(&'b self, builder: &mut Builder<'b>, var: usize, axis: AxisId) {
        let Some((lo, hi)) = self.ranges.get(axis.0 as usize).and_then(Option::as_ref) else {
            builder.bound(var, (Some(0), None));
            return;
        };
        let own = Linear::var(var as u32);
        match builder.linear(lo) {
            Some(lo) => builder.rows.extend(own.combine(1, &lo, -1)),
            None => builder.bound(var, (Some(self.interval(lo).lo), None)),
        }
        match builder.linear(hi) {
            Some(hi) => {
                let row = hi.combine(1, &own, -1);
                builder.rows.extend(row.and_then(|row| row.combine(1, &Linear::constant(-1), 1)));
            }
            None => builder.bound(var, (None, Some(self.interval(hi).hi - 1))),
        }
    }

    /// The values of an index.
    pub(crate) fn interval(&self, index: &Index) -> Interval {
        let axis = |axis: AxisId| match axis.size() {
            Some(size) => self.sizes.get(size).copied().unwrap_or(ANYTHING),
            None => match self.ranges.get(axis.0 as usize).and_then(Option::as_ref) {
                Some((lo, hi)) => {
                    let (lo, hi) = (self.interval(lo).lo, self.interval(hi).hi);
                    Interval { lo, hi: hi.saturating_sub(1) }
                }
                None => ANYTHING,
            },
        };
        index.interval(&axis, &|value: &Expr| Interval::of_type(value.dtype(self.dtype)))
    }
}

const ANYTHING: Interval = Interval { lo: 0, hi: i128::MAX };

/// The alternatives of guards, each a conjunction of comparisons.
pub(crate) fn facts<'a>(guards: &[Guard<'a>]) -> Vec<Vec<(CompareOp, &'a Index, &'a Index)>> {
    let fact = |fact: Fact<'a>| (fact.op, fact.lhs, fact.rhs);
    alternatives(guards).into_iter().map(|facts| facts.into_iter().map(fact).collect()).collect()
}
