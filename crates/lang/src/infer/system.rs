//! Solves systems of linear integer inequalities by Fourier-Motzkin elimination.
//!
//! The systems are small: the axes of one subscript, its guards, and a few auxiliary variables for
//! `/`, `%`, `min` and `max`. Elimination works on rationals and rounds constants to integers on
//! the way, so a system that it calls infeasible has no integer solution; the converse need not
//! hold. A system that exceeds its limits loses rows, which errs on the same side.
//!
//! Elimination is exponential in the worst case, so every query has a budget of [`Work`].

use std::collections::BTreeMap;

/// The most rows of a system.
const MAX_ROWS: usize = 400;

/// The most variables of a system.
pub(super) const MAX_VARS: usize = 48;

/// The remaining budget of a query, in rows.
#[derive(Debug)]
pub(super) struct Work(u32);

impl Work {
    /// The budget of one query. Guards of real programs take a few dozen rows.
    pub(super) fn new() -> Self {
        Work(4000)
    }

    pub(super) fn is_done(&self) -> bool {
        self.0 == 0
    }

    /// Charges some rows; returns whether the budget sufficed.
    fn take(&mut self, rows: usize) -> bool {
        let left = !self.is_done();
        self.0 = self.0.saturating_sub(u32::try_from(rows).unwrap_or(u32::MAX));
        left
    }
}

/// A linear form: a sum of multiples of variables, and a constant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Linear {
    /// Sorted by variable, no zero coefficients.
    terms: Vec<(u32, i128)>,
    constant: i128,
}

impl Linear {
    pub(super) fn constant(constant: i128) -> Self {
        Self { terms: Vec::new(), constant }
    }

    pub(super) fn var(var: u32) -> Self {
        Self { terms: vec![(var, 1)], constant: 0 }
    }

    fn coefficient(&self, var: u32) -> i128 {
        self.terms.binary_search_by_key(&var, |(v, _)| *v).map_or(0, |at| self.terms[at].1)
    }

    /// `self * a + other * b`, or `None` on overflow.
    pub(super) fn combine(&self, a: i128, other: &Linear, b: i128) -> Option<Linear> {
        let constant = self.constant.checked_mul(a)?.checked_add(other.constant.checked_mul(b)?)?;
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut left, mut right) = (self.terms.as_slice(), other.terms.as_slice());
        loop {
            let next = |terms: &[(u32, i128)]| terms.first().map_or(u32::MAX, |(var, _)| *var);
            let var = next(left).min(next(right));
            let mut sum = 0i128;
            for (side, factor) in [(&mut left, a), (&mut right, b)] {
                if let Some(((v, coefficient), rest)) = side.split_first()
                    && *v == var
                {
                    sum = sum.checked_add(coefficient.checked_mul(factor)?)?;
                    *side = rest;
                }
            }
            if sum != 0 {
                terms.push((var, sum));
            }
            if left.is_empty() && right.is_empty() {
                return Some(Linear { terms, constant });
            }
        }
    }

    pub(super) fn eval(&self, values: &[Option<i128>]) -> Option<i128> {
        self.terms.iter().try_fold(self.constant, |sum, (var, coefficient)| {
            sum.checked_add(coefficient.checked_mul(values[*var as usize]?)?)
        })
    }

    pub(super) fn terms(&self) -> &[(u32, i128)] {
        &self.terms
    }

    pub(super) fn constant_term(&self) -> i128 {
        self.constant
    }

    /// Divides by the greatest common divisor of the coefficients and rounds the constant down:
    /// over integers `2x + 1 >= 0` is `x >= 0`.
    fn tighten(mut self) -> Linear {
        let divisor = self.terms.iter().fold(0, |g, (_, coefficient)| gcd(g, coefficient.abs()));
        if divisor > 1 {
            self.terms.iter_mut().for_each(|(_, coefficient)| *coefficient /= divisor);
            self.constant = self.constant.div_euclid(divisor);
        }
        self
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A conjunction of `row >= 0`.
#[derive(Debug, Clone, Default)]
pub(super) struct System {
    vars: u32,
    rows: Vec<Linear>,
    infeasible: bool,
}

/// The values of a variable in the solutions of a system, both ends included; `None` is unbounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) lo: Option<i128>,
    pub(super) hi: Option<i128>,
}

impl System {
    pub(super) fn new(vars: usize) -> Self {
        Self { vars: vars as u32, rows: Vec::new(), infeasible: false }
    }

    /// Adds `row >= 0`.
    pub(super) fn require(&mut self, row: Linear) {
        let row = row.tighten();
        if row.terms.is_empty() {
            self.infeasible |= row.constant < 0;
            return;
        }
        if let Some(same) = self.rows.iter_mut().find(|other| other.terms == row.terms) {
            same.constant = same.constant.min(row.constant);
        } else if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        }
    }

    /// The values of a variable in solutions, or `None` if there is no solution. The bounds may be
    /// too wide, never too narrow.
    pub(super) fn project(mut self, var: u32, work: &mut Work) -> Option<Bounds> {
        while let Some(next) = self.cheapest(&|other| other == var) {
            self.eliminate(next, work);
            if self.infeasible {
                return None;
            }
        }
        let bounds = self.bounds_of(var, &vec![None; self.vars as usize]);
        let empty = matches!((bounds.lo, bounds.hi), (Some(lo), Some(hi)) if lo > hi);
        (!self.infeasible && !empty).then_some(bounds)
    }

    /// Rows over some variables alone that all solutions satisfy; `None` if there is no solution.
    pub(super) fn onto(
        mut self,
        keep: &dyn Fn(u32) -> bool,
        work: &mut Work,
    ) -> Option<Vec<Linear>> {
        while let Some(next) = self.cheapest(keep) {
            self.eliminate(next, work);
        }
        (!self.infeasible).then_some(self.rows)
    }

    /// The system with a value for a variable.
    pub(super) fn fix(&self, var: u32, value: i128) -> System {
        let mut fixed = System::new(self.vars as usize);
        fixed.infeasible = self.infeasible;
        for row in &self.rows {
            let coefficient = row.coefficient(var);
            let terms = row.terms.iter().copied().filter(|(v, _)| *v != var).collect();
            // A row that overflows is dropped, which errs on the safe side.
            let moved = coefficient.checked_mul(value).and_then(|m| row.constant.checked_add(m));
            if let Some(constant) = moved {
                fixed.require(Linear { terms, constant });
            }
        }
        fixed
    }

    /// Whether there may be a solution, with an integer one if it is easily found.
    pub(super) fn solve(&self, work: &mut Work) -> Solution {
        let mut stages = vec![self.clone()];
        let mut order = Vec::new();
        loop {
            let Some(last) = stages.last() else { return Solution::Unknown };
            if last.infeasible {
                return Solution::None;
            }
            let Some(next) = last.cheapest(&|_| false) else { break };
            let mut smaller = last.clone();
            smaller.eliminate(next, work);
            order.push(next);
            stages.push(smaller);
        }
        let mut values = vec![None; self.vars as usize];
        for (var, stage) in order.iter().zip(&stages).rev() {
            let bounds = stage.bounds_of(*var, &values);
            let value = match (bounds.lo, bounds.hi) {
                (Some(lo), Some(hi)) if lo > hi => return Solution::Unknown,
                (Some(lo), _) => lo,
                (None, Some(hi)) => hi.min(0),
                (None, None) => 0,
            };
            values[*var as usize] = Some(value);
        }
        let holds = |row: &Linear| row.eval(&values).is_some_and(|value| value >= 0);
        if self.rows.iter().all(holds) { Solution::At(values) } else { Solution::Unknown }
    }

    /// The variable to eliminate next: preferably one whose coefficients are all 1 or -1, because
    /// its elimination is exact over the integers; of those, the one that makes the fewest new
    /// rows.
    fn cheapest(&self, keep: &dyn Fn(u32) -> bool) -> Option<u32> {
        if self.vars as usize > MAX_VARS {
            return None;
        }
        let mut counts: BTreeMap<u32, (bool, usize, usize)> = BTreeMap::new();
        for (var, coefficient) in self.rows.iter().flat_map(|row| &row.terms) {
            let (inexact, positive, negative) = counts.entry(*var).or_default();
            *inexact |= coefficient.abs() != 1;
            *(if *coefficient > 0 { positive } else { negative }) += 1;
        }
        let candidates = counts.into_iter().filter(|(var, _)| !keep(*var));
        let cost = |(_, (inexact, positive, negative)): &(u32, (bool, usize, usize))| {
            (*inexact, positive * negative)
        };
        candidates.min_by_key(cost).map(|(var, _)| var)
    }

    fn eliminate(&mut self, var: u32, work: &mut Work) {
        let (with, without): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.rows).into_iter().partition(|row| row.coefficient(var) != 0);
        self.rows = without;
        // Unchanged rows cost less than new ones.
        work.take(1 + self.rows.len() / 4);
        let (lower, upper): (Vec<_>, Vec<_>) =
            with.into_iter().partition(|row| row.coefficient(var) > 0);
        for low in &lower {
            for high in &upper {
                if !work.take(1) {
                    return;
                }
                let (a, b) = (low.coefficient(var), -high.coefficient(var));
                let g = gcd(a, b);
                if let Some(row) = low.combine(b / g, high, a / g) {
                    self.require(row);
                }
            }
        }
    }

    /// The bounds of a variable when all others in its rows have values.
    fn bounds_of(&self, var: u32, values: &[Option<i128>]) -> Bounds {
        let mut bounds = Bounds { lo: None, hi: None };
        for row in &self.rows {
            let coefficient = row.coefficient(var);
            if coefficient == 0 {
                continue;
            }
            let rest = Linear {
                terms: row.terms.iter().copied().filter(|(v, _)| *v != var).collect(),
                constant: row.constant,
            };
            let Some(rest) = rest.eval(values) else { continue };
            if coefficient > 0 {
                let lo = -rest.div_euclid(coefficient);
                bounds.lo = Some(bounds.lo.map_or(lo, |other| other.max(lo)));
            } else {
                let hi = rest.div_euclid(-coefficient);
                bounds.hi = Some(bounds.hi.map_or(hi, |other| other.min(hi)));
            }
        }
        bounds
    }
}

/// The result of solving over the integers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Solution {
    /// There is none.
    None,
    /// A solution; variables in no row have no value.
    At(Vec<Option<i128>>),
    /// Undecided.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(terms: &[(u32, i128)], constant: i128) -> Linear {
        Linear { terms: terms.to_vec(), constant }
    }

    #[test]
    fn a_box_with_a_diagonal() {
        // 0 <= x <= 9, 0 <= y <= 4, x + y >= 12
        let mut system = System::new(2);
        system.require(row(&[(0, 1)], 0));
        system.require(row(&[(0, -1)], 9));
        system.require(row(&[(1, 1)], 0));
        system.require(row(&[(1, -1)], 4));
        system.require(row(&[(0, 1), (1, 1)], -12));
        assert_eq!(
            system.clone().project(0, &mut Work::new()),
            Some(Bounds { lo: Some(8), hi: Some(9) })
        );
        assert!(matches!(system.solve(&mut Work::new()), Solution::At(_)));
        system.require(row(&[(0, 1), (1, 1)], -14));
        assert_eq!(system.clone().project(0, &mut Work::new()), None);
        assert_eq!(system.solve(&mut Work::new()), Solution::None);
    }

    #[test]
    fn constants_are_rounded_for_integers() {
        // 2x >= 1 and 2x <= 1 has the solution one half, which is no integer.
        let mut system = System::new(1);
        system.require(row(&[(0, 2)], -1));
        system.require(row(&[(0, -2)], 1));
        assert_eq!(system.solve(&mut Work::new()), Solution::None);
    }

    #[test]
    fn a_negative_lower_bound_is_rounded_up() {
        // 3x >= -7, that is x >= -2
        let mut system = System::new(1);
        system.require(row(&[(0, 3)], 7));
        assert_eq!(system.project(0, &mut Work::new()), Some(Bounds { lo: Some(-2), hi: None }));
    }
}
