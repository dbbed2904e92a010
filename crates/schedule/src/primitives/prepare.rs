//! Helpers of rewritings: loop chains, and hoisting of constant stages.
//!
//! A stage that reads only constants runs once, ahead of all calls.
//!
//! ```text
//! const float W[..];                             prepare:
//! body:                                            for .. { U(..) = f(W(..)); }     prepared U
//!   for .. { U(..) = f(W(..)); }         ->      body:
//!   for .. { O(..) += U(..) * I(..); }             for .. { O(..) += U(..) * I(..); }
//! ```

use crate::nest::{
    BufferId, Loop, LoopNest, Node, Owner, Role, StageId, Store, Var, for_each_loop, for_each_store,
};

/// The largest temporary buffer, in bytes, of a stage that runs ahead of all calls.
const MOST_LOCAL_BYTES: i64 = 16 << 10;

/// A chain of loops around a store, outermost first, in canonical form.
pub(super) fn chain(loops: &[(Var, i64, Role)], store: Store) -> Node {
    let stage = store.stage();
    loops.iter().rev().fold(Node::Store(store), |node, (var, extent, role)| {
        Node::Loop(Loop::new(*var, *extent, *role, vec![node]).of(stage))
    })
}

/// Moves stages that read only constants ahead of all calls; their buffers become prepared ones.
/// Stages are tried in the given order, so a stage may follow one that it reads.
///
/// Stages stay if they are inside loops of others, compute a result, or gather at positions from
/// data (which are checked at every call).
pub(super) fn hoist(nest: &mut LoopNest, stages: &[StageId]) {
    for stage in stages {
        let Some(position) = constant_stage(nest, *stage) else { continue };
        let node = nest.body.remove(position);
        nest.prepare.push(node);
        let StageId(buffer) = *stage;
        nest.buffers[buffer.0 as usize].owner = Owner::Prepared;
        nest.parameters.push(buffer);
    }
}

/// The position of a top-level node that consists of a constant stage.
fn constant_stage(nest: &LoopNest, stage: StageId) -> Option<usize> {
    if nest.buffer(stage.0).owner != Owner::Intermediate {
        return None;
    }
    let mut makers = nest.body.iter().enumerate().filter(|(_, node)| has_store_of(node, stage));
    let (position, node) = makers.next()?;
    (makers.next().is_none() && is_constant(nest, node, stage)).then_some(position)
}

fn has_store_of(node: &Node, stage: StageId) -> bool {
    let mut found = false;
    for_each_store(std::slice::from_ref(node), &mut |store| found |= store.stage() == stage);
    found
}

/// Whether a node computes only a stage and its temporaries, from constants only.
fn is_constant(nest: &LoopNest, node: &Node, stage: StageId) -> bool {
    let node = std::slice::from_ref(node);
    let mut locals: Vec<BufferId> = Vec::new();
    for_each_loop(node, &mut |l| locals.extend(&l.locals));
    let mut constant = locals.iter().all(|id| nest.buffer(*id).bytes() <= MOST_LOCAL_BYTES);
    for_each_store(node, &mut |store| {
        constant &= store.stage() == stage || locals.contains(&store.buffer);
        for (_, read) in store.reads() {
            let known = nest.constants.contains(&read.tensor)
                || locals.contains(&read.tensor)
                || nest.buffer(read.tensor).owner == Owner::Prepared;
            constant &= known && read.checked.is_empty();
        }
    });
    constant
}
