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
//! Sums are added up in another order, as by every reordering of a reduction; a partial sum may
//! overflow where the whole does not.

use std::fmt;

use tensorwright_lang::ops::{ArithOp, ReductionOp};
use tensorwright_lang::program::{Expr, Index, Rewrite};

use super::Rule;
use super::find::fresh_name;
use super::footprint::refuse_scatter;
use super::plain::Plain;
use super::prepare::{chain, hoist};
use crate::canonical::{element, neutral};
use crate::nest::{Buffer, BufferId, LoopNest, Owner, Role, StageId, Store, Var, rewrite_store};
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
        let mut factors = Vec::new();
        collect_factors(&plain.store.value, &mut factors);
        let (inside, outside): (Vec<Expr>, Vec<Expr>) =
            factors.into_iter().partition(|factor| factor.mentions(&is_summed));
        let (Some(inside), Some(outside)) = (product(&inside), product(&outside)) else {
            let names = quoted(&self.loops);
            return Err(Refusal::new(format!(
                "`{stage}` has no factors to take out of the sum over {names}: all or none of them \
                 depend on it"
            ))
            .help("sum over other loops, which only some factors depend on"));
        };
        let (kept, done): (Vec<_>, Vec<_>) =
            plain.loops.iter().copied().partition(|(var, ..)| !is_summed(*var));
        let dims: Vec<(Var, i64)> = kept
            .iter()
            .filter(|(var, ..)| inside.mentions(&|other| other == *var))
            .map(|(var, extent, _)| (*var, *extent))
            .collect();
        let partial = partial_sums(nest, stage, &plain.store, &dims)?;
        let subscripts: Vec<Index> = dims.iter().map(|(var, _)| Index::axis(*var)).collect();
        plain.store.value = times(outside, element(partial, subscripts.clone()));
        plain.loops = kept;

        let mut sum = Store::new(partial, subscripts, inside);
        sum.combine = Some(ReductionOp::Sum);
        sum.init = Some(neutral(ReductionOp::Sum, nest.dtype(partial)));
        // The stages have loops of their own, so the first gets variables of its own.
        let old = dims.iter().map(|(var, extent)| (*var, *extent, Role::Spatial)).chain(done);
        let mut renamed = Rename(Vec::new());
        let mut loops = Vec::new();
        for (var, extent, role) in old {
            let new = nest.add_var(nest.var_name(var).to_owned());
            renamed.0.push((var, new));
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

/// The factors of a product.
fn collect_factors(value: &Expr, factors: &mut Vec<Expr>) {
    match value {
        Expr::Arith(ArithOp::Mul, a, b) => {
            collect_factors(a, factors);
            collect_factors(b, factors);
        }
        other => factors.push(other.clone()),
    }
}

fn product(factors: &[Expr]) -> Option<Expr> {
    factors.iter().cloned().reduce(times)
}

fn times(a: Expr, b: Expr) -> Expr {
    Expr::Arith(ArithOp::Mul, Box::new(a), Box::new(b))
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

struct Rename(Vec<(Var, Var)>);

impl Rewrite for Rename {
    fn axis(&mut self, axis: Var) -> Option<Index> {
        let new = self.0.iter().find(|(old, _)| *old == axis);
        Some(Index::axis(new.map_or(axis, |(_, new)| *new)))
    }
}
