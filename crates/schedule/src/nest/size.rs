//! [`Size`]: the size of a nest, in all quantities that have limits.

use super::operations::operations;
use super::parts::{index_parts, parts};
use super::{LoopNest, Node, Store};

/// How large a nest is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// The depth of nested loops.
    pub depth: usize,
    /// The iterations of all stores, including those that a tail skips.
    pub iterations: u128,
    /// The parts of the largest expression.
    pub expression: usize,
    /// The parts of all expressions.
    pub parts: usize,
    /// The stores.
    pub stores: usize,
    /// The operations after unrolling, about one instruction each.
    pub operations: u128,
    /// The bytes of all buffers.
    pub bytes: u128,
}

impl Size {
    /// The size of a nest before lowering.
    #[must_use]
    pub fn of(nest: &LoopNest) -> Self {
        let mut size = *nest.hidden.size();
        for body in [&nest.prepare, &nest.body] {
            size.add(body, 0, 1);
            size.operations = size.operations.saturating_add(operations(nest, body));
        }
        size.bytes = nest.buffers.sum(|buffer| buffer.bytes().max(0).unsigned_abs().into());
        size
    }

    /// The size of nodes, without the buffers.
    pub(super) fn of_nodes(nest: &LoopNest, nodes: &[Node]) -> Self {
        let mut size = Self::default();
        size.add(nodes, 0, 1);
        size.operations = operations(nest, nodes);
        size
    }

    fn add(&mut self, nodes: &[Node], depth: usize, iterations: u128) {
        self.depth = self.depth.max(depth);
        for node in nodes {
            match node {
                Node::Loop(l) => {
                    let extent = u128::from(l.extent.max(0).unsigned_abs());
                    self.add(&l.body, depth + 1, iterations.saturating_mul(extent));
                }
                Node::Guard(guard) => self.add(&guard.body, depth, iterations),
                Node::Store(store) => {
                    self.iterations = self.iterations.saturating_add(iterations);
                    self.stores += 1;
                    self.add_store(store);
                }
                Node::Prefetch(_) | Node::Barrier => {}
            }
        }
    }

    fn add_store(&mut self, store: &Store) {
        let bounds = store.domain.iter().map(|bound| index_parts(&bound.index)).sum::<usize>();
        let subscripts = store.subscripts.iter().map(index_parts).sum::<usize>();
        let init = store.init.as_ref().map_or(0, parts);
        let value = parts(&store.value);
        self.expression = self.expression.max(value).max(init).max(bounds).max(subscripts);
        self.parts = self.parts.saturating_add(value + init + bounds + subscripts);
    }
}
