//! [`Uses`]: free buffers and variables of a part of a nest.

use std::collections::BTreeSet;

use super::{BufferId, LoopKind, Node, Span, Store, Var};
use tensorwright_lang::program::{Expr, Index};

/// The buffers and variables that nodes mention but do not declare.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Uses {
    /// Buffers that are read, written or prefetched.
    pub buffers: BTreeSet<BufferId>,
    /// Variables of enclosing loops.
    pub vars: BTreeSet<Var>,
    /// Whether a subscript is checked at run time.
    pub checks: bool,
    /// Whether a loop is parallel.
    pub parallel: bool,
}

impl Uses {
    /// The free buffers and variables of nodes.
    #[must_use]
    pub fn of(nodes: &[Node]) -> Self {
        let mut uses = Self::default();
        nodes.iter().for_each(|node| uses.node(node));
        uses
    }

    /// All buffers that nodes mention, declared there or not.
    #[must_use]
    pub fn mentioned(nodes: &[Node]) -> BTreeSet<BufferId> {
        let mut buffers = Uses::of(nodes).buffers;
        for node in nodes {
            match node {
                Node::Loop(inner) => buffers.extend(Uses::mentioned(&inner.body)),
                Node::Guard(guard) => buffers.extend(Uses::mentioned(&guard.body)),
                _ => {}
            }
        }
        buffers
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Loop(inner) => {
                let mut below = Uses::of(&inner.body);
                below.vars.remove(&inner.var);
                if let Some(Span { begin, end }) = inner.span.as_deref() {
                    [begin, end].into_iter().for_each(|index| below.index(index));
                }
                for local in &inner.locals {
                    below.buffers.remove(local);
                }
                below.parallel |= inner.kind == LoopKind::Parallel;
                self.absorb(below);
            }
            Node::Guard(guard) => {
                guard.conditions.iter().for_each(|condition| self.index(condition));
                guard.body.iter().for_each(|node| self.node(node));
            }
            Node::Store(store) => self.store(store),
            Node::Barrier => {}
            Node::Prefetch(prefetch) => {
                self.buffers.insert(prefetch.buffer);
                prefetch.subscripts.iter().for_each(|subscript| self.index(subscript));
            }
        }
    }

    fn store(&mut self, store: &Store) {
        let mut uses = Uses::default();
        uses.buffers.insert(store.buffer);
        store.subscripts.iter().chain(&store.mask).for_each(|index| uses.index(index));
        uses.expr(&store.value);
        uses.checks |= store.checked_element().is_some();
        if let Some(lanes) = store.lanes {
            uses.vars.remove(&lanes.var);
        }
        self.absorb(uses);
    }

    fn absorb(&mut self, other: Uses) {
        self.buffers.extend(other.buffers);
        self.vars.extend(other.vars);
        self.checks |= other.checks;
        self.parallel |= other.parallel;
    }

    fn index(&mut self, index: &Index) {
        self.axes(index);
        index.outermost_values().into_iter().for_each(|value| self.expr(value));
    }

    fn expr(&mut self, expr: &Expr) {
        expr.walk(&mut |expr| match expr {
            Expr::Index(index, _) => self.axes(index),
            Expr::CompareIndex(_, lhs, rhs) => [lhs, rhs].into_iter().for_each(|i| self.axes(i)),
            Expr::Read(read) => {
                self.buffers.insert(read.tensor);
                self.checks |= !read.checked.is_empty();
                read.subscripts.iter().for_each(|subscript| self.axes(subscript));
            }
            _ => {}
        });
    }

    fn axes(&mut self, index: &Index) {
        index.walk_axes(&mut |var| {
            self.vars.insert(var);
        });
    }
}
