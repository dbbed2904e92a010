//! Questions about one access: for which values of an index variable does it leave its tensor?

use super::access::Access;
use super::facts::{Fact, alternatives};
use super::system::{Bounds, Linear, Solution, System};
use crate::dtype::DType;
use crate::ops::CompareOp;
use crate::program::{Atom, AxisId, Expr, Index, Interval, TensorId};

/// A range of an index variable: `lo` included, `hi` excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) lo: i64,
    pub(crate) hi: i64,
}

/// What is known when a question is asked: the ranges that are settled, and the types of tensors.
pub(crate) struct Known<'a, F> {
    pub(crate) ranges: &'a [Option<Range>],
    pub(crate) dtype: &'a F,
}

/// How far a variable may go before an access leaves its tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// It never does.
    None,
    /// At this value it exceeds the extent.
    Above(i64),
    /// At this value it falls below zero.
    Below(i64),
}

/// Whether an access stays inside its tensor for all values of the variables.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Inside,
    /// With these values of the axes it does not.
    Outside(Vec<Option<i128>>),
    /// It could not be decided.
    Unproven,
}

impl<F: Fn(TensorId) -> DType> Known<'_, F> {
    fn interval(&self, axis: AxisId) -> Option<Interval> {
        let range = self.ranges[axis.0 as usize]?;
        Some(Interval { lo: i128::from(range.lo), hi: i128::from(range.hi) - 1 })
    }

    /// The least value of `var` from zero on for which the access may leave its tensor.
    pub(super) fn limit(&self, access: &Access<'_>, var: AxisId) -> Limit {
        if let Some(limit) = self.simple_limit(access, var) {
            return limit;
        }
        let mut first: Option<(i64, bool)> = None;
        for (above, system, vars) in self.violations(access) {
            let Some(var) = vars.axis(var) else { continue };
            let mut system = system;
            system.require(Linear::var(var));
            if let Some(Bounds { lo, .. }) = system.project(var) {
                let at = i64::try_from(lo.unwrap_or(0).max(0)).unwrap_or(i64::MAX);
                first = Some(first.map_or((at, above), |other| other.min((at, above))));
            }
        }
        match first {
            None => Limit::None,
            Some((at, true)) => Limit::Above(at),
            Some((at, false)) => Limit::Below(at),
        }
    }

    /// The common case: an unguarded sum of multiples of axes.
    fn simple_limit(&self, access: &Access<'_>, var: AxisId) -> Option<Limit> {
        if !access.guards.is_empty() {
            return None;
        }
        let mut factor = 0;
        let mut rest = Interval::point(i128::from(access.index.constant_term()));
        for term in access.index.terms() {
            match &term.atom {
                Atom::Axis(axis) if *axis == var => factor = i128::from(term.coefficient),
                Atom::Axis(axis) => {
                    rest = rest.plus(self.interval(*axis)?.scale(i128::from(term.coefficient)));
                }
                _ => return None,
            }
        }
        // factor * var + rest >= extent, and factor * var + rest <= -1, for some value of the rest.
        let extent = i128::from(access.extent);
        let first = |reached_at_zero: bool, distance: i128, step: i128| {
            if reached_at_zero {
                Some(0)
            } else if step > 0 {
                Some(distance.div_euclid(step) + i128::from(distance.rem_euclid(step) != 0))
            } else {
                None
            }
        };
        let above = first(rest.hi >= extent, extent - rest.hi, factor);
        let below = first(rest.lo < 0, rest.lo + 1, -factor);
        let clip = |at: i128| i64::try_from(at).unwrap_or(i64::MAX);
        Some(match (above, below) {
            (None, None) => Limit::None,
            (Some(above), Some(below)) if below < above => Limit::Below(clip(below)),
            (Some(above), _) => Limit::Above(clip(above)),
            (None, Some(below)) => Limit::Below(clip(below)),
        })
    }

    /// Whether the access stays inside its tensor, all ranges being settled.
    pub(crate) fn verdict(&self, access: &Access<'_>) -> Verdict {
        let axis = |axis| self.interval(axis).unwrap_or(Interval { lo: 0, hi: i128::MAX });
        let value = |value: &Expr| self.value_range(value);
        let range = access.index.interval(&axis, &value);
        if range.within(0, i128::from(access.extent)) {
            return Verdict::Inside;
        }
        let mut verdict = Verdict::Inside;
        for (_, system, vars) in self.violations(access) {
            match system.solve() {
                Solution::None => {}
                Solution::Unknown => verdict = Verdict::Unproven,
                Solution::At(values) => {
                    return Verdict::Outside(
                        (0..self.ranges.len() as u32)
                            .map(|axis| values[vars.axis(AxisId(axis))? as usize])
                            .collect(),
                    );
                }
            }
        }
        verdict
    }

    /// The ends of the range of an atom, where they are small enough to mean anything.
    fn finite(&self, atom: &Atom) -> (Option<i128>, Option<i128>) {
        const FAR: i128 = 1 << 80;
        let axis = |axis| self.interval(axis).unwrap_or(Interval { lo: 0, hi: i128::MAX });
        let value = |value: &Expr| self.value_range(value);
        let range = Index::atom(atom.clone()).interval(&axis, &value);
        (Some(range.lo).filter(|lo| *lo > -FAR), Some(range.hi).filter(|hi| *hi < FAR))
    }

    fn value_range(&self, value: &Expr) -> Interval {
        let dtype = value.dtype(self.dtype);
        let (lo, hi) =
            dtype.integer_range().unwrap_or((i128::from(i64::MIN), i128::from(i64::MAX)));
        Interval { lo, hi }
    }

    /// The systems whose solutions are the points at which the access is made and leaves its
    /// tensor; the flag says whether it leaves above.
    fn violations(&self, access: &Access<'_>) -> Vec<(bool, System, Variables)> {
        let mut found = Vec::new();
        for facts in alternatives(&access.guards) {
            for above in [false, true] {
                let mut builder =
                    Builder { vars: Variables::default(), rows: Vec::new(), splits: Vec::new() };
                let Some(index) = builder.linear(&access.index) else {
                    found.push((above, System::default(), builder.vars));
                    continue;
                };
                // index - extent >= 0, or -1 - index >= 0
                let (sign, constant) =
                    if above { (1, -i128::from(access.extent)) } else { (-1, -1) };
                builder.rows.extend(index.combine(sign, &Linear::constant(constant), 1));
                facts.iter().for_each(|fact| builder.fact(fact));
                self.bound_variables(&mut builder);
                found.extend(builder.systems().into_iter().map(|(s, v)| (above, s, v)));
            }
        }
        found
    }

    /// Adds what is known of each variable by itself: the range of an axis, the type of a value.
    fn bound_variables(&self, builder: &mut Builder) {
        for (var, key) in builder.vars.keys.iter().enumerate() {
            let range = match key {
                Key::Axis(axis) => match self.interval(*axis) {
                    Some(range) => (Some(range.lo), Some(range.hi)),
                    None => (Some(0), None),
                },
                Key::Value(value) => {
                    let range = self.value_range(value);
                    (Some(range.lo), Some(range.hi))
                }
                // Implied over the integers, but not over the rationals that elimination works on.
                Key::Quotient(index, divisor) => {
                    self.finite(&Atom::Div(Box::new(index.clone()), *divisor))
                }
                Key::Extremum(atom) => self.finite(atom),
            };
            let var = Linear::var(var as u32);
            if let Some(lo) = range.0 {
                builder.rows.extend(var.combine(1, &Linear::constant(-lo), 1));
            }
            if let Some(hi) = range.1 {
                builder.rows.extend(var.combine(-1, &Linear::constant(hi), 1));
            }
        }
    }
}

/// What a variable of a system stands for.
#[derive(Debug, Clone, PartialEq)]
enum Key {
    Axis(AxisId),
    Value(Expr),
    /// `index / divisor`, rounded down.
    Quotient(Index, i64),
    /// A minimum or maximum.
    Extremum(Atom),
}

#[derive(Debug, Clone, Default)]
struct Variables {
    keys: Vec<Key>,
}

impl Variables {
    fn axis(&self, axis: AxisId) -> Option<u32> {
        self.keys.iter().position(|key| *key == Key::Axis(axis)).map(|at| at as u32)
    }

    /// The variable of a key, and whether it is new.
    fn intern(&mut self, key: Key) -> (u32, bool) {
        match self.keys.iter().position(|other| *other == key) {
            Some(at) => (at as u32, false),
            None => {
                self.keys.push(key);
                (self.keys.len() as u32 - 1, true)
            }
        }
    }
}

/// Turns index expressions into linear forms; quotients, minima and maxima become variables with
/// rows that define them.
struct Builder {
    vars: Variables,
    rows: Vec<Linear>,
    /// Pairs of rows of which one must hold.
    splits: Vec<(Linear, Linear)>,
}

/// The most minima and maxima that are told apart by cases.
const MAX_SPLITS: usize = 5;

impl Builder {
    fn linear(&mut self, index: &Index) -> Option<Linear> {
        let mut sum = Linear::constant(i128::from(index.constant_term()));
        for term in index.terms() {
            let atom = self.atom(&term.atom)?;
            sum = sum.combine(1, &atom, i128::from(term.coefficient))?;
        }
        Some(sum)
    }

    fn atom(&mut self, atom: &Atom) -> Option<Linear> {
        match atom {
            Atom::Axis(axis) => Some(Linear::var(self.vars.intern(Key::Axis(*axis)).0)),
            Atom::Value(expr) => {
                Some(Linear::var(self.vars.intern(Key::Value((**expr).clone())).0))
            }
            Atom::Div(inner, divisor) => Some(self.quotient(inner, *divisor)?.0),
            Atom::Mod(inner, divisor) => {
                let (quotient, inner) = self.quotient(inner, *divisor)?;
                inner.combine(1, &quotient, -i128::from(*divisor))
            }
            Atom::Min(a, b) => self.extremum(atom, a, b, 1),
            Atom::Max(a, b) => self.extremum(atom, a, b, -1),
        }
    }

    /// `q = inner / divisor` as `0 <= inner - divisor * q <= divisor - 1`; returns `q` and `inner`.
    fn quotient(&mut self, inner: &Index, divisor: i64) -> Option<(Linear, Linear)> {
        let linear = self.linear(inner)?;
        let (var, new) = self.vars.intern(Key::Quotient(inner.clone(), divisor));
        let quotient = Linear::var(var);
        if new {
            let divisor = i128::from(divisor);
            let remainder = linear.combine(1, &quotient, -divisor)?;
            self.rows.extend(remainder.combine(-1, &Linear::constant(divisor - 1), 1));
            self.rows.push(remainder);
        }
        Some((quotient, linear))
    }

    /// `m = min(a, b)` as `m <= a`, `m <= b`, and `m >= a` or `m >= b`; a maximum with the sign
    /// turned.
    fn extremum(&mut self, atom: &Atom, a: &Index, b: &Index, sign: i128) -> Option<Linear> {
        let (a, b) = (self.linear(a)?, self.linear(b)?);
        let (var, new) = self.vars.intern(Key::Extremum(atom.clone()));
        let extremum = Linear::var(var);
        if new {
            let (over_a, over_b) =
                (a.combine(sign, &extremum, -sign)?, b.combine(sign, &extremum, -sign)?);
            self.splits.push((
                over_a.combine(-1, &Linear::default(), 0)?,
                over_b.combine(-1, &Linear::default(), 0)?,
            ));
            self.rows.push(over_a);
            self.rows.push(over_b);
        }
        Some(extremum)
    }

    /// Adds a fact; one that cannot be expressed adds nothing.
    fn fact(&mut self, fact: &Fact) {
        let (Some(lhs), Some(rhs)) = (self.linear(&fact.lhs), self.linear(&fact.rhs)) else {
            return;
        };
        // Each comparison as sign * (lhs - rhs) + constant >= 0.
        let rows: &[(i128, i128)] = match fact.op {
            CompareOp::Eq => &[(1, 0), (-1, 0)],
            CompareOp::Ne => &[],
            CompareOp::Lt => &[(-1, -1)],
            CompareOp::Le => &[(-1, 0)],
            CompareOp::Gt => &[(1, -1)],
            CompareOp::Ge => &[(1, 0)],
        };
        for (sign, constant) in rows {
            let row = lhs
                .combine(*sign, &rhs, -sign)
                .and_then(|row| row.combine(1, &Linear::constant(*constant), 1));
            self.rows.extend(row);
        }
    }

    /// One system per combination of cases of the minima and maxima.
    fn systems(self) -> Vec<(System, Variables)> {
        let splits = &self.splits[..self.splits.len().min(MAX_SPLITS)];
        (0..1usize << splits.len())
            .map(|cases| {
                let mut system = System::new(self.vars.keys.len());
                self.rows.iter().for_each(|row| system.require(row.clone()));
                for (number, (first, second)) in splits.iter().enumerate() {
                    let case = if cases >> number & 1 == 0 { first } else { second };
                    system.require(case.clone());
                }
                (system, self.vars.clone())
            })
            .collect()
    }
}
