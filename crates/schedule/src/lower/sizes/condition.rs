//! The conditions of the statements of a loop, as limits on its variable.

use tensorwright_lang::ops::CompareOp;
use tensorwright_lang::program::{Atom, Expr, Index};

use super::{MOST_LIMITS, outermost};
use crate::nest::{BufferId, Loop, Node, Ranges, Store, Var, extreme};

/// A condition on the iterations of a loop.
#[derive(Debug, Clone)]
pub(super) struct Limit {
    /// It is at least zero where the condition holds.
    pub(super) condition: Index,
    /// From this iteration on it holds in all iterations of inner loops and all lanes, or until
    /// before this one.
    pub(super) at: Index,
    pub(super) is_first: bool,
    /// Whether the loop is split by it.
    pub(super) splits: bool,
}

/// The statements of a loop.
pub(super) struct Statements {
    var: Var,
    /// The buffers that live for one iteration.
    locals: Vec<BufferId>,
    statements: Vec<Statement>,
    ranges: Ranges,
}

struct Statement {
    buffer: BufferId,
    /// The loops between, with their extents, and the lanes.
    inner: Vec<(Var, i64)>,
    /// Those of them whose iterations depend on sizes.
    sized: Vec<Var>,
    lane: Option<Var>,
    /// It only runs where all of these are at least zero.
    needed: Vec<Index>,
    /// Clamps and selections in its expressions, as conditions that hold in most iterations.
    others: Vec<Index>,
}

/// The loops between a loop and a statement.
#[derive(Clone, Default)]
struct Inner {
    loops: Vec<(Var, i64)>,
    sized: Vec<Var>,
}

impl Statements {
    pub(super) fn of(l: &Loop, ranges: &Ranges) -> Self {
        let (locals, ranges) = (l.locals.clone(), ranges.clone());
        let mut all = Self { var: l.var, locals, statements: Vec::new(), ranges };
        all.collect(&l.body, &mut Inner::default(), &mut Vec::new());
        all
    }

    fn collect(&mut self, nodes: &[Node], inner: &mut Inner, guards: &mut Vec<Index>) {
        for node in nodes {
            match node {
                Node::Loop(l) => {
                    self.locals.extend(&l.locals);
                    inner.loops.push((l.var, l.extent));
                    inner.sized.extend(l.is_sized.then_some(l.var));
                    self.collect(&l.body, inner, guards);
                    inner.loops.pop();
                    inner.sized.retain(|var| *var != l.var);
                }
                Node::Guard(guard) => {
                    let outside = guards.len();
                    guards.extend(guard.conditions.iter().cloned());
                    self.collect(&guard.body, inner, guards);
                    guards.truncate(outside);
                }
                Node::Store(store) => self.add(store, inner, guards),
                Node::Prefetch(_) | Node::Barrier => {}
            }
        }
    }

    fn add(&mut self, store: &Store, around: &Inner, guards: &[Index]) {
        let Inner { loops: mut inner, sized } = around.clone();
        inner.extend(store.lanes.map(|lanes| (lanes.var, lanes.count)));
        let domain = store.domain.iter().map(|bound| &bound.index);
        let needed = guards.iter().chain(domain).chain(&store.mask).cloned().collect();
        let mut others = Vec::new();
        store.value.walk(&mut |expr| {
            if let Expr::CompareIndex(op, a, b) = expr {
                others.extend(margin(*op, a, b));
            }
        });
        let reads = store.reads();
        let subscripts = reads.iter().flat_map(|(_, read)| &read.subscripts);
        let moves = |index: &Index| index.mentions(&|var| var == self.var);
        let subscripts = store.subscripts.iter().chain(subscripts);
        subscripts.for_each(|index| clamps(index, &moves, &mut others));
        let others = others.into_iter().filter_map(|margin| self.usual(margin)).collect();
        let lane = store.lanes.map(|lanes| lanes.var);
        let buffer = store.buffer;
        self.statements.push(Statement { buffer, inner, sized, lane, needed, others });
    }

    /// A condition or its opposite: the one that holds in the middle of a loop whose extent grows
    /// with the sizes. `None` if it does not depend on the loop.
    fn usual(&self, margin: Index) -> Option<Index> {
        let step = margin.coefficient_of(self.var).filter(|step| *step != 0)?;
        let grows = margin.mentions(&|var| self.ranges.is_number(var));
        if (step < 0) == grows { Some(margin) } else { Index::constant(-1).sub(&margin) }
    }

    /// Whether some condition depends on the loop and on run-time numbers.
    pub(super) fn are_sized(&self) -> bool {
        let is_sized = |index: &Index| {
            index.mentions(&|var| var == self.var)
                && index.mentions(&|var| self.ranges.is_number(var))
        };
        let conditions =
            self.statements.iter().flat_map(|one| one.needed.iter().chain(&one.others));
        conditions.into_iter().any(is_sized)
    }

    /// One past the last iteration in which a statement runs that others see; `None` on overflow.
    pub(super) fn end(&self, l: &Loop, ranges: &Ranges) -> Option<Index> {
        let whole = Index::constant(l.extent);
        let mut ends: Vec<Index> = Vec::new();
        let seen = |statement: &&Statement| !self.locals.contains(&statement.buffer);
        for statement in self.statements.iter().filter(seen) {
            let own = statement.needed.iter().filter_map(|index| {
                if index.coefficient_of(self.var).is_none_or(|step| step >= 0) {
                    return None;
                }
                self.solved(index, &statement.inner, true)
            });
            let own = outermost(own, false, ranges);
            if own.is_empty() || own.len() > MOST_LIMITS {
                return Some(whole);
            }
            ends.extend(own.into_iter().reduce(Index::min));
        }
        let ends = outermost(ends, true, ranges);
        if ends.len() > MOST_LIMITS {
            return Some(whole);
        }
        let end = ends.into_iter().reduce(Index::max).unwrap_or_else(|| whole.clone());
        let fits = ranges.interval(&end).hi <= i128::from(l.extent);
        ranges.simplify(&if fits { end } else { end.min(whole) })
    }

    /// Whether no statement has lanes on which a condition depends.
    pub(super) fn is_scalar(&self, condition: &Index) -> bool {
        let lanes = self.statements.iter().filter_map(|statement| statement.lane);
        !lanes.into_iter().any(|lane| condition.mentions(&|var| var == lane))
    }

    /// The limits that conditions put on the iterations.
    pub(super) fn limits(&self) -> Vec<Limit> {
        let mut found: Vec<Limit> = Vec::new();
        for statement in &self.statements {
            let needed = statement.needed.iter().map(|index| (index, true));
            for (index, is_needed) in needed.chain(statement.others.iter().map(|o| (o, false))) {
                let is_inner = |var: Var| statement.sized.contains(&var);
                let step = index.coefficient_of(self.var).unwrap_or(0);
                // Conditions on inner loops whose iterations depend on sizes are theirs.
                if step == 0 || index.has_value() || index.mentions(&is_inner) {
                    continue;
                }
                let Some(at) = self.solved(index, &statement.inner, false) else { continue };
                let has_lane =
                    statement.lane.is_some_and(|lane| index.mentions(&|var| var == lane));
                let is_shared = self.statements.iter().all(|one| one.needed.contains(index));
                let splits = has_lane || !is_needed || !is_shared;
                let condition = index.clone();
                if !found.iter().any(|limit| limit.condition == condition) {
                    found.push(Limit { condition, at, is_first: step > 0, splits });
                }
            }
        }
        found
    }

    /// The iteration from which on (or until before which) a condition holds, in the best or in the
    /// worst iteration of inner loops.
    fn solved(&self, condition: &Index, inner: &[(Var, i64)], best: bool) -> Option<Index> {
        let mut rest = extreme(condition, inner, best)?;
        let step = rest.coefficient_of(self.var)?;
        rest = rest.sub(&Index::axis(self.var).scale(step)?)?;
        match step {
            0 => None,
            // rest - |step| * v >= 0 for v < rest / |step| + 1.
            step if step < 0 => rest.div(step.checked_neg()?)?.add(&Index::constant(1)),
            // step * v + rest >= 0 for v >= -rest / step, rounded up.
            step => rest.scale(-1)?.add(&Index::constant(step - 1))?.div(step),
        }
    }
}

/// The index that is at least zero where a comparison holds; `None` for equalities.
pub(super) fn margin(op: CompareOp, a: &Index, b: &Index) -> Option<Index> {
    let one_less = |index: Index| index.add(&Index::constant(-1));
    match op {
        CompareOp::Le => b.sub(a),
        CompareOp::Lt => b.sub(a).and_then(one_less),
        CompareOp::Ge => a.sub(b),
        CompareOp::Gt => a.sub(b).and_then(one_less),
        CompareOp::Eq | CompareOp::Ne => None,
    }
}

/// An index without the clamps around it: the operands that move.
fn unclamped(index: &Index, moves: &impl Fn(&Index) -> bool) -> Index {
    let ([term], 0) = (index.terms(), index.constant_term()) else { return index.clone() };
    match &term.atom {
        Atom::Min(a, b) | Atom::Max(a, b) if term.coefficient == 1 => match (moves(a), moves(b)) {
            (true, false) => unclamped(a, moves),
            (false, true) => unclamped(b, moves),
            _ => index.clone(),
        },
        _ => index.clone(),
    }
}

/// The conditions that decide the minima and maxima of an index.
fn clamps(index: &Index, moves: &impl Fn(&Index) -> bool, found: &mut Vec<Index>) {
    for term in index.terms() {
        match &term.atom {
            Atom::Min(a, b) | Atom::Max(a, b) => {
                found.extend(unclamped(b, moves).sub(&unclamped(a, moves)));
                clamps(a, moves, found);
                clamps(b, moves, found);
            }
            Atom::Div(inner, _) | Atom::Mod(inner, _) | Atom::Product(inner, _) => {
                clamps(inner, moves, found);
            }
            Atom::Axis(_) | Atom::Value(_) => {}
        }
    }
}
