//! Builds expressions, with light algebraic simplification.
//!
//! Spans are empty: generated expressions have no place in the user's text.

use tensorwright_lang::Module;
use tensorwright_lang::ops::{ArithOp, CompareOp, LogicOp, UnaryOp};
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{Expr, ExprKind, Ident};
use tensorwright_lang::syntax::print_expr;

/// An expression with an empty span.
pub(crate) fn expr(kind: ExprKind) -> Expr {
    Expr { kind, span: Span::default() }
}

/// A name with an empty span.
pub(crate) fn ident(name: &str) -> Ident {
    Ident { name: name.to_owned(), span: Span::default() }
}

/// An index variable, a size, or a scalar.
pub(crate) fn name(name: &str) -> Expr {
    expr(ExprKind::Name(name.to_owned()))
}

/// An integer.
pub(crate) fn int(value: i64) -> Expr {
    let magnitude = expr(ExprKind::Int(value.unsigned_abs()));
    if value < 0 { negate(magnitude) } else { magnitude }
}

/// A number, written as an integer where it is one.
pub(crate) fn number(value: f64) -> Expr {
    let magnitude = value.abs();
    let exact = magnitude.fract() == 0.0 && magnitude < 1e15;
    let kind = if exact { ExprKind::Int(magnitude as u64) } else { ExprKind::Float(magnitude) };
    if value < 0.0 { negate(expr(kind)) } else { expr(kind) }
}

/// `callee(args)`: a read of a tensor, a function or a conversion. A scalar is read by its name.
pub(crate) fn apply(callee: &str, args: Vec<Expr>) -> Expr {
    if args.is_empty() {
        return name(callee);
    }
    expr(ExprKind::Apply(ident(callee), args))
}

/// `lhs op rhs`, not simplified.
pub(crate) fn arith(op: ArithOp, lhs: Expr, rhs: Expr) -> Expr {
    expr(ExprKind::Arith(op, Box::new(lhs), Box::new(rhs)))
}

/// A sum; a negative right side becomes a subtraction.
pub(crate) fn add(lhs: Expr, rhs: Expr) -> Expr {
    if is_int(&lhs, 0) {
        return rhs;
    }
    match without_minus(&rhs) {
        _ if is_int(&rhs, 0) => lhs,
        Some(magnitude) => arith(ArithOp::Sub, lhs, magnitude),
        None => arith(ArithOp::Add, lhs, rhs),
    }
}

/// A difference.
pub(crate) fn sub(lhs: Expr, rhs: Expr) -> Expr {
    if is_int(&rhs, 0) { lhs } else { arith(ArithOp::Sub, lhs, rhs) }
}

/// A product.
pub(crate) fn mul(lhs: Expr, rhs: Expr) -> Expr {
    if is_int(&lhs, 1) {
        return rhs;
    }
    if is_int(&rhs, 1) { lhs } else { arith(ArithOp::Mul, lhs, rhs) }
}

/// A quotient.
pub(crate) fn div(lhs: Expr, rhs: Expr) -> Expr {
    if is_int(&rhs, 1) { lhs } else { arith(ArithOp::Div, lhs, rhs) }
}

/// `-operand`
pub(crate) fn negate(operand: Expr) -> Expr {
    expr(ExprKind::Unary(UnaryOp::Neg, Box::new(operand)))
}

/// `lhs op rhs`, a comparison.
pub(crate) fn compare(op: CompareOp, lhs: Expr, rhs: Expr) -> Expr {
    expr(ExprKind::Compare(op, Box::new(lhs), Box::new(rhs)))
}

/// `!condition`
pub(crate) fn not(condition: Expr) -> Expr {
    match condition.kind {
        ExprKind::Unary(UnaryOp::Not, inner) => *inner,
        kind => expr(ExprKind::Unary(UnaryOp::Not, Box::new(expr(kind)))),
    }
}

/// All conditions joined by `&&`; `None` if there are none.
pub(crate) fn all(conditions: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    conditions
        .into_iter()
        .reduce(|a, b| expr(ExprKind::Logic(LogicOp::And, Box::new(a), Box::new(b))))
}

/// `condition ? then : otherwise`
pub(crate) fn select(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    match condition.kind {
        ExprKind::Unary(UnaryOp::Not, opposite) => select(*opposite, otherwise, then),
        kind => expr(ExprKind::Select(Box::new(expr(kind)), Box::new(then), Box::new(otherwise))),
    }
}

/// The value where all conditions hold, and zero elsewhere.
pub(crate) fn guarded(conditions: impl IntoIterator<Item = Expr>, value: Expr) -> Expr {
    match all(conditions) {
        Some(condition) => select(condition, value, int(0)),
        None => value,
    }
}

/// Whether an expression is the literal zero, of any type.
pub(crate) fn is_zero(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Float(value) if value == 0.0) || is_int(expr, 0)
}

/// Whether an expression is this literal.
pub(crate) fn is_int(expr: &Expr, value: u64) -> bool {
    matches!(expr.kind, ExprKind::Int(found) if found == value)
}

/// The name, if the expression is a bare name.
pub(crate) fn as_name(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name),
        _ => None,
    }
}

/// Whether two expressions are equal up to spans.
pub(crate) fn same(a: &Expr, b: &Expr) -> bool {
    print_expr(a) == print_expr(b)
}

/// The operand of a leading minus.
fn without_minus(rhs: &Expr) -> Option<Expr> {
    match &rhs.kind {
        ExprKind::Unary(UnaryOp::Neg, inner) => Some((**inner).clone()),
        ExprKind::Arith(op @ (ArithOp::Mul | ArithOp::Div), first, second) => {
            Some(arith(*op, without_minus(first)?, (**second).clone()))
        }
        _ => None,
    }
}

/// A definition name that is unused in the module, so that both texts can be concatenated.
pub(crate) fn fresh_def_name(module: &Module, like: &str) -> String {
    let numbered = (2_u32..).map(|number| format!("{like}_{number}"));
    let mut names = std::iter::once(like.to_owned()).chain(numbered);
    let is_free = |name: &String| !module.defs().any(|def| def.name() == name);
    names.find(is_free).unwrap_or_default()
}
