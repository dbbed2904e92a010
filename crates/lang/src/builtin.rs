//! The builtin scalar functions: C's math library and a few for kernels.

use serde::Serialize;

/// The argument and result types of a builtin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    /// Floating-point arguments of one type, result of that type.
    Float,
    /// Arguments of one numeric type, result of that type.
    Numeric,
    /// Floating-point argument, `bool` result.
    FloatTest,
    /// Arguments of one integer type, result of that type.
    Integer,
}

macro_rules! builtins {
    ($($variant:ident $name:literal $arity:literal $signature:ident $doc:literal;)*) => {
        /// A builtin scalar function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[non_exhaustive]
        pub enum Builtin {
            $(#[doc = $doc] $variant,)*
        }

        impl Builtin {
            /// Every builtin.
            pub const ALL: &'static [Builtin] = &[$(Builtin::$variant),*];

            /// The name in source text.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Builtin::$variant => $name),* }
            }

            /// The number of arguments.
            #[must_use]
            pub const fn arity(self) -> usize {
                match self { $(Builtin::$variant => $arity),* }
            }

            /// Argument and result types.
            #[must_use]
            pub const fn signature(self) -> Signature {
                match self { $(Builtin::$variant => Signature::$signature),* }
            }

            /// A one-line summary.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self { $(Builtin::$variant => $doc),* }
            }
        }
    };
}

builtins! {
    Abs "abs" 1 Numeric "absolute value (C's `fabs`)";
    Min "min" 2 Numeric "the lesser of two numbers; NaN if one of them is";
    Max "max" 2 Numeric "the greater of two numbers; NaN if one of them is";
    Fmin "fmin" 2 Float "the lesser of two numbers; of a number and NaN, the number";
    Fmax "fmax" 2 Float "the greater of two numbers; of a number and NaN, the number";
    Clamp "clamp" 3 Numeric "`clamp(x, lo, hi)` is `min(max(x, lo), hi)`";
    Sqrt "sqrt" 1 Float "square root";
    Rsqrt "rsqrt" 1 Float "one over the square root";
    Cbrt "cbrt" 1 Float "cube root";
    Exp "exp" 1 Float "e to the power of x";
    Exp2 "exp2" 1 Float "2 to the power of x";
    Expm1 "expm1" 1 Float "exp(x) - 1 without cancellation";
    Log "log" 1 Float "natural logarithm";
    Log2 "log2" 1 Float "logarithm to base 2";
    Log10 "log10" 1 Float "logarithm to base 10";
    Log1p "log1p" 1 Float "log(1 + x) without cancellation";
    Sin "sin" 1 Float "sine";
    Cos "cos" 1 Float "cosine";
    Tan "tan" 1 Float "tangent";
    Asin "asin" 1 Float "arc sine";
    Acos "acos" 1 Float "arc cosine";
    Atan "atan" 1 Float "arc tangent";
    Sinh "sinh" 1 Float "hyperbolic sine";
    Cosh "cosh" 1 Float "hyperbolic cosine";
    Tanh "tanh" 1 Float "hyperbolic tangent";
    Asinh "asinh" 1 Float "inverse hyperbolic sine";
    Acosh "acosh" 1 Float "inverse hyperbolic cosine";
    Atanh "atanh" 1 Float "inverse hyperbolic tangent";
    Erf "erf" 1 Float "error function";
    Erfc "erfc" 1 Float "1 - erf(x)";
    Lgamma "lgamma" 1 Float "logarithm of the absolute value of the gamma function";
    Tgamma "tgamma" 1 Float "gamma function";
    Sigmoid "sigmoid" 1 Float "1 / (1 + exp(-x))";
    Floor "floor" 1 Float "the greatest integer not above x";
    Ceil "ceil" 1 Float "the least integer not below x";
    Round "round" 1 Float "the nearest integer, halves away from zero";
    Rint "rint" 1 Float "the nearest integer, halves to even";
    Trunc "trunc" 1 Float "the integer part";
    Pow "pow" 2 Float "x to the power of y";
    Atan2 "atan2" 2 Float "angle of the point (y, x)";
    Fmod "fmod" 2 Float "remainder of x / y with the sign of x";
    Hypot "hypot" 2 Float "square root of x*x + y*y without overflow";
    Copysign "copysign" 2 Float "the magnitude of x with the sign of y";
    Fma "fma" 3 Float "x * y + z with one rounding";
    BitAnd "bitand" 2 Integer "the bits that both have: `x & y`";
    BitOr "bitor" 2 Integer "the bits that either has: `x | y`";
    BitXor "bitxor" 2 Integer "the bits that one of them has: `x ^ y`";
    BitNot "bitnot" 1 Integer "all other bits: `~x`";
    ShiftLeft "shl" 2 Integer "x moved left by y bits: `x << y`; 0 if y is negative or all bits are moved out";
    ShiftRight "shr" 2 Integer "x moved right by y bits, with its sign: `x >> y`; 0 or -1 if y is negative or all bits are moved out";
    IsNan "isnan" 1 FloatTest "whether x is not a number";
    IsInf "isinf" 1 FloatTest "whether x is infinite";
    IsFinite "isfinite" 1 FloatTest "whether x is neither infinite nor NaN";
}

impl Builtin {
    /// The infix or prefix operator for it, if there is one.
    #[must_use]
    pub const fn operator(self) -> Option<&'static str> {
        Some(match self {
            Builtin::BitAnd => "&",
            Builtin::BitOr => "|",
            Builtin::BitXor => "^",
            Builtin::BitNot => "~",
            Builtin::ShiftLeft => "<<",
            Builtin::ShiftRight => ">>",
            _ => return None,
        })
    }

    /// The builtin with a name. C's `f`-suffixed names (`expf`, `fmaxf`) and its `fabs` and
    /// `nearbyint` are accepted too.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Builtin> {
        let exact = |name: &str| {
            let name = match name {
                "fabs" => "abs",
                "nearbyint" => "rint",
                other => other,
            };
            Builtin::ALL.iter().copied().find(|builtin| builtin.name() == name)
        };
        exact(name).or_else(|| {
            let stem = name.strip_suffix('f')?;
            exact(stem).filter(|builtin| {
                matches!(builtin.signature(), Signature::Float | Signature::Numeric)
            })
        })
    }
}

/// The floating-point constants of the language.
pub const CONSTANTS: [(&str, f64); 4] = [
    ("INFINITY", f64::INFINITY),
    ("NAN", f64::NAN),
    ("M_PI", std::f64::consts::PI),
    ("M_E", std::f64::consts::E),
];

/// The constant that another language's name means.
#[must_use]
pub fn constant_like(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "inf" | "infinity" | "infty" => "INFINITY",
        "nan" => "NAN",
        "pi" => "M_PI",
        "e" if name == "E" => "M_E",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_c_spellings_are_known() {
        for builtin in Builtin::ALL {
            assert_eq!(Builtin::from_name(builtin.name()), Some(*builtin));
        }
        assert_eq!(Builtin::from_name("fmaxf"), Some(Builtin::Fmax));
        assert_eq!(Builtin::from_name("expf"), Some(Builtin::Exp));
        assert_eq!(Builtin::from_name("erff"), Some(Builtin::Erf));
        assert_eq!(Builtin::from_name("er"), None);
        assert_eq!(Builtin::from_name("isnanf"), None);
    }
}
