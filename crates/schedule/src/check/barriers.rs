//! Barriers that not all threads of a block come to.
//!
//! A barrier stands at the top of a launch, or in loops around thread loops, whose extents are the same for all threads.
//! One in a condition is a flaw even if all threads agree on it: runtimes are known to get that wrong.

use super::Flaw;
use crate::nest::{LoopKind, LoopNest, Node};

/// The first barrier that stands elsewhere.
pub(super) fn divergent(nest: &LoopNest) -> Option<Flaw> {
    let around = [&nest.prepare, &nest.body].into_iter().find_map(|nodes| find(nest, nodes, None));
    around.map(|around| Flaw::Divergent { around })
}

/// What is around the first such barrier.
fn find(nest: &LoopNest, nodes: &[Node], around: Option<&str>) -> Option<String> {
    nodes.iter().find_map(|node| match node {
        Node::Barrier => around.map(str::to_owned),
        Node::Guard(guard) => find(nest, &guard.body, Some(around.unwrap_or("a condition"))),
        Node::Loop(l) => match l.kind {
            LoopKind::Thread(_) | LoopKind::Tensor | LoopKind::Parallel => {
                let own = format!("loop `{}` over threads", nest.var_name(l.var));
                find(nest, &l.body, Some(around.unwrap_or(&own)))
            }
            LoopKind::Serial | LoopKind::Block(_) | LoopKind::Unrolled | LoopKind::Vectorized => {
                find(nest, &l.body, around)
            }
        },
        Node::Store(_) | Node::Prefetch(_) => None,
    })
}
