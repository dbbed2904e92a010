//! Common-subexpression elimination across gradients.
//!
//! The gradient that flows back through `x(n,d) + bias(d)` is that of `x` unchanged, and that of
//! `bias` after a sum. The sum reads the former instead of recomputing it:
//!
//! ```text
//! d_x(n,d) = E(n,d)                  d_x(n,d) = E(n,d)
//! d_bias(d) +=! E(n,d)          ->   d_bias(d) +=! d_x(n,d)
//! ```
//!
//! An expensive function that both a value and its derivative call is evaluated once:
//!
//! ```text
//! h(n,d) = .. erf(x(n,d)) ..         erf_h(n,d) = erf(x(n,d))
//! d_x(n,d) = .. erf(x(n,d)) ..  ->   h(n,d) = .. erf_h(n,d) ..
//!                                    d_x(n,d) = .. erf_h(n,d) ..
//! ```

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::AssignOp;
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{Comprehension, Expr, ExprKind};
use tensorwright_lang::syntax::print_expr;

use crate::build;
use crate::scope::{Application, Scope};
use crate::tree;

/// Functions that cost more than reading a stored result.
const SLOW: [Builtin; 8] = [
    Builtin::Erf,
    Builtin::Exp,
    Builtin::Log,
    Builtin::Pow,
    Builtin::Sin,
    Builtin::Cos,
    Builtin::Tanh,
    Builtin::Sigmoid,
];

/// The most calls that are hoisted; each one scans all statements.
const MOST_CALLS: usize = 32;

/// Hoists expensive calls that occur in several statements into statements of their own.
pub(crate) fn hoist_calls(scope: &mut Scope, mut body: Vec<Comprehension>) -> Vec<Comprehension> {
    for _ in 0..MOST_CALLS {
        let Some((call, callers)) = repeated(scope, &body) else { return body };
        let Some(&first) = callers.first() else { return body };
        let indices = plain_indices(scope, &call).unwrap_or_default();
        let callee = print_expr(&call).split('(').next().unwrap_or_default().to_owned();
        let name = scope.fresh(&format!("{callee}_{}", body[first].target.name));
        let said = print_expr(&call);
        let read = build::apply(&name, indices.iter().map(|index| build::name(index)).collect());
        let mut with = |part: &Expr| (print_expr(part) == said).then(|| read.clone());
        for caller in callers {
            body[caller].rhs = tree::replace(&body[caller].rhs, &mut with);
        }
        let made = Comprehension {
            target: build::ident(&name),
            indices: indices.iter().map(|index| build::ident(index)).collect(),
            op: AssignOp::Assign,
            position: false,
            rhs: tree::unplaced(&call),
            scan: None,
            scatter: Vec::new(),
            constraints: Vec::new(),
            span: Span::default(),
        };
        body.insert(first, made);
    }
    body
}

/// The longest call that occurs in several statements, and those statements.
fn repeated(scope: &Scope, body: &[Comprehension]) -> Option<(Expr, Vec<usize>)> {
    let mut calls: BTreeMap<String, (Expr, BTreeSet<usize>)> = BTreeMap::new();
    for (at, stmt) in body.iter().enumerate() {
        if !stmt.constraints.is_empty() {
            continue;
        }
        walk_always(&stmt.rhs, &mut |part| {
            let is_call = matches!(scope.applied(part), Some(Application::Call(function, _)) if SLOW.contains(&function));
            if is_call && plain_indices(scope, part).is_some() {
                let found = calls.entry(print_expr(part));
                found.or_insert_with(|| (part.clone(), BTreeSet::new())).1.insert(at);
            }
        });
    }
    let is_the_same = |call: &Expr, callers: &BTreeSet<usize>| {
        let (Some(first), Some(last)) = (callers.first(), callers.last()) else { return false };
        let reads = tree::names(call);
        !body[*first..*last].iter().any(|stmt| reads.contains(stmt.target.name.as_str()))
    };
    let several = calls
        .into_values()
        .filter(|(call, callers)| callers.len() > 1 && is_the_same(call, callers));
    let (call, callers) = several.max_by_key(|(call, _)| print_expr(call).len())?;
    Some((call, callers.into_iter().collect()))
}

/// Calls `visit` with all subexpressions that are evaluated unconditionally.
fn walk_always<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Expr)) {
    visit(expr);
    match &expr.kind {
        ExprKind::Select(condition, ..) => walk_always(condition, visit),
        ExprKind::Logic(..) => {}
        _ => expr.operands().into_iter().for_each(|child| walk_always(child, visit)),
    }
}

/// The index variables of a single- or double-precision expression whose subscripts are all plain
/// index variables; `None` for any other expression.
fn plain_indices(scope: &Scope, expr: &Expr) -> Option<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    let mut is_plain = true;
    let mut values: Vec<&str> = Vec::new();
    walk_reads(scope, expr, &mut |part| match scope.applied(part) {
        Some(Application::Read(name, subscripts)) => {
            is_plain &= matches!(scope.dtype(name), DType::Float | DType::Double);
            for subscript in subscripts {
                match build::as_name(subscript).filter(|name| scope.is_variable(name)) {
                    Some(name) if !found.iter().any(|known| known == name) => {
                        found.push(name.to_owned())
                    }
                    Some(_) => {}
                    None => is_plain = false,
                }
            }
        }
        Some(Application::Cast(..)) => is_plain = false,
        _ => values.extend(build::as_name(part).filter(|name| scope.is_variable(name))),
    });
    (is_plain && values.is_empty() && !found.is_empty()).then_some(found)
}

/// Calls `visit` with all subexpressions outside subscripts.
fn walk_reads<'e>(scope: &Scope, expr: &'e Expr, visit: &mut impl FnMut(&'e Expr)) {
    visit(expr);
    if !matches!(scope.applied(expr), Some(Application::Read(..))) {
        expr.operands().into_iter().for_each(|child| walk_reads(scope, child, visit));
    }
}

/// Replaces a reduction's term by a read, where another statement assigns it.
pub(crate) fn reuse_assigned(scope: &Scope, statements: Vec<Comprehension>) -> Vec<Comprehension> {
    let sides: Vec<String> = statements.iter().map(|stmt| print_expr(&stmt.rhs)).collect();
    let sources: Vec<Option<usize>> =
        (0..statements.len()).map(|at| source(scope, &statements, &sides, at)).collect();
    let mut done: BTreeSet<usize> = BTreeSet::new();
    let mut kept = Vec::with_capacity(statements.len());
    for (at, from) in sources.iter().enumerate() {
        let Some(from) = *from else {
            if done.insert(at) {
                kept.push(statements[at].clone());
            }
            continue;
        };
        // Safe to emit here: both statements read the same tensors.
        if done.insert(from) {
            kept.push(statements[from].clone());
        }
        let indices = statements[from].indices.iter().map(|index| build::name(&index.name));
        let rhs = build::apply(&statements[from].target.name, indices.collect());
        kept.push(Comprehension { rhs, ..statements[at].clone() });
    }
    kept
}

/// The statement that assigns the term of a reduction elementwise, with the same type and ranges.
fn source(
    scope: &Scope,
    statements: &[Comprehension],
    sides: &[String],
    at: usize,
) -> Option<usize> {
    let own = &statements[at];
    if !is_worth_reading(&own.rhs) || !own.constraints.is_empty() || own.op == AssignOp::Assign {
        return None;
    }
    let is_only = |name: &str| statements.iter().filter(|it| it.target.name == name).count() == 1;
    let is_source = |other: &usize| {
        let stmt = &statements[*other];
        let dtype = scope.dtype(&stmt.target.name);
        sides[*other] == sides[at]
            && stmt.op == AssignOp::Assign
            && stmt.scan.is_none()
            && stmt.scatter.is_empty()
            && stmt.constraints.is_empty()
            && matches!(dtype, DType::Float | DType::Double)
            && dtype == scope.dtype(&own.target.name)
            && is_only(&stmt.target.name)
    };
    (0..statements.len()).find(is_source)
}

/// Whether an expression costs more to compute than to read.
fn is_worth_reading(expr: &Expr) -> bool {
    let mut operations = 0;
    tree::walk(expr, &mut |part| {
        operations += usize::from(matches!(part.kind, ExprKind::Arith(..) | ExprKind::Apply(..)));
    });
    // A product of two elements costs no more than a read.
    operations > 4
}
