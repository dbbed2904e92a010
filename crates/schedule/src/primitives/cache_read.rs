//! `cache_read`: copies the part of a tensor that a loop reads.
//!
//! ```text
//! C: cache_read B at n.0 as [d1/16, d0, d1%16]
//! for n.0 in 0..N/64 {                     for n.0 in 0..N/64 {
//!   for m, k, n.1 {                          float B.pack[K][64] as [d1/16, d0, d1%16];
//!     C(m, 64*n.0 + n.1) +=             ->   for d0, d1 { B.pack(d0, d1) = B(d0, 64*n.0 + d1); }
//!       A(m, k) * B(k, 64*n.0 + n.1);        for m, k, n.1 {
//!                                              C(m, 64*n.0 + n.1) += A(m, k) * B.pack(k, n.1);
//! ```
//!
//! The copy is a separate stage, called `B.pack`, with the loops `d0`, `d1`, .... Elements outside
//! of the tensor are zero, or are not there if its extent depends on sizes. An initial value of a
//! reduction around the loop is read before the loop, from the tensor itself.
//!
//! All statements in the loop that read `B` read the copy. With `C: cache_read B alone at n.0`,
//! only `C` does: another stage there may prefer another layout.
//!
//! On a device, a copy in a block loop, or in a loop between blocks and threads, is for all threads
//! of the block, which may share the work of copying too (`B.pack: bind d1 thread.x`). `in shared`
//! forces shared memory: without it, a copy of which every thread reads only its own elements is
//! held in registers.

use std::fmt;

use tensorwright_lang::program::{Expr, Index};

use super::compute_at::{relative, shift_reads_for};
use super::find::{find_buffer, find_store, fresh_name, loop_at, loop_at_mut, ranges_on, store_at};
use super::footprint::{before_reader, clip, find_host, footprint_for, refuse_checked};
use super::layout::LayoutText;
use super::reduction_init::{OpenReductions, refuse_late};
use super::{Reach, Rule};
use crate::canonical::element;
use crate::lower::{all_hold, zero};
use crate::nest::{
    Bound, Buffer, Loop, LoopNest, Node, Owner, Role, StageId, Store, Use, Var, for_each_store,
};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Copies the part of a tensor that a loop reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheRead {
    /// The tensor.
    pub tensor: String,
    /// The loop that contains the copy, of the step's stage.
    pub at: String,
    /// Whether only the step's stage reads the copy, and others in the loop read the tensor.
    pub is_alone: bool,
    /// Whether the copy is in memory that the threads of a block share.
    pub is_shared: bool,
    /// The layout of the copy, if not row-major.
    pub layout: Option<LayoutText>,
}

impl CacheRead {
    /// A row-major copy in any memory.
    #[must_use]
    pub fn new(tensor: impl Into<String>, at: impl Into<String>) -> Self {
        let (tensor, at) = (tensor.into(), at.into());
        Self { tensor, at, is_alone: false, is_shared: false, layout: None }
    }
}

impl fmt::Display for CacheRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alone = if self.is_alone { " alone" } else { "" };
        write!(f, "cache_read {}{alone} at {}", self.tensor, self.at)?;
        f.write_str(if self.is_shared { " in shared" } else { "" })?;
        self.layout.iter().try_for_each(|layout| write!(f, " as {layout}"))
    }
}

impl Rule for CacheRead {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let tensor = words.name("the name of a tensor")?;
        let is_alone = words.accept("alone");
        words.symbol("at")?;
        let at = words.name("the name of a loop")?;
        let is_shared = words.accept("in");
        if is_shared {
            words.symbol("shared")?;
        }
        let layout = if words.accept("as") { Some(LayoutText::parse(words)?) } else { None };
        Ok(CacheRead { tensor, at, is_alone, is_shared, layout })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let tensor = find_buffer(nest, &self.tensor)?;
        refuse_checked(nest, tensor)?;
        let host = find_host(nest, stage, &self.at)?;
        let mut is_made_here = false;
        for_each_store(&loop_at(nest, &host)?.body, &mut |store| {
            is_made_here |= store.buffer == tensor;
        });
        if is_made_here {
            return Err(Refusal::new(format!(
                "`{}` is computed inside of loop `{}`, so it cannot be copied ahead of it",
                self.tensor, self.at
            )));
        }
        refuse_late(nest, &host, tensor, &[Use::Place], "copied")?;
        let only = match self.is_alone {
            true => Some(store_at(nest, &find_store(nest, stage)?)?.stage()),
            false => None,
        };
        let extents = footprint_for(nest, &host, tensor, only)?;
        let open = OpenReductions::at(nest, &host);
        let source = nest.buffer(tensor).clone();
        let shape: Vec<i64> = extents.iter().map(|extent| extent.count).collect();
        let name = fresh_name(nest, &format!("{}.pack", source.name));
        let mut copy = Buffer::new(name, source.dtype, shape.clone(), Owner::Local);
        copy.layout = self.layout.as_ref().map(|text| text.layout(&shape)).transpose()?;
        copy.is_shared = self.is_shared;
        let copy = nest.add_buffer(copy);
        let vars: Vec<Var> = (0..shape.len()).map(|d| nest.add_var(format!("d{d}"))).collect();
        let mut ranges = ranges_on(nest, &host);
        let (mut from, mut inside) = (Vec::new(), Vec::new());
        for (dimension, (var, extent)) in vars.iter().zip(&extents).enumerate() {
            ranges.insert(*var, extent.count);
            let position = extent.first.add(&Index::axis(*var)).ok_or_else(Refusal::overflow)?;
            let end = source.extent(dimension);
            inside.extend(clip(&position, 0, &end, &ranges).ok_or_else(Refusal::overflow)?);
            from.push(position);
        }
        // What lies beyond a size that varies is never read: statements have conditions, too.
        let (sized, inside): (Vec<Index>, Vec<Index>) =
            inside.into_iter().partition(|condition| nest.is_sized(condition));
        let value = match all_hold(&inside) {
            None => element(tensor, from),
            Some(condition) => Expr::Select(
                Box::new(condition),
                Box::new(element(tensor, from)),
                Box::new(zero(source.dtype)),
            ),
        };
        let to = vars.iter().map(|var| Index::axis(*var)).collect();
        let mut store = Store::new(copy, to, value);
        let bound = |index: Index| Bound { index, padding: false, term: false };
        store.domain.extend(sized.into_iter().map(bound));
        let loops = vars.iter().zip(&shape).enumerate().rev();
        let node = loops.fold(Node::Store(store), |node, (dimension, (var, extent))| {
            let mut made = Loop::new(*var, *extent, Role::Spatial, vec![node]);
            let is_whole = source.shape.get(dimension) == Some(extent);
            made.is_sized = is_whole && nest.is_sized(&source.extent(dimension));
            Node::Loop(made.of(StageId(copy)))
        });
        let host_loop = loop_at_mut(nest, &host)?;
        let position = before_reader(&host_loop.body, tensor);
        let place = relative(&extents);
        let nodes = &mut host_loop.body[position..];
        shift_reads_for(nodes, (tensor, copy), &place, &open, only)?;
        host_loop.body.insert(position, node);
        host_loop.locals.push(copy);
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        let (tensor, at) = (names.tensor(&self.tensor)?, names.own_loop(&self.at)?);
        Ok(Self { tensor, at, ..self.clone() })
    }
}
