//! Queries about one access: where does it leave its tensor?

use super::access::Access;
use super::facts::{Fact, Guard, alternatives};
use super::system::{Linear, MAX_VARS, Solution, System, Work};
use crate::dtype::DType;
use crate::ops::CompareOp;
use crate::program::{Atom, AxisId, Expr, Index, Interval, TensorId};

/// A range of an index variable: `lo` included, `hi` excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) lo: i64,
    pub(crate) hi: i64,
}

impl Range {
    /// The values in it.
    pub(crate) fn interval(self) -> Interval {
        Interval { lo: i128::from(self.lo), hi: i128::from(self.hi) - 1 }
    }

    /// The range, with one value where it would be empty.
    pub(crate) fn at_least_one(self) -> Range {
        Range { hi: self.hi.max(self.lo + 1), ..self }
    }
}

/// The context of a query: the settled ranges, and the types of tensors.
pub(crate) struct RangeContext<'a, F> {
    pub(crate) ranges: &'a [Option<Range>],
    pub(crate) dtype: &'a F,
}

/// The limit that an access puts on a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// None: it never goes out of bounds.
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
    /// Out of bounds at these values of the axes.
    Outside(Vec<Option<i128>>),
    /// Undecided.
    Unproven,
}

impl<F: Fn(TensorId) -> DType> RangeContext<'_, F> {
    fn interval(&self, axis: AxisId) -> Option<Interval> {
        self.ranges[axis.0 as usize].map(Range::interval)
    }

    /// The least value of `var` from zero on for which the access may leave its tensor.
    pub(super) fn limit(&self, access: &Access<'_>, var: AxisId) -> Limit {
        if let Some(limit) = self.simple_limit(access, var) {
            return limit;
        }
        let first = if Builder::default().linear(&access.index).is_none() {
            self.first_outside_range(access, var)
        } else {
            let near = self.first_outside(access, nearest_guards(access), var);
            near.and_then(|_| self.first_outside(access, &access.guards, var))
        };
        match first {
            None => Limit::None,
            Some((at, true)) => Limit::Above(at),
            Some((at, false)) => Limit::Below(at),
        }
    }

    /// The least value of `var` at which the access leaves its tensor, and whether above.
    fn first_outside(
        &self,
        access: &Access<'_>,
        guards: &[Guard<'_>],
        var: AxisId,
    ) -> Option<(i64, bool)> {
        let mut work = Work::new();
        let mut first: Option<(i64, bool)> = None;
        for Violation { above, mut system, vars, splits } in self.violations(access, guards) {
            let Some(var) = vars.axis(var) else { continue };
            system.require(Linear::var(var));
            let limit = first.map_or(i128::MAX, |(at, _)| i128::from(at));
            let splits = &splits[..splits.len().min(MAX_SPLITS)];
            if let Some(lo) = least(system, var, splits, limit, &mut work) {
                let at = i64::try_from(lo).unwrap_or(i64::MAX);
                first = Some(first.map_or((at, above), |other| other.min((at, above))));
            }
        }
        first
    }

    /// As [`RangeContext::first_outside`] for a subscript with too many parts for a system: by its
    /// interval, ignoring guards.
    fn first_outside_range(&self, access: &Access<'_>, var: AxisId) -> Option<(i64, bool)> {
        let leaves_above = |at: i64| {
            let settled = |axis| self.interval(axis).unwrap_or(Interval { lo: 0, hi: i128::MAX });
            let axis = |axis| {
                if axis == var { Interval { lo: 0, hi: at.into() } } else { settled(axis) }
            };
            let range = access.index.interval(&axis, &|value: &Expr| self.value_range(value));
            let above = range.hi >= i128::from(access.extent);
            (above || range.lo < 0).then_some(above)
        };
        leaves_above(i64::MAX)?;
        // It is out of bounds at `outside`, and not before `inside`.
        let (mut inside, mut outside) = (0, i64::MAX);
        while inside < outside {
            let middle = inside + (outside - inside) / 2;
            match leaves_above(middle) {
                Some(_) => outside = middle,
                None => inside = middle + 1,
            }
        }
        Some((outside, leaves_above(outside)?))
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

    /// Whether the access stays in bounds, with all ranges settled.
    pub(crate) fn verdict(&self, access: &Access<'_>) -> Verdict {
        if self.index_range(&access.index).within(0, i128::from(access.extent)) {
            return Verdict::Inside;
        }
        match self.search(access, nearest_guards(access)) {
            Verdict::Inside => Verdict::Inside,
            verdict if nearest_guards(access).len() == access.guards.len() => verdict,
            _ => self.search(access, &access.guards),
        }
    }

    fn search(&self, access: &Access<'_>, guards: &[Guard<'_>]) -> Verdict {
        let mut work = Work::new();
        let mut verdict = Verdict::Inside;
        for Violation { system, vars, splits, .. } in self.violations(access, guards) {
            match solve(&system, &splits, MAX_SPLITS, &mut work) {
                Solution::None => {}
                Solution::Unknown => verdict = Verdict::Unproven,
                Solution::At(values) => {
                    let value = |axis| values.get(vars.axis(AxisId(axis))? as usize).copied()?;
                    return Verdict::Outside((0..self.ranges.len() as u32).map(value).collect());
                }
            }
        }
        verdict
    }

    /// The values of an index over the ranges that are settled.
    fn index_range(&self, index: &Index) -> Interval {
        let axis = |axis| self.interval(axis).unwrap_or(Interval { lo: 0, hi: i128::MAX });
        index.interval(&axis, &|value: &Expr| self.value_range(value))
    }

    fn value_range(&self, value: &Expr) -> Interval {
        Interval::of_type(value.dtype(self.dtype))
    }

    /// The systems whose solutions are the points where the access happens and is out of bounds.
    fn violations<'a>(&self, access: &'a Access<'_>, guards: &[Guard<'a>]) -> Vec<Violation<'a>> {
        let mut found = Vec::new();
        for facts in alternatives(guards) {
            for above in [false, true] {
                let mut builder = Builder::default();
                let Some(index) = builder.linear(&access.index) else {
                    found.push(Violation { above, ..Violation::default() });
                    continue;
                };
                // index - extent >= 0, or -1 - index >= 0
                let (sign, constant) =
                    if above { (1, -i128::from(access.extent)) } else { (-1, -1) };
                builder.rows.extend(index.combine(sign, &Linear::constant(constant), 1));
                facts.iter().for_each(|fact| builder.fact(fact));
                self.bound_variables(&mut builder);
                found.push(builder.violation(above));
            }
        }
        found
    }

    /// Adds the bounds of each variable: the range of an axis, the type of a value.
    fn bound_variables(&self, builder: &mut Builder<'_>) {
        for var in 0..builder.vars.keys.len() {
            let range = match builder.vars.keys[var] {
                Key::Axis(axis) => match self.interval(axis) {
                    Some(range) => (Some(range.lo), Some(range.hi)),
                    None => (Some(0), None),
                },
                key => key.bounds(&|index| self.index_range(index), self.dtype),
            };
            builder.bound(var, range);
        }
    }
}

/// The ends of an interval, where they are small enough to be useful.
fn finite(range: Interval) -> (Option<i128>, Option<i128>) {
    const FAR: i128 = 1 << 80;
    (Some(range.lo).filter(|lo| *lo > -FAR), Some(range.hi).filter(|hi| *hi < FAR))
}

/// The meaning of a variable of a system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Key<'a> {
    Axis(AxisId),
    Value(&'a Expr),
    /// `index / divisor`, rounded down.
    Quotient(&'a Index, i64),
    /// A minimum or maximum.
    Extremum(&'a Atom),
    /// A product of variables.
    Product(&'a Index, AxisId),
}

impl Key<'_> {
    /// The variable as an index, if it depends on sizes alone.
    fn of_sizes(&self) -> Option<Index> {
        let index = match *self {
            Key::Axis(axis) => Index::axis(axis),
            Key::Value(_) => return None,
            Key::Quotient(index, divisor) => index.div(divisor)?,
            Key::Extremum(atom) => Index::atom(atom.clone()),
            Key::Product(index, factor) => index.times(factor)?,
        };
        let mut others = index.has_value();
        index.walk_axes(&mut |axis| others |= axis.size().is_none());
        (!others).then_some(index)
    }

    /// The bounds of a variable that is not an axis.
    pub(super) fn bounds(
        self,
        range: &impl Fn(&Index) -> Interval,
        dtype: &impl Fn(TensorId) -> DType,
    ) -> (Option<i128>, Option<i128>) {
        match self {
            Key::Axis(_) => (Some(0), None),
            Key::Value(value) => {
                let range = Interval::of_type(value.dtype(dtype));
                (Some(range.lo), Some(range.hi))
            }
            // Implied over the integers, but not over the rationals of the elimination.
            Key::Quotient(index, divisor) => finite(range(index).floor_div(i128::from(divisor))),
            Key::Extremum(Atom::Min(a, b)) => finite(range(a).least(range(b))),
            Key::Extremum(Atom::Max(a, b)) => finite(range(a).greatest(range(b))),
            Key::Extremum(_) => (None, None),
            Key::Product(index, factor) => finite(range(index).times(range(&Index::axis(factor)))),
        }
    }
}

/// A system whose solutions are out-of-bounds points of an access.
#[derive(Default)]
struct Violation<'a> {
    /// Whether it exceeds the extent.
    above: bool,
    system: System,
    vars: Variables<'a>,
    /// Disjunctions of two rows: the cases of minima and maxima.
    splits: Vec<(Linear, Linear)>,
}

/// The number of innermost guards to try before all of them.
const NEAREST: usize = 4;

/// The innermost guards: they decide most queries, however long the chain of selections is.
fn nearest_guards<'a, 'g>(access: &'a Access<'g>) -> &'a [Guard<'g>] {
    nearest(&access.guards)
}

pub(super) fn nearest<'a, 'g>(guards: &'a [Guard<'g>]) -> &'a [Guard<'g>] {
    &guards[guards.len().saturating_sub(NEAREST)..]
}

/// The most minima and maxima that are split into cases.
const MAX_SPLITS: usize = 5;

/// A solution with one row of each pair. A case is examined only if a solution without it violates
/// the pair.
fn solve(system: &System, splits: &[(Linear, Linear)], depth: usize, work: &mut Work) -> Solution {
    let found = system.solve(work);
    let violated = match &found {
        Solution::None => return Solution::None,
        Solution::Unknown => 0..splits.len(),
        Solution::At(values) => {
            let holds = |row: &Linear| row.eval(values).is_some_and(|value| value >= 0);
            let split = splits.iter().position(|(a, b)| !holds(a) && !holds(b));
            let Some(split) = split else { return found };
            split..split + 1
        }
    };
    let Some(split) = violated.into_iter().next().filter(|_| depth > 0 && !work.is_done()) else {
        return Solution::Unknown;
    };
    let mut rest = splits.to_vec();
    let (first, second) = rest.remove(split);
    let mut result = Solution::None;
    for case in [first, second] {
        let mut system = system.clone();
        system.require(case);
        match solve(&system, &rest, depth - 1, work) {
            Solution::None => {}
            Solution::Unknown => result = Solution::Unknown,
            found => return found,
        }
    }
    result
}

/// The least value of a variable, from zero on, in solutions with one row of each pair, if it is
/// below `limit`.
fn least(
    system: System,
    var: u32,
    splits: &[(Linear, Linear)],
    limit: i128,
    work: &mut Work,
) -> Option<i128> {
    let bounds = system.clone().project(var, work)?;
    let lo = bounds.lo.unwrap_or(0).max(0);
    if lo >= limit {
        return None;
    }
    let Some(((first, second), rest)) = splits.split_first().filter(|_| !work.is_done()) else {
        return Some(least_integer(&system, var, lo, bounds.hi, work)).filter(|at| *at < limit);
    };
    let mut found = None;
    for case in [first, second] {
        let mut system = system.clone();
        system.require(case.clone());
        let limit = found.unwrap_or(limit);
        found = least(system, var, rest, limit, work).or(found);
    }
    found
}

/// Bounds hold over the rationals; a guard such as `d % 2 == 0` excludes some integers. So the
/// first few values are tried one by one.
fn least_integer(system: &System, var: u32, lo: i128, hi: Option<i128>, work: &mut Work) -> i128 {
    const TRIES: i128 = 32;
    let last = hi.unwrap_or(i128::MAX).min(lo.saturating_add(TRIES));
    let mut at = lo;
    while at < last && !work.is_done() && system.fix(var, at).solve(work) == Solution::None {
        at += 1;
    }
    at
}

#[derive(Debug, Clone, Default)]
pub(super) struct Variables<'a> {
    pub(super) keys: Vec<Key<'a>>,
}

impl<'a> Variables<'a> {
    fn axis(&self, axis: AxisId) -> Option<u32> {
        self.keys.iter().position(|key| *key == Key::Axis(axis)).map(|at| at as u32)
    }

    /// The variable of a key, and whether it is new; `None` if there are too many.
    fn intern(&mut self, key: Key<'a>) -> Option<(u32, bool)> {
        if let Some(at) = self.keys.iter().position(|other| *other == key) {
            return Some((at as u32, false));
        }
        if self.keys.len() >= MAX_VARS {
            return None;
        }
        self.keys.push(key);
        Some((self.keys.len() as u32 - 1, true))
    }
}

/// Linearizes index expressions; quotients, minima and maxima become variables with defining rows.
#[derive(Default)]
pub(super) struct Builder<'a> {
    pub(super) vars: Variables<'a>,
    pub(super) rows: Vec<Linear>,
    /// Disjunctions of two rows.
    splits: Vec<(Linear, Linear)>,
}

impl<'a> Builder<'a> {
    pub(super) fn linear(&mut self, index: &'a Index) -> Option<Linear> {
        let mut sum = Linear::constant(i128::from(index.constant_term()));
        for term in index.terms() {
            let atom = self.atom(&term.atom)?;
            sum = sum.combine(1, &atom, i128::from(term.coefficient))?;
        }
        Some(sum)
    }

    fn atom(&mut self, atom: &'a Atom) -> Option<Linear> {
        match atom {
            Atom::Axis(axis) => Some(Linear::var(self.vars.intern(Key::Axis(*axis))?.0)),
            Atom::Value(expr) => Some(Linear::var(self.vars.intern(Key::Value(expr))?.0)),
            Atom::Div(inner, divisor) => Some(self.quotient(inner, *divisor)?.0),
            Atom::Mod(inner, divisor) => {
                let (quotient, inner) = self.quotient(inner, *divisor)?;
                inner.combine(1, &quotient, -i128::from(*divisor))
            }
            Atom::Min(a, b) => self.extremum(atom, a, b, 1),
            Atom::Max(a, b) => self.extremum(atom, a, b, -1),
            Atom::Product(inner, factor) => {
                Some(Linear::var(self.vars.intern(Key::Product(inner, *factor))?.0))
            }
        }
    }

    /// `q = inner / divisor` as `0 <= inner - divisor * q <= divisor - 1`; returns `q` and `inner`.
    fn quotient(&mut self, inner: &'a Index, divisor: i64) -> Option<(Linear, Linear)> {
        let linear = self.linear(inner)?;
        let (var, new) = self.vars.intern(Key::Quotient(inner, divisor))?;
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
    /// inverted.
    fn extremum(
        &mut self,
        atom: &'a Atom,
        a: &'a Index,
        b: &'a Index,
        sign: i128,
    ) -> Option<Linear> {
        let (a, b) = (self.linear(a)?, self.linear(b)?);
        let (var, new) = self.vars.intern(Key::Extremum(atom))?;
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

    /// Adds a fact; one that is not linear adds nothing.
    pub(super) fn fact(&mut self, fact: &Fact<'a>) {
        let (Some(lhs), Some(rhs)) = (self.linear(fact.lhs), self.linear(fact.rhs)) else {
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

    /// Adds the bounds of a variable.
    pub(super) fn bound(&mut self, var: usize, (lo, hi): (Option<i128>, Option<i128>)) {
        let var = Linear::var(var as u32);
        if let Some(lo) = lo {
            self.rows.extend(var.combine(1, &Linear::constant(-lo), 1));
        }
        if let Some(hi) = hi {
            self.rows.extend(var.combine(-1, &Linear::constant(hi), 1));
        }
    }

    fn violation(self, above: bool) -> Violation<'a> {
        let (system, vars, splits) = self.system();
        Violation { above, system, vars, splits }
    }

    fn system(self) -> (System, Variables<'a>, Vec<(Linear, Linear)>) {
        let mut system = System::new(self.vars.keys.len());
        self.rows.into_iter().for_each(|row| system.require(row));
        (system, self.vars, self.splits)
    }

    /// Rows over variables of sizes alone that all points satisfy; `None` if there is no point.
    pub(super) fn of_sizes(self) -> Option<Vec<Index>> {
        let (system, vars, _) = self.system();
        let atoms: Vec<Option<Index>> = vars.keys.iter().map(Key::of_sizes).collect();
        let keep = |var: u32| atoms.get(var as usize).is_some_and(Option::is_some);
        let rows = system.onto(&keep, &mut Work::new())?;
        let index = |row: &Linear| {
            let start = Index::constant(i64::try_from(row.constant_term()).ok()?);
            row.terms().iter().try_fold(start, |sum, (var, factor)| {
                let atom = atoms.get(*var as usize)?.as_ref()?;
                sum.add(&atom.scale(i64::try_from(*factor).ok()?)?)
            })
        };
        Some(rows.iter().filter_map(index).collect())
    }

    /// Whether no point satisfies all rows.
    pub(super) fn has_no_point(self) -> bool {
        let (system, _, splits) = self.system();
        solve(&system, &splits, MAX_SPLITS, &mut Work::new()) == Solution::None
    }
}
