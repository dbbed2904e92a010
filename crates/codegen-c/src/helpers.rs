//! Helper functions of generated code, emitted on demand.
//!
//! Signed arithmetic must wrap around, which C leaves undefined. So it uses unsigned numbers of at
//! least 32 bits (narrower ones would be promoted to `int`) and converts back, which every compiler
//! does modulo 2^n.

use std::collections::BTreeSet;

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ArithOp;

use crate::dialect::Syntax;
use crate::narrow;
use crate::types::{memory_type, suffix};

/// A helper function. The order is that of definitions: callees come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Helper {
    /// Runs a parallel loop.
    Run,
    /// Checks a subscript that depends on data.
    Check,
    /// Prefetches an address.
    Prefetch,
    /// A quotient of indices by a positive number, rounded down.
    FloorDiv,
    /// A remainder of indices by a positive number, never negative.
    FloorMod,
    /// A neighboring `float` that makes a second rounding equal to a single one.
    RoundToOdd,
    /// The value of a storage-only float.
    Load(DType),
    /// The bits of the nearest value.
    Pack(DType),
    /// The same from a `double`, with one rounding.
    PackDouble(DType),
    /// The nearest storage-only float.
    Round(DType),
    /// The same from a `double`, with one rounding.
    RoundDouble(DType),
    /// Integer arithmetic.
    Arith(Operation, DType),
    /// The minimum of two numbers; NaN if one of them is.
    Min(DType),
    /// The maximum of two numbers; NaN if one of them is.
    Max(DType),
    /// The absolute value of a signed integer.
    Abs(DType),
    /// A function of the bits of integers.
    Bits(Builtin, DType),
    /// The integer part of a floating-point number, saturating.
    Truncate(DType),
    /// The number itself.
    Same(DType),
    /// `1 / (1 + exp(-x))`.
    Sigmoid(DType),
}

/// An arithmetic operator, in emission order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

impl From<ArithOp> for Operation {
    fn from(op: ArithOp) -> Self {
        match op {
            ArithOp::Add => Operation::Add,
            ArithOp::Sub => Operation::Sub,
            ArithOp::Mul => Operation::Mul,
            ArithOp::Div => Operation::Div,
            ArithOp::Rem => Operation::Rem,
        }
    }
}

/// The helpers in use.
#[derive(Debug, Default)]
pub(crate) struct Helpers {
    used: BTreeSet<Helper>,
}

impl Helpers {
    /// The name of a helper, which is marked as used.
    pub(crate) fn name(&mut self, helper: Helper) -> String {
        for needed in helper.calls() {
            self.name(needed);
        }
        self.used.insert(helper);
        helper.name()
    }

    /// The definitions in a dialect.
    pub(crate) fn text(&self, dialect: &dyn Syntax) -> String {
        let define = |helper: &Helper| spelled(&helper.definition(dialect), dialect);
        let definitions: Vec<String> = self.used.iter().map(define).collect();
        definitions.join("\n")
    }
}

impl Helper {
    fn name(self) -> String {
        match self {
            Helper::Run => "tw_run".to_owned(),
            Helper::Check => "tw_check".to_owned(),
            Helper::Prefetch => "tw_prefetch".to_owned(),
            Helper::FloorDiv => "tw_floor_div".to_owned(),
            Helper::FloorMod => "tw_floor_mod".to_owned(),
            Helper::RoundToOdd => "tw_round_to_odd".to_owned(),
            Helper::Load(dtype) => format!("tw_load_{dtype}"),
            Helper::Pack(dtype) => format!("tw_pack_{dtype}"),
            Helper::PackDouble(dtype) => format!("tw_pack_{dtype}_from_double"),
            Helper::Round(dtype) => format!("tw_round_{dtype}"),
            Helper::RoundDouble(dtype) => format!("tw_round_{dtype}_from_double"),
            Helper::Arith(operation, dtype) => {
                format!("tw_{}_{}", operation.name(), suffix(dtype))
            }
            Helper::Min(dtype) => format!("tw_min_{}", suffix(dtype)),
            Helper::Max(dtype) => format!("tw_max_{}", suffix(dtype)),
            Helper::Abs(dtype) => format!("tw_abs_{}", suffix(dtype)),
            Helper::Bits(builtin, dtype) => format!("tw_{}_{}", builtin.name(), suffix(dtype)),
            Helper::Truncate(dtype) => format!("tw_truncate_{}", suffix(dtype)),
            Helper::Same(dtype) => format!("tw_same_{}", suffix(dtype)),
            Helper::Sigmoid(DType::Double) => "tw_sigmoid".to_owned(),
            Helper::Sigmoid(_) => "tw_sigmoidf".to_owned(),
        }
    }

    /// The callees of the helper.
    fn calls(self) -> Vec<Helper> {
        match self {
            Helper::PackDouble(dtype) => vec![Helper::RoundToOdd, Helper::Pack(dtype)],
            Helper::Round(dtype) => vec![Helper::Load(dtype), Helper::Pack(dtype)],
            Helper::RoundDouble(dtype) => vec![Helper::Load(dtype), Helper::PackDouble(dtype)],
            _ => Vec::new(),
        }
    }

    fn definition(self, dialect: &dyn Syntax) -> String {
        let name = self.name();
        match self {
            Helper::Run => RUN.to_owned(),
            Helper::Check => CHECK.to_owned(),
            Helper::Prefetch => PREFETCH.to_owned(),
            Helper::FloorDiv => FLOOR_DIV.to_owned(),
            Helper::FloorMod => FLOOR_MOD.to_owned(),
            Helper::RoundToOdd => ROUND_TO_ODD.to_owned(),
            Helper::Load(dtype) => narrow::load(&name, dtype),
            Helper::Pack(dtype) => narrow::pack(&name, dtype),
            Helper::PackDouble(dtype) => format!(
                "/* The bits of the nearest {dtype}, with one rounding. */\n\
                 FUNCTION {} {name}(double x) {{\n    \
                     return tw_pack_{dtype}(tw_round_to_odd(x));\n}}\n",
                memory_type(dtype)
            ),
            Helper::Round(dtype) => format!(
                "/* The nearest {dtype}. */\n\
                 FUNCTION float {name}(float x) {{\n    \
                     return tw_load_{dtype}(tw_pack_{dtype}(x));\n}}\n"
            ),
            Helper::RoundDouble(dtype) => format!(
                "/* The nearest {dtype}, with one rounding. */\n\
                 FUNCTION float {name}(double x) {{\n    \
                     return tw_load_{dtype}(tw_pack_{dtype}_from_double(x));\n}}\n"
            ),
            Helper::Arith(operation, dtype) => arithmetic(&name, operation, dtype),
            Helper::Min(dtype) => extreme(&name, dtype, '<', dialect),
            Helper::Max(dtype) => extreme(&name, dtype, '>', dialect),
            Helper::Abs(dtype) => {
                let (t, u) = (memory_type(dtype), unsigned(dtype));
                format!(
                    "FUNCTION {t} {name}({t} a) {{\n    \
                         return a < 0 ? ({t})(({u})0 - ({u})a) : a;\n}}\n"
                )
            }
            Helper::Bits(builtin, dtype) => bits(&name, builtin, dtype),
            Helper::Truncate(dtype) => truncation(&name, dtype),
            Helper::Same(dtype) => {
                let t = if dtype == DType::Bool { "int32_t" } else { memory_type(dtype) };
                format!(
                    "/* Keeps compilers quiet about comparisons that types alone decide. */\n\
                     FUNCTION {t} {name}({t} a) {{\n    return a;\n}}\n"
                )
            }
            Helper::Sigmoid(DType::Double) => sigmoid(false, dialect),
            Helper::Sigmoid(_) => sigmoid(true, dialect),
        }
    }
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Add => "add",
            Operation::Sub => "sub",
            Operation::Mul => "mul",
            Operation::Div => "div",
            Operation::Rem => "rem",
        }
    }
}

/// The unsigned type for wrapping arithmetic on a type, without promotion.
fn unsigned(dtype: DType) -> &'static str {
    if dtype.bytes() == 8 { "uint64_t" } else { "uint32_t" }
}

/// A minimum or maximum. Compilers turn this form into the instruction that handles all but NaN.
fn extreme(name: &str, dtype: DType, wins: char, dialect: &dyn Syntax) -> String {
    if !dtype.is_float() {
        if let Some([min, max]) = dialect.integer_extremes() {
            let builtin = if wins == '<' { min } else { max };
            return two_numbers(name, dtype, &format!("return {builtin}(a, b);"));
        }
        return two_numbers(name, dtype, &format!("return a {wins} b ? a : b;"));
    }
    let t = memory_type(dtype);
    let body = format!("const {t} winner = a {wins} b ? a : b;\n    return a != a ? a : winner;");
    format!("/* NaN if a or b is. */\n{}", two_numbers(name, dtype, &body))
}

fn two_numbers(name: &str, dtype: DType, body: &str) -> String {
    let t = if dtype == DType::Bool { "int32_t" } else { memory_type(dtype) };
    format!("FUNCTION {t} {name}({t} a, {t} b) {{\n    {body}\n}}\n")
}

/// A bitwise function. Shifts by a negative number, or by at least the width, leave only sign bits.
fn bits(name: &str, builtin: Builtin, dtype: DType) -> String {
    let (t, u, width) = (memory_type(dtype), unsigned(dtype), 8 * dtype.bytes());
    let operator = builtin.operator().unwrap_or_default();
    let none = if dtype.is_signed() { "(a < 0 ? -1 : 0)" } else { "0" };
    let body = match builtin {
        Builtin::BitNot => {
            return format!("FUNCTION {t} {name}({t} a) {{\n    return ({t})~({u})a;\n}}\n");
        }
        Builtin::ShiftLeft => {
            format!("return (uint64_t)b < {width} ? ({t})(({u})a << b) : ({t})0;")
        }
        Builtin::ShiftRight => format!("return ({t})((uint64_t)b < {width} ? a >> b : {none});"),
        _ => format!("return ({t})(({u})a {operator} ({u})b);"),
    };
    two_numbers(name, dtype, &body)
}

fn arithmetic(name: &str, operation: Operation, dtype: DType) -> String {
    let (t, u) = (memory_type(dtype), unsigned(dtype));
    let body = match operation {
        Operation::Add => format!("return ({t})(({u})a + ({u})b);"),
        Operation::Sub => format!("return ({t})(({u})a - ({u})b);"),
        Operation::Mul => format!("return ({t})(({u})a * ({u})b);"),
        Operation::Div if dtype.is_signed() => format!(
            "/* Rounds down; by zero it is 0, and the quotient by -1 wraps around. */\n    \
             if (b == 0) {{\n        return 0;\n    }}\n    \
             if (b == -1) {{\n        return ({t})(({u})0 - ({u})a);\n    }}\n    \
             return ({t})(a / b - (a % b != 0 && (a < 0) != (b < 0)));"
        ),
        Operation::Rem if dtype.is_signed() => format!(
            "/* Has the sign of b; by zero it is 0. */\n    \
             if (b == 0 || b == -1) {{\n        return 0;\n    }}\n    \
             return ({t})(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));"
        ),
        Operation::Div => format!("return ({t})(b == 0 ? 0 : a / b);"),
        Operation::Rem => format!("return ({t})(b == 0 ? 0 : a % b);"),
    };
    two_numbers(name, dtype, &body)
}

fn truncation(name: &str, dtype: DType) -> String {
    let t = memory_type(dtype);
    let (least, greatest) = dtype.integer_range().unwrap_or((0, 1));
    // The greatest value of a 64-bit type is not a `double`, but the next one is a power of two.
    let above = if dtype.bytes() == 8 { greatest + 1 } else { greatest };
    let macro_stem = t.trim_end_matches("_t").to_uppercase();
    let lowest = if least < 0 { format!("{macro_stem}_MIN") } else { "0".to_owned() };
    format!(
        "/* Rounds to zero and saturates; NaN becomes 0. */\n\
         FUNCTION {t} {name}(double x) {{\n    \
             if (isnan(x)) {{\n        return 0;\n    }}\n    \
             if (x <= {least}.0) {{\n        return {lowest};\n    }}\n    \
             if (x >= {above}.0) {{\n        return {macro_stem}_MAX;\n    }}\n    \
             return ({t})x;\n}}\n"
    )
}

fn sigmoid(is_single: bool, dialect: &dyn Syntax) -> String {
    let (t, f, one) = if is_single { ("float", "f", "1.0f") } else { ("double", "", "1.0") };
    let (exp, abs) = (dialect.math("exp", is_single), dialect.math("fabs", is_single));
    format!(
        "/* 1 / (1 + exp(-x)), written so that nothing overflows. */\n\
         FUNCTION {t} tw_sigmoid{f}({t} x) {{\n    \
             const {t} e = {exp}(-{abs}(x));\n    \
             return (x < 0 ? e : {one}) / ({one} + e);\n}}\n"
    )
}

/// A definition in a dialect. The texts below contain placeholders: `FUNCTION` for function
/// qualifiers, `FABSF` for that function, and `TO_BITS` and `TO_FLOAT` for bit casts.
fn spelled(text: &str, dialect: &dyn Syntax) -> String {
    let text = text.replace("FUNCTION", dialect.function());
    let text = text.replace("FABSF", &dialect.math("fabs", true));
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let statement = line.trim_start();
        let indent = &line[..line.len() - statement.len()];
        let operands = |word: &str| {
            let inner = statement.strip_prefix(word)?.strip_prefix('(')?.strip_suffix(");")?;
            inner.split_once(", ")
        };
        let spelled = match (operands("TO_BITS"), operands("TO_FLOAT")) {
            (Some((bits, value)), _) => dialect.to_bits(bits, value),
            (_, Some((value, bits))) => dialect.to_float(value, bits),
            _ => statement.to_owned(),
        };
        lines.push(format!("{indent}{spelled}\n"));
    }
    lines.concat()
}

const RUN: &str = "\
/* Runs a parallel loop: by the workers of the pool or, without one, right here. */
FUNCTION void tw_run(tw_pool *pool, tw_task task, void *context, int64_t count) {
    if (pool != NULL) {
        pool->run(pool, task, context, count);
    } else {
        task(context, 0, count, 0);
    }
}
";

const CHECK: &str = "\
/* A subscript that depends on data: itself if it is in bounds; else 0, and the error is noted. */
FUNCTION int64_t tw_check(int64_t subscript, int64_t extent, int32_t code, int32_t *error) {
    if (subscript >= 0 && subscript < extent) {
        return subscript;
    }
    if (*error == 0) {
        *error = code;
    }
    return 0;
}
";

const PREFETCH: &str = "\
/* The address is a number because it may lie outside of the buffer. */
FUNCTION void tw_prefetch(uintptr_t address) {
#if defined(__GNUC__)
    __builtin_prefetch((const void *)address);
#else
    (void)address;
#endif
}
";

const FLOOR_DIV: &str = "\
/* a / b rounded down, for positive b. */
FUNCTION int64_t tw_floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}
";

const FLOOR_MOD: &str = "\
/* a % b from 0 to below b, for positive b. */
FUNCTION int64_t tw_floor_mod(int64_t a, int64_t b) {
    return a % b + (a % b < 0 ? b : 0);
}
";

const ROUND_TO_ODD: &str = "\
/* A neighbouring float, the one with an odd significand if x lies between two: rounding that to 16
   bits gives what rounding x once would have given. */
FUNCTION float tw_round_to_odd(double x) {
    float nearest = (float)x;
    if ((double)nearest != x && !isnan(x)) {
        uint32_t bits;
        TO_BITS(bits, nearest);
        bits -= fabs((double)nearest) > fabs(x) ? 1u : 0u;
        bits |= 1u;
        TO_FLOAT(nearest, bits);
    }
    return nearest;
}
";
