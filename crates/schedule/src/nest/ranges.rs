//! Ranges of loop variables, and simplification of index arithmetic.

use std::collections::BTreeMap;
use std::sync::Arc;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{CompareOp, LogicOp, UnaryOp};
use tensorwright_lang::program::{Atom, Expr, Index, Interval, Rewrite, Scalar, Term};

use super::Var;

/// The extents of the loops around a node, and the values of run-time numbers.
#[derive(Debug, Clone, Default)]
pub struct Ranges {
    extents: BTreeMap<Var, i64>,
    numbers: Arc<BTreeMap<Var, Interval>>,
    /// Indices that are known to be at least zero.
    facts: Arc<Vec<Index>>,
}

/// An index at the iterations of loops (with their extents) where it is greatest, or least; `None`
/// if it does not depend on them in equal steps, or on overflow.
pub(crate) fn extreme(index: &Index, loops: &[(Var, i64)], greatest: bool) -> Option<Index> {
    loops.iter().try_fold(index.clone(), |index, (var, extent)| {
        let step = index.coefficient_of(*var)?;
        let at = if (step > 0) == greatest { step.checked_mul(extent - 1)? } else { 0 };
        index.sub(&Index::axis(*var).scale(step)?)?.add(&Index::constant(at))
    })
}

impl Ranges {
    /// Adds an enclosing loop.
    #[must_use]
    pub fn with(&self, var: Var, extent: i64) -> Ranges {
        let mut inner = self.clone();
        inner.extents.insert(var, extent);
        inner
    }

    /// Adds a loop.
    pub fn insert(&mut self, var: Var, extent: i64) {
        self.extents.insert(var, extent);
    }

    /// Adds a run-time number.
    pub fn insert_number(&mut self, var: Var, values: Interval) {
        Arc::make_mut(&mut self.numbers).insert(var, values);
    }

    /// Adds indices that are known to be at least zero.
    pub(crate) fn know(&mut self, facts: impl IntoIterator<Item = Index>) {
        Arc::make_mut(&mut self.facts).extend(facts);
    }

    /// Whether a variable is a run-time number.
    #[must_use]
    pub fn is_number(&self, var: Var) -> bool {
        self.numbers.contains_key(&var)
    }

    /// The extent of the loop of a variable.
    #[must_use]
    pub fn extent(&self, var: Var) -> Option<i64> {
        self.extents.get(&var).copied()
    }

    /// The values of a variable. A variable without a loop may have any value.
    pub(crate) fn of(&self, var: Var) -> Interval {
        match self.extent(var) {
            Some(extent) => Interval { lo: 0, hi: i128::from(extent) - 1 },
            None => self.numbers.get(&var).copied().unwrap_or(Interval::of_type(DType::Int64)),
        }
    }

    /// A superset of the values of an index. Data may have any value of an integer type.
    #[must_use]
    pub fn interval(&self, index: &Index) -> Interval {
        let any = Interval::of_type(DType::Int64).hull(Interval::of_type(DType::UInt64));
        let mut interval = index.interval(&|var| self.of(var), &|_| any);
        for fact in self.facts.iter() {
            let constant = |index: Option<Index>| index?.as_constant().map(i128::from);
            if let Some(above) = constant(index.sub(fact)) {
                interval.lo = interval.lo.max(above);
            }
            if let Some(below) = constant(index.add(fact)) {
                interval.hi = interval.hi.min(below);
            }
        }
        interval
    }

    /// [`Ranges::interval`] with case distinctions for minima and maxima, whose operands may cancel
    /// other terms. The clamps of neighbors, `min(i + 1, 9) - min(i, 9)`, differ by at most one for
    /// all `i`.
    #[must_use]
    pub fn tight_interval(&self, index: &Index) -> Interval {
        /// The most minima and maxima to distinguish.
        const MOST: u32 = 6;
        self.taken_apart(index, MOST).unwrap_or_else(|| self.interval(index))
    }

    /// `None` on overflow.
    fn taken_apart(&self, index: &Index, most: u32) -> Option<Interval> {
        let is_choice = |atom: &Atom| matches!(atom, Atom::Min(..) | Atom::Max(..));
        let choice = index.terms().iter().find(|term| is_choice(&term.atom));
        let (Some(term), true) = (choice, most > 0) else { return Some(self.interval(index)) };
        let (Atom::Min(a, b) | Atom::Max(a, b)) = &term.atom else { return None };
        let rest = index.sub(&Index::atom(term.atom.clone()).scale(term.coefficient)?)?;
        let with = |part: &Index| {
            let whole = rest.add(&part.scale(term.coefficient)?)?;
            self.taken_apart(&whole, most - 1)
        };
        let (a, b) = (with(a)?, with(b)?);
        let is_least = matches!(term.atom, Atom::Min(..)) == (term.coefficient > 0);
        Some(match is_least {
            true => Interval { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
            false => Interval { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) },
        })
    }

    /// A superset of the values of `b - a`.
    ///
    /// Minima and maxima are monotone and do not increase distances: `max(c, d) - max(a, b)` lies
    /// between the minimum and the maximum of `c - a` and `d - b`.
    #[must_use]
    pub fn distance(&self, a: &Index, b: &Index) -> Option<Interval> {
        /// The deepest nesting of minima and maxima.
        const MOST: u32 = 4;
        let tight = self.tight_interval(&b.sub(a)?);
        Some(match self.stretched(a, b, MOST) {
            Some(other) => Interval { lo: tight.lo.max(other.lo), hi: tight.hi.min(other.hi) },
            None => tight,
        })
    }

    /// [`Ranges::distance`] of indices with minima or maxima at the same positions.
    fn stretched(&self, a: &Index, b: &Index, most: u32) -> Option<Interval> {
        let choice = |index: &Index| {
            let is_choice = |term: &&Term| matches!(term.atom, Atom::Min(..) | Atom::Max(..));
            index.terms().iter().find(is_choice).cloned()
        };
        let (Some(x), Some(y)) = (choice(a), choice(b)) else {
            return Some(self.interval(&b.sub(a)?));
        };
        let (p, q, r, s) = match (&x.atom, &y.atom) {
            (Atom::Min(p, q), Atom::Min(r, s)) | (Atom::Max(p, q), Atom::Max(r, s)) => (p, q, r, s),
            _ => return None,
        };
        if x.coefficient != y.coefficient || most == 0 {
            return None;
        }
        let without = |index: &Index, term: &Term| {
            index.sub(&Index::atom(term.atom.clone()).scale(term.coefficient)?)
        };
        let rest = self.stretched(&without(a, &x)?, &without(b, &y)?, most - 1)?;
        let hull = |one: (&Index, &Index), other: (&Index, &Index)| {
            let of = |(from, to)| self.stretched(from, to, most - 1);
            Some(of(one)?.hull(of(other)?))
        };
        // A minimum is commutative: try both pairings of operands.
        let choices = match (hull((p, r), (q, s)), hull((p, s), (q, r))) {
            (Some(a), Some(b)) => Interval { lo: a.lo.max(b.lo), hi: a.hi.min(b.hi) },
            (one, other) => one.or(other)?,
        };
        let times = |bound: i128| bound.checked_mul(i128::from(x.coefficient));
        let (lo, hi) = (times(choices.lo)?, times(choices.hi)?);
        Some(Interval {
            lo: rest.lo.checked_add(lo.min(hi))?,
            hi: rest.hi.checked_add(lo.max(hi))?,
        })
    }

    /// Whether an index is at least zero in all iterations.
    #[must_use]
    pub fn always(&self, condition: &Index) -> bool {
        self.interval(condition).lo >= 0
    }

    /// Whether an index is below zero in all iterations.
    #[must_use]
    pub fn never(&self, condition: &Index) -> bool {
        self.interval(condition).hi < 0
    }

    /// Simplifies quotients, remainders, minima and maxima that the ranges decide; `None` on
    /// overflow.
    #[must_use]
    pub fn simplify(&self, index: &Index) -> Option<Index> {
        if index.terms().iter().all(|term| matches!(term.atom, Atom::Axis(_))) {
            return Some(index.clone());
        }
        let mut sum = Index::constant(index.constant_term());
        for term in index.terms() {
            sum = sum.add(&self.atom(&term.atom)?.scale(term.coefficient)?)?;
        }
        join_quotients(sum)
    }

    fn atom(&self, atom: &Atom) -> Option<Index> {
        match atom {
            Atom::Axis(_) | Atom::Value(_) => Some(Index::atom(atom.clone())),
            Atom::Product(inner, factor) => self.simplify(inner)?.times(*factor),
            Atom::Div(inner, divisor) => self.quotient(&self.simplify(inner)?, *divisor),
            Atom::Mod(inner, divisor) => {
                let inner = self.simplify(inner)?;
                let quotient = self.quotient(&inner, *divisor)?;
                // x % c = x - c * (x / c), which helps where the quotient became simpler.
                let remainder = inner.sub(&quotient.scale(*divisor)?)?;
                let plain = |index: &Index| {
                    !index.terms().iter().any(|term| matches!(term.atom, Atom::Div(..)))
                };
                if plain(&remainder) {
                    Some(remainder)
                } else {
                    Some(self.remainder(&inner, *divisor))
                }
            }
            Atom::Min(a, b) | Atom::Max(a, b) => {
                let (a, b) = (self.simplify(a)?, self.simplify(b)?);
                let difference = a.sub(&b)?;
                let is_min = matches!(atom, Atom::Min(..));
                let chosen = if self.always(&difference) {
                    if is_min { b } else { a }
                } else if self.always(&difference.scale(-1)?) {
                    if is_min { a } else { b }
                } else if is_min {
                    a.min(b)
                } else {
                    a.max(b)
                };
                Some(Clamped::joined(&chosen, self).unwrap_or(chosen))
            }
        }
    }

    /// `index / divisor`, simplified.
    fn quotient(&self, index: &Index, divisor: i64) -> Option<Index> {
        let by = i128::from(divisor);
        let range = self.interval(index);
        let (lo, hi) = (range.lo.div_euclid(by), range.hi.div_euclid(by));
        if lo == hi {
            return i64::try_from(lo).ok().map(Index::constant);
        }
        let whole = index.div(divisor)?;
        // (g*a + b) / c = a / (c/g) for b in 0..g, g a divisor of c.
        let Some((coarse, _, grain)) = self.grains(index, divisor) else { return Some(whole) };
        self.quotient(&coarse, divisor / grain)
    }

    /// `index % divisor`, simplified.
    fn remainder(&self, index: &Index, divisor: i64) -> Index {
        let whole = index.rem(divisor);
        let split = || {
            let (coarse, fine, grain) = self.grains(index, divisor)?;
            let range = self.interval(&coarse);
            let by = i128::from(divisor / grain);
            let inner = if range.within(0, by) { coarse } else { coarse.rem(divisor / grain) };
            inner.scale(grain)?.add(&fine)
        };
        split().unwrap_or(whole)
    }

    /// `index = grain * coarse + fine` with `fine` in `0..grain` and `grain > 1` a divisor of
    /// `divisor`, if there is such a decomposition.
    fn grains(&self, index: &Index, divisor: i64) -> Option<(Index, Index, i64)> {
        let mut grains: Vec<i64> = index
            .terms()
            .iter()
            .map(|term| gcd(term.coefficient, divisor))
            .filter(|grain| *grain > 1)
            .collect();
        grains.sort_unstable();
        grains.dedup();
        grains.into_iter().rev().find_map(|grain| {
            let constant = index.constant_term();
            let mut coarse = Index::constant(constant.div_euclid(grain));
            let mut fine = Index::constant(constant.rem_euclid(grain));
            for Term { atom, coefficient } in index.terms() {
                let part = Index::atom(atom.clone());
                if coefficient % grain == 0 {
                    coarse = coarse.add(&part.scale(coefficient / grain)?)?;
                } else {
                    fine = fine.add(&part.scale(*coefficient)?)?;
                }
            }
            self.interval(&fine).within(0, i128::from(grain)).then_some((coarse, fine, grain))
        })
    }
}

/// `min(max(inner, lo), hi)` with optional bounds: the normal form of nested clamps. A stage inside
/// a stage inside another one has as many nested clamps as there are borders.
struct Clamped {
    inner: Index,
    lo: Option<i64>,
    hi: Option<i64>,
    /// The number of minima and maxima.
    count: usize,
}

impl Clamped {
    /// The same index with fewer minima and maxima, if there is one.
    fn joined(index: &Index, ranges: &Ranges) -> Option<Index> {
        let clamped = Self::of(index)?;
        let Self { mut inner, lo, hi, count } = clamped;
        let range = ranges.interval(&inner);
        let (lo, hi) = (
            lo.filter(|lo| i128::from(*lo) > range.lo),
            hi.filter(|hi| i128::from(*hi) < range.hi || lo.is_some_and(|lo| lo > *hi)),
        );
        if usize::from(lo.is_some()) + usize::from(hi.is_some()) >= count {
            return None;
        }
        if let Some(lo) = lo {
            inner = inner.max(Index::constant(lo));
        }
        if let Some(hi) = hi {
            inner = inner.min(Index::constant(hi));
        }
        Some(inner)
    }

    /// `None` on overflow.
    fn of(index: &Index) -> Option<Self> {
        let plain = Self { inner: index.clone(), lo: None, hi: None, count: 0 };
        let [Term { atom, coefficient: 1 }] = index.terms() else { return Some(plain) };
        let (Atom::Min(a, b) | Atom::Max(a, b)) = atom else { return Some(plain) };
        let (part, bound) = match (a.as_constant(), b.as_constant()) {
            (None, Some(bound)) => (a, bound),
            (Some(bound), None) => (b, bound),
            _ => return Some(plain),
        };
        let Self { inner, lo, hi, count } = Self::of(part)?;
        // A maximum of a minimum is the minimum of maxima.
        let (lo, hi) = match atom {
            Atom::Min(..) => (lo, Some(hi.map_or(bound, |hi| hi.min(bound)))),
            _ => (Some(lo.map_or(bound, |lo| lo.max(bound))), hi.map(|hi| hi.max(bound))),
        };
        let by = index.constant_term();
        let moved = |bound: Option<i64>| match bound {
            Some(bound) => bound.checked_add(by).map(Some),
            None => Some(None),
        };
        let inner = inner.add(&Index::constant(by))?;
        Some(Self { inner, lo: moved(lo)?, hi: moved(hi)?, count: count + 1 })
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

/// `c*k*(x / c) + k*(x % c)` is `k*x`: occurs if the parts of a fused loop are used together.
fn join_quotients(index: Index) -> Option<Index> {
    for term in index.terms() {
        let Atom::Mod(inner, divisor) = &term.atom else { continue };
        let wanted = Atom::Div(inner.clone(), *divisor);
        let factor = term.coefficient.checked_mul(*divisor)?;
        let partner = index.terms().iter().find(|t| t.atom == wanted && t.coefficient == factor);
        if let Some(partner) = partner {
            let without =
                |term: &Term| Index::atom(term.atom.clone()).scale(term.coefficient.checked_neg()?);
            let rest = index.add(&without(term)?)?.add(&without(partner)?)?;
            return join_quotients(rest.add(&inner.scale(term.coefficient)?)?);
        }
    }
    Some(index)
}

/// Simplifies expressions: index arithmetic as [`Ranges::simplify`] does, and conditions that the
/// ranges decide.
#[derive(Debug)]
pub struct Simplify<'a>(pub &'a Ranges);

impl Rewrite for Simplify<'_> {
    fn index(&mut self, index: Index) -> Option<Index> {
        self.0.simplify(&index)
    }

    fn expr(&mut self, expr: Expr) -> Option<Expr> {
        Some(match expr {
            Expr::CompareIndex(op, a, b) => match self.decide(op, &a, &b) {
                Some(holds) => truth(holds),
                None => Expr::CompareIndex(op, a, b),
            },
            Expr::Logic(op, a, b) => match (op, known(&a), known(&b)) {
                (LogicOp::And, Some(true), _) | (LogicOp::Or, Some(false), _) => *b,
                (LogicOp::And, _, Some(true)) | (LogicOp::Or, _, Some(false)) => *a,
                (LogicOp::And, Some(false), _) => truth(false),
                (LogicOp::Or, Some(true), _) => truth(true),
                // A checked read must stay, because it may be reported.
                (LogicOp::And, _, Some(false)) if !does_read(&a) => truth(false),
                (LogicOp::Or, _, Some(true)) if !does_read(&a) => truth(true),
                _ => Expr::Logic(op, a, b),
            },
            Expr::Unary(UnaryOp::Not, a) => match known(&a) {
                Some(value) => truth(!value),
                None => Expr::Unary(UnaryOp::Not, a),
            },
            Expr::Select(condition, then, otherwise) => match known(&condition) {
                Some(true) => *then,
                Some(false) => *otherwise,
                None => Expr::Select(condition, then, otherwise),
            },
            other => other,
        })
    }
}

impl Simplify<'_> {
    fn decide(&self, op: CompareOp, a: &Index, b: &Index) -> Option<bool> {
        let Interval { lo, hi } = self.0.interval(&a.sub(b)?);
        match op {
            CompareOp::Lt | CompareOp::Ge => {
                let less = if hi < 0 {
                    true
                } else if lo >= 0 {
                    false
                } else {
                    return None;
                };
                Some(less == (op == CompareOp::Lt))
            }
            CompareOp::Gt | CompareOp::Le => {
                let greater = if lo > 0 {
                    true
                } else if hi <= 0 {
                    false
                } else {
                    return None;
                };
                Some(greater == (op == CompareOp::Gt))
            }
            CompareOp::Eq | CompareOp::Ne => {
                let equal = if lo == 0 && hi == 0 {
                    true
                } else if lo > 0 || hi < 0 {
                    false
                } else {
                    return None;
                };
                Some(equal == (op == CompareOp::Eq))
            }
        }
    }
}

fn truth(holds: bool) -> Expr {
    Expr::Const(Scalar::integer(DType::Bool, i128::from(holds)))
}

fn does_read(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk_reads(&mut |_| found = true);
    found
}

fn known(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Const(scalar) if scalar.dtype() == DType::Bool => Some(scalar.as_integer() != 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tensorwright_lang::program::AxisId;

    use super::*;

    fn var(n: u32) -> Index {
        Index::axis(AxisId(n))
    }

    fn sum(parts: &[(Index, i64)]) -> Index {
        let scaled = parts.iter().map(|(index, factor)| index.scale(*factor).unwrap());
        scaled.fold(Index::constant(0), |sum, part| sum.add(&part).unwrap())
    }

    #[test]
    fn clamps_stretch_no_distance() {
        let mut ranges = Ranges::default();
        ranges.insert(AxisId(0), 100);
        let clamp = |offset: i64| {
            let moved = var(0).add(&Index::constant(offset)).unwrap();
            moved.max(Index::constant(0)).min(Index::constant(99))
        };
        let distance = |a: &Index, b: &Index| {
            let Interval { lo, hi } = ranges.tight_interval(&b.sub(a).unwrap());
            (lo, hi)
        };
        assert_eq!(distance(&clamp(-1), &clamp(1)), (1, 2));
        assert_eq!(distance(&clamp(1), &clamp(-1)), (-2, -1));
        assert_eq!(distance(&clamp(-1), &var(0)), (0, 1));
        assert_eq!(distance(&var(0), &clamp(3)), (0, 3));
        // These do not cancel.
        assert_eq!(distance(&clamp(0), &Index::constant(0)), (-99, 0));
    }

    #[test]
    fn blocked_subscripts_become_loops() {
        // n = 64*n0 + 16*n1 + n2 in the layout [n/64, n%64/16, n%16].
        let mut ranges = Ranges::default();
        ranges.insert(AxisId(0), 8);
        ranges.insert(AxisId(1), 4);
        ranges.insert(AxisId(2), 16);
        let n = sum(&[(var(0), 64), (var(1), 16), (var(2), 1)]);
        assert_eq!(ranges.simplify(&n.div(64).unwrap()), Some(var(0)));
        assert_eq!(ranges.simplify(&n.rem(64)), Some(sum(&[(var(1), 16), (var(2), 1)])));
        assert_eq!(ranges.simplify(&n.rem(16)), Some(var(2)));
        assert_eq!(ranges.simplify(&n.div(16).unwrap()), Some(sum(&[(var(0), 4), (var(1), 1)])));
    }

    #[test]
    fn simplification_keeps_values() {
        let mut ranges = Ranges::default();
        ranges.insert(AxisId(0), 5);
        ranges.insert(AxisId(1), 6);
        ranges.insert(AxisId(2), 3);
        let x = sum(&[(var(0), 6), (var(1), 4), (var(2), -1), (Index::constant(7), 1)]);
        for index in [
            x.div(8).unwrap(),
            x.rem(8),
            x.div(12).unwrap(),
            x.rem(12),
            sum(&[(x.div(4).unwrap(), 8), (x.rem(4), 2)]),
            x.clone().min(var(0)),
            var(1).max(Index::constant(9)),
        ] {
            let simple = ranges.simplify(&index).unwrap();
            for point in 0..5 * 6 * 3 {
                let at = |axis: AxisId| match axis.0 {
                    0 => point % 5,
                    1 => point / 5 % 6,
                    _ => point / 30,
                };
                let eval = |i: &Index| i.eval::<()>(&at, &mut |_| Ok(0)).unwrap();
                assert_eq!(eval(&simple), eval(&index));
            }
        }
        assert_eq!(
            ranges.simplify(&sum(&[(x.div(4).unwrap(), 8), (x.rem(4), 2)])),
            Some(x.scale(2).unwrap())
        );
    }
}
