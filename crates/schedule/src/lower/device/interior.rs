//! Specializes interior blocks: no clamps, no tails, no guards.
//!
//! ```text
//! block.x for x.0 in 0..17 {                          block.x for x.0 in 0..17 {
//!   thread.x for x.1 in 0..128 {                        if (x.0 >= 1 && x.0 <= 15) {
//!     if (128 * x.0 + x.1 <= 2049)                        thread.x for x.1 { b(128*x.0 + x.1) = a(128*x.0 + x.1 - 1); }
//!       b(128*x.0 + x.1) =                      ->      }
//!         a(max(128*x.0 + x.1 - 1, 0));                 if (x.0 < 1 || x.0 > 15) { as before }
//!   }                                                 }
//! }
//! ```
//!
//! All threads of a block take the same branch. If they synchronize, the
//! [conditions](super::converge) are around the work between barriers. The remaining index
//! arithmetic is simple, so compilers see which loads of neighboring threads are contiguous. This
//! only affects speed: launches that would become too much code, or whose blocks are mostly at a
//! border, stay unchanged.
//!
//! Launches in which threads run loops stay unchanged too: loops dominate the cost of conditions,
//! and PoCL (3.1 at least) computes wrong results if a loop that all work items run follows other
//! branches in a uniform condition. It synchronizes work items around such a loop, which acts as a
//! barrier in a condition.

use tensorwright_lang::program::{Atom, Expr, Index};

use crate::lower::borders::{boundary, moved};
use crate::lower::{LowerError, simplify};
use crate::nest::{
    Body, Guard, Loop, LoopKind, LoopNest, Node, Ranges, Store, Var, for_each_loop, for_each_store,
    substitute,
};

/// The most stores of a launch that is copied.
const MOST_STORES: usize = 512;

pub(in crate::lower) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    crate::lower::both(nest, |_, mut nodes| {
        for node in nodes.iter_mut() {
            if let Node::Loop(l) = node {
                launch(l, &Ranges::default(), &mut Vec::new())?;
            }
        }
        Ok(nodes)
    })
}

/// A loop over blocks.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    var: Var,
    extent: i64,
}

/// A range of blocks of a loop.
#[derive(Debug, Clone, Copy)]
struct Span {
    var: Var,
    first: i64,
    end: i64,
}

fn is_block(l: &Loop) -> bool {
    matches!(l.kind, LoopKind::Block(_))
}

/// Partitions the body of the innermost loop over blocks.
fn launch(l: &mut Loop, ranges: &Ranges, around: &mut Vec<Blocks>) -> Result<(), LowerError> {
    if !is_block(l) {
        return Ok(());
    }
    around.push(Blocks { var: l.var, extent: l.extent });
    let inner = ranges.with(l.var, l.extent);
    if let [Node::Loop(next)] = l.body.as_mut_slice()
        && is_block(next)
    {
        return launch(next, &inner, around);
    }
    let mut stores = 0;
    for_each_store(&l.body, &mut |_| stores += 1);
    let spans = match stores > MOST_STORES || runs_loops(&l.body) {
        true => Vec::new(),
        false => interior(&l.body, &inner, around),
    };
    if !spans.is_empty() {
        let (inside, outside) = conditions(&spans).ok_or(LowerError::Overflow)?;
        let undecided = l.body.clone();
        let mut decided = std::mem::take(&mut l.body);
        decide(&mut decided, &inner, &spans)?;
        let guard = |conditions, body| Node::Guard(Guard { conditions, body });
        l.body = vec![guard(inside, decided), guard(vec![outside], undecided)].into();
    }
    Ok(())
}

/// Whether threads run loops, or vector stores, which are emitted as loops.
fn runs_loops(nodes: &[Node]) -> bool {
    let mut found = false;
    for_each_loop(nodes, &mut |l| found |= !l.kind.is_bound());
    for_each_store(nodes, &mut |store| found |= store.lanes.is_some());
    found
}

/// The ranges of blocks in which a condition is known that is not known in all blocks.
fn interior(nodes: &[Node], ranges: &Ranges, blocks: &[Blocks]) -> Vec<Span> {
    let mut decisions = Vec::new();
    collect(nodes, ranges, &mut decisions);
    let span = |Blocks { var, extent }: &Blocks| {
        let middle = extent / 2;
        let of_middle = |question: &&Decision| {
            question.index.mentions(&|other| other == *var)
                && !question.is_decided(*var, 0, *extent)
                && question.is_decided(*var, middle, 1)
        };
        let decisions: Vec<&Decision> = decisions.iter().filter(of_middle).collect();
        if decisions.is_empty() {
            return None;
        }
        let all = |first: i64, count: i64| {
            decisions.iter().all(|question| question.is_decided(*var, first, count))
        };
        let first = boundary(0, middle, |block| all(block, 1));
        let behind = boundary(0, extent - 1 - middle, |behind| all(extent - 1 - behind, 1));
        let end = extent - behind;
        let is_most = end - first < *extent && 2 * (end - first) >= *extent;
        (is_most && all(first, end - first)).then_some(Span { var: *var, first, end })
    };
    blocks.iter().filter_map(span).collect()
}

/// A condition that a block may decide, with the enclosing loops.
struct Decision {
    index: Index,
    kind: DecisionKind,
    ranges: Ranges,
}

#[derive(Debug, Clone, Copy)]
enum DecisionKind {
    /// Which operand of a minimum or maximum is selected.
    Clamp,
    /// Whether it is at least zero.
    Condition,
}

impl Decision {
    /// Whether `count` blocks from `first` decide it.
    fn is_decided(&self, var: Var, first: i64, count: i64) -> bool {
        let Some(index) = moved(&self.index, var, first) else { return false };
        let ranges = self.ranges.with(var, count);
        match self.kind {
            DecisionKind::Clamp => ranges.simplify(&index).is_some_and(|simple| !clamps(&simple)),
            DecisionKind::Condition => {
                let interval = ranges.interval(&index);
                interval.lo >= 0 || interval.hi < 0
            }
        }
    }
}

/// Collects the conditions of the stores of nodes.
fn collect(nodes: &[Node], ranges: &Ranges, found: &mut Vec<Decision>) {
    for node in nodes {
        match node {
            Node::Loop(l) => collect(&l.body, &ranges.with(l.var, l.extent), found),
            Node::Guard(guard) => collect(&guard.body, ranges, found),
            Node::Store(store) => of_store(store, ranges, found),
            Node::Prefetch(_) | Node::Barrier => {}
        }
    }
}

fn of_store(store: &Store, ranges: &Ranges, found: &mut Vec<Decision>) {
    let ranges = with_lanes(store, ranges);
    let mut ask = |index: Index, kind| {
        if index.outermost_values().is_empty() {
            found.push(Decision { index, kind, ranges: ranges.clone() });
        }
    };
    let reads = store.reads();
    let of_reads = reads.iter().flat_map(|(_, read)| &read.subscripts);
    for subscript in store.subscripts.iter().chain(of_reads).filter(|subscript| clamps(subscript)) {
        ask(subscript.clone(), DecisionKind::Clamp);
    }
    for bound in &store.domain {
        ask(bound.index.clone(), DecisionKind::Condition);
    }
    store.value.walk(&mut |expr| {
        if let Expr::CompareIndex(_, left, right) = expr
            && let Some(difference) = left.sub(right)
        {
            ask(difference, DecisionKind::Condition);
        }
    });
}

/// The ranges of the loops around a store, and of its lanes.
fn with_lanes(store: &Store, ranges: &Ranges) -> Ranges {
    match store.lanes {
        Some(lanes) => ranges.with(lanes.var, lanes.count),
        None => ranges.clone(),
    }
}

/// Whether an index has a minimum or maximum that depends on a loop.
fn clamps(index: &Index) -> bool {
    index.terms().iter().any(|term| match &term.atom {
        Atom::Min(a, b) | Atom::Max(a, b) => a.mentions(&|_| true) || b.mentions(&|_| true),
        Atom::Div(inner, _) | Atom::Mod(inner, _) | Atom::Product(inner, _) => clamps(inner),
        Atom::Axis(_) | Atom::Value(_) => false,
    })
}

/// Rewrites nodes for a range of blocks.
fn decide(nodes: &mut Body, ranges: &Ranges, spans: &[Span]) -> Result<(), LowerError> {
    let mut inner = ranges.clone();
    for Span { var, first, end } in spans {
        let moved = Index::axis(*var).add(&Index::constant(*first)).ok_or(LowerError::Overflow)?;
        substitute(nodes, *var, &moved).ok_or(LowerError::Overflow)?;
        inner.insert(*var, end - first);
    }
    simplify::nodes(nodes, &inner)?;
    prune(nodes, &inner);
    for Span { var, first, .. } in spans {
        let back = Index::axis(*var).add(&Index::constant(-first)).ok_or(LowerError::Overflow)?;
        substitute(nodes, *var, &back).ok_or(LowerError::Overflow)?;
    }
    Ok(())
}

/// Removes bounds of stores that always hold.
fn prune(nodes: &mut [Node], ranges: &Ranges) {
    for node in nodes {
        match node {
            Node::Loop(l) => prune(&mut l.body, &ranges.with(l.var, l.extent)),
            Node::Guard(guard) => prune(&mut guard.body, ranges),
            Node::Store(store) => {
                let inner = with_lanes(store, ranges);
                store.domain.retain(|bound| !inner.always(&bound.index));
                store.mask.retain(|bound| !inner.always(bound));
            }
            Node::Prefetch(_) | Node::Barrier => {}
        }
    }
}

/// The conditions for a block to be in all spans, each at least zero, and the condition for all
/// other blocks; `None` on overflow.
fn conditions(spans: &[Span]) -> Option<(Vec<Index>, Index)> {
    let mut inside = Vec::new();
    for Span { var, first, end } in spans {
        let var = Index::axis(*var);
        if *first > 0 {
            inside.push(var.sub(&Index::constant(*first))?);
        }
        inside.push(Index::constant(end - 1).sub(&var)?);
    }
    let outside = negated(&inside)?;
    Some((inside, outside))
}

/// At least zero where not all conditions hold; `None` on overflow, or without conditions.
pub(in crate::lower::device) fn negated(conditions: &[Index]) -> Option<Index> {
    let mut any: Option<Index> = None;
    for condition in conditions {
        let not = Index::constant(-1).sub(condition)?;
        any = Some(any.map_or(not.clone(), |other| other.max(not)));
    }
    any
}
