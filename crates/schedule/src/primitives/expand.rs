//! `expand`: materializes a constant that is read at computed positions.
//!
//! ```text
//! O: expand w                                        ahead of all calls
//! for o, j, t {                                      for o, j, t { w.full(o,j,t) = w(o/8, j, (o-t)%8) }
//!   O(o) += w(o/8, j, (o - t) % 8) * X(8*j + t)  ->  for o, j, t { O(o) += w.full(o,j,t) * X(8*j+t) }
//! ```
//!
//! A time-memory trade-off for block-circulant weights and tables of a few coefficients. The sums
//! stay the same.

use std::fmt;

use tensorwright_lang::program::{Expr, Index, Read, Rewrite};

use super::Rule;
use super::find::{find_buffer, fresh_name};
use super::plain::Plain;
use super::prepare::{chain, hoist};
use crate::canonical::element;
use crate::nest::{Buffer, BufferId, LoopNest, Owner, Role, StageId, Store, Var};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// The most elements of an expanded tensor.
const MOST_ELEMENTS: i64 = 1 << 32;

/// Expands a constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expand {
    /// The tensor.
    pub tensor: String,
}

impl fmt::Display for Expand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expand {}", self.tensor)
    }
}

impl Rule for Expand {
    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Expand { tensor: words.name("the name of a constant tensor")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let tensor = find_buffer(nest, &self.tensor)?;
        let name = &self.tensor;
        if !nest.constants.contains(&tensor) && nest.buffer(tensor).owner != Owner::Prepared {
            return Err(Refusal::new(format!("`{name}` may change between calls"))
                .help("declare it `const`"));
        }
        let mut plain = Plain::of(nest, stage)?;
        let read = only_read(stage, name, &plain.store, tensor)?;
        // A condition may guard the read, but not the copy.
        let ranges = plain.ranges();
        if !nest.buffer(tensor).is_inside(&read.subscripts, &ranges) {
            return Err(Refusal::new(format!(
                "`{stage}` reads `{name}` under a condition that keeps it inside of the tensor"
            ))
            .help(format!("`{stage}: pad {name}` takes the condition out")));
        }
        let moves = |(var, ..): &&(Var, i64, Role)| {
            read.subscripts.iter().any(|index| index.coefficient_of(*var) != Some(0))
        };
        let axes: Vec<(Var, i64, Role)> = plain.loops.iter().filter(moves).copied().collect();
        let shape: Vec<i64> = axes.iter().map(|(_, extent, _)| *extent).collect();
        let elements = shape.iter().try_fold(1i64, |n, extent| n.checked_mul(*extent));
        if elements.is_none_or(|elements| elements > MOST_ELEMENTS) {
            return Err(Refusal::new(format!("`{name}` would have more than 2^32 elements")));
        }
        let full = fresh_name(nest, &format!("{name}.full"));
        let full = Buffer::new(full, nest.dtype(tensor), shape, Owner::Intermediate);
        let full = nest.add_buffer(full);
        let vars: Vec<Var> = axes.iter().map(|(var, ..)| *var).collect();
        let made = copy(nest, full, &read, &axes)?;
        let subscripts = vars.iter().map(|var| Index::axis(*var)).collect();
        let mut swap = Swap { from: tensor, to: element(full, subscripts) };
        plain.store.value = plain.store.value.rewrite(&mut swap).ok_or_else(Refusal::overflow)?;
        plain.replace(nest, vec![made]);
        hoist(nest, &[StageId(full)]);
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { tensor: names.tensor(&self.tensor)? })
    }
}

/// The one read of a tensor in the value of a store.
fn only_read(stage: &str, name: &str, store: &Store, tensor: BufferId) -> Result<Read, Refusal> {
    let mut found: Vec<Read> = Vec::new();
    store.value.walk_reads(&mut |read| {
        if read.tensor == tensor && !found.contains(read) {
            found.push(read.clone());
        }
    });
    match found.as_slice() {
        [read] if read.checked.is_empty() && !read.subscripts.iter().any(Index::has_value) => {
            Ok(read.clone())
        }
        [] => Err(Refusal::new(format!("`{stage}` does not read `{name}`"))),
        [_] => Err(Refusal::new(format!("`{stage}` reads `{name}` at positions from data"))),
        _ => Err(Refusal::new(format!("`{stage}` reads `{name}` in several places"))),
    }
}

/// The stage that computes the expanded tensor, with its own loops.
fn copy(
    nest: &mut LoopNest,
    full: BufferId,
    read: &Read,
    axes: &[(Var, i64, Role)],
) -> Result<crate::nest::Node, Refusal> {
    struct Rename(Vec<(Var, Var)>);
    impl Rewrite for Rename {
        fn axis(&mut self, axis: Var) -> Option<Index> {
            let own = self.0.iter().find(|(old, _)| *old == axis);
            Some(Index::axis(own.map_or(axis, |(_, own)| *own)))
        }
    }
    let mut own = Vec::new();
    for (var, ..) in axes {
        own.push((*var, nest.add_var(nest.var_name(*var).to_owned())));
    }
    let value = Expr::Read(read.clone());
    let value = value.rewrite(&mut Rename(own.clone())).ok_or_else(Refusal::overflow)?;
    let loops: Vec<(Var, i64, Role)> =
        axes.iter().zip(&own).map(|((_, n, _), (_, var))| (*var, *n, Role::Spatial)).collect();
    let subscripts = own.iter().map(|(_, var)| Index::axis(*var)).collect();
    Ok(chain(&loops, Store::new(full, subscripts, value)))
}

/// Replaces all reads of a tensor by another read.
struct Swap {
    from: BufferId,
    to: Expr,
}

impl Rewrite for Swap {
    fn read(&mut self, read: Read) -> Option<Expr> {
        Some(if read.tensor == self.from { self.to.clone() } else { Expr::Read(read) })
    }
}
