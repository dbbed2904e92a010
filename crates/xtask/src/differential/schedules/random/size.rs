//! How much code a scheduled nest becomes, and how long it runs: estimates that keep random
//! schedules small.

use tensorwright_lang::program::Expr;
use tensorwright_schedule::nest::{LoopKind, LoopNest, Node, Store};

/// The most operations of a random schedule after unrolling. LLVM takes some ten microseconds for
/// each.
const MAX_CODE: i64 = 350;

/// The same of a schedule that is made as a whole: searches and policies unroll more.
const MAX_WHOLE_CODE: i64 = 900;

/// How many operations a builtin function counts as.
const FUNCTION: i64 = 15;

/// The most operations that run.
const MAX_WORK: i64 = 3_000_000;

/// Whether a nest compiles and runs within milliseconds.
pub(super) fn is_quick_to_compile(nest: &LoopNest) -> bool {
    code(&nest.body) <= MAX_CODE && work(&nest.body) <= MAX_WORK
}

/// Whether the nest of a schedule that is made as a whole is small enough to be worth its time.
pub(in super::super) fn is_small(nest: &LoopNest) -> bool {
    code(&nest.body) <= MAX_WHOLE_CODE && work(&nest.body) <= MAX_WORK
}

fn code(nodes: &[Node]) -> i64 {
    let one = |node: &Node| match node {
        Node::Loop(l) => {
            let copies = match l.kind {
                LoopKind::Unrolled => l.extent,
                // Registers hold some lanes each; gathers and functions are done lane by lane.
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
