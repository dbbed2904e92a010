//! Visitors and rewriters for the nodes of a nest.

use tensorwright_lang::program::{Index, Rewrite};

use super::{Loop, Node, Span, Store, Var};

/// Calls `visit` with every store, in textual order.
pub fn for_each_store<'a>(nodes: &'a [Node], visit: &mut impl FnMut(&'a Store)) {
    for node in nodes {
        match node {
            Node::Loop(l) => for_each_store(&l.body, visit),
            Node::Guard(guard) => for_each_store(&guard.body, visit),
            Node::Store(store) => visit(store),
            Node::Prefetch(_) | Node::Barrier => {}
        }
    }
}

/// Calls `change` with every store, in textual order.
pub fn for_each_store_mut(nodes: &mut [Node], change: &mut impl FnMut(&mut Store)) {
    for node in nodes {
        match node {
            Node::Loop(l) => for_each_store_mut(&mut l.body, change),
            Node::Guard(guard) => for_each_store_mut(&mut guard.body, change),
            Node::Store(store) => change(store),
            Node::Prefetch(_) | Node::Barrier => {}
        }
    }
}

/// Calls `visit` with every loop, outer ones first.
pub fn for_each_loop<'a>(nodes: &'a [Node], visit: &mut impl FnMut(&'a Loop)) {
    for node in nodes {
        match node {
            Node::Loop(l) => {
                visit(l);
                for_each_loop(&l.body, visit);
            }
            Node::Guard(guard) => for_each_loop(&guard.body, visit),
            Node::Store(_) | Node::Prefetch(_) | Node::Barrier => {}
        }
    }
}

/// Replaces a variable by an index in all expressions; `None` on overflow.
pub fn substitute(nodes: &mut [Node], var: Var, index: &Index) -> Option<()> {
    struct Substitute<'a>(Var, &'a Index);
    impl Rewrite for Substitute<'_> {
        fn axis(&mut self, axis: Var) -> Option<Index> {
            Some(if axis == self.0 { self.1.clone() } else { Index::axis(axis) })
        }
    }
    rewrite_nodes(nodes, &mut Substitute(var, index))
}

/// Rewrites all expressions of nodes; `None` on overflow.
pub(crate) fn rewrite_nodes(nodes: &mut [Node], rules: &mut dyn Rewrite) -> Option<()> {
    for node in nodes {
        match node {
            Node::Loop(l) => {
                if let Some(Span { begin, end }) = l.span.as_deref_mut() {
                    *begin = begin.rewrite(rules)?;
                    *end = end.rewrite(rules)?;
                }
                rewrite_nodes(&mut l.body, rules)?;
            }
            Node::Guard(guard) => {
                rewrite_indices(&mut guard.conditions, rules)?;
                rewrite_nodes(&mut guard.body, rules)?;
            }
            Node::Store(store) => rewrite_store(store, rules)?,
            Node::Barrier => {}
            Node::Prefetch(prefetch) => rewrite_indices(&mut prefetch.subscripts, rules)?,
        }
    }
    Some(())
}

/// Rewrites all expressions of a store; `None` on overflow.
pub(crate) fn rewrite_store(store: &mut Store, rules: &mut dyn Rewrite) -> Option<()> {
    rewrite_indices(&mut store.subscripts, rules)?;
    rewrite_indices(&mut store.mask, rules)?;
    for bound in &mut store.domain {
        bound.index = bound.index.rewrite(rules)?;
    }
    store.value = store.value.rewrite(rules)?;
    if let Some(init) = &mut store.init {
        *init = init.rewrite(rules)?;
    }
    Some(())
}

fn rewrite_indices(indices: &mut [Index], rules: &mut dyn Rewrite) -> Option<()> {
    for index in indices {
        *index = index.rewrite(rules)?;
    }
    Some(())
}
