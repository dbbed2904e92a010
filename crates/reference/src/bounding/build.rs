//! Shorthand constructors for `double` expressions.

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp, LogicOp};
use tensorwright_lang::program::{AxisId, Expr, Index, Location, Read, Scalar, TensorId};

pub(super) fn number(value: f64) -> Expr {
    Expr::Const(Scalar::float(DType::Double, value))
}

pub(super) fn infinity() -> Expr {
    number(f64::INFINITY)
}

fn arith(op: ArithOp, a: Expr, b: Expr) -> Expr {
    Expr::Arith(op, Box::new(a), Box::new(b))
}

pub(super) fn add(a: Expr, b: Expr) -> Expr {
    arith(ArithOp::Add, a, b)
}

pub(super) fn sub(a: Expr, b: Expr) -> Expr {
    arith(ArithOp::Sub, a, b)
}

pub(super) fn mul(a: Expr, b: Expr) -> Expr {
    arith(ArithOp::Mul, a, b)
}

pub(super) fn div(a: Expr, b: Expr) -> Expr {
    arith(ArithOp::Div, a, b)
}

pub(super) fn scaled(factor: f64, a: Expr) -> Expr {
    if factor == 1.0 { a } else { mul(number(factor), a) }
}

pub(super) fn call(builtin: Builtin, args: Vec<Expr>) -> Expr {
    Expr::Call(builtin, args)
}

/// The magnitude. That of a product is the product of magnitudes, so that it can be fused with a
/// sum.
pub(super) fn abs(a: &Expr) -> Expr {
    match a {
        Expr::Arith(ArithOp::Mul, a, b) => mul(abs(a), abs(b)),
        Expr::Const(scalar) => number(scalar.as_f64().abs()),
        a => call(Builtin::Abs, vec![a.clone()]),
    }
}

pub(super) fn abs_difference(a: Expr, b: Expr) -> Expr {
    call(Builtin::Abs, vec![sub(a, b)])
}

pub(super) fn compare(op: CompareOp, a: Expr, b: Expr) -> Expr {
    Expr::Compare(op, Box::new(a), Box::new(b))
}

pub(super) fn either(a: Expr, b: Expr) -> Expr {
    Expr::Logic(LogicOp::Or, Box::new(a), Box::new(b))
}

pub(super) fn select(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    Expr::Select(Box::new(condition), Box::new(then), Box::new(otherwise))
}

/// Zero where a condition holds, and infinity elsewhere: a term to add to an error.
pub(super) fn unless(condition: Expr) -> Expr {
    select(condition, number(0.0), infinity())
}

/// Whether a magnitude is infinite.
pub(super) fn is_infinite(magnitude: Expr) -> Expr {
    compare(CompareOp::Eq, magnitude, infinity())
}

/// Replaces a NaN error by infinity: `fmin` of a number and NaN is the number.
pub(super) fn known(error: Expr) -> Expr {
    call(Builtin::Fmin, vec![error, infinity()])
}

/// The sum of two errors; `None` is zero.
pub(super) fn both(a: Option<Expr>, b: Option<Expr>) -> Option<Expr> {
    match (a, b) {
        (Some(a), Some(b)) => Some(add(a, b)),
        (a, b) => a.or(b),
    }
}

/// A read at the values of the first axes.
pub(super) fn here(tensor: TensorId, rank: usize) -> Expr {
    let subscripts = (0..rank as u32).map(|axis| Index::axis(AxisId(axis))).collect();
    Expr::Read(Read { tensor, subscripts, checked: Vec::new(), place: Location::default() })
}

/// The number of nodes of an expression.
pub(super) fn size(expr: &Expr) -> usize {
    let mut nodes = 0;
    expr.walk(&mut |_| nodes += 1);
    nodes
}

/// The largest error expression, in nodes and in levels; beyond it the error is infinite.
const MOST_NODES: usize = 4000;
const MOST_LEVELS: usize = 200;

/// Whether an expression is small enough to compile.
pub(super) fn is_small(expr: &Expr) -> bool {
    size(expr) <= MOST_NODES && is_lower(expr, MOST_LEVELS)
}

fn is_lower(expr: &Expr, levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return false };
    match expr {
        Expr::Unary(_, a) | Expr::Cast(_, a) => is_lower(a, levels),
        Expr::Arith(_, a, b) | Expr::Compare(_, a, b) | Expr::Logic(_, a, b) => {
            is_lower(a, levels) && is_lower(b, levels)
        }
        Expr::Select(c, a, b) => is_lower(c, levels) && is_lower(a, levels) && is_lower(b, levels),
        Expr::Call(_, args) => args.iter().all(|arg| is_lower(arg, levels)),
        _ => true,
    }
}
