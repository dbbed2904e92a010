//! Systems of linear inequalities over integers, solved by Fourier-Motzkin elimination.
//!
//! The systems here are small: the axes of one subscript, the guards around it, and a few helpers
//! for `/`, `%`, `min` and `max`. Elimination works on rationals and rounds constants to integers
//! on the way, so a system that it calls infeasible has no integer solution; the reverse need not
//! hold. Where a system grows beyond its limits rows are dropped, which errs on the same side.

use std::collections::BTreeMap;

/// The most rows a system may have.
const MAX_ROWS: usize = 400;

/// The most variables a system may have.
const MAX_VARS: usize = 48;

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
        let mut terms = BTreeMap::new();
        for (var, coefficient) in &self.terms {
            terms.insert(*var, coefficient.checked_mul(a)?);
        }
        for (var, coefficient) in &other.terms {
            let sum = terms.entry(*var).or_insert(0i128);
            *sum = sum.checked_add(coefficient.checked_mul(b)?)?;
        }
        let constant = self.constant.checked_mul(a)?.checked_add(other.constant.checked_mul(b)?)?;
        let terms = terms.into_iter().filter(|(_, coefficient)| *coefficient != 0).collect();
        Some(Linear { terms, constant })
    }

    fn eval(&self, values: &[Option<i128>]) -> Option<i128> {
        self.terms.iter().try_fold(self.constant, |sum, (var, coefficient)| {
            sum.checked_add(coefficient.checked_mul(values[*var as usize]?)?)
        })
    }

    /// Divides by the greatest common divisor of the coefficients and rounds the constant down:
    /// for integers `2x + 1 >= 0` says no more than `x >= 0`.
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

/// The values of a variable in the solutions of a system, ends included; `None` for no end.
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

    /// The values that a variable takes in solutions, or `None` if there is no solution. The
    /// bounds may be wider than the truth, never narrower.
    pub(super) fn project(mut self, var: u32) -> Option<Bounds> {
        while let Some(next) = self.cheapest(Some(var)) {
            self.eliminate(next);
            if self.infeasible {
                return None;
            }
        }
        let bounds = self.bounds_of(var, &vec![None; self.vars as usize]);
        let empty = matches!((bounds.lo, bounds.hi), (Some(lo), Some(hi)) if lo > hi);
        (!self.infeasible && !empty).then_some(bounds)
    }

    /// Whether there may be a solution, and if so an integer one if it is easily found.
    pub(super) fn solve(&self) -> Solution {
        let mut stages = vec![self.clone()];
        let mut order = Vec::new();
        loop {
            let Some(last) = stages.last() else { return Solution::Unknown };
            if last.infeasible {
                return Solution::None;
            }
            let Some(next) = last.cheapest(None) else { break };
            let mut smaller = last.clone();
            smaller.eliminate(next);
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

    /// The variable to eliminate next: one whose coefficients are all one or minus one if there is
    /// any, because then nothing is lost over the integers; of those, the one that makes the
    /// fewest new rows.
    fn cheapest(&self, keep: Option<u32>) -> Option<u32> {
        if self.vars as usize > MAX_VARS {
            return None;
        }
        let mut counts: BTreeMap<u32, (bool, usize, usize)> = BTreeMap::new();
        for (var, coefficient) in self.rows.iter().flat_map(|row| &row.terms) {
            let (inexact, positive, negative) = counts.entry(*var).or_default();
            *inexact |= coefficient.abs() != 1;
            *(if *coefficient > 0 { positive } else { negative }) += 1;
        }
        let candidates = counts.into_iter().filter(|(var, _)| Some(*var) != keep);
        let cost = |(_, (inexact, positive, negative)): &(u32, (bool, usize, usize))| {
            (*inexact, positive * negative)
        };
        candidates.min_by_key(cost).map(|(var, _)| var)
    }

    fn eliminate(&mut self, var: u32) {
        let (with, without): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.rows).into_iter().partition(|row| row.coefficient(var) != 0);
        self.rows = without;
        let (lower, upper): (Vec<_>, Vec<_>) =
            with.into_iter().partition(|row| row.coefficient(var) > 0);
        for low in &lower {
            for high in &upper {
                let (a, b) = (low.coefficient(var), -high.coefficient(var));
                let g = gcd(a, b);
                if let Some(row) = low.combine(b / g, high, a / g) {
                    self.require(row);
                }
            }
        }
    }

    /// The bounds that rows give for a variable when all others in them have values.
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

/// What is known of the integer solutions of a system.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Solution {
    /// There is none.
    None,
    /// This is one; variables that no row mentions have no value.
    At(Vec<Option<i128>>),
    /// None was found, and none was ruled out.
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
        assert_eq!(system.clone().project(0), Some(Bounds { lo: Some(8), hi: Some(9) }));
        assert!(matches!(system.solve(), Solution::At(_)));
        system.require(row(&[(0, 1), (1, 1)], -14));
        assert_eq!(system.clone().project(0), None);
        assert_eq!(system.solve(), Solution::None);
    }

    #[test]
    fn constants_are_rounded_for_integers() {
        // 2x >= 1 and 2x <= 1 has the solution one half, which is no integer.
        let mut system = System::new(1);
        system.require(row(&[(0, 2)], -1));
        system.require(row(&[(0, -2)], 1));
        assert_eq!(system.solve(), Solution::None);
    }

    #[test]
    fn a_negative_lower_bound_is_rounded_up() {
        // 3x >= -7, that is x >= -2
        let mut system = System::new(1);
        system.require(row(&[(0, 3)], 7));
        assert_eq!(system.project(0), Some(Bounds { lo: Some(-2), hi: None }));
    }
}
