//! Estimates of code size and run time that keep schedules small.

use tensorwright_lang::program::Expr;
use tensorwright_schedule::nest::{LoopKind, LoopNest, Node, Store};

/// The most operations of a random schedule after unrolling. LLVM takes some ten microseconds for
/// each.
const MAX_CODE: i64 = 350;

/// The same for complete schedules: searches and policies unroll more.
const MAX_WHOLE_CODE: i64 = 900;

/// The operation count of a builtin function.
const FUNCTION: i64 = 15;

/// The most operations to execute.
const MAX_WORK: i64 = 3_000_000;

/// Whether a nest compiles and runs within milliseconds.
pub(super) fn is_quick_to_compile(nest: &LoopNest) -> bool {
    code(&nest.body) <= MAX_CODE && work(&nest.body) <= MAX_WORK
}

/// Whether the nest of a complete schedule is small enough to test.
pub(in super::super) fn is_small(nest: &LoopNest) -> bool {
    code(&nest.body) <= MAX_WHOLE_CODE && work(&nest.body) <= MAX_WORK
}

fn code(nodes: &[Node]) -> i64 {
    let one = |node: &Node| match node {
        Node::Loop(l) => {
            let copies = match l.kind {
                LoopKind::Unrolled => l.extent,
                // A register holds several lanes; gathers and functions are done lane by lane.
                LoopKind::Vectorized => (l.extent / 4).max(1),
                _ => 1,
            };
            let peeled = if l.peel { 2 } else { 1 };
            code(&l.body).saturating_mul(copies).saturating_mul(peeled)
        }
        Node::Guard(guard) => code(&guard.body),
        Node::Store(store) => operations(store),
        _ => 1,
    };
    nodes.iter().map(one).fold(0, i64::saturating_add)
}

fn work(nodes: &[Node]) -> i64 {
    let one = |node: &Node| match node {
        Node::Loop(l) => work(&l.body).saturating_mul(l.extent),
        Node::Guard(guard) => work(&guard.body),
        Node::Store(store) => operations(store),
        _ => 1,
    };
    nodes.iter().map(one).fold(0, i64::saturating_add)
}

fn operations(store: &Store) -> i64 {
    let mut count = 1;
    store.value.walk(&mut |expr| {
        count += match expr {
            // Functions are written out, and most of them are polynomials.
            Expr::Call(..) => FUNCTION,
            _ => 1,
        };
    });
    count
}
