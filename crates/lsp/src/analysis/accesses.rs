//! The subscripts of a statement, in source order.

use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{Comprehension, Expr, ExprKind};

use super::names::Scope;

/// One subscript.
pub(super) struct Access<'a> {
    pub(super) tensor: &'a str,
    pub(super) dimension: usize,
    pub(super) subscript: Subscript<'a>,
    /// The whole read, or the tensor that is written.
    pub(super) span: Span,
    pub(super) guard: Guard,
}

/// Whether an access is conditional; it may then not limit ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// It is unconditional.
    None,
    /// Conditions on other variables: it limits the range fully, or not at all.
    Apart,
    /// Conditions on variables of the subscript, which may keep it in bounds.
    Shared,
}

/// A subscript, read or written.
pub(super) enum Subscript<'a> {
    /// An expression on the right.
    Read(&'a Expr),
    /// An index variable on the left.
    Written(&'a str),
}

/// All subscripts of a statement, the left side first.
pub(super) fn accesses<'a>(stmt: &'a Comprehension, scope: &Scope<'_>) -> Vec<Access<'a>> {
    let written = stmt.indices.iter().enumerate().map(|(dimension, index)| Access {
        tensor: &stmt.target.name,
        dimension,
        subscript: Subscript::Written(&index.name),
        span: stmt.target.span,
        guard: Guard::None,
    });
    let mut found = written.collect();
    reads(&stmt.rhs, &mut Vec::new(), scope, &mut found);
    if let Some(scan) = &stmt.scan {
        // The self-reads of a recurrence place no limits.
        let is_own = |access: &Access<'_>| {
            matches!(access.subscript, Subscript::Read(_)) && access.tensor == stmt.target.name
        };
        found.retain(|access| !is_own(access));
        reads(&scan.start, &mut Vec::new(), scope, &mut found);
    }
    for scatter in &stmt.scatter {
        reads(&scatter.at, &mut Vec::new(), scope, &mut found);
    }
    found
}

/// `conditions` holds the index variables of each enclosing condition.
fn reads<'a>(
    expr: &'a Expr,
    conditions: &mut Vec<Vec<&'a str>>,
    scope: &Scope<'_>,
    found: &mut Vec<Access<'a>>,
) {
    if let ExprKind::Apply(callee, args) = &expr.kind
        && scope.is_tensor(&callee.name)
    {
        found.extend(args.iter().enumerate().map(|(dimension, subscript)| Access {
            tensor: &callee.name,
            dimension,
            subscript: Subscript::Read(subscript),
            span: expr.span,
            guard: guard(subscript, conditions, scope),
        }));
    }
    let operands = expr.operands();
    match (&expr.kind, operands.split_first()) {
        (ExprKind::Select(..) | ExprKind::Logic(..), Some((condition, rest))) => {
            // The condition, and the left side of `&&`, are always evaluated.
            reads(condition, conditions, scope, found);
            let mut names = Vec::new();
            indices(condition, scope, &mut names);
            conditions.push(names);
            rest.iter().for_each(|operand| reads(operand, conditions, scope, found));
            conditions.pop();
        }
        _ => operands.into_iter().for_each(|operand| reads(operand, conditions, scope, found)),
    }
}

fn guard(subscript: &Expr, conditions: &[Vec<&str>], scope: &Scope<'_>) -> Guard {
    let mut own = Vec::new();
    indices(subscript, scope, &mut own);
    match conditions.iter().flatten().any(|name| own.contains(name)) {
        _ if conditions.is_empty() => Guard::None,
        true => Guard::Shared,
        false => Guard::Apart,
    }
}

impl Subscript<'_> {
    /// Whether it depends on data, and so does not limit ranges.
    pub(super) fn reads_data(&self, scope: &Scope<'_>) -> bool {
        match self {
            Subscript::Read(expr) => reads_data(expr, scope),
            Subscript::Written(_) => false,
        }
    }

    /// The index variables in it, once per occurrence.
    pub(super) fn indices<'s>(&'s self, scope: &Scope<'_>) -> Vec<&'s str> {
        let mut found = Vec::new();
        match self {
            Subscript::Read(expr) => indices(expr, scope, &mut found),
            Subscript::Written(name) => found.push(name),
        }
        found
    }
}

fn reads_data(expr: &Expr, scope: &Scope<'_>) -> bool {
    matches!(&expr.kind, ExprKind::Apply(callee, _) if scope.is_tensor(&callee.name))
        || expr.operands().into_iter().any(|operand| reads_data(operand, scope))
}

fn indices<'e>(expr: &'e Expr, scope: &Scope<'_>, found: &mut Vec<&'e str>) {
    if let ExprKind::Name(name) = &expr.kind
        && scope.is_index(name)
    {
        found.push(name);
    }
    expr.operands().into_iter().for_each(|operand| indices(operand, scope, found));
}
