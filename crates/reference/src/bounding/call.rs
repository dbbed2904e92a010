//! Error bounds of function calls.

use tensorwright_lang::builtin::{Builtin, Signature};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::CompareOp;
use tensorwright_lang::program::Expr;

use super::build::{
    abs, abs_difference, add, both, call as made, compare, infinity, is_infinite, known, mul,
    number, scaled, select, size, sub, unless,
};
use super::enclosure::{Enclosure, as_double, product_error, rounded};
use crate::math::{LOOSE_ULPS, ULPS};
use crate::tolerance::Rounding;

/// The largest error expression that may be duplicated, in nodes.
const SHORT: usize = 30;

/// The value and the error of a call.
pub(super) fn call(builtin: Builtin, args: Vec<Enclosure>) -> (Expr, Option<Expr>) {
    let values = args.iter().map(|arg| arg.value.clone()).collect();
    let value = made(builtin, values);
    let is_exact = args.iter().all(|arg| arg.error.is_none());
    let Some(dtype) = args.first().map(|arg| arg.dtype) else { return (value, Some(infinity())) };
    if !dtype.is_float() && (builtin == Builtin::Abs || builtin.signature() == Signature::Integer) {
        return (value, (!is_exact).then(infinity));
    }
    if builtin.signature() == Signature::FloatTest {
        let error = args.into_iter().find_map(|arg| arg.error);
        let finite = |error| compare(CompareOp::Lt, error, infinity());
        let error = error.map(|error| select(finite(error), number(0.0), number(1.0)));
        return (value, error);
    }
    let error = match builtin {
        Builtin::Abs => args.into_iter().find_map(|arg| arg.error),
        Builtin::Min | Builtin::Max | Builtin::Fmin | Builtin::Fmax | Builtin::Clamp => {
            extreme(builtin, dtype, args)
        }
        Builtin::Floor | Builtin::Ceil | Builtin::Round | Builtin::Rint | Builtin::Trunc => {
            args.into_iter().next().and_then(|x| ends(builtin, &value, x))
        }
        Builtin::Fmod | Builtin::Copysign => (!is_exact).then(infinity),
        _ => Some(computed(builtin, dtype, &value, args, is_exact)),
    };
    (value, error)
}

/// The larger error; where one operand is short and certainly wins, its own.
fn extreme(builtin: Builtin, dtype: DType, args: Vec<Enclosure>) -> Option<Expr> {
    let values: Vec<Expr> = args.iter().map(|a| as_double(a.value.clone(), dtype)).collect();
    let errors: Vec<Option<Expr>> = args.into_iter().map(|arg| arg.error).collect();
    let sizes = errors.iter().flatten().map(size).sum::<usize>();
    let errors = errors.into_iter().map(|error| error.map(known));
    if let ([a, b], true) = (values.as_slice(), sizes <= SHORT) {
        let zero = |error: Option<Expr>| error.unwrap_or_else(|| number(0.0));
        let mut errors = errors;
        let (error_a, error_b) = (errors.next().flatten(), errors.next().flatten());
        let apart = both(error_a.clone(), error_b.clone())?;
        let lead = if matches!(builtin, Builtin::Max | Builtin::Fmax) {
            sub(a.clone(), b.clone())
        } else {
            sub(b.clone(), a.clone())
        };
        let (error_a, error_b) = (zero(error_a), zero(error_b));
        let larger = made(Builtin::Max, vec![error_a.clone(), error_b.clone()]);
        let behind = compare(CompareOp::Gt, sub(number(0.0), lead.clone()), apart.clone());
        let other = select(behind, error_b, larger);
        return Some(select(compare(CompareOp::Gt, lead, apart), error_a, other));
    }
    errors.flatten().reduce(|a, b| made(Builtin::Max, vec![a, b]))
}

/// The error of a function with an implementation error.
fn computed(
    builtin: Builtin,
    dtype: DType,
    value: &Expr,
    args: Vec<Enclosure>,
    is_exact: bool,
) -> Expr {
    let rounding = Rounding::operation(dtype);
    let ulps = match builtin {
        Builtin::Sqrt | Builtin::Fma => 0.5,
        Builtin::Pow | Builtin::Lgamma | Builtin::Tgamma => LOOSE_ULPS,
        _ => ULPS,
    };
    // The movement is the difference of two values, each with such an error. This matters in
    // `double`.
    let values = if dtype == DType::Double && !is_exact { 3.0 } else { 1.0 };
    let relative = values * 2.0 * ulps * rounding.unit;
    let mut moved = if is_exact { None } else { Some(movement(builtin, value, args)) };
    if builtin == Builtin::Lgamma {
        moved = both(moved, Some(number(relative)));
    }
    let error = rounded(value, moved, relative, rounding);
    if is_exact {
        // A pole is part of the definition; overflow in `double` is overflow in all types.
        return select(is_infinite(abs(value)), number(0.0), error);
    }
    error
}

/// The largest change of a function over the intervals of its arguments.
fn movement(builtin: Builtin, value: &Expr, args: Vec<Enclosure>) -> Expr {
    use Builtin::{
        Acos, Acosh, Asin, Asinh, Atan, Atanh, Cbrt, Cos, Cosh, Erf, Erfc, Exp, Exp2, Expm1, Fma,
        Hypot, Log, Log1p, Log2, Log10, Pow, Rsqrt, Sigmoid, Sin, Sinh, Sqrt, Tanh,
    };
    let mut args = args.into_iter();
    let Some(x) = args.next() else { return infinity() };
    let (y, z) = (args.next(), args.next());
    if let (Fma, Some(y), Some(z)) = (builtin, &y, z) {
        return both(product_error(x, y.clone()), z.error).unwrap_or_else(|| number(0.0));
    }
    match (builtin, y) {
        // `hypot` is 1-Lipschitz.
        (Hypot, Some(y)) => return both(x.error, y.error).unwrap_or_else(|| number(0.0)),
        (Pow, Some(y)) => return power(value, x, y),
        _ => {}
    }
    let Some(error) = x.error.clone() else { return infinity() };
    match builtin {
        // The slope is at most one, or little more.
        Sin | Cos | Tanh | Atan | Asinh => error,
        Erf => scaled(1.2, error),
        // Convex and increasing: largest at the upper end.
        Exp | Exp2 | Expm1 => sub(made(builtin, vec![add(x.value, error)]), value.clone()),
        Cosh => sub(made(Cosh, vec![add(abs(&x.value), error)]), value.clone()),
        // Concave and increasing, or convex and decreasing: at the lower end. Below the domain it
        // is NaN.
        Sqrt | Rsqrt | Log | Log2 | Log10 | Log1p => {
            abs_difference(made(builtin, vec![sub(x.value, error)]), value.clone())
        }
        // It grows no faster than `exp`.
        Sigmoid => mul(value.clone(), made(Expm1, vec![error])),
        // Monotone.
        Asin | Acos | Sinh | Acosh | Atanh | Cbrt | Erfc => {
            ends(builtin, value, x).unwrap_or_else(infinity)
        }
        _ => infinity(),
    }
}

/// The largest change of a monotone function, at most the sum over both ends; infinite if one of
/// them is outside the domain.
fn ends(builtin: Builtin, value: &Expr, x: Enclosure) -> Option<Expr> {
    let error = x.error?;
    let at = |end: Expr| abs_difference(made(builtin, vec![end]), value.clone());
    Some(add(at(sub(x.value.clone(), error.clone())), at(add(x.value, error))))
}

/// Powers are monotone in both arguments, on either side of zero: the largest change is at a
/// corner.
fn power(value: &Expr, x: Enclosure, y: Enclosure) -> Expr {
    let error = x.error.unwrap_or_else(|| number(0.0));
    let ends = |value: &Expr, error: &Expr| {
        [sub(value.clone(), error.clone()), add(value.clone(), error.clone())]
    };
    // Powers of negative numbers are NaN between the integers.
    let base = if y.error.is_some() { x.value.clone() } else { abs(&x.value) };
    let exponents = match &y.error {
        Some(error) => ends(&y.value, error).to_vec(),
        None => vec![y.value],
    };
    let mut moved = unless(compare(CompareOp::Gt, base, error.clone()));
    for x in ends(&x.value, &error) {
        for y in &exponents {
            let corner = made(Builtin::Pow, vec![x.clone(), y.clone()]);
            moved = add(moved, abs_difference(corner, value.clone()));
        }
    }
    moved
}
