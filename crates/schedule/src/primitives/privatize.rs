//! `privatize`: iterations of a loop of a scatter get copies of the result of their own.
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
//! The terms that go to one element are anywhere, so two workers could add to it at once. In the stage
//! `count.part` the loop goes over different elements, so it can be parallel. The copies are combined by the
//! stage `count`, which is a plain reduction.

use std::fmt;

use tensorwright_lang::program::Index;

use super::Rule;
use super::find::{find_store, fresh_name, remove};
use super::plain::Plain;
use super::prepare::chain;
use crate::canonical::{element, neutral};
use crate::nest::{Buffer, LoopNest, Owner, Role, Store, Var};
use crate::refusal::Refusal;
use crate::words::Words;

/// Refuses a start whose loops are not those of the elements, one by one.
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

/// Gives iterations copies of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Privatize {
    /// The loop over terms.
    pub target: String,
}

impl fmt::Display for Privatize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "privatize {}", self.target)
    }
}

impl Rule for Privatize {
    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Privatize { target: words.name("the name of a loop of a scatter")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let mut plain = Plain::of(nest, stage)?;
        let (Some(scatter), Some(op)) = (plain.store.scatter.clone(), plain.store.combine) else {
            return Err(Refusal::new(format!("`{stage}` is no scatter"))
                .help(format!("make partial results: `{stage}: rfactor {} at ...`", self.target)));
        };
        let number = plain.find(nest, stage, &self.target, Role::Reduce)?;
        let first = format!("{stage}.start");
        let start = Plain::of(nest, &first)?;
        let start_path = find_store(nest, &first)?;
        let (var, copies, _) = plain.loops[number];
        let result = nest.buffer(plain.store.buffer).clone();
        expect_begun(&first, &start, &result)?;
        let shape: Vec<i64> = std::iter::once(copies).chain(result.shape).collect();
        let elements = shape.iter().try_fold(1i64, |product, extent| product.checked_mul(*extent));
        if elements.is_none_or(|elements| elements > MAX_ELEMENTS) {
            return Err(Refusal::new("the copies have more than 2^32 elements")
                .help("split the loop, and give copies to the outer one"));
        }
        let name = fresh_name(nest, &format!("{stage}.part"));
        let part = Buffer::new(name, result.dtype, shape.clone(), Owner::Intermediate);
        let part = nest.add_buffer(part);

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
        // It stands before what it started.
        remove(&mut nest.body, &start_path);
        Ok(())
    }
}
