//! `inline`: a stage is computed where it is read, again for every read.
//!
//! ```text
//! P: inline
//! for i { P(i) = A(i) + 1; }
//! for i { Q(i) = P(i) * P(i+1); }     ->     for i { Q(i) = (A(i) + 1) * (A(i+1) + 1); }
//! ```
//!
//! Not for reductions, results of the program, or stages whose loops are scheduled already.

use std::fmt;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{Expr, Index, Read, Rewrite};

use super::Rule;
use super::find::{find_store, remove, store_at};
use super::footprint::{Producer, refuse_checked};
use crate::nest::{BufferId, LoopNest, Var, for_each_store, rewrite_nodes};
use crate::schedule::{Refusal, Words};

/// The largest expression that inlining may make.
const MAX_NODES: usize = 5_000;

/// Inlines a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inline;

impl fmt::Display for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("inline")
    }
}

impl Rule for Inline {
    fn parse(_: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Inline)
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_store(nest, stage)?;
        let producer = Producer::of(nest, stage, &path, "inlined")?;
        let store = store_at(nest, &path)?;
        if store.combine.is_some() {
            return Err(Refusal::new(format!("`{stage}` is a reduction and cannot be inlined"))
                .help(format!(
                    "compute it inside a loop of its reader: `{stage}: compute_at ...`"
                )));
        }
        refuse_checked(nest, producer.buffer)?;
        let value = match nest.dtype(producer.buffer) {
            // A stored value is rounded to 16 bits, so this one has to be.
            dtype @ (DType::Half | DType::BFloat16) => {
                Expr::Cast(dtype, Box::new(store.value.clone()))
            }
            _ => store.value.clone(),
        };
        let mut rules = Substitute { buffer: producer.buffer, dims: producer.dims.clone(), value };
        remove(&mut nest.body, &path);
        rewrite_nodes(&mut nest.body, &mut rules).ok_or_else(Refusal::overflow)?;
        let mut largest = 0;
        for_each_store(&nest.body, &mut |store| {
            let mut nodes = 0;
            store.value.walk(&mut |_| nodes += 1);
            largest = largest.max(nodes);
        });
        if largest > MAX_NODES {
            return Err(Refusal::new(format!(
                "inlining `{stage}` makes an expression of {largest} parts, more than {MAX_NODES}"
            )));
        }
        Ok(())
    }
}

/// Replaces reads of a stage by its value.
struct Substitute {
    buffer: BufferId,
    /// The variable and the first value of each dimension.
    dims: Vec<(Var, i64)>,
    value: Expr,
}

impl Rewrite for Substitute {
    fn read(&mut self, read: Read) -> Option<Expr> {
        if read.tensor != self.buffer {
            return Some(Expr::Read(read));
        }
        let mut at = At { dims: &self.dims, subscripts: &read.subscripts };
        self.value.rewrite(&mut at)
    }
}

/// The variables of a stage in terms of the subscripts of a read of it.
struct At<'a> {
    dims: &'a [(Var, i64)],
    subscripts: &'a [Index],
}

impl Rewrite for At<'_> {
    fn axis(&mut self, axis: Var) -> Option<Index> {
        let dim = self.dims.iter().position(|(var, _)| *var == axis);
        match dim.and_then(|dim| Some((self.subscripts.get(dim)?, self.dims.get(dim)?.1))) {
            Some((subscript, lo)) => subscript.sub(&Index::constant(lo)),
            None => Some(Index::axis(axis)),
        }
    }
}
