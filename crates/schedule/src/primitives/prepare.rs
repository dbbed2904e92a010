//! What rewritings share: chains of loops around a store, and stages that run ahead of all calls
//! because everything they read is constant.
//!
//! ```text
//! const float W[..];                             prepare:
//! body:                                            for .. { U(..) = f(W(..)); }     prepared U
//!   for .. { U(..) = f(W(..)); }         ->      body:
//!   for .. { O(..) += U(..) * I(..); }             for .. { O(..) += U(..) * I(..); }
//! ```

use crate::nest::{
    BufferId, Loop, LoopNest, Node, Owner, Role, Store, Var, for_each_loop, for_each_store,
};

/// The largest buffer, in bytes, that a stage may need on the way if it is to run ahead of all calls.
const MOST_LOCAL_BYTES: i64 = 16 << 10;

/// A chain of loops around a store, outermost first, as the canonical nest has it.
pub(super) fn chain(loops: &[(Var, i64, Role)], store: Store) -> Node {
    let stage = store.buffer;
    loops.iter().rev().fold(Node::Store(store), |node, (var, extent, role)| {
        Node::Loop(Loop::new(*var, *extent, *role, vec![node]).of(stage))
    })
}

/// Moves those of the stages that read nothing but constants ahead of all calls; their buffers
/// become prepared ones. In the order given, so that a stage may follow one that it reads.
///
/// Stages that are placed inside loops of others, that make a result, or that gather at positions
/// from data (which are checked at every call) stay.
pub(super) fn hoist(nest: &mut LoopNest, stages: &[BufferId]) {
    for stage in stages {
        let Some(position) = constant_stage(nest, *stage) else { continue };
        let node = nest.body.remove(position);
        nest.prepare.push(node);
        nest.buffers[stage.0 as usize].owner = Owner::Prepared;
        nest.parameters.push(*stage);
    }
}

/// The position of the node that alone makes a buffer, of constants alone.
fn constant_stage(nest: &LoopNest, stage: BufferId) -> Option<usize> {
    if nest.buffer(stage).owner != Owner::Intermediate {
        return None;
    }
    let mut makers = nest.body.iter().enumerate().filter(|(_, node)| writes(node, stage));
    let (position, node) = makers.next()?;
    (makers.next().is_none() && is_constant(nest, node, stage)).then_some(position)
}

fn writes(node: &Node, buffer: BufferId) -> bool {
    let mut found = false;
    for_each_store(std::slice::from_ref(node), &mut |store| found |= store.buffer == buffer);
    found
}

/// Whether a node makes nothing but a buffer and what it needs on the way, and reads nothing but
/// constants.
fn is_constant(nest: &LoopNest, node: &Node, stage: BufferId) -> bool {
    let node = std::slice::from_ref(node);
    let mut locals: Vec<BufferId> = Vec::new();
    for_each_loop(node, &mut |l| locals.extend(&l.locals));
    let mut constant = locals.iter().all(|id| nest.buffer(*id).bytes() <= MOST_LOCAL_BYTES);
    for_each_store(node, &mut |store| {
        constant &= store.buffer == stage || locals.contains(&store.buffer);
        for (_, read) in store.reads() {
            let known = nest.constants.contains(&read.tensor)
                || locals.contains(&read.tensor)
                || nest.buffer(read.tensor).owner == Owner::Prepared;
            constant &= known && read.checked.is_empty();
        }
    });
    constant
}
