//! `privatize`: gives each iteration of a reduction loop its own result copy.
//!
//! ```text
//! count: privatize i.0
//! for b { count(b) = 0; }               for i.0, b { count.part(i.0, b) = 0; }
//! for i.0 in 0..4 {              ->     for i.0 in 0..4 {
//!   for i.1 { count(bin(..)) += 1; }      for i.1 { count.part(i.0, bin(..)) += 1; }
//! }                                     }
//!                                       for b { for i.0 { count(b) += count.part(i.0, b); } }
//! ```
//!
//! Terms for one element may come from any iteration, so two workers could update it at once. In
//! the stage `count.part` the loop is spatial, so it can be parallel. The stage `count` combines
//! the copies with a plain reduction.
//!
//! A reduction is rewritten in the same way. While [`rfactor`](super::Rfactor) keeps partial
//! results in a loop of the stage, `privatize` makes a tensor of them, so other stages can share
//! the loops that compute it.
//!
//! ```text
//! sum: privatize n.0
//! for d { for n.0 in 0..4 {             for d { for n.0 in 0..4 {
//!   for n.1 { sum(d) += x(n, d); }        for n.1 { sum.part(n.0, d) += x(n, d); }
//! } }                            ->     } }
//!                                       for d { for n.0 { sum(d) += sum.part(n.0, d); } }
//! ```

use std::fmt;

use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::Index;

use super::find::{find_store, fresh_name, remove};
use super::footprint::refuse_recurrence;
use super::plain::{Plain, own_loops};
use super::prepare::chain;
use super::{Reach, Rule};
use crate::canonical::{element, neutral};
use crate::nest::{Buffer, BufferId, LoopNest, Owner, Role, Scatter, Store, Var, rewrite_nodes};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Refuses an initialization whose loops are not in canonical form.
fn expect_begun(first: &str, start: &Plain, result: &Buffer) -> Result<(), Refusal> {
    let is_own = |((var, extent, _), (subscript, shape)): (&(Var, i64, Role), (&Index, &i64))| {
        subscript.as_axis() == Some(*var) && extent == shape
    };
    let subscripts = start.store.subscripts.iter().zip(&result.shape);
    if start.loops.len() == result.shape.len()
        && start.store.domain.is_empty()
        && start.loops.iter().zip(subscripts).all(is_own)
    {
        return Ok(());
    }
    Err(Refusal::new(format!("the loops of `{first}` are scheduled already"))
        .help("rewrite a stage first, then schedule its loops"))
}

/// The most elements of all copies.
const MAX_ELEMENTS: i64 = 1 << 32;

/// Gives iterations their own copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Privatize {
    /// The reduction loop.
    pub target: String,
}

impl fmt::Display for Privatize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "privatize {}", self.target)
    }
}

impl Rule for Privatize {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Privatize { target: words.name("the name of a loop over terms")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let plain = Plain::of(nest, stage)?;
        let Some(op) = plain.store.combine else {
            return Err(Refusal::new(format!("`{stage}` adds up no terms"))
                .help("iterations that compute elements of their own need no copies"));
        };
        let number = plain.find(nest, stage, &self.target, Role::Reduce)?;
        match plain.store.scatter.clone() {
            Some(scatter) => of_scatter(nest, stage, plain, number, (op, scatter)),
            None => of_reduction(nest, stage, plain, number, op),
        }
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { target: names.own_loop(&self.target)? })
    }
}

/// A tensor with one copy of the result per iteration of a loop.
fn add_copies(
    nest: &mut LoopNest,
    stage: &str,
    result: &Buffer,
    copies: i64,
) -> Result<BufferId, Refusal> {
    let shape: Vec<i64> = std::iter::once(copies).chain(result.shape.iter().copied()).collect();
    let elements = shape.iter().try_fold(1i64, |product, extent| product.checked_mul(*extent));
    if elements.is_none_or(|elements| elements > MAX_ELEMENTS) {
        return Err(Refusal::new("the copies have more than 2^32 elements")
            .help("split the loop, and give copies to the outer one"));
    }
    let name = fresh_name(nest, &format!("{stage}.part"));
    Ok(nest.add_buffer(Buffer::new(name, result.dtype, shape, Owner::Intermediate)))
}

/// Copies for a reduction: terms go to the copies, and the stage adds them up.
fn of_reduction(
    nest: &mut LoopNest,
    stage: &str,
    mut plain: Plain,
    number: usize,
    op: ReductionOp,
) -> Result<(), Refusal> {
    refuse_recurrence(stage, &plain.store, "added up in copies")?;
    let (var, copies, _) = plain.loops[number];
    let result = nest.buffer(plain.store.buffer).clone();
    let part = add_copies(nest, stage, &result, copies)?;

    let spatial = plain.loops.iter().copied().filter(|(.., role)| *role == Role::Spatial);
    let kept = spatial.chain([(var, copies, Role::Reduce)]).collect::<Vec<_>>();
    let (loops, mut renamed) = own_loops(nest, kept);
    let mut combined = plain.store.clone();
    // Masked terms are neutral in the copies.
    combined.domain.retain(|bound| !bound.term);
    let from = std::iter::once(Index::axis(var)).chain(combined.subscripts.iter().cloned());
    combined.value = element(part, from.collect());
    let mut combined = chain(&loops, combined);
    rewrite_nodes(std::slice::from_mut(&mut combined), &mut renamed)
        .ok_or_else(Refusal::overflow)?;

    let mut terms = plain.store.clone();
    terms.buffer = part;
    terms.subscripts.insert(0, Index::axis(var));
    terms.init = Some(neutral(op, result.dtype));
    plain.loops[number].2 = Role::Spatial;
    let terms = chain(&plain.loops, terms);
    plain.exchange_early_and_late(nest, terms, combined);
    Ok(())
}

/// Copies for a scatter, whose initialization is a separate stage.
fn of_scatter(
    nest: &mut LoopNest,
    stage: &str,
    mut plain: Plain,
    number: usize,
    (op, scatter): (ReductionOp, Box<Scatter>),
) -> Result<(), Refusal> {
    let first = format!("{stage}.start");
    let start = Plain::of(nest, &first)?;
    let start_path = find_store(nest, &first)?;
    let (var, copies, _) = plain.loops[number];
    let result = nest.buffer(plain.store.buffer).clone();
    expect_begun(&first, &start, &result)?;
    let part = add_copies(nest, stage, &result, copies)?;

    let own = |nest: &mut LoopNest, var: Var| nest.add_var(nest.var_name(var).to_owned());
    let of_copies = own(nest, var);
    let mut loops = vec![(of_copies, copies, Role::Spatial)];
    for (var, extent, role) in &start.loops {
        loops.push((own(nest, *var), *extent, *role));
    }
    let subscripts = loops.iter().map(|(var, ..)| Index::axis(*var)).collect();
    let nothing = Store::new(part, subscripts, neutral(op, result.dtype));
    let begun = chain(&loops, nothing);

    let mut terms = plain.store.clone();
    terms.buffer = part;
    terms.subscripts.insert(0, Index::axis(var));
    let mut moved = scatter;
    let dimensions = moved.dimensions.iter_mut().chain(&mut moved.checked);
    dimensions.for_each(|dimension| *dimension += 1);
    terms.scatter = Some(moved);
    plain.loops[number].2 = Role::Spatial;
    let terms = chain(&plain.loops, terms);

    let copy = own(nest, var);
    let (to, init) = (start.store.subscripts, start.store.value);
    let from = std::iter::once(Index::axis(copy)).chain(to.iter().cloned()).collect();
    let mut combined = Store::new(plain.store.buffer, to, element(part, from));
    combined.combine = Some(op);
    combined.init = Some(init);
    plain.loops = start.loops;
    plain.loops.push((copy, copies, Role::Reduce));
    plain.store = combined;
    plain.replace(nest, vec![begun, terms]);
    // It is before the stage that it initialized.
    remove(&mut nest.body, &start_path);
    Ok(())
}
