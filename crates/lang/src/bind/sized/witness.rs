//! Finds a point at which an access happens and is outside, for all sizes.
//!
//! ```text
//! 0 <= y - 1 && y - 1 < H ? x(n, y-1) : 0     n = N, y = 1
//! ```
//!
//! The search tries the ends of what each inequality leaves to an index variable. It looks at the
//! likely sizes; what it finds there is then proven for all sizes, or becomes a condition.

use crate::bind::proofs::{Ends, Proofs, Replace, rows};
use crate::infer::{self, Access};
use crate::ops::CompareOp;
use crate::program::{Atom, AxisId, Expr, Index};

/// The most points to try to prove, and the most steps of a search.
const MAX_POINTS: usize = 32;
const MAX_STEPS: usize = 2000;

/// The points at which an access happens and is outside.
pub(super) struct Witness<'a> {
    pub(super) proofs: &'a Proofs<'a>,
    pub(super) ranges: &'a [Ends],
    pub(super) access: &'a Access<'a, Index>,
    /// Whether conditions on sizes may be made.
    pub(super) conditions: bool,
}

impl Witness<'_> {
    /// Whether there is one with this value of a variable.
    pub(super) fn is_at(&self, var: usize, value: &Index) -> bool {
        let Witness { proofs, access, .. } = *self;
        let mut first = None;
        for facts in infer::facts(&access.guards) {
            for (op, end) in [(CompareOp::Ge, &access.extent), (CompareOp::Lt, &Index::default())] {
                let claims = facts.iter().copied().chain([(op, &*access.index, end)]);
                let solutions = self.solutions(claims, var, value);
                let is_proven =
                    |rows: &Vec<Index>| rows.iter().all(|row| proofs.is_not_negative(row));
                if solutions.iter().any(is_proven) {
                    return true;
                }
                first = first.or(solutions.into_iter().next());
            }
        }
        let required = first.filter(|_| self.conditions);
        required.is_some_and(|rows| rows.iter().all(|row| proofs.require(row)))
    }

    /// Points for the likely sizes, each as functions that have to be at least zero.
    fn solutions<'i>(
        &self,
        claims: impl Iterator<Item = (CompareOp, &'i Index, &'i Index)>,
        var: usize,
        value: &Index,
    ) -> Vec<Vec<Index>> {
        let mut data = Data { first: self.ranges.len(), values: Vec::new() };
        let Some(rows) = data.rows(claims) else { return Vec::new() };
        let ranges = self.ranges.iter().cloned().chain(data.ranges(self.proofs));
        let ranges: Vec<Ends> = ranges.collect();
        let mut point: Vec<Option<Index>> = vec![None; ranges.len()];
        point[var] = Some(value.clone());
        let proofs = self.proofs;
        let mut search = Search { proofs, ranges, rows, steps: MAX_STEPS, found: Vec::new() };
        search.add_ranges();
        search.extend(&mut point);
        search.found
    }
}

/// Data in conditions: variables of any value of their types.
struct Data<'a> {
    /// The number of the first one.
    first: usize,
    values: Vec<&'a Expr>,
}

/// The largest value of data that is tried.
const LARGE: i64 = 1 << 48;

impl<'a> Data<'a> {
    /// The comparisons as functions that are at least zero; `None` if one is not of this form.
    fn rows(
        &mut self,
        facts: impl Iterator<Item = (CompareOp, &'a Index, &'a Index)>,
    ) -> Option<Vec<Index>> {
        let mut all = Vec::new();
        for (op, lhs, rhs) in facts {
            let difference = self.index(lhs)?.sub(&self.index(rhs)?)?;
            all.extend(rows(op, &difference)?);
        }
        Some(all)
    }

    fn index(&mut self, index: &'a Index) -> Option<Index> {
        let start = Index::constant(index.constant_term());
        index
            .terms()
            .iter()
            .try_fold(start, |sum, term| sum.add(&self.atom(&term.atom)?.scale(term.coefficient)?))
    }

    fn atom(&mut self, atom: &'a Atom) -> Option<Index> {
        Some(match atom {
            Atom::Axis(axis) => Index::axis(*axis),
            Atom::Div(inner, divisor) => self.index(inner)?.div(*divisor)?,
            Atom::Mod(inner, divisor) => self.index(inner)?.rem(*divisor),
            Atom::Min(a, b) => self.index(a)?.min(self.index(b)?),
            Atom::Max(a, b) => self.index(a)?.max(self.index(b)?),
            Atom::Product(inner, factor) => self.index(inner)?.times(*factor)?,
            Atom::Value(value) => {
                let known = self.values.iter().position(|known| *known == &**value);
                let number = known.unwrap_or_else(|| {
                    self.values.push(value);
                    self.values.len() - 1
                });
                // Sets of variables have 64 bits.
                let axis = u32::try_from(self.first + number).ok().filter(|axis| *axis < 64)?;
                Index::axis(AxisId(axis))
            }
        })
    }

    fn ranges(&self, proofs: &Proofs<'_>) -> Vec<Ends> {
        let one = |value: &&Expr| {
            let range = proofs.interval(&Index::value((*value).clone()));
            let end = |end: i128| {
                Index::constant(end.clamp(-i128::from(LARGE), i128::from(LARGE)) as i64)
            };
            Some((end(range.lo), end(range.hi + 1)))
        };
        self.values.iter().map(one).collect()
    }
}

struct Search<'a> {
    proofs: &'a Proofs<'a>,
    /// The ranges of the variables, and of the data after them.
    ranges: Vec<Ends>,
    /// The point is where all of these are at least zero.
    rows: Vec<Index>,
    steps: usize,
    /// Solutions for the likely sizes.
    found: Vec<Vec<Index>>,
}

impl Search<'_> {
    /// Adds the ranges of all variables in the rows.
    fn add_ranges(&mut self) {
        let axes = self.axes();
        for (var, range) in self.ranges.iter().enumerate().filter(|(var, _)| axes >> var & 1 == 1) {
            let axis = Index::axis(AxisId(var as u32));
            match range {
                None => self.rows.push(axis),
                Some((lo, hi)) => {
                    self.rows.extend(axis.sub(lo));
                    let last = hi.sub(&Index::constant(1));
                    self.rows.extend(last.and_then(|last| last.sub(&axis)));
                }
            }
        }
    }

    fn axes(&self) -> u64 {
        self.rows.iter().fold(0, |set, row| set | infer::index_axes(row))
    }

    /// Extends a point by one variable in all ways.
    fn extend(&mut self, point: &mut Vec<Option<Index>>) {
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 || self.found.len() >= MAX_POINTS {
            return;
        }
        let Some(rows) = self.rows_at(point) else { return };
        let is_false = |row: &Index| self.proofs.at_likely(row).is_some_and(|value| value < 0);
        if rows.iter().any(is_false) {
            return;
        }
        let axes = self.axes();
        let open = (0..point.len()).find(|var| axes >> var & 1 == 1 && point[*var].is_none());
        let Some(var) = open else {
            self.found.push(rows);
            return;
        };
        for value in self.candidates(&rows, var) {
            point[var] = Some(value);
            self.extend(point);
        }
        point[var] = None;
    }

    fn rows_at(&self, point: &[Option<Index>]) -> Option<Vec<Index>> {
        self.rows.iter().map(|row| row.rewrite(&mut Replace { with: point })).collect()
    }

    /// The ends of what each row leaves to a variable, if others have their least values.
    fn candidates(&self, rows: &[Index], var: usize) -> Vec<Index> {
        let axis = AxisId(var as u32);
        let least = |(other, range): (usize, &Ends)| match range {
            _ if other == var => None,
            // Data are zero, if they can be.
            Some((lo, _)) if self.proofs.at_likely(lo) > Some(0) => Some(lo.clone()),
            _ => Some(Index::constant(0)),
        };
        let least: Vec<Option<Index>> = self.ranges.iter().enumerate().map(least).collect();
        let end = |row: &Index| {
            let row = row.rewrite(&mut Replace { with: &least })?;
            let factor = row.coefficient_of(axis).filter(|factor| *factor != 0)?;
            let rest = row.sub(&Index::axis(axis).scale(factor)?)?;
            if factor > 0 {
                quotient_up(&rest.scale(-1)?, factor)
            } else {
                rest.div(factor.checked_neg()?)
            }
        };
        let mut found: Vec<Index> = rows.iter().filter_map(end).collect();
        if rows.iter().any(|row| row.coefficient_of(axis).is_none()) {
            found.extend([0, 1].map(Index::constant));
        }
        found.sort();
        found.dedup();
        found
    }
}

/// The quotient by a positive number, rounded up.
pub(super) fn quotient_up(index: &Index, divisor: i64) -> Option<Index> {
    index.add(&Index::constant(divisor.checked_sub(1)?))?.div(divisor)
}
