//! Random typed expressions that use each given read at least once.

use super::builder::Builder;
use super::typed::{Atom, Type};

impl Builder {
    /// Converts the atom to a type.
    pub(super) fn convert(&mut self, atom: &Atom, to: Type) -> String {
        let text = &atom.text;
        if atom.dtype == to {
            return text.clone();
        }
        if to == Type::Bool && self.rng.percent(60) {
            self.uses("comparison");
            let compare = *self.rng.pick(&["==", "!=", "<", "<=", ">", ">="]);
            return format!("({text} {compare} {})", atom.dtype.literal(&mut self.rng));
        }
        self.uses("cast");
        format!("{}({text})", to.spelled(&mut self.rng))
    }

    /// An expression of a type that uses every atom. The result can be an operand.
    pub(super) fn combine(&mut self, atoms: &[Atom], dtype: Type) -> String {
        let mut value: Option<String> = None;
        for atom in atoms {
            let mut operand = self.convert(atom, dtype);
            if self.rng.percent(25) {
                operand = self.wrap(&operand, dtype);
            }
            value = Some(match value {
                None => operand,
                Some(value) => self.join(&value, &operand, dtype, atom.optional),
            });
        }
        let value = value.unwrap_or_else(|| dtype.literal(&mut self.rng));
        // Bits of untyped integers have a type, which may not be this one.
        if self.rng.percent(25) && !atoms.is_empty() { self.wrap(&value, dtype) } else { value }
    }

    /// A random function of one value, in its domain.
    fn wrap(&mut self, x: &str, dtype: Type) -> String {
        if dtype == Type::Bool {
            self.uses("logic");
            return format!("(!{x})");
        }
        if dtype.is_float() {
            self.uses("builtin");
            let pattern = *self.rng.pick(FLOAT_FUNCTIONS);
            return fill(pattern, x, "");
        }
        let pattern = *self.rng.pick(INTEGER_FUNCTIONS);
        if pattern.contains(['/', '%']) {
            self.uses("integer division");
        }
        fill(pattern, x, "")
    }

    /// A random function of two values.
    fn join(&mut self, x: &str, y: &str, dtype: Type, optional: bool) -> String {
        let patterns = match dtype {
            Type::Bool if optional => LAZY_LOGIC,
            Type::Bool => STRICT_LOGIC,
            _ if dtype.is_float() => FLOAT_OPERATORS,
            _ => INTEGER_OPERATORS,
        };
        let pattern = *self.rng.pick(patterns);
        if dtype == Type::Bool {
            self.uses("logic");
        } else if pattern.contains('?') {
            self.uses("ternary");
        }
        fill(pattern, x, y)
    }
}

/// A pattern with `$x` and `$y` replaced, in one pass.
fn fill(pattern: &str, x: &str, y: &str) -> String {
    let mut parts = pattern.split('$');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        filled.push_str(if part.starts_with('x') { x } else { y });
        filled.push_str(&part[1..]);
    }
    filled
}

/// Functions of a float; arguments are kept where the results are finite and well-conditioned.
const FLOAT_FUNCTIONS: &[&str] = &[
    "(-$x)",
    "abs($x)",
    "fabs($x)",
    "sqrt(abs($x))",
    "rsqrt(abs($x) + 0.5)",
    "cbrt($x)",
    "exp(min($x, 3.0))",
    "exp2(clamp($x, -4.0, 4.0))",
    "expm1(min($x, 2.0))",
    "log(abs($x) + 1.0)",
    "log2(abs($x) + 1.0)",
    "log10(abs($x) + 1.0)",
    "log1p(abs($x))",
    "sin(clamp($x, -6.0, 6.0))",
    "cos(clamp($x, -6.0, 6.0))",
    "tan(clamp($x, -1.0, 1.0))",
    "asin(clamp($x, -1.0, 1.0))",
    "acos(clamp($x, -1.0, 1.0))",
    "atan($x)",
    "sinh(clamp($x, -3.0, 3.0))",
    "cosh(clamp($x, -3.0, 3.0))",
    "tanh($x)",
    "asinh($x)",
    "acosh(abs($x) + 1.0)",
    "atanh(clamp($x, -0.5, 0.5))",
    "erf($x)",
    "erfc(clamp($x, -2.0, 2.0))",
    "lgamma(abs($x) + 1.0)",
    "tgamma(clamp($x, 1.0, 4.0))",
    "sigmoid($x)",
    "floor($x)",
    "ceil($x)",
    "round($x)",
    "rint($x)",
    "trunc($x)",
    "pow(abs($x) + 0.5, 1.5)",
    "fmod($x, 2.0)",
    "fma($x, 0.5, $x)",
    "(isnan($x) ? 0.0 : $x)",
    "(isinf($x) || !isfinite($x) ? 1.0 : $x)",
    "relu($x)",
    "silu($x)",
    "gelu($x)",
    "softplus($x)",
    "select($x > 0.5, $x, -0.5)",
    "min($x, M_PI)",
    "max($x, -INFINITY)",
];

/// Functions of two floats.
const FLOAT_OPERATORS: &[&str] = &[
    "($x + $y)",
    "($x - $y)",
    "($x * $y)",
    "($x + $y)",
    "($x * $y)",
    "min($x, $y)",
    "max($x, $y)",
    "fmax($x, $y)",
    "hypot($x, $y)",
    "copysign($x, $y)",
    "atan2($x, $y)",
    "($x / (abs($y) + 1.0))",
    "($x > $y ? $x : $y)",
    "($x <= $y ? 0.5 * $x : $y)",
];

/// Functions of an integer.
const INTEGER_FUNCTIONS: &[&str] = &[
    "($x / 3)",
    "($x % 5)",
    "($x + 1)",
    "clamp($x, 1, 7)",
    "abs($x)",
    "max($x, 2)",
    "($x * 3)",
    "(~$x)",
    "($x << 3)",
    "($x >> 1 & 5)",
];

/// Functions of two integers; division by zero is defined, so any divisor will do.
const INTEGER_OPERATORS: &[&str] = &[
    "($x & $y)",
    "($x | $y)",
    "($x ^ $y)",
    "($x << $y)",
    "($x >> $y)",
    "($x + $y)",
    "($x - $y)",
    "($x * $y)",
    "min($x, $y)",
    "max($x, $y)",
    "($x / $y)",
    "($x % $y)",
    "($x < $y ? $x : $y)",
    "($x == $y || $x > 3 ? $y : $x)",
];

/// Functions of two truth values that may leave the second unevaluated.
const LAZY_LOGIC: &[&str] = &["($x && $y)", "($x || $y)", "(!$x && $y)", "($x ? $y : !$y)"];

/// Functions of two truth values that evaluate both.
const STRICT_LOGIC: &[&str] = &["($x == $y)", "($x != $y)"];
