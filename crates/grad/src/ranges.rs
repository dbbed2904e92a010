//! Symbolic range and shape inference.
//!
//! The rounds are those of the compiler (docs/language.md, "The rounds") on symbols: `O(i) +=! K(x)
//! * I(i + x)` gives `x in 0:N` and then `i in 0:M - N + 1`. A range without a symbolic form stays
//! open: the extent of a tensor is then `T.0`, and a gradient that needs the range of a reduced
//! variable asks for a `where`.
//!
//! An integer scalar that multiplies an index variable is assumed to be positive, as a stride is.

use std::collections::BTreeMap;

use tensorwright_lang::ops::{ArithOp, CompareOp, LogicOp, UnaryOp};
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{Comprehension, Expr, ExprKind};
use tensorwright_lang::syntax::print_expr;

use crate::bounds::{Range, Ranges};
use crate::build;
use crate::derivative::is_constant;
use crate::flatten::Flat;
use crate::poly::{IndexSum, Linear, Poly};
use crate::scope::{Application, Scope, ValueKind};
use crate::tree;

/// The longest upper bound, in characters; longer ones grow with every statement that builds on
/// them.
const MAX_END: usize = 400;

/// An index variable of a statement.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// Whether it is on the left side.
    pub(crate) spatial: bool,
    /// `None` if it has no symbolic form.
    pub(crate) range: Option<Range>,
    /// Its first occurrence.
    pub(crate) span: Span,
}

/// A statement and its index variables, those of the left side first.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) stmt: Comprehension,
    pub(crate) vars: Vec<Variable>,
}

/// Infers the ranges of all statements and the shapes of all tensors of the scope.
pub(crate) fn infer(flat: &mut Flat) -> Vec<Step> {
    let steps: Vec<Step> = flat
        .statements
        .iter()
        .map(|stmt| Step { stmt: stmt.clone(), vars: variables(&flat.scope, stmt) })
        .collect();
    let mut inference = Inference { scope: &mut flat.scope, steps };
    inference.run();
    inference.steps
}

/// The variables of a statement, with the ranges from its `where`.
fn variables(scope: &Scope, stmt: &Comprehension) -> Vec<Variable> {
    let mut vars: Vec<Variable> = Vec::new();
    let mut see = |name: &str, spatial, span| {
        if !vars.iter().any(|var| var.name == name) {
            let given = stmt.constraints.iter().find(|given| given.var.name == name);
            let range = given.map(|given| Range { lo: given.lo.clone(), hi: given.hi.clone() });
            vars.push(Variable { name: name.to_owned(), spatial, range, span });
        }
    };
    stmt.indices.iter().for_each(|index| see(&index.name, true, index.span));
    stmt.constraints.iter().for_each(|given| see(&given.var.name, false, given.var.span));
    for side in tree::sides(stmt) {
        tree::walk(side, &mut |expr| {
            if let Some(name) = build::as_name(expr).filter(|name| scope.is_variable(name)) {
                see(name, false, expr.span);
            }
        });
    }
    vars
}

/// A subscript, the extent of its dimension, and its guards.
pub(crate) struct Access<'e> {
    pub(crate) subscript: Expr,
    pub(crate) extent: Expr,
    /// Integer comparisons, and whether each holds.
    pub(crate) guards: Vec<(&'e Expr, bool)>,
}

/// The limit that a subscript places on a variable.
enum Limit {
    /// None: it is always in bounds.
    None,
    /// The upper bound of the variable.
    At(Poly),
    /// A limit without a symbolic form.
    Unclear,
}

struct Inference<'a> {
    scope: &'a mut Scope,
    steps: Vec<Step>,
}

impl Inference<'_> {
    fn run(&mut self) {
        let mut pending: Vec<usize> = (0..self.steps.len()).collect();
        while !pending.is_empty() {
            let before = (pending.len(), self.open_extents());
            pending.retain(|number| !self.attempt(*number));
            if (pending.len(), self.open_extents()) == before {
                let first = pending.remove(0);
                self.leave_open(first);
            }
        }
    }

    fn open_extents(&self) -> usize {
        let shapes = self.scope.tensors.values().flat_map(|tensor| &tensor.shape);
        shapes.filter(|extent| extent.is_none()).count()
    }

    /// Infers the ranges of a statement; returns whether it succeeded.
    fn attempt(&mut self, number: usize) -> bool {
        let step = &self.steps[number];
        let target = step.stmt.target.name.clone();
        let waits = tree::mentioned([&step.stmt]).into_iter().any(|name| {
            name != target
                && self.scope.tensor(&name).is_some_and(|t| t.shape.iter().any(Option::is_none))
        });
        if waits {
            return false;
        }
        let (vars, is_clear) = settled(self.scope, step);
        if !is_clear {
            // It determines an extent, so later statements must not override it.
            self.leave_open(number);
            return true;
        }
        let done = vars.iter().all(|var| var.range.is_some());
        self.note_extents(&target, &vars);
        if done {
            self.steps[number].vars = vars;
        }
        done
    }

    /// The first statement that determines an extent of a tensor sets it.
    fn note_extents(&mut self, target: &str, vars: &[Variable]) {
        let Some(tensor) = self.scope.tensors.get_mut(target) else { return };
        for (extent, var) in tensor.shape.iter_mut().zip(vars.iter().filter(|var| var.spatial)) {
            if extent.is_none() {
                *extent = var.range.as_ref().map(|range| range.hi.clone());
            }
        }
    }

    /// Infers the ranges of a statement that have a symbolic form, and leaves the others open.
    fn leave_open(&mut self, number: usize) {
        let target = self.steps[number].stmt.target.name.clone();
        let (mut vars, _) = settled(self.scope, &self.steps[number]);
        if let Some(tensor) = self.scope.tensors.get_mut(&target) {
            let spatial = vars.iter_mut().filter(|var| var.spatial);
            for (dim, (extent, var)) in tensor.shape.iter_mut().zip(spatial).enumerate() {
                if extent.is_none() {
                    let open = ExprKind::DimOf(build::ident(&target), dim as u32);
                    let open = extent.insert(build::expr(open));
                    var.range.get_or_insert(Range::up_to(open.clone()));
                }
            }
        }
        self.steps[number].vars = vars;
    }
}

/// The variables of a statement with all inferable ranges, and whether the limits of the others are
/// known.
fn settled(scope: &Scope, step: &Step) -> (Vec<Variable>, bool) {
    let mut vars = step.vars.clone();
    for range in vars.iter_mut().filter_map(|var| var.range.as_mut()) {
        *range = Range { lo: scope.in_sizes(&range.lo), hi: scope.in_sizes(&range.hi) };
    }
    let mut given_up: Vec<String> = Vec::new();
    let accesses = accesses(scope, &step.stmt);
    loop {
        let mut found = one_round(scope, step, &vars, &given_up, &accesses, true);
        if found.is_empty() {
            found = one_round(scope, step, &vars, &given_up, &accesses, false);
        }
        if found.is_empty() {
            return (vars, given_up.is_empty());
        }
        for (name, hi) in found {
            match hi {
                Some(hi) => {
                    for var in vars.iter_mut().filter(|var| var.name == name) {
                        var.range = Some(Range::up_to(hi.clone()));
                    }
                }
                None => given_up.push(name),
            }
        }
    }
}

/// The limits on one variable in one round.
#[derive(Default)]
struct Limits {
    /// From subscripts whose guards do not mention the variable.
    certain: Vec<Poly>,
    /// From subscripts that a guard may keep in bounds.
    guarded: Vec<Poly>,
    unclear: bool,
}

fn one_round(
    scope: &Scope,
    step: &Step,
    vars: &[Variable],
    given_up: &[String],
    accesses: &[Access<'_>],
    wait_for_guards: bool,
) -> BTreeMap<String, Option<Expr>> {
    let ranges: Ranges =
        vars.iter().filter_map(|var| Some((var.name.clone(), var.range.clone()?))).collect();
    let open: Vec<&str> = vars
        .iter()
        .map(|var| var.name.as_str())
        .filter(|name| !ranges.contains_key(*name) && !given_up.iter().any(|g| g == name))
        .collect();
    let mut found: BTreeMap<String, Limits> = BTreeMap::new();
    for access in accesses {
        let inside = tree::names(&access.subscript);
        let mut mentioned = open.iter().filter(|name| inside.contains(**name));
        let (Some(var), None) = (mentioned.next(), mentioned.next()) else { continue };
        if scope.reads_data(&access.subscript) {
            continue;
        }
        let guard_waits =
            |guard: &Expr| open.iter().any(|name| name != var && tree::mentions(guard, name));
        if wait_for_guards && access.guards.iter().any(|(guard, _)| guard_waits(guard)) {
            continue;
        }
        let limits = match limit(scope, access, var, &ranges) {
            Limit::None => continue,
            limit => (found.entry((*var).to_owned()).or_default(), limit),
        };
        let guarded = access.guards.iter().any(|(guard, _)| tree::mentions(guard, var));
        let harmless =
            || access.guards.iter().any(|(guard, _)| vanishes(scope, &step.stmt.rhs, guard));
        match limits {
            (limits, Limit::At(hi)) if !guarded => limits.certain.push(hi),
            (limits, Limit::At(hi)) if harmless() => limits.guarded.push(hi),
            (limits, _) => limits.unclear = true,
        }
    }
    found.into_iter().map(|(name, limits)| (name, limits.settle())).collect()
}

impl Limits {
    /// The least limit, if the set of effective limits does not depend on sizes: a limit that a
    /// guard may remove must not be the only one of its kind.
    fn settle(self) -> Option<Expr> {
        let mut distinct: Vec<Poly> = Vec::new();
        let all = if self.certain.is_empty() { &self.guarded } else { &self.certain };
        let is_least = |limit: &Poly, other: &Poly| {
            let room = other.minus(limit).and_then(|room| room.as_constant());
            room.is_some_and(|room| room >= 0)
        };
        for limit in all {
            if !distinct.iter().any(|other| is_least(other, limit)) {
                distinct.retain(|other| !is_least(limit, other));
                distinct.push(limit.clone());
            }
        }
        let agrees = |limit: &Poly| distinct.iter().any(|other| is_least(other, limit));
        let clear = !self.unclear
            && self.guarded.iter().all(agrees)
            && (!self.certain.is_empty() || distinct.len() == 1);
        let ends = distinct.iter().map(Poly::to_expr);
        let end = ends.reduce(|a, b| build::apply("min", vec![a, b]));
        end.filter(|end| clear && print_expr(end).len() <= MAX_END)
    }
}

/// Whether the derivative is zero where a condition does not hold: `c ? a * b : 0`.
fn vanishes(scope: &Scope, value: &Expr, guard: &Expr) -> bool {
    match &value.kind {
        ExprKind::Select(c, _, otherwise) => build::same(c, guard) && is_constant(scope, otherwise),
        ExprKind::Arith(ArithOp::Mul, a, b) => {
            vanishes(scope, a, guard) || vanishes(scope, b, guard)
        }
        ExprKind::Arith(ArithOp::Div, a, _) | ExprKind::Unary(UnaryOp::Neg, a) => {
            vanishes(scope, a, guard)
        }
        _ => false,
    }
}

/// The upper bound of a variable that keeps a subscript in bounds.
fn limit(scope: &Scope, access: &Access<'_>, var: &str, ranges: &Ranges) -> Limit {
    let subscript = Poly::of(&access.subscript);
    let extent = Poly::of(&access.extent);
    if let Some(Linear { factor, rest }) = subscript.linear_in_var(var) {
        if is_guarded(access, &subscript, &extent) {
            return Limit::None;
        }
        let ends = [false, true].map(|greatest| extreme(scope, &rest, ranges, greatest));
        let [Some(least), Some(greatest)] = ends else { return Limit::Unclear };
        let is_negative = factor.terms().iter().all(|term| term.coefficient < 0);
        // factor * var + greatest < extent, or least - factor * var >= 0
        let room = match is_negative {
            true => Some(least),
            false => extent.minus(&greatest).and_then(|room| room.minus(&Poly::constant(1))),
        };
        let factor = if is_negative { factor.scale(-1) } else { Some(factor) };
        let steps = factor.zip(room).and_then(|(factor, room)| quotient(&room, &factor));
        return match steps.and_then(|steps| steps.plus(&Poly::constant(1))) {
            Some(end) => Limit::At(end),
            None => Limit::Unclear,
        };
    }
    match &access.subscript.kind {
        ExprKind::Arith(ArithOp::Div, a, divisor) if build::as_name(a) == Some(var) => {
            extent.times(&Poly::of(divisor)).map_or(Limit::Unclear, Limit::At)
        }
        // The checker proved it in bounds, so it places no limit.
        ExprKind::Arith(ArithOp::Rem, ..) => Limit::None,
        ExprKind::Apply(callee, _) if ["clamp", "min", "max"].contains(&callee.name.as_str()) => {
            Limit::None
        }
        _ => Limit::Unclear,
    }
}

/// Whether a guard states literally that the subscript is below the extent.
fn is_guarded(access: &Access<'_>, subscript: &Poly, extent: &Poly) -> bool {
    let held = access.guards.iter().filter(|(_, holds)| *holds);
    held.flat_map(|(guard, _)| tree::conjuncts(guard)).any(|part| match &part.kind {
        ExprKind::Compare(CompareOp::Lt, lhs, rhs) => {
            let room = Poly::of(rhs).minus(&Poly::of(lhs));
            room.zip(extent.minus(subscript)).is_some_and(|(room, needed)| room == needed)
        }
        _ => false,
    })
}

/// `room / factor`, rounded down.
fn quotient(room: &Poly, factor: &Poly) -> Option<Poly> {
    if let (Some(room), Some(factor)) = (room.as_constant(), factor.as_constant()) {
        return Some(Poly::constant(room.checked_div_euclid(factor)?));
    }
    if factor.as_constant() == Some(1) {
        return Some(room.clone());
    }
    Some(Poly::atom(build::div(room.to_expr(), factor.to_expr())))
}

/// The maximum or minimum over the ranges of all variables.
fn extreme(scope: &Scope, value: &Poly, ranges: &Ranges, greatest: bool) -> Option<Poly> {
    let mut value = value.clone();
    for (name, range) in ranges {
        if !value.mentions(name) {
            continue;
        }
        let Linear { factor, rest } = value.linear_in_var(name)?;
        let rises = factor.terms().iter().all(|term| term.coefficient > 0);
        let falls = factor.terms().iter().all(|term| term.coefficient < 0);
        let end = match (rises, falls) {
            (true, _) if greatest => Poly::of(&range.hi).minus(&Poly::constant(1))?,
            (_, true) if !greatest => Poly::of(&range.hi).minus(&Poly::constant(1))?,
            (true, _) | (_, true) => Poly::of(&range.lo),
            _ => return None,
        };
        value = rest.plus(&factor.times(&end)?)?;
    }
    let end = value.to_expr();
    let mut open = false;
    tree::walk(&end, &mut |part| {
        open |= build::as_name(part).is_some_and(|name| scope.is_variable(name));
    });
    (!open).then_some(value)
}

impl Scope {
    /// Replaces `T.0` by its symbolic form, where it has one.
    fn in_sizes(&self, expr: &Expr) -> Expr {
        tree::replace(expr, &mut |part| match &part.kind {
            ExprKind::DimOf(tensor, dim) => {
                self.tensor(&tensor.name)?.shape.get(*dim as usize)?.clone()
            }
            _ => None,
        })
    }

    /// Whether an index depends on tensor elements.
    pub(crate) fn reads_data(&self, index: &Expr) -> bool {
        let mut found = false;
        tree::walk(index, &mut |expr| {
            found |= matches!(self.applied(expr), Some(Application::Read(_, [_, ..])));
        });
        found
    }

    /// Whether a condition compares integers, and so may guard subscripts.
    pub(crate) fn compares_integers(&self, condition: &Expr) -> bool {
        let mut found = false;
        tree::walk(condition, &mut |expr| {
            found |=
                matches!(&expr.kind, ExprKind::Compare(_, a, _) if self.kind(a) == ValueKind::Int);
        });
        found
    }
}

/// All subscripts of an expression.
pub(crate) fn accesses_of<'e>(scope: &Scope, value: &'e Expr) -> Vec<Access<'e>> {
    let mut found = Vec::new();
    collect(scope, value, &mut Vec::new(), &mut found);
    found
}

/// All subscripts of a statement, including the left side if its shape is known.
fn accesses<'e>(scope: &Scope, stmt: &'e Comprehension) -> Vec<Access<'e>> {
    let mut found = accesses_of(scope, &stmt.rhs);
    if let Some(scan) = &stmt.scan {
        // The self-reads of a recurrence place no limits.
        let mut others = scope.clone();
        others.tensors.remove(&stmt.target.name);
        found = accesses_of(&others, &stmt.rhs);
        found.extend(accesses_of(scope, &scan.start));
    }
    found.extend(stmt.scatter.iter().flat_map(|scatter| accesses_of(scope, &scatter.at)));
    let shape = scope.tensor(&stmt.target.name).map(|tensor| tensor.shape.as_slice());
    for (index, extent) in stmt.indices.iter().zip(shape.unwrap_or_default()) {
        if let Some(extent) = extent {
            let (subscript, extent) = (build::name(&index.name), extent.clone());
            found.push(Access { subscript, extent, guards: Vec::new() });
        }
    }
    found
}

fn collect<'e>(
    scope: &Scope,
    expr: &'e Expr,
    guards: &mut Vec<(&'e Expr, bool)>,
    found: &mut Vec<Access<'e>>,
) {
    if let Some(Application::Read(name, subscripts)) = scope.applied(expr) {
        let shape = scope.tensor(name).map(|tensor| tensor.shape.as_slice()).unwrap_or_default();
        for (subscript, extent) in subscripts.iter().zip(shape) {
            if let Some(extent) = extent {
                let (subscript, extent) = (subscript.clone(), extent.clone());
                found.push(Access { subscript, extent, guards: guards.clone() });
            }
        }
    }
    match &expr.kind {
        ExprKind::Select(condition, then, otherwise) => {
            collect(scope, condition, guards, found);
            for (branch, holds) in [(then, true), (otherwise, false)] {
                guarded(scope, (condition, holds), branch, guards, found);
            }
        }
        ExprKind::Logic(op, lhs, rhs) => {
            collect(scope, lhs, guards, found);
            guarded(scope, (lhs, *op == LogicOp::And), rhs, guards, found);
        }
        _ => {
            expr.operands().into_iter().for_each(|c| collect(scope, c, guards, found));
        }
    }
}

/// Collects the accesses of a branch. A condition that does not compare integers guards nothing.
fn guarded<'e>(
    scope: &Scope,
    guard: (&'e Expr, bool),
    branch: &'e Expr,
    guards: &mut Vec<(&'e Expr, bool)>,
    found: &mut Vec<Access<'e>>,
) {
    let counts = scope.compares_integers(guard.0);
    if counts {
        guards.push(guard);
    }
    collect(scope, branch, guards, found);
    if counts {
        guards.pop();
    }
}
