//! The derivatives of scalar functions, one line each.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::ops::{CompareOp, LogicOp};
use tensorwright_lang::syntax::ast::{Expr, ExprKind};

use crate::build::{
    add, all, apply, compare, div, expr, int, mul, negate, not, number, select, sub,
};
use crate::product::Product;

/// How a function propagates a gradient to one of its arguments.
pub(crate) enum Partial {
    /// The gradient times this factor.
    Times(Product),
    /// The gradient where this condition holds, and zero elsewhere.
    Where(Expr),
    /// Zero: the function is piecewise constant in the argument.
    Nothing,
    /// The derivative is not expressible in the language.
    Missing,
}

/// Whether a function is piecewise constant.
pub(crate) fn is_step(builtin: Builtin) -> bool {
    use Builtin::{Ceil, Floor, IsFinite, IsInf, IsNan, Rint, Round, Trunc};
    matches!(builtin, Floor | Ceil | Round | Rint | Trunc | IsNan | IsInf | IsFinite)
}

/// The derivative of a function with respect to one argument, where it has the value `y`. `others`
/// says whether another argument also has a gradient.
pub(crate) fn partial(
    builtin: Builtin,
    args: &[Expr],
    by: usize,
    y: &Expr,
    others: bool,
) -> Partial {
    let one = Product::one;
    let times = |factor: Expr| Partial::Times(one().times(&factor));
    let over = |divisor: Expr| Partial::Times(one().over(&divisor));
    let minus_over = |divisor: Expr| Partial::Times(one().scaled(-1.0).over(&divisor));
    let squared = |x: &Expr| mul(x.clone(), x.clone());
    let call = |function: Builtin, x: Expr| apply(function.name(), vec![x]);
    let Some(x) = args.first().cloned() else { return Partial::Missing };
    let second = args.get(1).cloned().unwrap_or_else(|| int(0));
    match builtin {
        Builtin::Abs => times(sign(&x)),
        Builtin::Min => Partial::Where(not_lost(CompareOp::Gt, args, by, others)),
        Builtin::Max => Partial::Where(not_lost(CompareOp::Lt, args, by, others)),
        Builtin::Fmin => Partial::Where(wins(CompareOp::Lt, args, by, others)),
        Builtin::Fmax => Partial::Where(wins(CompareOp::Gt, args, by, others)),
        Builtin::Clamp => clamp(args, by),
        Builtin::Sqrt => Partial::Times(one().scaled(0.5).over(y)),
        Builtin::Rsqrt => Partial::Times(one().scaled(-0.5).times(&mul(squared(y), y.clone()))),
        Builtin::Cbrt => Partial::Times(one().over(&int(3)).over(&squared(y))),
        Builtin::Exp => times(y.clone()),
        Builtin::Exp2 => Partial::Times(one().scaled(LN_2).times(y)),
        Builtin::Expm1 => times(call(Builtin::Exp, x)),
        Builtin::Log => over(x),
        Builtin::Log2 => Partial::Times(one().over(&x).scaled(1.0 / LN_2)),
        Builtin::Log10 => Partial::Times(one().over(&x).scaled(1.0 / LN_10)),
        Builtin::Log1p => over(add(int(1), x)),
        Builtin::Sin => times(call(Builtin::Cos, x)),
        Builtin::Cos => times(negate(call(Builtin::Sin, x))),
        Builtin::Tan => times(add(int(1), squared(y))),
        Builtin::Asin => over(call(Builtin::Sqrt, sub(int(1), squared(&x)))),
        Builtin::Acos => minus_over(call(Builtin::Sqrt, sub(int(1), squared(&x)))),
        Builtin::Atan => over(add(int(1), squared(&x))),
        Builtin::Sinh => times(call(Builtin::Cosh, x)),
        Builtin::Cosh => times(call(Builtin::Sinh, x)),
        Builtin::Tanh => times(sub(int(1), squared(y))),
        Builtin::Asinh => over(call(Builtin::Sqrt, add(squared(&x), int(1)))),
        Builtin::Acosh => over(call(Builtin::Sqrt, sub(squared(&x), int(1)))),
        Builtin::Atanh => over(sub(int(1), squared(&x))),
        Builtin::Erf => bell(&x, FRAC_2_SQRT_PI),
        Builtin::Erfc => bell(&x, -FRAC_2_SQRT_PI),
        Builtin::Sigmoid => times(mul(y.clone(), sub(int(1), y.clone()))),
        Builtin::Pow => power(x, second, by, y),
        Builtin::Atan2 => {
            let square = add(squared(&x), squared(&second));
            let (other, number) = if by == 0 { (second, 1.0) } else { (x, -1.0) };
            Partial::Times(one().scaled(number).times(&other).over(&square))
        }
        Builtin::Fmod if by == 0 => times(int(1)),
        Builtin::Fmod => {
            let turns = call(Builtin::Trunc, div(x, second));
            Partial::Times(one().scaled(-1.0).times(&turns))
        }
        Builtin::Hypot => Partial::Times(one().times(&args[by]).over(y)),
        Builtin::Copysign if by == 0 => {
            let sign = |x: Expr| apply(Builtin::Copysign.name(), vec![int(1), x]);
            times(mul(sign(x), sign(second)))
        }
        Builtin::Fma => match by {
            0 => times(second),
            1 => times(x),
            _ => times(int(1)),
        },
        builtin if is_step(builtin) || builtin == Builtin::Copysign => Partial::Nothing,
        _ => Partial::Missing,
    }
}

/// 1, -1, 0 or NaN.
fn sign(x: &Expr) -> Expr {
    let against = |op| compare(op, x.clone(), int(0));
    let neither = mul(x.clone(), int(0));
    select(against(CompareOp::Gt), int(1), select(against(CompareOp::Lt), int(-1), neither))
}

/// The condition under which one argument of `min` or `max` is the result: the other does not beat
/// it, so that NaN passes its gradient on. If both have a gradient, ties go to the first; if only
/// one has, it must win strictly, so that `max(x, 0)` has no gradient at 0.
fn not_lost(loses: CompareOp, args: &[Expr], by: usize, others: bool) -> Expr {
    let or_equal = if loses == CompareOp::Lt { CompareOp::Le } else { CompareOp::Ge };
    let op = if others && by == 0 { loses } else { or_equal };
    not(compare(op, args[by].clone(), other_of_two(args, by)))
}

/// The condition under which one argument of `fmin` or `fmax` is the result: these ignore NaN. Ties
/// are as for `min` and `max`.
fn wins(strictly: CompareOp, args: &[Expr], by: usize, others: bool) -> Expr {
    if others && by == 1 {
        return not(wins(strictly, args, 0, others));
    }
    let or_equal = if strictly == CompareOp::Lt { CompareOp::Le } else { CompareOp::Ge };
    let other = other_of_two(args, by);
    let is_better =
        compare(if others { or_equal } else { strictly }, args[by].clone(), other.clone());
    if matches!(other.kind, ExprKind::Int(_) | ExprKind::Float(_)) {
        return is_better;
    }
    let is_alone = apply(Builtin::IsNan.name(), vec![other]);
    expr(ExprKind::Logic(LogicOp::Or, Box::new(is_better), Box::new(is_alone)))
}

fn other_of_two(args: &[Expr], by: usize) -> Expr {
    args.get(1 - by.min(1)).cloned().unwrap_or_else(|| int(0))
}

/// `clamp(x, lo, hi)` is `min(max(x, lo), hi)`.
fn clamp(args: &[Expr], by: usize) -> Partial {
    let [x, lo, hi] = args else { return Partial::Missing };
    let test = |op, a: &Expr, b: &Expr| compare(op, a.clone(), b.clone());
    let condition = match by {
        0 => all([test(CompareOp::Gt, x, lo), test(CompareOp::Lt, x, hi)]),
        1 => all([test(CompareOp::Le, x, lo), test(CompareOp::Lt, lo, hi)]),
        _ => {
            let raised = apply(Builtin::Max.name(), vec![x.clone(), lo.clone()]);
            Some(test(CompareOp::Ge, &raised, hi))
        }
    };
    condition.map_or(Partial::Missing, Partial::Where)
}

/// `scale * exp(-x * x)`
fn bell(x: &Expr, scale: f64) -> Partial {
    let square = mul(negate(x.clone()), x.clone());
    let curve = apply(Builtin::Exp.name(), vec![square]);
    Partial::Times(Product::one().scaled(scale).times(&curve))
}

/// `pow(x, p)`
fn power(x: Expr, p: Expr, by: usize, y: &Expr) -> Partial {
    let name = Builtin::Pow.name();
    if by == 1 {
        // The logarithm of a non-positive base would turn a zero gradient into NaN.
        let log = apply(Builtin::Log.name(), vec![x.clone()]);
        let log = select(compare(CompareOp::Gt, x, int(0)), log, int(0));
        return Partial::Times(Product::one().times(y).times(&log));
    }
    let lower = match p.kind {
        ExprKind::Int(1) => return Partial::Times(Product::one()),
        ExprKind::Int(2) => x,
        ExprKind::Int(power) if power > 0 => apply(name, vec![x, int(power as i64 - 1)]),
        ExprKind::Float(power) => apply(name, vec![x, number(power - 1.0)]),
        _ => apply(name, vec![x, sub(p.clone(), int(1))]),
    };
    Partial::Times(Product::one().times(&p).times(&lower))
}
