//! Index expressions in a normal form.
//!
//! An [`Index`] is a constant plus a sum of integer multiples of *atoms*. An atom is an axis, a
//! quotient or remainder by a positive constant, a minimum or maximum, a product with a variable, or
//! a data-dependent value.
//! The constructors here keep an index normal: atoms are sorted and distinct, no coefficient is
//! zero, and terms are factored out of `/` and `%` where possible.

use super::{AxisId, Expr};
use crate::dtype::DType;

/// A sum of multiples of atoms and a constant, in normal form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Index {
    terms: Vec<Term>,
    constant: i64,
}

/// An atom with its coefficient, which is not zero.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// The atom.
    pub atom: Atom,
    /// The coefficient; not zero.
    pub coefficient: i64,
}

/// The building blocks of index expressions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// The value of an axis.
    Axis(AxisId),
    /// A quotient by a positive constant, rounded down.
    Div(Box<Index>, i64),
    /// A remainder by a positive constant, never negative.
    Mod(Box<Index>, i64),
    /// The lesser of two.
    Min(Box<Index>, Box<Index>),
    /// The greater of two.
    Max(Box<Index>, Box<Index>),
    /// A product with a variable that is known at run time alone, such as a stride; the other
    /// factor is a single atom.
    Product(Box<Index>, AxisId),
    /// An integer that is not a quasi-affine function of the axes: read from a tensor, or a product
    /// of axes.
    Value(Box<Expr>),
}

/// A range of integers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The least value.
    pub lo: i128,
    /// The greatest value.
    pub hi: i128,
}

impl Index {
    /// A constant.
    #[must_use]
    pub fn constant(value: i64) -> Self {
        Self { terms: Vec::new(), constant: value }
    }

    /// An axis.
    #[must_use]
    pub fn axis(axis: AxisId) -> Self {
        Self::atom(Atom::Axis(axis))
    }

    /// An atom.
    #[must_use]
    pub fn atom(atom: Atom) -> Self {
        Self { terms: vec![Term { atom, coefficient: 1 }], constant: 0 }
    }

    /// A data-dependent value.
    #[must_use]
    pub fn value(expr: Expr) -> Self {
        Self::atom(Atom::Value(Box::new(expr)))
    }

    /// The terms, sorted by atom.
    #[must_use]
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The constant term.
    #[must_use]
    pub fn constant_term(&self) -> i64 {
        self.constant
    }

    /// The value, if it is constant.
    #[must_use]
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The axis, if the index is a single axis.
    #[must_use]
    pub fn as_axis(&self) -> Option<AxisId> {
        match (self.terms.as_slice(), self.constant) {
            ([Term { atom: Atom::Axis(axis), coefficient: 1 }], 0) => Some(*axis),
            _ => None,
        }
    }

    /// The value, if the index is a single data-dependent value; the index itself otherwise.
    ///
    /// # Errors
    /// The index itself.
    pub(crate) fn into_value(mut self) -> Result<Expr, Index> {
        match self.terms.pop() {
            Some(Term { atom: Atom::Value(value), coefficient: 1 })
                if self.terms.is_empty() && self.constant == 0 =>
            {
                Ok(*value)
            }
            last => {
                self.terms.extend(last);
                Err(self)
            }
        }
    }

    /// `self + other`, or `None` where a coefficient overflows.
    #[must_use]
    pub fn add(&self, other: &Index) -> Option<Index> {
        let constant = self.constant.checked_add(other.constant)?;
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let mut cancelled: Vec<Index> = Vec::new();
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let ordering = match (left.peek(), right.peek()) {
                (Some(l), Some(r)) => l.atom.cmp(&r.atom),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => break,
            };
            match ordering {
                std::cmp::Ordering::Less => terms.extend(left.next().cloned()),
                std::cmp::Ordering::Greater => terms.extend(right.next().cloned()),
                std::cmp::Ordering::Equal => {
                    if let (Some(l), Some(r)) = (left.next(), right.next()) {
                        let coefficient = l.coefficient.checked_add(r.coefficient)?;
                        if coefficient != 0 {
                            terms.push(Term { atom: l.atom.clone(), coefficient });
                        } else if l.atom.has_value() {
                            cancelled.push(Index::atom(l.atom.clone()).rem(1));
                        }
                    }
                }
            }
        }
        // Values are never dropped, see `scale`.
        cancelled.iter().try_fold(Index { terms, constant }, |sum, zero| sum.add(zero))
    }

    /// `self * factor`, or `None` where a coefficient overflows.
    ///
    /// Data-dependent values are never dropped, even if multiplied by zero: the reads in them may
    /// determine ranges. So `0 * A(i)` becomes `A(i) % 1`.
    #[must_use]
    pub fn scale(&self, factor: i64) -> Option<Index> {
        if factor == 0 {
            return Some(self.rem(1));
        }
        let mut scaled = self.clone();
        scaled.constant = scaled.constant.checked_mul(factor)?;
        for term in &mut scaled.terms {
            term.coefficient = term.coefficient.checked_mul(factor)?;
        }
        Some(scaled)
    }

    /// `self - other`, or `None` where a coefficient overflows.
    #[must_use]
    pub fn sub(&self, other: &Index) -> Option<Index> {
        self.add(&other.scale(-1)?)
    }

    /// The index without one of its terms.
    pub(crate) fn without(&self, atom: &Atom) -> Index {
        let terms = self.terms.iter().filter(|term| term.atom != *atom).cloned().collect();
        Index { terms, constant: self.constant }
    }

    /// `self / divisor` rounded down, for a positive divisor. Multiples of the divisor are factored
    /// out: `(4*i + j) / 4` is `i + j / 4`.
    #[must_use]
    pub fn div(&self, divisor: i64) -> Option<Index> {
        let (quotient, rest) = self.split(divisor);
        if rest.terms.is_empty() {
            return Some(quotient);
        }
        quotient.add(&Index::atom(Atom::Div(Box::new(rest), divisor)))
    }

    /// `self % divisor`, never negative, for a positive divisor. Multiples of the divisor are
    /// dropped: `(4*i + j) % 4` is `j % 4`; data-dependent values are not.
    #[must_use]
    pub fn rem(&self, divisor: i64) -> Index {
        let (_, mut rest) = self.split(divisor);
        let multiples = |term: &&Term| term.coefficient % divisor == 0 && term.atom.has_value();
        rest.terms.extend(self.terms.iter().filter(multiples).cloned());
        rest.terms.sort();
        if rest.terms.is_empty() {
            return rest;
        }
        Index::atom(Atom::Mod(Box::new(rest), divisor))
    }

    /// `self * factor`, term by term; `None` on overflow.
    #[must_use]
    pub fn times(&self, factor: AxisId) -> Option<Index> {
        let start = Index::axis(factor).scale(self.constant)?;
        self.terms.iter().try_fold(start, |sum, term| {
            let inner = Index::atom(term.atom.clone());
            let product = Index::atom(Atom::Product(Box::new(inner), factor));
            sum.add(&product.scale(term.coefficient)?)
        })
    }

    /// The lesser of two.
    #[must_use]
    pub fn min(self, other: Index) -> Index {
        match (self.as_constant(), other.as_constant()) {
            (Some(a), Some(b)) => Index::constant(a.min(b)),
            _ if self == other => self,
            _ => Index::atom(Atom::Min(Box::new(self), Box::new(other))),
        }
    }

    /// The greater of two.
    #[must_use]
    pub fn max(self, other: Index) -> Index {
        match (self.as_constant(), other.as_constant()) {
            (Some(a), Some(b)) => Index::constant(a.max(b)),
            _ if self == other => self,
            _ => Index::atom(Atom::Max(Box::new(self), Box::new(other))),
        }
    }

    /// `self = divisor * quotient + rest`, with the constant of `rest` in `0..divisor` and no
    /// coefficient of `rest` a multiple of the divisor.
    fn split(&self, divisor: i64) -> (Index, Index) {
        debug_assert!(divisor > 0);
        let mut quotient = Index::constant(self.constant.div_euclid(divisor));
        let mut rest = Index::constant(self.constant.rem_euclid(divisor));
        for term in &self.terms {
            if term.coefficient % divisor == 0 {
                let coefficient = term.coefficient / divisor;
                quotient.terms.push(Term { atom: term.atom.clone(), coefficient });
            } else {
                rest.terms.push(term.clone());
            }
        }
        (quotient, rest)
    }

    /// Calls `visit` with every axis outside values, at any depth, once per occurrence.
    pub fn walk_axes(&self, visit: &mut impl FnMut(AxisId)) {
        for term in &self.terms {
            match &term.atom {
                Atom::Axis(axis) => visit(*axis),
                Atom::Div(inner, _) | Atom::Mod(inner, _) => inner.walk_axes(visit),
                Atom::Product(inner, factor) => {
                    inner.walk_axes(visit);
                    visit(*factor);
                }
                Atom::Min(a, b) | Atom::Max(a, b) => {
                    a.walk_axes(visit);
                    b.walk_axes(visit);
                }
                Atom::Value(_) => {}
            }
        }
    }

    /// The outermost data-dependent expressions in the index.
    #[must_use]
    pub fn outermost_values(&self) -> Vec<&Expr> {
        let mut found = Vec::new();
        self.collect_values(&mut found);
        found
    }

    fn collect_values<'a>(&'a self, found: &mut Vec<&'a Expr>) {
        for term in &self.terms {
            match &term.atom {
                Atom::Axis(_) => {}
                Atom::Div(inner, _) | Atom::Mod(inner, _) | Atom::Product(inner, _) => {
                    inner.collect_values(found);
                }
                Atom::Min(a, b) | Atom::Max(a, b) => {
                    a.collect_values(found);
                    b.collect_values(found);
                }
                Atom::Value(expr) => found.push(expr),
            }
        }
    }

    /// Calls `visit` with every data-dependent expression inside the index, and its subexpressions.
    pub fn walk_values<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        self.outermost_values().into_iter().for_each(|value| value.walk(visit));
    }

    /// Calls `change` with every data-dependent expression, then sorts the terms again.
    pub(crate) fn for_each_value_mut(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        let mut collapses = false;
        for term in &mut self.terms {
            match &mut term.atom {
                Atom::Axis(_) => {}
                Atom::Div(inner, _) | Atom::Mod(inner, _) | Atom::Product(inner, _) => {
                    inner.for_each_value_mut(change);
                }
                Atom::Min(a, b) | Atom::Max(a, b) => {
                    a.for_each_value_mut(change);
                    b.for_each_value_mut(change);
                    collapses |= a == b;
                }
                Atom::Value(expr) => change(expr),
            }
        }
        if !self.has_value() {
            return;
        }
        if collapses {
            self.collapse();
        }
        // Different tensors may have become one: merge equal terms.
        self.terms.sort();
        let mut merged: Vec<Term> = Vec::with_capacity(self.terms.len());
        for term in self.terms.drain(..) {
            match merged.last_mut() {
                Some(last) if last.atom == term.atom => {
                    match last.coefficient.checked_add(term.coefficient) {
                        Some(0) => drop(merged.pop()),
                        Some(sum) => last.coefficient = sum,
                        None => merged.push(term),
                    }
                }
                _ => merged.push(term),
            }
        }
        self.terms = merged;
    }

    /// Simplifies minima and maxima of equal operands.
    fn collapse(&mut self) {
        let one = |term: &Term| match &term.atom {
            Atom::Min(a, b) | Atom::Max(a, b) if a == b => a.scale(term.coefficient),
            atom => Index::atom(atom.clone()).scale(term.coefficient),
        };
        let start = Index::constant(self.constant);
        let sum = self.terms.iter().try_fold(start, |sum, term| sum.add(&one(term)?));
        if let Some(sum) = sum {
            *self = sum;
        }
    }

    /// A bound on the nesting depth of the printed index: a sum nests once per term.
    pub(crate) fn height(&self) -> usize {
        let atom = |term: &Term| match &term.atom {
            Atom::Axis(_) => 1,
            Atom::Div(inner, _) | Atom::Mod(inner, _) | Atom::Product(inner, _) => {
                2 + inner.height()
            }
            Atom::Min(a, b) | Atom::Max(a, b) => 1 + a.height().max(b.height()),
            Atom::Value(expr) => 1 + expr.height(),
        };
        self.terms.len() + 2 + self.terms.iter().map(atom).max().unwrap_or(0)
    }

    /// Whether all coefficients and the constant are below 2^48 in magnitude, so that sums of
    /// products with 64-bit values cannot overflow 128 bits.
    pub(crate) fn is_small(&self) -> bool {
        let small = |value: i64| value.unsigned_abs() <= 1 << 48;
        small(self.constant) && self.terms.iter().all(|term| small(term.coefficient))
    }

    /// Whether the index contains a data-dependent value.
    #[must_use]
    pub fn has_value(&self) -> bool {
        !self.outermost_values().is_empty()
    }

    /// Evaluates the index; `axis` gives the value of an axis, `value` that of an expression.
    ///
    /// # Errors
    /// The first error of `value`. Arithmetic is done in 128 bits and cannot overflow for indices
    /// that binding accepted.
    pub fn eval<E>(
        &self,
        axis: &impl Fn(AxisId) -> i64,
        value: &mut impl FnMut(&Expr) -> Result<i128, E>,
    ) -> Result<i128, E> {
        let mut sum = i128::from(self.constant);
        for term in &self.terms {
            let atom = match &term.atom {
                Atom::Axis(id) => i128::from(axis(*id)),
                Atom::Div(inner, divisor) => {
                    inner.eval(axis, value)?.div_euclid(i128::from(*divisor))
                }
                Atom::Mod(inner, divisor) => {
                    inner.eval(axis, value)?.rem_euclid(i128::from(*divisor))
                }
                Atom::Min(a, b) => a.eval(axis, value)?.min(b.eval(axis, value)?),
                Atom::Max(a, b) => a.eval(axis, value)?.max(b.eval(axis, value)?),
                Atom::Product(inner, factor) => {
                    inner.eval(axis, value)?.wrapping_mul(i128::from(axis(*factor)))
                }
                Atom::Value(expr) => value(expr)?,
            };
            sum = sum.wrapping_add(atom.wrapping_mul(i128::from(term.coefficient)));
        }
        Ok(sum)
    }

    /// The interval of the index (or a wider one), given ranges of the axes and of the values.
    #[must_use]
    pub fn interval(
        &self,
        axis: &impl Fn(AxisId) -> Interval,
        value: &impl Fn(&Expr) -> Interval,
    ) -> Interval {
        self.terms.iter().fold(Interval::point(i128::from(self.constant)), |sum, term| {
            sum.plus(term.atom.interval(axis, value).scale(i128::from(term.coefficient)))
        })
    }
}

impl Atom {
    /// As [`Index::interval`].
    pub(crate) fn interval(
        &self,
        axis: &impl Fn(AxisId) -> Interval,
        value: &impl Fn(&Expr) -> Interval,
    ) -> Interval {
        match self {
            Atom::Axis(id) => axis(*id),
            Atom::Div(inner, divisor) => {
                inner.interval(axis, value).floor_div(i128::from(*divisor))
            }
            Atom::Mod(inner, divisor) => {
                let inner = inner.interval(axis, value);
                let divisor = i128::from(*divisor);
                if inner.lo.div_euclid(divisor) == inner.hi.div_euclid(divisor) {
                    Interval { lo: inner.lo.rem_euclid(divisor), hi: inner.hi.rem_euclid(divisor) }
                } else {
                    Interval { lo: 0, hi: divisor - 1 }
                }
            }
            Atom::Min(a, b) => a.interval(axis, value).least(b.interval(axis, value)),
            Atom::Max(a, b) => a.interval(axis, value).greatest(b.interval(axis, value)),
            Atom::Product(inner, factor) => inner.interval(axis, value).times(axis(*factor)),
            Atom::Value(expr) => value(expr),
        }
    }

    fn has_value(&self) -> bool {
        match self {
            Atom::Axis(_) => false,
            Atom::Div(inner, _) | Atom::Mod(inner, _) | Atom::Product(inner, _) => {
                inner.has_value()
            }
            Atom::Min(a, b) | Atom::Max(a, b) => a.has_value() || b.has_value(),
            Atom::Value(_) => true,
        }
    }
}

impl Interval {
    /// All values of an integer type; for other types, of `int64`.
    #[must_use]
    pub fn of_type(dtype: DType) -> Self {
        let all = (i128::from(i64::MIN), i128::from(i64::MAX));
        let (lo, hi) = dtype.integer_range().unwrap_or(all);
        Self { lo, hi }
    }

    /// A single value.
    #[must_use]
    pub fn point(value: i128) -> Self {
        Self { lo: value, hi: value }
    }

    /// The sums of values of both.
    #[must_use]
    pub fn plus(self, other: Interval) -> Interval {
        Interval { lo: self.lo.saturating_add(other.lo), hi: self.hi.saturating_add(other.hi) }
    }

    /// The multiples of its values.
    #[must_use]
    pub fn scale(self, factor: i128) -> Interval {
        let (a, b) = (self.lo.saturating_mul(factor), self.hi.saturating_mul(factor));
        Interval { lo: a.min(b), hi: a.max(b) }
    }

    /// The products of values of both.
    #[must_use]
    pub fn times(self, other: Interval) -> Interval {
        self.scale(other.lo).hull(self.scale(other.hi))
    }

    /// The quotients of its values by a positive number, rounded down.
    #[must_use]
    pub fn floor_div(self, by: i128) -> Interval {
        Interval { lo: self.lo.div_euclid(by), hi: self.hi.div_euclid(by) }
    }

    /// The minima of values of both.
    #[must_use]
    pub fn least(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.min(other.hi) }
    }

    /// The maxima of values of both.
    #[must_use]
    pub fn greatest(self, other: Interval) -> Interval {
        Interval { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The smallest interval that contains both.
    #[must_use]
    pub fn hull(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The largest absolute value.
    #[must_use]
    pub fn magnitude(self) -> i128 {
        self.lo.saturating_abs().max(self.hi.saturating_abs())
    }

    /// Whether all values fit in `int64`.
    #[must_use]
    pub fn is_64_bit(self) -> bool {
        self.lo >= i128::from(i64::MIN) && self.hi <= i128::from(i64::MAX)
    }

    /// Whether all values are at least `lo` and below `hi`.
    #[must_use]
    pub fn within(self, lo: i128, hi: i128) -> bool {
        self.lo >= lo && self.hi < hi
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(n: u32) -> Index {
        Index::axis(AxisId(n))
    }

    #[test]
    fn sums_are_normal() {
        let (i, j) = (axis(0), axis(1));
        let sum = i.add(&j).unwrap().sub(&i).unwrap();
        assert_eq!(sum, j);
        assert_eq!(j.add(&i).unwrap(), i.add(&j).unwrap());
        assert_eq!(i.scale(0).unwrap(), Index::constant(0));
        assert_eq!(i.scale(i64::MAX).unwrap().scale(2), None);
    }

    #[test]
    fn multiples_leave_quotients_and_remainders() {
        let (i, j) = (axis(0), axis(1));
        let e = i.scale(4).unwrap().add(&j).unwrap().add(&Index::constant(9)).unwrap();
        let quotient = e.div(4).unwrap();
        let remainder = e.rem(4);
        let at = |index: &Index, i: i64, j: i64| {
            let axes = move |id: AxisId| if id.0 == 0 { i } else { j };
            index.eval::<()>(&axes, &mut |_| Ok(0)).unwrap()
        };
        for (x, y) in [(0, 0), (3, 5), (2, -7), (-4, 3)] {
            let value = i128::from(4 * x + y + 9);
            assert_eq!(at(&quotient, x, y), value.div_euclid(4));
            assert_eq!(at(&remainder, x, y), value.rem_euclid(4));
        }
        assert_eq!(i.scale(4).unwrap().div(4).unwrap(), i);
        assert_eq!(i.scale(4).unwrap().rem(2), Index::constant(0));
    }
}
