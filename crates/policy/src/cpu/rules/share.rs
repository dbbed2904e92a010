//! Chooses the parallel loops.

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::nest::{Loop, LoopNest, Node, Role};
use tensorwright_schedule::primitives::{Fuse, Parallel, loops_of};

use crate::cpu::work::{PARALLEL_WORK, weight};

/// Parallelizes the outermost spatial loops of a stage, fused if the first has few iterations.
pub(super) fn parallelize(draft: &mut ScheduleState, stage: &str) {
    loop {
        let loops = loops_of(&draft.nest, stage);
        let [first, rest @ ..] = loops.as_slice() else { return };
        if first.role != Role::Spatial
            || first.overlaps
            || inner_work(&draft.nest, first) < PARALLEL_WORK
        {
            return;
        }
        let name = draft.nest.var_name(first.var).to_owned();
        let few = first.extent < 8;
        let next = rest.first().filter(|next| few && next.role == Role::Spatial);
        let next = next.map(|next| draft.nest.var_name(next.var).to_owned());
        let fused = match next {
            Some(inner) => draft.step(stage, Fuse { outer: name.clone(), inner, name: None }),
            None => false,
        };
        if !fused {
            draft.step(stage, Parallel { target: name });
            return;
        }
    }
}

/// The work of a loop.
pub(super) fn inner_work(nest: &LoopNest, l: &Loop) -> i128 {
    fn count(nest: &LoopNest, nodes: &[Node]) -> i128 {
        let one = |node: &Node| match node {
            Node::Loop(l) => i128::from(l.extent).saturating_mul(count(nest, &l.body)),
            Node::Guard(guard) => count(nest, &guard.body),
            Node::Store(store) => weight(nest, store),
            Node::Prefetch(_) | Node::Barrier => 0,
        };
        nodes.iter().map(one).fold(0, i128::saturating_add)
    }
    i128::from(l.extent).saturating_mul(count(nest, &l.body))
}
