//! Which loops workers share.

use tensorwright_schedule::Draft;
use tensorwright_schedule::nest::{Loop, Node, Role};
use tensorwright_schedule::primitives::{Fuse, Parallel, loops_of};

/// Fewer inner iterations than this are not worth a second worker.
pub(super) const PARALLEL_WORK: i128 = 1 << 16;

/// Makes the outermost spatial loops of a stage parallel, fused if the first has few iterations.
pub(super) fn parallelize(draft: &mut Draft, stage: &str) {
    loop {
        let loops = loops_of(&draft.nest, stage);
        let [first, rest @ ..] = loops.as_slice() else { return };
        if first.role != Role::Spatial || first.overlaps || inner_work(first) < PARALLEL_WORK {
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

/// The number of stores that a loop runs.
pub(super) fn inner_work(l: &Loop) -> i128 {
    fn count(nodes: &[Node]) -> i128 {
        let one = |node: &Node| match node {
            Node::Loop(l) => i128::from(l.extent).saturating_mul(count(&l.body)),
            Node::Guard(guard) => count(&guard.body),
            Node::Store(_) => 1,
            Node::Prefetch(_) | Node::Barrier => 0,
        };
        nodes.iter().map(one).fold(0, i128::saturating_add)
    }
    i128::from(l.extent).saturating_mul(count(&l.body))
}
