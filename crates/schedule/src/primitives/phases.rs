//! `phases`: splits a strided reduction into one dense loop nest per phase.
//!
//! ```text
//! out: phases h by 2
//! for h in 0..H {                              for h.phase in 0..2 {
//!   for kh in 0..KH {                            for h in 0..H/2 {
//!     out(h) += (h+kh) % 2 == 0           ->       for kh in 0..KH/2 {
//!               ? in((h+kh)/2) * w(kh) : 0;          out(2*h + h.phase) +=
//!                                                      in(h + kh + h.phase) * w(2*kh + h.phase);
//! ```
//!
//! Transposed convolutions are computed like this, without the zeros of their definition: each
//! phase is a plain convolution with every second (third, ...) tap of the kernel. If the program
//! has stages that spread and pad the input, they are inlined first; `pad` then handles the
//! borders.
//!
//! The skipped terms are zero, unless a factor is infinite or NaN.

use std::fmt;

use tensorwright_lang::ops::{ArithOp, CompareOp, LogicOp, ReductionOp, UnaryOp};
use tensorwright_lang::program::{Atom, Expr, Index, Rewrite};

use super::find::expect_fresh;
use super::footprint::refuse_scatter;
use super::plain::{Plain, is_zero};
use super::{Reach, Rule};
use crate::lower::zero;
use crate::nest::{Bound, LoopNest, Role, Simplify, Var, rewrite_store};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::{Words, without_marks};

/// The most phases; more never pay.
const MAX_PHASES: i64 = 64;

/// Splits a loop into phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phases {
    /// The spatial loop.
    pub target: String,
    /// The number of phases.
    pub by: i64,
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phases {} by {}", self.target, self.by)
    }
}

impl Rule for Phases {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let target = words.name("the name of a loop")?;
        words.symbol("by")?;
        Ok(Phases { target, by: words.number("the number of phases")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        if !(2..=MAX_PHASES).contains(&self.by) {
            return Err(Refusal::new(format!("there can be 2 to {MAX_PHASES} phases")));
        }
        let mut plain = Plain::of(nest, stage)?;
        refuse_scatter(stage, &plain.store, "computed in phases")?;
        let spatial = plain.find(nest, stage, &self.target, Role::Spatial)?;
        let stride_condition = self.stride_condition(stage, &plain, spatial)?;
        let phase_name = format!("{}.phase", without_marks(&self.target).0);
        expect_fresh(nest, stage, std::slice::from_ref(&phase_name))?;

        let (h, rows, _) = plain.loops[spatial];
        let (k, terms, _) = plain.loops[stride_condition.reduce];
        let phase = nest.add_var(phase_name);
        let new_h = nest.add_var(nest.var_name(h).to_owned());
        let new_k = nest.add_var(nest.var_name(k).to_owned());
        let row = steps(self.by, new_h, &Index::axis(phase)).ok_or_else(Refusal::overflow)?;
        let first = stride_condition.first_term(phase, self.by).ok_or_else(Refusal::overflow)?;
        let term = steps(self.by, new_k, &first).ok_or_else(Refusal::overflow)?;
        let mut rules = Replace([(h, &row), (k, &term)]);
        rewrite_store(&mut plain.store, &mut rules).ok_or_else(Refusal::overflow)?;
        if rows % self.by != 0 {
            let index = Index::constant(rows - 1).sub(&row).ok_or_else(Refusal::overflow)?;
            plain.store.domain.push(Bound { index, padding: false, term: false });
        }
        let count = |extent: i64| (extent + self.by - 1) / self.by;
        plain.loops[stride_condition.reduce] = (new_k, count(terms), Role::Reduce);
        plain.loops[spatial] = (new_h, count(rows), Role::Spatial);
        plain.loops.insert(spatial, (phase, self.by, Role::Spatial));
        if terms % self.by != 0 {
            let there = Expr::CompareIndex(CompareOp::Lt, term, Index::constant(terms));
            let none = Box::new(zero(nest.dtype(plain.store.buffer)));
            let value = Box::new(plain.store.value.clone());
            plain.store.value = Expr::Select(Box::new(there), value, none);
        }
        let ranges = plain.ranges();
        rewrite_store(&mut plain.store, &mut Simplify(&ranges)).ok_or_else(Refusal::overflow)?;
        plain.replace(nest, Vec::new());
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { target: names.own_loop(&self.target)?, ..self.clone() })
    }
}

/// The condition under which an iteration of the loop has a term in the reduction: `(a*h + b*k + c)
/// % by == 0`, and `b` is 1 or -1.
struct StrideCondition {
    /// The position of the reduction loop.
    reduce: usize,
    a: i64,
    b: i64,
    c: i64,
}

impl Phases {
    /// The condition under which the terms of a sum are not zero.
    fn stride_condition(
        &self,
        stage: &str,
        plain: &Plain,
        spatial: usize,
    ) -> Result<StrideCondition, Refusal> {
        let by = self.by;
        let refusal = || {
            Refusal::new(format!(
                "the terms of `{stage}` are not zero unless `({} + k) % {by} == 0` for a loop `k` of \
                 the reduction",
                self.target
            ))
            .help("inline the stages that spread the input first")
        };
        if plain.store.combine != Some(ReductionOp::Sum) {
            return Err(Refusal::new(format!("`{stage}` is not a sum")));
        }
        let mut conditions = Vec::new();
        plain.store.value.walk(&mut |expr| {
            if matches!(expr, Expr::CompareIndex(CompareOp::Eq, ..)) {
                conditions.push(expr);
            }
        });
        let vanishes = |condition: &Expr| vanishes(&plain.store.value, condition);
        let found = conditions.into_iter().find_map(|condition| {
            let stride_condition = self.parse_condition(plain, spatial, condition)?;
            vanishes(condition).then_some(stride_condition)
        });
        found.ok_or_else(refusal)
    }

    /// Parses a condition on the loop and one reduction loop.
    fn parse_condition(
        &self,
        plain: &Plain,
        spatial: usize,
        condition: &Expr,
    ) -> Option<StrideCondition> {
        let Expr::CompareIndex(CompareOp::Eq, left, right) = condition else { return None };
        let difference = left.sub(right)?;
        let [term] = difference.terms() else { return None };
        let Atom::Mod(inner, divisor) = &term.atom else { return None };
        if *divisor != self.by || term.coefficient.abs() != 1 {
            return None;
        }
        let remainder = difference.constant_term().checked_mul(-term.coefficient)?;
        let role = |var: Var| plain.loops.iter().position(|(own, ..)| *own == var);
        let c = inner.constant_term().checked_sub(remainder)?;
        let mut stride_condition = StrideCondition { reduce: usize::MAX, a: 0, b: 0, c };
        for term in inner.terms() {
            let Atom::Axis(var) = term.atom else { return None };
            match role(var)? {
                place if place == spatial => stride_condition.a = term.coefficient,
                place if plain.loops[place].2 == Role::Reduce && stride_condition.b == 0 => {
                    (stride_condition.reduce, stride_condition.b) = (place, term.coefficient);
                }
                _ => return None,
            }
        }
        // `b` is its own inverse modulo any number.
        let b = if stride_condition.b.rem_euclid(self.by) == 1 { 1 } else { -1 };
        let is_unit = (stride_condition.b - b).rem_euclid(self.by) == 0;
        stride_condition.b = b;
        (is_unit && stride_condition.a != 0 && (0..self.by).contains(&remainder))
            .then_some(stride_condition)
    }
}

impl StrideCondition {
    /// The first term of a phase: `-b*(a*phase + c)` modulo the number of phases, simplified.
    /// `None` on overflow.
    fn first_term(&self, phase: Var, by: i64) -> Option<Index> {
        let at = |number: i64| {
            let wide = i128::from(self.a) * i128::from(number) + i128::from(self.c);
            (-i128::from(self.b) * wide).rem_euclid(i128::from(by)) as i64
        };
        let slope = at(1) - at(0);
        if (0..by).all(|number| at(number) == at(0) + slope * number) {
            return Index::axis(phase).scale(slope)?.add(&Index::constant(at(0)));
        }
        // Written as `x - by*(x / by)` instead of `x % by`, which exposes the multiples of `by` in
        // the condition.
        let meets = Index::axis(phase).scale(self.a)?.add(&Index::constant(self.c))?;
        let term = meets.scale(self.b.checked_neg()?)?;
        term.sub(&term.div(by)?.scale(by)?)
    }
}

/// `by*var + first`.
fn steps(by: i64, var: Var, first: &Index) -> Option<Index> {
    Index::axis(var).scale(by)?.add(first)
}

/// Replaces two variables at once.
struct Replace<'a>([(Var, &'a Index); 2]);

impl Rewrite for Replace<'_> {
    fn axis(&mut self, axis: Var) -> Option<Index> {
        let new = self.0.iter().find(|(var, _)| *var == axis);
        Some(new.map_or_else(|| Index::axis(axis), |(_, index)| (*index).clone()))
    }
}

/// Whether a value is zero wherever a condition in it fails.
fn vanishes(value: &Expr, condition: &Expr) -> bool {
    match value {
        Expr::Const(scalar) => is_zero(*scalar),
        Expr::Select(test, then, otherwise) => {
            vanishes(otherwise, condition) && (fails(test, condition) || vanishes(then, condition))
        }
        Expr::Arith(ArithOp::Mul, a, b) => vanishes(a, condition) || vanishes(b, condition),
        Expr::Unary(UnaryOp::Neg, a) | Expr::Cast(_, a) => vanishes(a, condition),
        _ => false,
    }
}

/// Whether a test fails wherever a condition does.
fn fails(test: &Expr, condition: &Expr) -> bool {
    match test {
        Expr::Logic(LogicOp::And, a, b) => fails(a, condition) || fails(b, condition),
        test => test == condition,
    }
}
