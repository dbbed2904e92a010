//! `factor`: factors that do not depend on some loops of a sum are taken out of it.
//!
//! ```text
//! O: factor l
//! for i, j {                                   for i, j, k {
//!   for k, l {                                   for l { O.factor(i, j, k) += B(j, k, l) * C(i, l); }
//!     O(i, j) += A(i, k)                       }
//!                * B(j, k, l) * C(i, l);  ->   for i, j {
//!   }                                            for k { O(i, j) += A(i, k) * O.factor(i, j, k); }
//! }                                            }
//! ```
//!
//! Distributivity: what was multiplied for every `k` and `l` is multiplied once per `k`. The price is
//! the tensor of partial sums, which `compute_at` keeps as small as a tile.
//!
//! Factors that depend on no loop of the sum are taken out of all of it, and divisors are too:
//!
//! ```text
//! O: factor s                                  for l, e { for s { O.factor(l, e) += W(l, s) * V(s, e); } }
//! O(l, e) += W(l, s) / T(l) * V(s, e);    ->   for l, e { O(l, e) = O.factor(l, e) / T(l); }
//! ```
//!
//! Terms under a condition stay under it. Then a divisor is taken out only if every result has a term: a sum of nothing is
//! zero, whatever it would be divided by.
//!
//! Sums are added up in another order, as by every reordering of a reduction; a partial sum may
//! overflow where the whole does not, and an infinite factor makes a sum of nothing NaN.

use std::fmt;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, ReductionOp};
use tensorwright_lang::program::{Expr, Index, Rewrite};

use super::Rule;
use super::find::fresh_name;
use super::footprint::refuse_scatter;
use super::plain::{Plain, Renamed, is_zero};
use super::prepare::{chain, hoist};
use crate::canonical::{element, neutral};
use crate::nest::{
    Buffer, BufferId, LoopNest, Owner, Ranges, Role, Simplify, StageId, Store, Var, rewrite_store,
};
use crate::refusal::Refusal;
use crate::words::Words;

/// The most elements of partial sums.
const MAX_ELEMENTS: i64 = 1 << 40;

/// Sums over some loops first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    /// The loops of the reduction that are summed over first.
    pub loops: Vec<String>,
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "factor {}", self.loops.join(" "))
    }
}

impl Rule for Factor {
    const EXACT: bool = false;

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let first = words.name("the name of a loop of the reduction")?;
        let loops = std::iter::once(first).chain(words.names()).collect();
        Ok(Factor { loops })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let mut plain = Plain::of(nest, stage)?;
        refuse_scatter(stage, &plain.store, "taken apart into sums of sums")?;
        if plain.store.combine != Some(ReductionOp::Sum) || !plain.store.domain.is_empty() {
            return Err(Refusal::new(format!("`{stage}` is not a sum over all of its loops")));
        }
        let summed = self.summed(stage, nest, &plain)?;
        let is_summed = |var: Var| summed.contains(&var);
        let ranges = plain.ranges();
        let value =
            plain.store.value.rewrite(&mut Simplify(&ranges)).ok_or_else(Refusal::overflow)?;
        let terms = Product::of(&value, nest.dtype(plain.store.buffer).is_float());
        let (inside, outside) = terms.partition(&is_summed);
        if inside.is_one() || outside.is_one() {
            let names = quoted(&self.loops);
            return Err(Refusal::new(format!(
                "`{stage}` has no factors to take out of the sum over {names}: all or none of them \
                 depend on it"
            ))
            .help("sum over other loops, which only some factors depend on"));
        }
        if let Some(condition) = &inside.condition {
            expect_unconditional(stage, nest, &plain, condition, &outside)?;
        }
        let inside = inside.value(None, nest.dtype(plain.store.buffer));
        let (kept, done): (Vec<_>, Vec<_>) =
            plain.loops.iter().copied().partition(|(var, ..)| !is_summed(*var));
        let dims: Vec<(Var, i64)> = kept
            .iter()
            .filter(|(var, ..)| inside.mentions(&|other| other == *var))
            .map(|(var, extent, _)| (*var, *extent))
            .collect();
        let partial = partial_sums(nest, stage, &plain.store, &dims)?;
        let subscripts: Vec<Index> = dims.iter().map(|(var, _)| Index::axis(*var)).collect();
        let sums = element(partial, subscripts.clone());
        plain.store.value = outside.value(Some(sums), nest.dtype(partial));
        plain.loops = kept;
        let is_sum = plain.loops.iter().any(|(_, _, role)| *role == Role::Reduce);
        if !is_sum && plain.store.init == Some(neutral(ReductionOp::Sum, nest.dtype(partial))) {
            (plain.store.combine, plain.store.init) = (None, None);
        }

        let mut sum = Store::new(partial, subscripts, inside);
        sum.combine = Some(ReductionOp::Sum);
        sum.init = Some(neutral(ReductionOp::Sum, nest.dtype(partial)));
        // The stages have loops of their own, so the first gets variables of its own.
        let old = dims.iter().map(|(var, extent)| (*var, *extent, Role::Spatial)).chain(done);
        let mut renamed = Renamed(Vec::new());
        let mut loops = Vec::new();
        for (var, extent, role) in old {
            let new = nest.add_var(nest.var_name(var).to_owned());
            renamed.0.push((var, Index::axis(new)));
            loops.push((new, extent, role));
        }
        rewrite_store(&mut sum, &mut renamed).ok_or_else(Refusal::overflow)?;
        plain.replace(nest, vec![chain(&loops, sum)]);
        hoist(nest, &[StageId(partial)]);
        Ok(())
    }
}

impl Factor {
    /// The variables of the loops that are summed over first.
    fn summed(&self, stage: &str, nest: &LoopNest, plain: &Plain) -> Result<Vec<Var>, Refusal> {
        let var = |name: &String| Ok(plain.loops[plain.find(nest, stage, name, Role::Reduce)?].0);
        self.loops.iter().map(var).collect()
    }
}

/// A buffer for partial sums.
fn partial_sums(
    nest: &mut LoopNest,
    stage: &str,
    store: &Store,
    dims: &[(Var, i64)],
) -> Result<BufferId, Refusal> {
    let elements = dims.iter().try_fold(1i64, |product, (_, extent)| product.checked_mul(*extent));
    if elements.is_none_or(|elements| elements > MAX_ELEMENTS) {
        return Err(Refusal::new("there are more than 2^40 partial sums"));
    }
    let name = fresh_name(nest, &format!("{stage}.factor"));
    let shape = dims.iter().map(|(_, extent)| *extent).collect();
    let dtype = nest.dtype(store.buffer);
    Ok(nest.add_buffer(Buffer::new(name, dtype, shape, Owner::Intermediate)))
}

/// A product of factors, some of which divide, that counts where a condition holds.
#[derive(Default)]
struct Product {
    condition: Option<Expr>,
    factors: Vec<Expr>,
    divisors: Vec<Expr>,
}

impl Product {
    /// The factors of an expression; divisors too if they are those of numbers that have fractions.
    fn of(value: &Expr, has_fractions: bool) -> Self {
        let (condition, value) = match value {
            Expr::Select(condition, then, other) if is_constant_zero(other) => {
                (Some((**condition).clone()), &**then)
            }
            value => (None, value),
        };
        let mut product = Self { condition, ..Self::default() };
        product.collect(value, has_fractions, false);
        product
    }

    fn collect(&mut self, value: &Expr, has_fractions: bool, divides: bool) {
        match value {
            Expr::Arith(ArithOp::Mul, a, b) => {
                self.collect(a, has_fractions, divides);
                self.collect(b, has_fractions, divides);
            }
            Expr::Arith(ArithOp::Div, a, b) if has_fractions => {
                self.collect(a, has_fractions, divides);
                self.collect(b, has_fractions, !divides);
            }
            // The condition holds where the product counts.
            Expr::Select(condition, then, _) if self.condition.as_ref() == Some(condition) => {
                self.collect(then, has_fractions, divides);
            }
            other if divides => self.divisors.push(other.clone()),
            other => self.factors.push(other.clone()),
        }
    }

    /// The part that depends on some loops, with the condition, and the part that does not.
    fn partition(self, depends: &impl Fn(Var) -> bool) -> (Self, Self) {
        let cut = |all: Vec<Expr>| -> (Vec<Expr>, Vec<Expr>) {
            all.into_iter().partition(|factor| factor.mentions(depends))
        };
        let (factors, other_factors) = cut(self.factors);
        let (divisors, other_divisors) = cut(self.divisors);
        let inside = Self { condition: self.condition, factors, divisors };
        (inside, Self { condition: None, factors: other_factors, divisors: other_divisors })
    }

    fn is_one(&self) -> bool {
        self.factors.is_empty() && self.divisors.is_empty()
    }

    /// The product as an expression, with one more factor.
    fn value(self, last: Option<Expr>, dtype: DType) -> Expr {
        let arith = |op, a, b| Expr::Arith(op, Box::new(a), Box::new(b));
        let product = |all: Vec<Expr>| all.into_iter().reduce(|a, b| arith(ArithOp::Mul, a, b));
        let factors = product(self.factors.into_iter().chain(last).collect());
        let value = match (factors, product(self.divisors)) {
            (Some(factors), Some(divisors)) => arith(ArithOp::Div, factors, divisors),
            (Some(factors), None) => factors,
            (None, divisors) => {
                let one = neutral(ReductionOp::Product, dtype);
                divisors.map_or(one.clone(), |divisors| arith(ArithOp::Div, one, divisors))
            }
        };
        match self.condition {
            Some(condition) => {
                let zero = neutral(ReductionOp::Sum, dtype);
                Expr::Select(Box::new(condition), Box::new(value), Box::new(zero))
            }
            None => value,
        }
    }
}

fn is_constant_zero(value: &Expr) -> bool {
    matches!(value, Expr::Const(scalar) if is_zero(*scalar))
}

/// Refuses to take factors out from under a condition if they are needed or known where it holds alone.
fn expect_unconditional(
    stage: &str,
    nest: &LoopNest,
    plain: &Plain,
    condition: &Expr,
    outside: &Product,
) -> Result<(), Refusal> {
    let ranges = plain.ranges();
    let reads_inside = |factor: &Expr| {
        let mut all = true;
        factor.walk_reads(&mut |read| {
            let shape = &nest.buffer(read.tensor).shape;
            all &= read.subscripts.iter().zip(shape).all(|(at, size)| {
                let range = ranges.interval(at);
                range.lo >= 0 && range.hi < i128::from(*size)
            });
        });
        all
    };
    if !outside.factors.iter().chain(&outside.divisors).all(reads_inside) {
        return Err(Refusal::new(format!(
            "a factor of `{stage}` is read under a condition that keeps it inside of its tensor"
        ))
        .help("sum over other loops"));
    }
    let of_terms = |var: Var| plain.loops.iter().any(|l| l.0 == var && l.2 == Role::Reduce);
    let is_once = outside.divisors.iter().all(|divisor| !divisor.mentions(&of_terms));
    if outside.divisors.is_empty() || (is_once && has_a_term(plain, condition, &ranges)) {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "`{stage}` may have results without terms, which would be divided by what they were not divided by"
    ))
    .help("divide in a statement of its own"))
}

/// Whether a condition holds for the first or the last term of every result.
fn has_a_term(plain: &Plain, condition: &Expr, ranges: &Ranges) -> bool {
    let holds_at = |is_last: bool| {
        let mut end = End { loops: &plain.loops, is_last };
        let there = condition.rewrite(&mut end)?.rewrite(&mut Simplify(ranges))?;
        Some(matches!(there, Expr::Const(scalar) if !is_zero(scalar)))
    };
    [false, true].into_iter().any(|is_last| holds_at(is_last) == Some(true))
}

/// The first or the last term in the place of all.
struct End<'a> {
    loops: &'a [(Var, i64, Role)],
    is_last: bool,
}

impl Rewrite for End<'_> {
    fn axis(&mut self, axis: Var) -> Option<Index> {
        let terms = self.loops.iter().find(|l| l.0 == axis && l.2 == Role::Reduce);
        Some(match terms {
            Some((_, extent, _)) => Index::constant(if self.is_last { extent - 1 } else { 0 }),
            None => Index::axis(axis),
        })
    }
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
