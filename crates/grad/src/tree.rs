//! Walks over expressions and statements.

use std::collections::BTreeSet;

use tensorwright_lang::ops::{ArithOp, LogicOp};
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{Comprehension, Expr, ExprKind, Ident};

use crate::build;

/// Calls `visit` with an expression and everything in it, outermost first.
pub(crate) fn walk<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Expr)) {
    visit(expr);
    expr.operands().into_iter().for_each(|child| walk(child, visit));
}

/// Rebuilds the expression with mapped operands.
pub(crate) fn map_children(expr: &Expr, map: &mut impl FnMut(&Expr) -> Expr) -> Expr {
    let mut boxed = |expr: &Expr| Box::new(map(expr));
    let kind = match &expr.kind {
        ExprKind::Apply(callee, args) => {
            ExprKind::Apply(callee.clone(), args.iter().map(|arg| *boxed(arg)).collect())
        }
        ExprKind::Unary(op, a) => ExprKind::Unary(*op, boxed(a)),
        ExprKind::Arith(op, a, b) => ExprKind::Arith(*op, boxed(a), boxed(b)),
        ExprKind::Compare(op, a, b) => ExprKind::Compare(*op, boxed(a), boxed(b)),
        ExprKind::Logic(op, a, b) => ExprKind::Logic(*op, boxed(a), boxed(b)),
        ExprKind::Select(c, a, b) => ExprKind::Select(boxed(c), boxed(a), boxed(b)),
        leaf => leaf.clone(),
    };
    Expr { kind, span: expr.span }
}

/// Replaces the subexpressions for which `with` returns one, outermost first.
pub(crate) fn replace(expr: &Expr, with: &mut impl FnMut(&Expr) -> Option<Expr>) -> Expr {
    match with(expr) {
        Some(other) => other,
        None => map_children(expr, &mut |child| replace(child, with)),
    }
}

/// Renames tensors and variables.
pub(crate) fn rename(expr: &Expr, new: &impl Fn(&str) -> Option<String>) -> Expr {
    let renamed = map_children(expr, &mut |child| rename(child, new));
    let Expr { kind, span } = renamed;
    let kind = match kind {
        ExprKind::Name(name) => ExprKind::Name(new(&name).unwrap_or(name)),
        ExprKind::DimOf(mut tensor, dim) => {
            tensor.name = new(&tensor.name).unwrap_or(tensor.name);
            ExprKind::DimOf(tensor, dim)
        }
        ExprKind::Apply(mut callee, args) => {
            callee.name = new(&callee.name).unwrap_or(callee.name);
            ExprKind::Apply(callee, args)
        }
        other => other,
    };
    Expr { kind, span }
}

/// The expression with empty spans.
pub(crate) fn unplaced(expr: &Expr) -> Expr {
    let bare = map_children(expr, &mut unplaced);
    Expr { span: Span::default(), ..bare }
}

/// Every name in an expression: of variables, sizes, tensors and functions.
pub(crate) fn names(expr: &Expr) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    walk(expr, &mut |expr| {
        found.extend(match &expr.kind {
            ExprKind::Name(name) => Some(name.as_str()),
            ExprKind::Apply(callee, _) => Some(callee.name.as_str()),
            ExprKind::DimOf(tensor, _) => Some(tensor.name.as_str()),
            _ => None,
        });
    });
    found
}

/// Whether an expression contains a bare name.
pub(crate) fn mentions(expr: &Expr, name: &str) -> bool {
    expr.first_mention(name).is_some()
}

/// Whether an integer expression rounds, so that it needs an explicit conversion to float.
pub(crate) fn rounds(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |part| {
        found |= matches!(part.kind, ExprKind::Arith(ArithOp::Div | ArithOp::Rem, ..));
    });
    found
}

/// The operands of a `&&` chain.
pub(crate) fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    match &condition.kind {
        ExprKind::Logic(LogicOp::And, a, b) => [conjuncts(a), conjuncts(b)].concat(),
        _ => vec![condition],
    }
}

/// All names that occur in statements.
pub(crate) fn mentioned<'s>(
    statements: impl IntoIterator<Item = &'s Comprehension>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for stmt in statements {
        let ends = stmt.constraints.iter().flat_map(|given| [&given.lo, &given.hi]);
        for expr in ends.chain(sides(stmt)) {
            found.extend(names(expr).into_iter().map(str::to_owned));
        }
    }
    found
}

/// The expressions that a statement computes: its right side, its start, its positions.
pub(crate) fn sides(stmt: &Comprehension) -> impl Iterator<Item = &Expr> {
    let start = stmt.scan.iter().map(|scan| &scan.start);
    let positions = stmt.scatter.iter().map(|scatter| &scatter.at);
    std::iter::once(&stmt.rhs).chain(start).chain(positions)
}

/// The subscripts of the element that a term is added to.
pub(crate) fn element(stmt: &Comprehension) -> Vec<Expr> {
    let subscript = |index: &Ident| {
        let scatter = stmt.scatter.iter().find(|scatter| scatter.var.name == index.name);
        scatter.map_or_else(|| build::name(&index.name), |scatter| unplaced(&scatter.at))
    };
    stmt.indices.iter().map(subscript).collect()
}

/// Replaces subexpressions of a statement for which `with` returns one.
pub(crate) fn replaced(
    stmt: &Comprehension,
    with: &mut impl FnMut(&Expr) -> Option<Expr>,
) -> Comprehension {
    let mut stmt = stmt.clone();
    stmt.rhs = replace(&stmt.rhs, with);
    if let Some(scan) = &mut stmt.scan {
        scan.start = replace(&scan.start, with);
    }
    for scatter in &mut stmt.scatter {
        scatter.at = replace(&scatter.at, with);
    }
    for given in &mut stmt.constraints {
        given.lo = replace(&given.lo, with);
        given.hi = replace(&given.hi, with);
    }
    stmt
}
