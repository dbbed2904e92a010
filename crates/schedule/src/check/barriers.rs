//! Detects barriers in divergent control flow.
//!
//! A barrier must be at the top level of a launch, or in loops around thread loops, which have the
//! same extents for all threads. A barrier in a condition is a flaw even if all threads agree on
//! the condition: some runtimes compile that wrongly.

use super::Flaw;
use crate::nest::{LoopKind, LoopNest, Node};

/// The first barrier in another position.
pub(super) fn divergent(nest: &LoopNest) -> Option<Flaw> {
    let around = [&nest.prepare, &nest.body].into_iter().find_map(|nodes| find(nest, nodes, None));
    around.map(|around| Flaw::Divergent { around })
}

/// A description of the node around the first such barrier.
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
