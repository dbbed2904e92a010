//! The conditions of the statements of a loop, as limits on its variable.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::ops::{CompareOp, LogicOp, ReductionOp};
use tensorwright_lang::program::{Atom, Expr, Index, Scalar};

use super::super::masks::is_neutral;
use super::super::simplify::margin;
use super::outermost;
use crate::nest::{BufferId, Loop, Node, Ranges, Store, Var, extreme};

/// The most different conditions of a loop that are considered.
const MOST_CONDITIONS: usize = 128;

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
    /// The loops between the loop and its statements, and their lanes, with the greatest extent
    /// among all copies of a loop: a limit is for all statements.
    inner: BTreeMap<Var, i64>,
    /// Those of them whose iterations depend on sizes.
    sized: BTreeSet<Var>,
    ranges: Ranges,
}

struct Statement {
    buffer: BufferId,
    lane: Option<Var>,
    combine: Option<ReductionOp>,
    value: Value,
    /// It only runs where all of these are at least zero.
    needed: Vec<Index>,
    /// It changes nothing where one of these is below zero.
    acts: Vec<Index>,
    /// Clamps and selections in its expressions, as conditions that hold in most iterations.
    others: Vec<Index>,
}

/// The value of a statement, as far as it matters.
enum Value {
    Const(Scalar),
    /// Elements of a buffer.
    Read(BufferId),
    Other,
}

impl Statement {
    /// The conditions without which it changes nothing.
    fn limiting(&self) -> impl Iterator<Item = &Index> {
        self.needed.iter().chain(&self.acts)
    }
}

impl Statements {
    pub(super) fn of(l: &Loop, ranges: &Ranges) -> Self {
        let mut all = Self {
            var: l.var,
            locals: l.locals.clone(),
            statements: Vec::new(),
            inner: BTreeMap::new(),
            sized: BTreeSet::new(),
            ranges: ranges.clone(),
        };
        all.collect(&l.body, &mut Vec::new());
        all
    }

    fn collect(&mut self, nodes: &[Node], guards: &mut Vec<Index>) {
        for node in nodes {
            match node {
                Node::Loop(l) => {
                    self.locals.extend(&l.locals);
                    self.repeat(l.var, l.extent);
                    self.sized.extend(l.is_sized.then_some(l.var));
                    self.collect(&l.body, guards);
                }
                Node::Guard(guard) => {
                    let outside = guards.len();
                    guards.extend(guard.conditions.iter().cloned());
                    self.collect(&guard.body, guards);
                    guards.truncate(outside);
                }
                Node::Store(store) => self.add(store, guards),
                Node::Prefetch(_) | Node::Barrier => {}
            }
        }
    }

    /// Adds an inner loop.
    fn repeat(&mut self, var: Var, extent: i64) {
        let greatest = self.inner.entry(var).or_insert(extent);
        *greatest = extent.max(*greatest);
    }

    fn add(&mut self, store: &Store, guards: &[Index]) {
        if let Some(lanes) = store.lanes {
            self.repeat(lanes.var, lanes.count);
        }
        let domain = store.domain.iter().map(|bound| &bound.index);
        let needed = guards.iter().chain(domain).chain(&store.mask).cloned().collect();
        let mut others = Vec::new();
        store.value.walk(&mut |expr| {
            if let Expr::CompareIndex(op, a, b) = expr {
                others.extend(holding(*op, a, b));
            }
        });
        let reads = store.reads();
        let subscripts = reads.iter().flat_map(|(_, read)| &read.subscripts);
        let moves = |index: &Index| index.mentions(&|var| var == self.var);
        let subscripts = store.subscripts.iter().chain(subscripts);
        subscripts.for_each(|index| clamps(index, &moves, &mut others));
        let others = others.into_iter().filter_map(|margin| self.usual(margin)).collect();
        let lane = store.lanes.map(|lanes| lanes.var);
        let value = match &store.value {
            Expr::Const(value) => Value::Const(*value),
            Expr::Read(read) if store.init.is_none() && !store.is_scatter() => {
                Value::Read(read.tensor)
            }
            _ => Value::Other,
        };
        let (buffer, combine) = (store.buffer, store.combine);
        let acts = store.combine.map_or_else(Vec::new, |op| acting(op, &store.value));
        let statement = Statement { buffer, lane, combine, value, needed, acts, others };
        self.statements.push(statement);
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
    pub(super) fn end(&self, l: &Loop) -> Option<Index> {
        let whole = Index::constant(l.extent);
        let mut ends: Vec<Index> = Vec::new();
        let seen = |statement: &&Statement| !self.locals.contains(&statement.buffer);
        let seen = self.statements.iter().filter(seen);
        let needed = seen.flat_map(|statement| match self.terms(statement) {
            None => vec![(statement, statement)],
            Some(terms) => terms.into_iter().map(|term| (statement, term)).collect(),
        });
        for (statement, term) in needed {
            let needed = statement.limiting().chain(term.limiting());
            let own = needed.filter_map(|index| {
                let is_end = index.coefficient_of(self.var).is_some_and(|step| step < 0);
                if is_end { self.solved(index, true) } else { None }
            });
            match outermost(own, false, &self.ranges) {
                Some(own) if !own.is_empty() => ends.extend(own.into_iter().reduce(Index::min)),
                _ => return Some(whole),
            }
        }
        let Some(ends) = outermost(ends, true, &self.ranges) else { return Some(whole) };
        let end = ends.into_iter().reduce(Index::max).unwrap_or_else(|| whole.clone());
        let fits = self.ranges.interval(&end).hi <= i128::from(l.extent);
        self.ranges.simplify(&if fits { end } else { end.min(whole) })
    }

    /// The statements that add to a tile, if this one adds the tile to something else and does
    /// nothing where none of them runs.
    fn terms(&self, statement: &Statement) -> Option<Vec<&Statement>> {
        let (Some(op), Value::Read(tile)) = (statement.combine, &statement.value) else {
            return None;
        };
        let writes = self.statements.iter().filter(|other| other.buffer == *tile);
        let (terms, starts): (Vec<_>, Vec<_>) = writes.partition(|one| one.combine == Some(op));
        let is_neutral = |start: &Statement| match start.value {
            Value::Const(value) => start.combine.is_none() && is_neutral(op, value),
            _ => false,
        };
        let is_tile = self.locals.contains(tile) && !terms.is_empty();
        (is_tile && starts.into_iter().all(is_neutral)).then_some(terms)
    }

    /// Whether no statement has lanes on which a condition depends.
    pub(super) fn is_scalar(&self, condition: &Index) -> bool {
        let lanes = self.statements.iter().filter_map(|statement| statement.lane);
        !lanes.into_iter().any(|lane| condition.mentions(&|var| var == lane))
    }

    /// The limits that conditions put on the iterations; none if there are too many.
    pub(super) fn limits(&self) -> Vec<Limit> {
        // By condition: how many statements need it, and whether loops are split for another reason.
        let mut found: Vec<&Index> = Vec::new();
        let mut uses: BTreeMap<&Index, (usize, bool)> = BTreeMap::new();
        for Statement { lane, needed, others, .. } in &self.statements {
            let own: BTreeSet<&Index> = needed.iter().collect();
            let own = own.into_iter().map(|index| (index, true));
            for (index, is_needed) in own.chain(others.iter().map(|index| (index, false))) {
                let (needing, splits) = uses.entry(index).or_insert_with(|| {
                    found.push(index);
                    (0, false)
                });
                *needing += usize::from(is_needed);
                *splits |= !is_needed || lane.is_some_and(|lane| mentions(index, lane));
            }
            if found.len() > MOST_CONDITIONS {
                return Vec::new();
            }
        }
        let limit = |condition: &Index| {
            let step = condition.coefficient_of(self.var).filter(|step| *step != 0)?;
            // Conditions on inner loops whose iterations depend on sizes are theirs.
            if condition.has_value() || condition.mentions(&|var| self.sized.contains(&var)) {
                return None;
            }
            let (needing, splits) = *uses.get(condition)?;
            Some(Limit {
                condition: condition.clone(),
                at: self.solved(condition, false)?,
                is_first: step > 0,
                splits: splits || needing < self.statements.len(),
            })
        };
        found.into_iter().filter_map(limit).collect()
    }

    /// The iteration from which on (or until before which) a condition holds, in the best or in the
    /// worst iteration of inner loops.
    fn solved(&self, condition: &Index, best: bool) -> Option<Index> {
        let is_asked = |(var, _): &(&Var, &i64)| mentions(condition, **var);
        let inner = self.inner.iter().filter(is_asked).map(|(var, extent)| (*var, *extent));
        let mut rest = extreme(condition, &inner.collect::<Vec<_>>(), best)?;
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

/// The conditions without which a value is one that an operator does nothing with.
fn acting(op: ReductionOp, value: &Expr) -> Vec<Index> {
    let Expr::Select(condition, _, otherwise) = value else { return Vec::new() };
    let is_idle = matches!(&**otherwise, Expr::Const(value) if is_neutral(op, *value));
    let mut found = Vec::new();
    if is_idle {
        conjuncts(condition, &mut found);
    }
    found
}

/// The comparisons of indices that all have to hold for a condition to hold.
fn conjuncts(condition: &Expr, found: &mut Vec<Index>) {
    match condition {
        // Data may change in the loop, and may depend on inner ones.
        Expr::CompareIndex(op, a, b) => {
            found.extend(holding(*op, a, b).filter(|index| !index.has_value()));
        }
        Expr::Logic(LogicOp::And, a, b) => {
            conjuncts(a, found);
            conjuncts(b, found);
        }
        _ => {}
    }
}

fn mentions(index: &Index, asked: Var) -> bool {
    index.mentions(&|var| var == asked)
}

/// The index that is at least zero where a comparison holds; `None` for equalities.
pub(super) fn holding(op: CompareOp, a: &Index, b: &Index) -> Option<Index> {
    match margin(op, a, b)? {
        (margin, true) => Some(margin),
        (margin, false) => Index::constant(-1).sub(&margin),
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
