//! `factor`: moves loop-invariant factors out of a sum (distributivity).
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
//! A multiplication for every `k` and `l` becomes one per `k`. The price is the tensor of partial
//! sums, which `compute_at` reduces to a tile.
//!
//! Factors and divisors that do not depend on any loop of the sum are moved out of all of it:
//!
//! ```text
//! O: factor s                                  for l, e { for s { O.factor(l, e) += W(l, s) * V(s, e); } }
//! O(l, e) += W(l, s) / T(l) * V(s, e);    ->   for l, e { O(l, e) = O.factor(l, e) / T(l); }
//! ```
//!
//! Terms under a condition stay under it, and the factor outside is under the condition that some
//! term exists: an empty sum is zero, whatever it is multiplied by. If data decide that, only
//! inputs are moved out.
//!
//! As with every reordering of a reduction, the order of additions changes; a partial sum may
//! overflow even if the total does not.

use std::fmt;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp, LogicOp, ReductionOp};
use tensorwright_lang::program::{Expr, Index};

use super::find::fresh_name;
use super::footprint::refuse_scatter;
use super::plain::{Plain, Renamed, is_zero, own_loops};
use super::prepare::{chain, hoist};
use super::{Reach, Rule};
use crate::canonical::{element, neutral};
use crate::nest::{
    Buffer, BufferId, LoopNest, Owner, Ranges, Role, Simplify, StageId, Store, Var, rewrite_store,
};
use crate::primitives::renaming::Renaming;
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
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let first = words.name("the name of a loop of the reduction")?;
        let loops = std::iter::once(first).chain(words.names()).collect();
        Ok(Factor { loops })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let mut plain = Plain::of(nest, stage)?;
        refuse_scatter(stage, &plain.store, "taken apart into sums of sums")?;
        if plain.store.combine != Some(ReductionOp::Sum) || !plain.store.domain.is_empty() {
            return Err(Refusal::new(format!("`{stage}` is not a sum over all of its loops"))
                .help("only `+=!` is taken apart, before its loops are split"));
        }
        let summed = self.summed(stage, nest, &plain)?;
        let is_summed = |var: Var| summed.contains(&var);
        let ranges = plain.ranges();
        let value =
            plain.store.value.rewrite(&mut Simplify(&ranges)).ok_or_else(Refusal::overflow)?;
        let terms = Product::of(&value, nest.dtype(plain.store.buffer).is_float());
        let (inside, mut outside) = terms.partition(&is_summed);
        if inside.is_one() || outside.is_one() {
            let names = quoted(&self.loops);
            return Err(Refusal::new(format!(
                "`{stage}` has no factors to take out of the sum over {names}: all or none of them \
                 depend on it"
            ))
            .help("sum over other loops, which only some factors depend on"));
        }
        if let Some(condition) = &inside.condition {
            outside.condition = some_term(condition, &summed, &ranges);
            if outside.condition.is_none() {
                expect_inputs(stage, nest, &ranges, &outside)?;
            }
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
        // Both stages have their own loops, so the first one gets new variables.
        let old = dims.iter().map(|(var, extent)| (*var, *extent, Role::Spatial)).chain(done);
        let (loops, mut renamed) = own_loops(nest, old);
        rewrite_store(&mut sum, &mut renamed).ok_or_else(Refusal::overflow)?;
        plain.replace(nest, vec![chain(&loops, sum)]);
        hoist(nest, &[StageId(partial)]);
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { loops: names.own_loops(&self.loops)? })
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
        return Err(Refusal::new("there are more than 2^40 partial sums")
            .help("sum over fewer loops first, or over others"));
    }
    let name = fresh_name(nest, &format!("{stage}.factor"));
    let shape = dims.iter().map(|(_, extent)| *extent).collect();
    let dtype = nest.dtype(store.buffer);
    Ok(nest.add_buffer(Buffer::new(name, dtype, shape, Owner::Intermediate)))
}

/// A product of factors and divisors that is valid under a condition.
#[derive(Default)]
struct Product {
    condition: Option<Expr>,
    factors: Vec<Expr>,
    divisors: Vec<Expr>,
}

impl Product {
    /// The factors of an expression; also divisors, if the type has fractions.
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
            // The condition holds where the product is used.
            Expr::Select(condition, then, _) if self.condition.as_ref() == Some(condition) => {
                self.collect(then, has_fractions, divides);
            }
            other if divides => self.divisors.push(other.clone()),
            other => self.factors.push(other.clone()),
        }
    }

    /// The part that depends on some loops, with the condition, and the rest.
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
        let factors = factors.unwrap_or_else(|| neutral(ReductionOp::Product, dtype));
        // Divides step by step: a product of divisors may overflow.
        let value = self.divisors.into_iter().fold(factors, |a, b| arith(ArithOp::Div, a, b));
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

/// The condition that some term of a sum over some loops exists; `None` if it is not decided by the
/// first or the last term.
fn some_term(condition: &Expr, summed: &[Var], ranges: &Ranges) -> Option<Expr> {
    if !condition.mentions(&|var| summed.contains(&var)) {
        return Some(condition.clone());
    }
    match condition {
        Expr::CompareIndex(op, a, b) => {
            let margin = match op {
                CompareOp::Le | CompareOp::Lt => b.sub(a)?,
                CompareOp::Ge | CompareOp::Gt => a.sub(b)?,
                CompareOp::Eq | CompareOp::Ne => return None,
            };
            let end = |var: &Var| {
                let last =
                    if margin.coefficient_of(*var)? > 0 { ranges.extent(*var)? - 1 } else { 0 };
                Some((*var, Index::constant(last)))
            };
            let mut ends = Renamed(summed.iter().map(end).collect::<Option<_>>()?);
            Some(Expr::CompareIndex(*op, a.rewrite(&mut ends)?, b.rewrite(&mut ends)?))
        }
        Expr::Logic(LogicOp::And, a, b) => {
            let depends = |side: &Expr| side.mentions(&|var| summed.contains(&var));
            if depends(a) && depends(b) {
                return None;
            }
            let (a, b) = (some_term(a, summed, ranges)?, some_term(b, summed, ranges)?);
            Some(Expr::Logic(LogicOp::And, Box::new(a), Box::new(b)))
        }
        _ => None,
    }
}

/// Refuses to move anything but inputs out of a condition. Zero times a value that no term was
/// multiplied with may not be zero, and the value may be read where the condition does not hold.
fn expect_inputs(
    stage: &str,
    nest: &LoopNest,
    ranges: &Ranges,
    outside: &Product,
) -> Result<(), Refusal> {
    let is_input = |factor: &Expr| match factor {
        Expr::Const(_) => true,
        Expr::Read(read) => {
            let buffer = nest.buffer(read.tensor);
            let is_inside = buffer.is_inside(&read.subscripts, ranges);
            buffer.owner == Owner::Input && read.checked.is_empty() && is_inside
        }
        _ => false,
    };
    if outside.divisors.is_empty() && outside.factors.iter().all(is_input) {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "`{stage}` may have sums without terms: what is taken out of them would count where it did not"
    ))
    .help("multiply or divide in a statement of its own"))
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
