//! Initializes reductions with a store before their outermost loop.
//!
//! ```text
//! for m {                                   for m {
//!   for k {                                   for n { C(m, n) = 0; }
//!     for n {                          ->     for k {
//!       C(m, n) += ...;  // from 0              for n { C(m, n) += ...; }
//! ```

use super::LowerError;
use crate::nest::{Body, Loop, LoopNest, Node, Role, Store};

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    start(nest);
    Ok(())
}

pub(super) fn start(nest: &mut LoopNest) {
    for nodes in [&mut nest.prepare, &mut nest.body] {
        *nodes = initialise(std::mem::take(nodes));
    }
}

fn initialise(nodes: Body) -> Body {
    let mut all = Vec::with_capacity(nodes.len());
    for mut node in nodes {
        // First the reductions whose outermost loop this is, then those of inner loops.
        all.extend(hoisted(&mut node));
        if let Node::Loop(l) = &mut node {
            l.body = initialise(std::mem::take(&mut l.body));
        }
        all.push(node);
    }
    all.into()
}

/// The initializations that belong directly before a node.
fn hoisted(node: &mut Node) -> Vec<Node> {
    let mut found = Vec::new();
    match node {
        Node::Store(store) => found.extend(take_init(store).map(Node::Store)),
        Node::Loop(outermost) => {
            let shell = outermost.shell();
            let is_sum = shell.role == Role::Reduce || !shell.terms_of.is_empty();
            if !is_sum {
                return found;
            }
            collect(outermost, &mut |store, around| {
                if shell.reduces(store.stage())
                    && let Some(init) = take_init(store)
                {
                    found.push(wrap(init, around));
                }
            });
        }
        _ => {}
    }
    found
}

/// Calls `visit` with every store below a loop and the loops in between, outermost first.
fn collect(l: &mut Loop, visit: &mut impl FnMut(&mut Store, &[Loop])) {
    fn go(nodes: &mut [Node], path: &mut Vec<Loop>, visit: &mut impl FnMut(&mut Store, &[Loop])) {
        for node in nodes {
            match node {
                Node::Loop(l) => {
                    path.push(l.shell());
                    go(&mut l.body, path, visit);
                    path.pop();
                }
                Node::Guard(guard) => go(&mut guard.body, path, visit),
                Node::Store(store) => visit(store, path),
                Node::Prefetch(_) | Node::Barrier => {}
            }
        }
    }
    go(&mut l.body, &mut Vec::new(), visit);
}

/// The initialization of a reduction as a store; `None` if it has none, or no longer.
fn take_init(store: &mut Store) -> Option<Store> {
    let value = store.init.take()?;
    let mut init = Store::new(store.buffer, store.subscripts.clone(), value);
    // A bound on terms does not apply to the elements.
    init.domain = store.domain.iter().filter(|bound| !bound.term).cloned().collect();
    Some(init)
}

/// The spatial loops of a stage around its initialisation.
fn wrap(init: Store, around: &[Loop]) -> Node {
    let stage = init.stage();
    let is_spatial = |l: &&Loop| !l.reduces(stage);
    around.iter().filter(is_spatial).rev().fold(Node::Store(init), |node, shell| {
        let mut l = shell.clone();
        l.body = vec![node].into();
        Node::Loop(l)
    })
}
