//! `inline`: recomputes a stage at every read.
//!
//! ```text
//! P: inline
//! for i { P(i) = A(i) + 1; }
//! for i { Q(i) = P(i) * P(i+1); }     ->     for i { Q(i) = (A(i) + 1) * (A(i+1) + 1); }
//! ```
//!
//! Not for reductions, results of the program, or scheduled stages.

use std::fmt;

use tensorwright_lang::program::{Expr, Index, Read, Rewrite};

use super::find::{find_store, remove, store_at};
use super::footprint::{Producer, refuse_checked};
use super::{Reach, Rule};
use crate::limits;
use crate::nest::{BufferId, LoopNest, Var, index_parts, parts, rewrite_nodes};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Inlines a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inline;

impl fmt::Display for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("inline")
    }
}

impl Rule for Inline {
    fn reach(&self) -> Reach {
        Reach::Readers
    }

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
            // A stored value is rounded, so this one must be rounded too.
            dtype if dtype.is_storage_only() => Expr::Cast(dtype, Box::new(store.value.clone())),
            _ => store.value.clone(),
        };
        let most = limits::most_parts(nest);
        let mut rules = Substitute::new(producer.buffer, producer.dims.clone(), value, most);
        remove(&mut nest.body, &path);
        let done = rewrite_nodes(&mut nest.body, &mut rules);
        if rules.parts > most {
            let parts = format_args!("{} or more", rules.parts);
            return Err(limits::exceeded("makes expressions of", parts, "parts altogether", most)
                .help("inline fewer stages"));
        }
        done.ok_or_else(Refusal::overflow)
    }

    fn renamed(&self, _: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(self.clone())
    }
}

/// Replaces reads of a stage by its value.
struct Substitute {
    buffer: BufferId,
    /// The variable and the first value of each dimension.
    dims: Vec<(Var, i64)>,
    value: Expr,
    /// The parts of the value, and the number of occurrences of each of its variables.
    size: usize,
    occurrences: Vec<usize>,
    /// The parts so far, and the limit: checked before substituting, because every read may double
    /// them.
    parts: usize,
    most: usize,
}

impl Substitute {
    fn new(buffer: BufferId, dims: Vec<(Var, i64)>, value: Expr, most: usize) -> Self {
        let occurrences = dims.iter().map(|(var, _)| occurrences(&value, *var)).collect();
        Self { buffer, dims, size: parts(&value), value, occurrences, parts: 0, most }
    }

    /// An upper bound on the parts of the value at a read's subscripts.
    fn parts_at(&self, read: &Read) -> usize {
        let subscripts = read.subscripts.iter().map(index_parts);
        let each = self.occurrences.iter().zip(subscripts);
        each.fold(self.size, |sum, (times, parts)| sum.saturating_add(times.saturating_mul(parts)))
    }
}

/// The number of occurrences of a variable in an expression.
fn occurrences(value: &Expr, var: Var) -> usize {
    struct Count(Var, usize);
    impl Rewrite for Count {
        fn axis(&mut self, axis: Var) -> Option<Index> {
            self.1 += usize::from(axis == self.0);
            Some(Index::axis(axis))
        }
    }
    let mut count = Count(var, 0);
    let _ = value.rewrite(&mut count);
    count.1
}

impl Rewrite for Substitute {
    fn read(&mut self, read: Read) -> Option<Expr> {
        if read.tensor != self.buffer {
            return Some(Expr::Read(read));
        }
        self.parts = self.parts.saturating_add(self.parts_at(&read));
        if self.parts > self.most {
            return None;
        }
        let mut at = At { dims: &self.dims, subscripts: &read.subscripts };
        self.value.rewrite(&mut at)
    }
}

/// The variables of a stage as functions of the subscripts of a read.
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
