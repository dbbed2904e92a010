//! Types untyped literals from context, and rejects other mixed types.

use super::scope::Scope;
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::hir::{Expr, Int, Symbol, Tensor, Ty};
use crate::ops::ArithOp;
use crate::source::Span;

/// A type in words.
pub(super) fn describe(ty: Ty) -> String {
    match ty {
        Ty::Typed(dtype) => format!("a value of type `{dtype}`"),
        Ty::AnyInt => "an integer".to_owned(),
        Ty::AnyFloat | Ty::Unknown => "a fraction".to_owned(),
    }
}

/// Converts the value to a type, if no typed value has to be converted.
pub(super) fn coerce(
    scope: &mut Scope<'_>,
    value: Expr,
    from: Ty,
    to: DType,
    span: Span,
) -> Option<Expr> {
    match from {
        Ty::Typed(dtype) if dtype == to => Some(value),
        Ty::Typed(dtype) => {
            let message = format!("a value of type `{to}` is needed here");
            scope.report(
                Diagnostic::new(Code::TypeMismatch, span, message)
                    .here(format!("this has type `{dtype}`"))
                    .help(format!("conversions are explicit: write `{to}(...)`")),
            );
            None
        }
        _ if to == DType::Bool => {
            scope.report(
                Diagnostic::new(Code::NotBoolean, span, "a `bool` is needed here")
                    .here(format!("this is {}", describe(from)))
                    .help("write `true`, `false` or a comparison"),
            );
            None
        }
        Ty::AnyInt => {
            if to.is_float() {
                no_integer_division(scope, &value, from, span)?;
            }
            settle(scope, value, to, span)
        }
        Ty::AnyFloat | Ty::Unknown if to.is_float() => settle(scope, value, to, span),
        Ty::AnyFloat | Ty::Unknown => {
            let message = format!("a fraction where a value of type `{to}` is needed");
            scope.report(
                Diagnostic::new(Code::FloatForInteger, span, message)
                    .here("this is a fraction")
                    .help(format!(
                        "write an integer; or compute with fractions and convert the result: \
                         `{to}(float(...) * 0.5)`"
                    )),
            );
            None
        }
    }
}

/// Rejects `1 / 2` where a fraction is expected.
pub(super) fn no_integer_division(
    scope: &mut Scope<'_>,
    value: &Expr,
    ty: Ty,
    span: Span,
) -> Option<()> {
    if ty != Ty::AnyInt || !has_division(value) {
        return Some(());
    }
    scope.report(
        Diagnostic::new(
            Code::IntegerDivisionAsFloat,
            span,
            "this division of integers rounds down before it is used as a fraction",
        )
        .here("an integer")
        .help(
            "make one side a fraction first (`1.0 / 3`, `float(i) / N`), or say that rounding is \
             meant (`float(i / N)`)",
        ),
    );
    None
}

fn has_division(value: &Expr) -> bool {
    match value {
        Expr::Int(int, None, _) => int.has_division(),
        Expr::Arith(ArithOp::Div | ArithOp::Rem, ..) => true,
        Expr::Arith(_, lhs, rhs) => has_division(lhs) || has_division(rhs),
        Expr::Unary(_, operand) => has_division(operand),
        Expr::Select(_, then, otherwise) => has_division(then) || has_division(otherwise),
        Expr::Call(_, args) => args.iter().any(has_division),
        _ => false,
    }
}

/// Assigns a type to all untyped leaves of a value.
pub(super) fn settle(
    scope: &mut Scope<'_>,
    mut value: Expr,
    to: DType,
    span: Span,
) -> Option<Expr> {
    settle_leaves(scope, &mut value, to, span)?;
    Some(value)
}

fn settle_leaves(scope: &mut Scope<'_>, value: &mut Expr, to: DType, span: Span) -> Option<()> {
    match value {
        Expr::Float(literal, dtype @ None) => {
            let rounded = crate::program::round_float(to, *literal);
            if literal.is_finite() && !rounded.is_finite() {
                out_of_range(scope, &literal.to_string(), to, span);
                return None;
            }
            *dtype = Some(to);
        }
        Expr::Int(int, dtype @ None, span) => {
            if let (Int::Literal(literal), Some((lo, hi))) = (&*int, to.integer_range())
                && !(lo..=hi).contains(&i128::from(*literal))
            {
                out_of_range(scope, &literal.to_string(), to, *span);
                return None;
            }
            *dtype = Some(to);
        }
        Expr::Unary(_, operand) => settle_leaves(scope, operand, to, span)?,
        Expr::Arith(_, lhs, rhs) => {
            settle_leaves(scope, lhs, to, span)?;
            settle_leaves(scope, rhs, to, span)?;
        }
        Expr::Select(_, then, otherwise) => {
            settle_leaves(scope, then, to, span)?;
            settle_leaves(scope, otherwise, to, span)?;
        }
        Expr::Call(_, args) => {
            for arg in args {
                settle_leaves(scope, arg, to, span)?;
            }
        }
        _ => {}
    }
    Some(())
}

fn out_of_range(scope: &mut Scope<'_>, literal: &str, to: DType, span: Span) {
    let range = match to.integer_range() {
        Some((lo, hi)) => format!("its values are {lo} to {hi}"),
        None => "its largest value is smaller".to_owned(),
    };
    scope.report(
        Diagnostic::new(
            Code::LiteralOutOfRange,
            span,
            format!("the type `{to}` cannot hold {literal}"),
        )
        .here(range)
        .help("use another number, or convert what it is combined with to a larger type first"),
    );
}

/// Converts a value to the type of the target.
pub(super) fn of_target(
    scope: &mut Scope<'_>,
    target: Symbol,
    (value, ty): (Expr, Ty),
    place: Span,
) -> Option<Expr> {
    let Tensor { dtype: target_dtype, name, span, .. } = scope.tensor(target).clone();
    match ty {
        Ty::Typed(dtype) if dtype != target_dtype => {
            let message = format!(
                "`{name}` has type `{target_dtype}`, and this statement gives it `{dtype}`"
            );
            scope.report(
                Diagnostic::new(Code::TargetTypeMismatch, place, message)
                    .here(format!("this has type `{dtype}`"))
                    .label(span, format!("`{target_dtype}` here"))
                    .help(format!("convert it: `{target_dtype}(...)`")),
            );
            None
        }
        _ => coerce(scope, value, ty, target_dtype, place),
    }
}
