//! Splits loops by masks: blocks fully inside or outside need no condition.
//!
//! ```text
//! for l {                                    for l {
//!   for s.0 in 0..64 {                         for s.0 in 0..64 {
//!     for s.1 in 0..16 {                         if (l - 16*s.0 - 15 >= 0) {
//!       y(l) += s <= l ? x(l, s) : 0;              for s.1 { y(l) += x(l, s); }
//!     }                                          }
//!   }                                ->          if (l - 16*s.0 >= 0, 16*s.0 + 14 - l >= 0) {
//! }                                                for s.1 { y(l) += s <= l ? x(l, s) : 0; }
//!                                                }
//!                                              }
//!                                            }
//! ```
//!
//! (`s` is `16*s.0 + s.1`.) A fully masked block is skipped, which is half of them in causal
//! attention. This only affects speed: loops stay unchanged if little would be skipped or if they
//! would become too much code.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{CompareOp, ReductionOp};
use tensorwright_lang::program::{Atom, Expr, Index, Read, Rewrite, Scalar, Term};

use super::unroll::stores;
use super::{LowerError, simplify};
use crate::limits::{MAX_OPERATIONS, MAX_STORES};
use crate::nest::{
    Body, Bound, BufferId, Guard, LoopKind, LoopNest, Node, Ranges, Size, Store, Var,
    for_each_store, operations, rewrite_nodes,
};

/// The most stores that copies may add to a nest, after unrolling.
const MOST_STORES: u128 = 1024;

/// The most operations that copies may add, about one instruction each.
const MOST_OPERATIONS: u128 = 1 << 15;

/// The most conditions by which nested blocks are split.
const MOST_NESTED: usize = 3;

/// The most conditions of a block that are considered.
const MOST_CONDITIONS: usize = 16;

/// A block must span at most one part in `PARTS` of the range of a condition.
const PARTS: i128 = 4;

/// A condition must fail in at least one in `WORTH` iterations.
const WORTH: i128 = 8;

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    let written = stores(&nest.prepare).saturating_add(stores(&nest.body));
    let operations = Size::of(nest).operations;
    let mut pass = Pass {
        stores: MOST_STORES.min((MAX_STORES as u128).saturating_sub(written)),
        operations: MOST_OPERATIONS.min(MAX_OPERATIONS.saturating_sub(operations) / 2),
    };
    let outside = Scope { ranges: nest.ranges(), settled: Vec::new() };
    super::both(nest, |nest, body| Ok(pass.nodes(nest, body, &outside).into()))
}

/// The context of a node.
#[derive(Clone, Default)]
struct Scope {
    ranges: Ranges,
    /// The conditions that enclosing loops already split by, and the range of the margin in their
    /// blocks.
    settled: Vec<(Condition, i128)>,
}

/// The remaining code size budget.
struct Pass {
    stores: u128,
    operations: u128,
}

impl Pass {
    fn nodes(&mut self, nest: &LoopNest, nodes: Body, scope: &Scope) -> Vec<Node> {
        nodes.into_iter().flat_map(|node| self.node(nest, node, scope)).collect()
    }

    fn node(&mut self, nest: &LoopNest, node: Node, scope: &Scope) -> Vec<Node> {
        // A launch has a single loop over blocks, which must stay whole.
        let is_grid = matches!(&node, Node::Loop(l) if matches!(l.kind, LoopKind::Block(_)));
        let block = if is_grid { None } else { block(&node, scope) };
        if let Some(apart) = block.and_then(|block| self.apart(nest, &node, block, scope)) {
            return apart;
        }
        vec![match node {
            Node::Loop(mut l) if !matches!(l.kind, LoopKind::Unrolled | LoopKind::Vectorized) => {
                let mut inner = scope.clone();
                inner.ranges.insert(l.var, l.extent);
                l.body = self.nodes(nest, l.body, &inner).into();
                Node::Loop(l)
            }
            Node::Guard(mut guard) => {
                guard.body = self.nodes(nest, guard.body, scope).into();
                Node::Guard(guard)
            }
            other => other,
        }]
    }

    /// A node split in three: where the condition holds everywhere, in some iterations, and
    /// nowhere; `None` if that is too much code.
    fn apart(
        &mut self,
        nest: &LoopNest,
        node: &Node,
        block: Block,
        scope: &Scope,
    ) -> Option<Vec<Node>> {
        let own = std::slice::from_ref(node);
        let left = self.stores.checked_sub(stores(own).saturating_mul(2))?;
        let operations = operations(nest, own).saturating_mul(2);
        let operations = self.operations.checked_sub(operations)?;
        let Block { condition, least, greatest, reach } = block;
        let below = |index: &Index| Index::constant(-1).sub(index);
        let everywhere = (vec![least.clone()], assume(nest, node, &condition, true, scope)?);
        let nowhere = (vec![below(&greatest)?], assume(nest, node, &condition, false, scope)?);
        // A block in which the margin takes one value is never mixed.
        let mixed = if least == greatest { Vec::new() } else { vec![node.clone()] };
        let somewhere = (vec![below(&least)?, greatest], mixed);
        (self.stores, self.operations) = (left, operations);
        let mut inner = scope.clone();
        inner.settled.push((condition.clone(), reach));
        let mut all = Vec::new();
        for (conditions, nodes) in [everywhere, somewhere, nowhere] {
            let mut body = self.nodes(nest, nodes.into(), &inner);
            // The part that smaller blocks have left.
            guard_terms(nest, &mut body, &condition, &mut Vec::new())?;
            if !body.is_empty() {
                all.push(Node::Guard(Guard { conditions, body: body.into() }));
            }
        }
        Some(all)
    }
}

/// A comparison of indices that does not depend on data, as written in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    op: CompareOp,
    lhs: Index,
    rhs: Index,
}

impl Condition {
    fn of(expr: &Expr) -> Option<Self> {
        let Expr::CompareIndex(op, lhs, rhs) = expr else { return None };
        Some(Self { op: *op, lhs: lhs.clone(), rhs: rhs.clone() })
    }

    /// A sum of loop variables. It is at least zero where the condition holds, or, if the second
    /// value is `false`, where it does not.
    fn margin(&self) -> Option<(Index, bool)> {
        let (margin, holds) = simplify::margin(self.op, &self.lhs, &self.rhs)?;
        let is_loop = |term: &Term| matches!(term.atom, Atom::Axis(_));
        margin.terms().iter().all(is_loop).then_some((margin, holds))
    }
}

/// A condition to split a block by, with the least and greatest value of its margin in the block.
struct Block {
    condition: Condition,
    least: Index,
    greatest: Index,
    /// The difference of the two.
    reach: i128,
}

/// The condition to split a node by: it applies to the whole node, and the node spans only a part
/// of the condition's range.
fn block(node: &Node, scope: &Scope) -> Option<Block> {
    let Node::Loop(l) = node else { return None };
    if scope.settled.len() >= MOST_NESTED {
        return None;
    }
    let found = BlockConditions::of(node);
    let parts: Vec<BlockConditions> = l.body.iter().map(BlockConditions::of).collect();
    let is_open =
        |condition: &&Condition| parts.iter().all(|part| part.conditions.contains(condition));
    found.conditions.iter().filter(is_open).find_map(|condition| {
        let (margin, holds) = condition.margin()?;
        // Loops are split by sizes later.
        if margin.mentions(&|var| scope.ranges.is_number(var)) {
            return None;
        }
        let (least, greatest) = found.ends(&margin)?;
        // In the block, and over all loops.
        let inside = found.inner.interval(&margin.sub(&least)?).hi;
        // Much smaller blocks inside a mixed larger block may not be mixed.
        let before = scope.settled.iter().filter(|(settled, _)| settled == condition);
        if before.map(|(_, reach)| *reach).any(|reach| inside * PARTS > reach) {
            return None;
        }
        let whole = scope.ranges.interval(&least).hull(scope.ranges.interval(&greatest));
        let span = whole.hi - whole.lo;
        let fails = if holds { -whole.lo } else { whole.hi };
        (inside * PARTS <= span
            && fails > 0
            && fails * WORTH >= span
            && whole.lo < 0
            && whole.hi >= 0)
            .then(|| Block { condition: condition.clone(), least, greatest, reach: inside })
    })
}

/// The loops of a block and the conditions in it.
struct BlockConditions {
    inner: Ranges,
    conditions: Vec<Condition>,
}

impl BlockConditions {
    fn of(node: &Node) -> Self {
        let mut found = Self { inner: Ranges::default(), conditions: Vec::new() };
        found.node(node);
        found
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Loop(l) => {
                // Copies of a loop may have different extents.
                let extent = self.inner.extent(l.var).unwrap_or(0).max(l.extent);
                self.inner.insert(l.var, extent);
                l.body.iter().for_each(|node| self.node(node));
            }
            Node::Guard(guard) => guard.body.iter().for_each(|node| self.node(node)),
            Node::Store(store) => store.value.walk(&mut |expr| {
                if self.conditions.len() < MOST_CONDITIONS {
                    let new = Condition::of(expr).filter(|it| !self.conditions.contains(it));
                    self.conditions.extend(new);
                }
            }),
            Node::Prefetch(_) | Node::Barrier => {}
        }
    }

    /// The least and greatest value of a sum of loop variables in the block; `None` on overflow.
    fn ends(&self, margin: &Index) -> Option<(Index, Index)> {
        let (mut least, mut greatest) = (margin.clone(), margin.clone());
        for term in margin.terms() {
            let Atom::Axis(var) = term.atom else { return None };
            let Some(extent) = self.inner.extent(var) else { continue };
            let own = Index::axis(var).scale(term.coefficient)?;
            let last = Index::constant(term.coefficient.checked_mul(extent - 1)?);
            let (low, high) = match term.coefficient > 0 {
                true => (Index::constant(0), last),
                false => (last, Index::constant(0)),
            };
            least = least.sub(&own)?.add(&low)?;
            greatest = greatest.sub(&own)?.add(&high)?;
        }
        Some((least, greatest))
    }
}

/// A node in which a condition has a known value; empty if nothing remains.
fn assume(
    nest: &LoopNest,
    node: &Node,
    condition: &Condition,
    reaches: bool,
    scope: &Scope,
) -> Option<Vec<Node>> {
    let holds = condition.margin().is_some_and(|(_, holds)| holds == reaches);
    let mut nodes = vec![node.clone()];
    rewrite_nodes(&mut nodes, &mut AssumeCondition { condition, holds })?;
    simplify::nodes(&mut nodes, &scope.ranges).ok()?;
    Some(without_neutral(nest, nodes.into()))
}

/// Replaces a condition by its known value.
struct AssumeCondition<'a> {
    condition: &'a Condition,
    holds: bool,
}

impl Rewrite for AssumeCondition<'_> {
    fn expr(&mut self, expr: Expr) -> Option<Expr> {
        let is_it = Condition::of(&expr).is_some_and(|it| it == *self.condition);
        let known = || Expr::Const(Scalar::integer(DType::Bool, i128::from(self.holds)));
        Some(if is_it { known() } else { expr })
    }
}

/// Guards terms by a condition that all lanes of their vectors share: a branch around some
/// multiply-adds instead of a select that prevents fusing each of them.
fn guard_terms(
    nest: &LoopNest,
    nodes: &mut [Node],
    condition: &Condition,
    lanes: &mut Vec<Var>,
) -> Option<()> {
    for node in nodes {
        match node {
            Node::Loop(l) => {
                lanes.extend((l.kind == LoopKind::Vectorized).then_some(l.var));
                guard_terms(nest, &mut l.body, condition, lanes)?;
                lanes.retain(|lane| *lane != l.var);
            }
            Node::Guard(guard) => guard_terms(nest, &mut guard.body, condition, lanes)?,
            Node::Store(store) => guard_term(nest, store, condition, lanes)?,
            Node::Prefetch(_) | Node::Barrier => {}
        }
    }
    Some(())
}

fn guard_term(
    nest: &LoopNest,
    store: &mut Store,
    condition: &Condition,
    lanes: &[Var],
) -> Option<()> {
    let (margin, holds) = condition.margin()?;
    let Expr::Select(asked, then, otherwise) = &store.value else { return Some(()) };
    let is_it = Condition::of(asked).is_some_and(|asked| asked == *condition);
    let is_common = !margin.mentions(&|var| lanes.contains(&var));
    if !is_it || !is_common || !changes_nothing(nest, store, otherwise) {
        return Some(());
    }
    let index = match holds {
        true => margin,
        false => Index::constant(-1).sub(&margin)?,
    };
    store.value = (**then).clone();
    store.domain.push(Bound { index, padding: false, term: true });
    Some(())
}

/// Nodes without terms that have no effect and without empty loops.
fn without_neutral(nest: &LoopNest, nodes: Body) -> Vec<Node> {
    let mut left = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Loop(mut l) => {
                l.body = without_neutral(nest, l.body).into();
                // A tile without any terms.
                for id in &l.locals {
                    if let Some(held) = held(&l.body, *id) {
                        l.body = without_buffer(l.body, *id, held);
                        l.body = without_neutral(nest, l.body).into();
                    }
                }
                let is_idle = l.body.iter().all(|node| matches!(node, Node::Prefetch(_)));
                left.extend((!is_idle).then_some(Node::Loop(l)));
            }
            Node::Guard(mut guard) => {
                guard.body = without_neutral(nest, guard.body).into();
                left.extend((!guard.body.is_empty()).then_some(Node::Guard(guard)));
            }
            Node::Store(store) if changes_nothing(nest, &store, &store.value) => {}
            other => left.push(other),
        }
    }
    left
}

/// The constant value of all elements of a buffer; `None` if it is not known to be constant.
fn held(nodes: &[Node], buffer: BufferId) -> Option<Scalar> {
    let (mut held, mut is_one) = (None, true);
    for_each_store(nodes, &mut |store| {
        if store.buffer == buffer {
            let value = match &store.value {
                Expr::Const(value) if store.combine.is_none() => Some(*value),
                _ => None,
            };
            is_one &= value.is_some() && held.is_none_or(|before| Some(before) == value);
            held = held.or(value);
        }
    });
    held.filter(|_| is_one)
}

/// Replaces reads of a buffer by a constant.
fn without_buffer(mut nodes: Body, buffer: BufferId, value: Scalar) -> Body {
    struct Constant(BufferId, Scalar);
    impl Rewrite for Constant {
        fn read(&mut self, read: Read) -> Option<Expr> {
            Some(if read.tensor == self.0 { Expr::Const(self.1) } else { Expr::Read(read) })
        }
    }
    fn remove(nodes: Body, buffer: BufferId) -> Body {
        let one = |node: Node| match node {
            Node::Store(store) if store.buffer == buffer => None,
            Node::Loop(mut l) => {
                l.body = remove(l.body, buffer);
                Some(Node::Loop(l))
            }
            Node::Guard(mut guard) => {
                guard.body = remove(guard.body, buffer);
                Some(Node::Guard(guard))
            }
            other => Some(other),
        };
        nodes.into_iter().filter_map(one).collect()
    }
    match rewrite_nodes(&mut nodes, &mut Constant(buffer, value)) {
        Some(()) => remove(nodes, buffer),
        None => nodes,
    }
}

/// Whether a store of this value has no effect. A position from data must still be checked.
fn changes_nothing(nest: &LoopNest, store: &Store, value: &Expr) -> bool {
    let (Some(op), Expr::Const(value)) = (store.combine, value) else { return false };
    let is_of_type = value.dtype() == nest.dtype(store.buffer);
    is_of_type && is_neutral(op, *value) && store.init.is_none() && !store.is_scatter()
}

/// Whether an operator does nothing with a value.
pub(super) fn is_neutral(op: ReductionOp, value: Scalar) -> bool {
    let neutral = Scalar::neutral(op, value.dtype());
    // The sign of zero does not matter: the sign of a zero sum is unspecified.
    let is_zero = |scalar: Scalar| scalar.dtype().is_float() && scalar.as_f64() == 0.0;
    value == neutral || is_zero(value) && is_zero(neutral)
}
