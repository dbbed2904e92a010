//! Element types and constants in C.
//!
//! In memory, a `bool` is a byte and storage-only floats are their bits, such as `uint16_t`. In
//! expressions, a `bool` is an `int` that is 0 or 1, and storage-only floats are `float`: loads
//! convert, stores round.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::Scalar;

/// The C type of an element in memory.
#[must_use]
pub fn memory_type(dtype: DType) -> &'static str {
    dtype.row().c
}

/// The suffix of helper names for an integer type.
pub(crate) fn suffix(dtype: DType) -> &'static str {
    // `bool` computes as `int`.
    let computed = if dtype == DType::Bool { DType::Int32 } else { dtype.computed_in() };
    computed.row().rust
}

/// Whether values of the type are `float` in expressions.
pub(crate) fn is_single(dtype: DType) -> bool {
    dtype.computed_in() == DType::Float
}

/// A constant.
pub(crate) fn literal(scalar: Scalar) -> String {
    let dtype = scalar.dtype().computed_in();
    if dtype.is_float() {
        return float_literal(dtype, scalar.as_f64());
    }
    let value = scalar.as_integer();
    let [before, after] = dtype.row().c_literal;
    let text = match dtype {
        DType::Int32 if value == i128::from(i32::MIN) => "INT32_MIN".to_owned(),
        DType::Int64 if value == i128::from(i64::MIN) => "INT64_MIN".to_owned(),
        DType::Int64 if i32::try_from(value).is_ok() => value.to_string(),
        _ => format!("{before}{value}{after}"),
    };
    if value < 0 { format!("({text})") } else { text }
}

/// The shortest decimal literal that C reads back as the same number.
fn float_literal(dtype: DType, value: f64) -> String {
    let (single, [before, after]) = (is_single(dtype), dtype.row().c_literal);
    // Both are of type `float`: functions of OpenCL C take arguments of one type only.
    let special = |name: &str| if single { name.to_owned() } else { format!("(double){name}") };
    let text = if value.is_nan() {
        special("NAN")
    } else if value.is_infinite() {
        special("INFINITY")
    } else if single {
        format!("{before}{:?}{after}", value.abs() as f32)
    } else {
        format!("{before}{:?}{after}", value.abs())
    };
    if value.is_sign_negative() && !value.is_nan() { format!("(-{text})") } else { text }
}

/// A type in the syntax of the source language, such as `float(16, 3)`.
pub(crate) fn type_text(dtype: DType, extents: impl IntoIterator<Item = String>) -> String {
    let extents: Vec<String> = extents.into_iter().collect();
    if extents.is_empty() {
        return dtype.to_string();
    }
    format!("{dtype}({})", extents.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_keep_type_and_value() {
        let float = |dtype, value| literal(Scalar::float(dtype, value));
        assert_eq!(float(DType::Float, 0.1), "0.1f");
        assert_eq!(float(DType::Half, 1e-7), "1.1920929e-7f");
        assert_eq!(float(DType::Double, -0.0), "(-0.0)");
        assert_eq!(float(DType::Float, f64::NEG_INFINITY), "(-INFINITY)");
        assert_eq!(float(DType::Double, f64::NEG_INFINITY), "(-(double)INFINITY)");
        assert_eq!(float(DType::Float, 1e30), "1e30f");
        let integer = |dtype, value| literal(Scalar::integer(dtype, value));
        assert_eq!(integer(DType::Int8, -128), "(-128)");
        assert_eq!(integer(DType::Int32, i128::from(i32::MIN)), "(INT32_MIN)");
        assert_eq!(integer(DType::Int64, 1 << 40), "INT64_C(1099511627776)");
        assert_eq!(integer(DType::UInt64, -1), "UINT64_C(18446744073709551615)");
    }
}
