//! The builtin functions on floating-point numbers, with error bounds.
//!
//! Values come from the `libm` crate and not from the system's library, so that the reference is
//! bit-identical on every machine.
//!
//! The bound of `f(a)` with `a` known up to `ea` is the largest change of `f` over `[a - ea, a +
//! ea]`, plus the error of the implementation. For monotone functions it is at one of the two ends;
//! the others have rules of their own below. Another implementation may be off by [`ULPS`] units in
//! the last place, which the vector libraries in use guarantee, or by [`LOOSE_ULPS`] for the few
//! functions that they compute less accurately. A function whose argument interval leaves its
//! domain is unknown.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;

use crate::tolerance::{Approx, Rounding};

/// The accuracy required of most functions, in units in the last place.
pub const ULPS: f64 = 4.0;

/// The accuracy required of `pow`, `lgamma` and `tgamma` (OpenCL allows 16 ulp for `pow`).
pub const LOOSE_ULPS: f64 = 16.0;

/// The value of a unary builtin; NaN for other arities.
pub(crate) fn unary(builtin: Builtin, x: f64) -> f64 {
    match builtin {
        Builtin::Abs => x.abs(),
        Builtin::Sqrt => x.sqrt(),
        Builtin::Rsqrt => 1.0 / x.sqrt(),
        Builtin::Cbrt => libm::cbrt(x),
        Builtin::Exp => libm::exp(x),
        Builtin::Exp2 => libm::exp2(x),
        Builtin::Expm1 => libm::expm1(x),
        Builtin::Log => libm::log(x),
        Builtin::Log2 => libm::log2(x),
        Builtin::Log10 => libm::log10(x),
        Builtin::Log1p => libm::log1p(x),
        Builtin::Sin => libm::sin(x),
        Builtin::Cos => libm::cos(x),
        Builtin::Tan => libm::tan(x),
        Builtin::Asin => libm::asin(x),
        Builtin::Acos => libm::acos(x),
        Builtin::Atan => libm::atan(x),
        Builtin::Sinh => libm::sinh(x),
        Builtin::Cosh => libm::cosh(x),
        Builtin::Tanh => libm::tanh(x),
        Builtin::Asinh => libm::asinh(x),
        Builtin::Acosh => acosh(x),
        Builtin::Atanh => libm::atanh(x),
        Builtin::Erf => libm::erf(x),
        Builtin::Erfc => libm::erfc(x),
        Builtin::Lgamma => libm::lgamma(x),
        Builtin::Tgamma => libm::tgamma(x),
        Builtin::Sigmoid => sigmoid(x),
        Builtin::Floor => x.floor(),
        Builtin::Ceil => x.ceil(),
        Builtin::Round => x.round(),
        Builtin::Rint => x.round_ties_even(),
        Builtin::Trunc => x.trunc(),
        _ => f64::NAN,
    }
}

/// The inverse of `cosh`. Far below the domain `libm` returns a number instead of NaN, by
/// cancellation.
fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// `1 / (1 + exp(-x))`, without overflow.
fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + libm::exp(-x))
    } else {
        let e = libm::exp(x);
        e / (1.0 + e)
    }
}

/// A bitwise function of integers with `bits` bits. The result may have more: it wraps around.
pub(crate) fn bits(builtin: Builtin, x: i128, y: i128, bits: i128) -> i128 {
    let outside = !(0..bits).contains(&y);
    match builtin {
        Builtin::BitAnd => x & y,
        Builtin::BitOr => x | y,
        Builtin::BitXor => x ^ y,
        Builtin::BitNot => !x,
        Builtin::ShiftLeft if outside => 0,
        Builtin::ShiftLeft => x << y,
        _ if outside => -i128::from(x < 0),
        _ => x >> y,
    }
}

/// A builtin of floating-point arguments and result; missing arguments count as NaN.
pub(crate) fn call(builtin: Builtin, dtype: DType, args: [Approx; 3]) -> Approx {
    let [x, y, z] = args;
    let rounding = Rounding::operation(dtype);
    match builtin {
        Builtin::Abs => Approx { value: x.value.abs(), ..x },
        Builtin::Min => x.min(y),
        Builtin::Max => x.max(y),
        Builtin::Fmin => x.fmin(y),
        Builtin::Fmax => x.fmax(y),
        Builtin::Clamp => x.max(y).min(z),
        Builtin::Fma => fma(x, y, z, rounding),
        Builtin::Pow => pow(x, y, rounding),
        Builtin::Atan2 => atan2(x, y, rounding),
        Builtin::Fmod => fmod(x, y),
        Builtin::Hypot => hypot(x, y, rounding),
        Builtin::Copysign => copysign(x, y),
        Builtin::Floor | Builtin::Ceil | Builtin::Round | Builtin::Rint | Builtin::Trunc => {
            let value = unary(builtin, x.value);
            Approx { value, error: movement(builtin, x, value) }.checked()
        }
        _ => function(builtin, x, rounding),
    }
}

/// The relative error of `count` units in the last place.
fn ulps(rounding: Rounding, count: f64) -> f64 {
    2.0 * count * rounding.unit
}

impl Approx {
    /// Restores the invariant that errors are not NaN and that special values have no finite error.
    fn checked(self) -> Self {
        let between = !self.value.is_finite() && self.error > 0.0;
        if self.error.is_nan() || between { Self::unknown(self.value) } else { self }
    }

    /// Whether each of the arguments is known exactly.
    fn all_exact<const N: usize>(args: [Approx; N]) -> bool {
        args.iter().all(|arg| arg.error == 0.0)
    }
}

/// The result of a function with an implementation error.
fn implemented(value: f64, propagated: f64, rounding: Rounding, count: f64, exact: bool) -> Approx {
    if !value.is_finite() {
        // With exact arguments a pole, an infinity or a NaN is part of the definition; an overflow
        // is one in every type that is not wider than ours.
        return if exact { Approx::exact(value) } else { Approx::unknown(value) };
    }
    rounding.round_ulps(value, propagated, ulps(rounding, count))
}

/// A function of one argument.
fn function(builtin: Builtin, x: Approx, rounding: Rounding) -> Approx {
    let value = unary(builtin, x.value);
    let count = match builtin {
        Builtin::Sqrt => 0.5,
        Builtin::Lgamma | Builtin::Tgamma => LOOSE_ULPS,
        _ => ULPS,
    };
    if x.is_unknown() {
        return Approx::unknown(value);
    }
    if value.is_nan() && x.value.is_nan() {
        return Approx::exact(value);
    }
    let mut propagated = movement(builtin, x, value);
    if builtin == Builtin::Lgamma {
        // Cancellation at its zeros: the error is relative to the terms.
        propagated += ulps(rounding, count);
    }
    implemented(value, propagated, rounding, count, x.error == 0.0)
}

/// The largest change from `value = f(x)` over the interval of `x`.
fn movement(builtin: Builtin, x: Approx, value: f64) -> f64 {
    let Approx { value: at, error } = x;
    if error == 0.0 {
        return 0.0;
    }
    let (lo, hi) = (at - error, at + error);
    let ends = || {
        let (down, up) = (unary(builtin, lo), unary(builtin, hi));
        distance(down, value).max(distance(up, value))
    };
    match builtin {
        // Their slope is at most one.
        Builtin::Sin | Builtin::Cos => error.min(2.0),
        Builtin::Cosh if lo < 0.0 && hi > 0.0 => ends().max(value - 1.0),
        Builtin::Tan => {
            let branch = |x: f64| ((x + FRAC_PI_2) / PI).floor();
            if branch(lo) == branch(hi) { ends() } else { f64::INFINITY }
        }
        // Poles at zero and below; the extrema between them are not computed.
        Builtin::Lgamma | Builtin::Tgamma if lo <= 0.0 => f64::INFINITY,
        Builtin::Lgamma | Builtin::Tgamma => {
            let least_at = 1.461_632_144_968_362_2;
            let inside = lo < least_at && least_at < hi;
            let dip = if inside { distance(unary(builtin, least_at), value) } else { 0.0 };
            ends().max(dip)
        }
        _ => ends(),
    }
}

/// The distance of two function values; infinite if one of them is NaN.
fn distance(a: f64, b: f64) -> f64 {
    let distance = if a == b { 0.0 } else { (a - b).abs() };
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// The largest change of a binary function at the corners of its argument intervals. This is a
/// bound if the function is monotone in each argument.
fn corners(f: impl Fn(f64, f64) -> f64, x: Approx, y: Approx, value: f64) -> f64 {
    let mut furthest: f64 = 0.0;
    for dx in [-x.error, x.error] {
        for dy in [-y.error, y.error] {
            furthest = furthest.max(distance(f(x.value + dx, y.value + dy), value));
        }
    }
    furthest
}

fn fma(x: Approx, y: Approx, z: Approx, rounding: Rounding) -> Approx {
    let value = libm::fma(x.value, y.value, z.value);
    if Approx::all_exact([x, y, z]) && !value.is_finite() {
        let overflow = x.value.is_finite() && y.value.is_finite() && z.value.is_finite();
        return if overflow { Approx::unknown(value) } else { Approx::exact(value) };
    }
    if value.is_finite() {
        return rounding.round(value, x.product_error(y) + z.error);
    }
    // Infinities follow the rules of a product and a sum.
    Approx { value, error: x.mul(y, rounding).add(z, rounding).error }.checked()
}

fn pow(x: Approx, y: Approx, rounding: Rounding) -> Approx {
    let value = libm::pow(x.value, y.value);
    let exact = Approx::all_exact([x, y]);
    let mut propagated = 0.0;
    if !exact {
        propagated = corners(libm::pow, x, y, value);
        if x.error > 0.0 && x.value.abs() <= x.error {
            // Even powers have an extremum at zero, and negative ones a pole.
            propagated = f64::max(propagated, distance(libm::pow(0.0, y.value), value));
        }
        if y.error > 0.0 && x.value < x.error {
            // Powers of negative numbers are NaN between the integers.
            propagated = f64::INFINITY;
        }
    }
    implemented(value, propagated, rounding, LOOSE_ULPS, exact)
}

/// The angle of the point `(y, x)`.
fn atan2(y: Approx, x: Approx, rounding: Rounding) -> Approx {
    let value = libm::atan2(y.value, x.value);
    let exact = Approx::all_exact([x, y]);
    // The angle jumps by 2π at the negative x axis.
    let crosses = !y.sign_is_known() && x.value - x.error <= 0.0;
    let propagated = match (exact, crosses) {
        (true, _) => 0.0,
        (false, true) => TAU,
        (false, false) => corners(libm::atan2, y, x, value),
    };
    implemented(value, propagated, rounding, ULPS, exact)
}

/// The remainder with the sign of `x`; the operation itself is exact.
pub(crate) fn fmod(x: Approx, y: Approx) -> Approx {
    let value = libm::fmod(x.value, y.value);
    if Approx::all_exact([x, y]) {
        return Approx::exact(value);
    }
    let least = y.value.abs() - y.error;
    if x.is_unknown() || y.is_unknown() || !value.is_finite() || least <= 0.0 {
        return Approx::unknown(value);
    }
    let quotient = |x: f64, y: f64| (x / y).trunc();
    let count = quotient(x.value, y.value);
    let error = if corners(quotient, x, y, count) == 0.0 {
        x.error + count.abs() * y.error
    } else {
        // Every remainder is smaller than the divisor.
        value.abs() + y.value.abs() + y.error
    };
    Approx { value, error }.checked()
}

fn hypot(x: Approx, y: Approx, rounding: Rounding) -> Approx {
    let value = libm::hypot(x.value, y.value);
    if x.is_unknown() || y.is_unknown() {
        return Approx::unknown(value);
    }
    // `hypot` is 1-Lipschitz. An infinity dominates.
    let special = !x.value.is_finite() || !y.value.is_finite();
    implemented(value, libm::hypot(x.error, y.error), rounding, ULPS, special)
}

fn copysign(x: Approx, y: Approx) -> Approx {
    let value = x.value.copysign(y.value);
    let flip = if y.sign_is_known() { 0.0 } else { 2.0 * x.value.abs() };
    Approx { value, error: x.error + flip }.checked()
}

#[cfg(test)]
mod tests {
    use tensorwright_lang::builtin::Signature;

    use super::*;

    const NAN: Approx = Approx { value: f64::NAN, error: 0.0 };

    fn about(value: f64, error: f64) -> Approx {
        Approx { value, error }
    }

    fn call1(builtin: Builtin, x: Approx) -> Approx {
        call(builtin, DType::Float, [x, NAN, NAN])
    }

    #[test]
    fn functions_match_the_standard_library() {
        type Function = fn(f64) -> f64;
        let table: [(Builtin, Function); 12] = [
            (Builtin::Exp, f64::exp),
            (Builtin::Exp2, f64::exp2),
            (Builtin::Expm1, f64::exp_m1),
            (Builtin::Log, f64::ln),
            (Builtin::Log2, f64::log2),
            (Builtin::Log10, f64::log10),
            (Builtin::Sin, f64::sin),
            (Builtin::Tan, f64::tan),
            (Builtin::Atan, f64::atan),
            (Builtin::Tanh, f64::tanh),
            (Builtin::Cbrt, f64::cbrt),
            (Builtin::Asinh, f64::asinh),
        ];
        for (builtin, function) in table {
            for x in [0.1, 0.7, 1.3, 5.5] {
                let difference = (unary(builtin, x) - function(x)).abs();
                assert!(difference <= 1e-14 * function(x).abs(), "{builtin:?}({x})");
            }
        }
        assert!((unary(Builtin::Erf, 0.5) - 0.520_499_877_813_046_5).abs() < 1e-15);
        assert!((unary(Builtin::Tgamma, 5.0) - 24.0).abs() < 1e-12);
        assert_eq!(unary(Builtin::Sigmoid, 0.0), 0.5);
        assert_eq!(unary(Builtin::Sigmoid, -1e4), 0.0);
        assert_eq!(unary(Builtin::Sigmoid, 1e4), 1.0);
        assert_eq!(unary(Builtin::Rint, 2.5), 2.0);
        assert_eq!(unary(Builtin::Round, 2.5), 3.0);
    }

    /// A registered function without an implementation here is NaN everywhere.
    #[test]
    fn every_builtin_has_a_value() {
        let is_test =
            |b: &Builtin| matches!(b.signature(), Signature::FloatTest | Signature::Integer);
        for builtin in Builtin::ALL.iter().filter(|builtin| !is_test(builtin)) {
            let args = [1.5, 0.5, 0.25].map(Approx::exact);
            let args = [[args[1], args[2], args[0]], args];
            let values = args.map(|args| call(*builtin, DType::Double, args).value);
            assert!(values.iter().any(|value| !value.is_nan()), "{} is NaN", builtin.name());
        }
    }

    /// Every builtin of one or two arguments at points inside the intervals of its arguments.
    #[test]
    fn bounds_cover_the_intervals_of_the_arguments() {
        let floats = Builtin::ALL.iter().filter(|b| {
            let test = matches!(b, Builtin::IsNan | Builtin::IsInf | Builtin::IsFinite);
            !test && b.arity() <= 2
        });
        let points = [-3.2, -1.0, -0.3, 0.0, 0.01, 0.5, 1.0, 1.5, 2.0, 7.25];
        for &builtin in floats {
            for (x, y) in points.iter().flat_map(|x| points.iter().map(move |y| (*x, *y))) {
                for error in [0.0, 1e-6, 0.2, 3.0] {
                    let args = [about(x, error), about(y, error / 2.0), NAN];
                    let result = call(builtin, DType::Float, args);
                    assert!(!(result.error.is_nan() || result.error < 0.0));
                    for (s, t) in [(-1.0, -1.0), (-0.5, 0.3), (0.0, 1.0), (0.7, -0.9), (1.0, 0.1)] {
                        let inside = [x + s * error, y + t * error / 2.0].map(Approx::exact);
                        let other = call(builtin, DType::Float, [inside[0], inside[1], NAN]).value;
                        let close = (other - result.value).abs() <= result.error * (1.0 + 1e-9);
                        let same = other.is_nan() && result.value.is_nan();
                        let known = close || same || other == result.value || result.is_unknown();
                        assert!(known, "{builtin:?}({args:?}) = {result:?}, but {other}");
                    }
                }
            }
        }
    }

    #[test]
    fn special_values_stay_known() {
        assert_eq!(call1(Builtin::Exp, Approx::exact(f64::NEG_INFINITY)), Approx::exact(0.0));
        assert_eq!(call1(Builtin::Log, Approx::exact(0.0)), Approx::exact(f64::NEG_INFINITY));
        assert_eq!(call1(Builtin::Sqrt, Approx::exact(-1.0)).error, 0.0);
        assert!(call1(Builtin::Log, about(0.1, 0.2)).is_unknown());
        assert!(call1(Builtin::Exp, Approx::exact(100.0)).is_unknown(), "overflows in float");
        assert!(call1(Builtin::Sin, about(1e9, 10.0)).error < 2.1);
        let bounds = [about(9.0, 1.0), Approx::exact(0.0), Approx::exact(6.0)];
        let clamped = call(Builtin::Clamp, DType::Float, bounds);
        assert_eq!(clamped, Approx::exact(6.0));
    }

    #[test]
    fn rounding_functions_are_exact_away_from_steps() {
        assert_eq!(call1(Builtin::Floor, about(2.5, 0.4)), Approx::exact(2.0));
        assert_eq!(call1(Builtin::Floor, about(2.5, 0.6)), about(2.0, 1.0));
        assert_eq!(call1(Builtin::Trunc, about(-0.5, 0.4)).error, 0.0);
    }
}
