//! Rewrites subscripts of tensors for their memory layouts.
//!
//! ```text
//! B(k, 64*n.0 + n.1)  with B as [d1/64, d0, d1%64]   ->   B(n.0, k, n.1)
//! ```

use tensorwright_lang::program::{Expr, Read, Rewrite};

use super::LowerError;
use crate::nest::{LoopNest, Node, rewrite_nodes};

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    if nest.buffers.iter().all(|buffer| buffer.layout.is_none()) {
        return Ok(());
    }
    super::both(nest, |nest, mut nodes| {
        place(nest, &mut nodes)?;
        Ok(nodes)
    })?;
    for buffer in nest.buffers.iter_mut() {
        if let Some(layout) = buffer.layout.take() {
            buffer.reshape(layout.extents(&buffer.shape));
        }
    }
    Ok(())
}

fn place(nest: &LoopNest, nodes: &mut [Node]) -> Result<(), LowerError> {
    struct PlaceReads<'a>(&'a LoopNest);
    impl Rewrite for PlaceReads<'_> {
        fn read(&mut self, mut read: Read) -> Option<Expr> {
            if let Some(layout) = &self.0.buffer(read.tensor).layout {
                read.subscripts = layout.place(&read.subscripts)?;
            }
            Some(Expr::Read(read))
        }
    }
    rewrite_nodes(nodes, &mut PlaceReads(nest)).ok_or(LowerError::Overflow)?;
    place_targets(nest, nodes)?;
    // Simplifies quotients and remainders at once, so that printed nests are readable.
    super::simplify::nodes(nodes, &nest.ranges())
}

/// The targets of stores and prefetches.
fn place_targets(nest: &LoopNest, nodes: &mut [Node]) -> Result<(), LowerError> {
    for node in nodes {
        let (buffer, subscripts) = match node {
            Node::Loop(l) => {
                place_targets(nest, &mut l.body)?;
                continue;
            }
            Node::Guard(guard) => {
                place_targets(nest, &mut guard.body)?;
                continue;
            }
            Node::Barrier => continue,
            Node::Store(store) => (store.buffer, &mut store.subscripts),
            Node::Prefetch(prefetch) => (prefetch.buffer, &mut prefetch.subscripts),
        };
        if let Some(layout) = &nest.buffer(buffer).layout {
            *subscripts = layout.place(subscripts).ok_or(LowerError::Overflow)?;
        }
    }
    Ok(())
}
