//! Buffer elements: a Rust type per [`DType`], and [`Value`].

use std::fmt;

use half::{bf16, f16};
use tensorwright_lang::dtype::{DType, round_to_odd};

/// Calls a macro with the Rust type of every [`DType`]: the single list of them.
macro_rules! elements {
    ($then:ident) => {
        $then! {
            Bool bool;
            Int8 i8;
            Int16 i16;
            Int32 i32;
            Int64 i64;
            UInt8 u8;
            UInt16 u16;
            UInt32 u32;
            UInt64 u64;
            Half half::f16;
            BFloat16 half::bf16;
            Float f32;
            Double f64;
        }
    };
}
pub(crate) use elements;

/// An element of any type, represented exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An element of a floating-point type; `f64` holds all of them exactly.
    Float(f64),
    /// An element of an integer type, or a `bool` as 0 or 1.
    Integer(i128),
}

impl Value {
    /// The value as a floating-point number; integers beyond 2^53 are rounded.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Float(value) => value,
            Value::Integer(value) => value as f64,
        }
    }

    /// Whether the value is nonzero.
    #[must_use]
    pub fn is_true(self) -> bool {
        match self {
            Value::Float(value) => value != 0.0,
            Value::Integer(value) => value != 0,
        }
    }

    /// The distance of two values. NaN equals NaN and an infinity equals itself; each is infinitely
    /// far from everything else.
    #[must_use]
    pub fn distance(self, other: Value) -> f64 {
        if let (Value::Integer(a), Value::Integer(b)) = (self, other) {
            return a.abs_diff(b) as f64;
        }
        let (a, b) = (self.as_f64(), other.as_f64());
        if a == b || (a.is_nan() && b.is_nan()) {
            return 0.0;
        }
        let distance = (a - b).abs();
        if distance.is_nan() { f64::INFINITY } else { distance }
    }

    /// Converts the value to a type. Floats are rounded to nearest; to an integer they are
    /// truncated and saturate, and NaN becomes 0; integers wrap around; to `bool` it is `!= 0`.
    #[must_use]
    pub fn convert(self, dtype: DType) -> Value {
        fn through<T: Element>(value: Value) -> Value {
            T::from_value(value).to_value()
        }
        macro_rules! convert {
            ($($variant:ident $type:ty;)*) => {
                match dtype { $(DType::$variant => through::<$type>(self),)* }
            };
        }
        elements!(convert)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Integer(value) => write!(f, "{value}"),
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type of buffer elements, one per [`DType`].
pub trait Element: Copy + Default + sealed::Sealed + 'static {
    /// The corresponding [`DType`].
    const DTYPE: DType;

    /// The element as a value; exact.
    fn to_value(self) -> Value;

    /// Converts a value as by [`Value::convert`].
    fn from_value(value: Value) -> Self;

    /// Appends the bytes of the element, least significant first.
    fn append_le(self, bytes: &mut Vec<u8>);

    /// Reads an element from exactly `size_of::<Self>()` little-endian bytes; `None` if their
    /// number is wrong or they are not a valid element.
    fn read_le(bytes: &[u8]) -> Option<Self>;
}

macro_rules! numeric_element {
    ($type:ty, $dtype:ident, $to:expr, $from_float:expr, $from_integer:expr) => {
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            fn to_value(self) -> Value {
                ($to)(self)
            }

            fn from_value(value: Value) -> Self {
                match value {
                    Value::Float(value) => ($from_float)(value),
                    Value::Integer(value) => ($from_integer)(value),
                }
            }

            fn append_le(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read_le(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(<$type>::from_le_bytes)
            }
        }
    };
}

macro_rules! integer_element {
    ($type:ty, $dtype:ident) => {
        // Rust's `as` has the language's semantics: it saturates from floats and wraps from
        // integers.
        numeric_element!(
            $type,
            $dtype,
            |x: $type| Value::Integer(i128::from(x)),
            |x: f64| x as $type,
            |x: i128| x as $type
        );
    };
}

integer_element!(i8, Int8);
integer_element!(i16, Int16);
integer_element!(i32, Int32);
integer_element!(i64, Int64);
integer_element!(u8, UInt8);
integer_element!(u16, UInt16);
integer_element!(u32, UInt32);
integer_element!(u64, UInt64);

/// A storage-only type: numbers are rounded once.
macro_rules! narrow_element {
    ($type:ty, $dtype:ident) => {
        numeric_element!(
            $type,
            $dtype,
            |x: $type| Value::Float(x.to_f64()),
            |x: f64| <$type>::from_f32(round_to_odd(x)),
            |x: i128| <$type>::from_f32(round_to_odd(x as f64))
        );
    };
}

narrow_element!(f16, Half);
narrow_element!(bf16, BFloat16);
numeric_element!(f32, Float, |x: f32| Value::Float(f64::from(x)), |x: f64| x as f32, |x: i128| x
    as f32);
numeric_element!(f64, Double, Value::Float, |x: f64| x, |x: i128| x as f64);

impl sealed::Sealed for bool {}

impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn to_value(self) -> Value {
        Value::Integer(i128::from(self))
    }

    fn from_value(value: Value) -> Self {
        value.is_true()
    }

    fn append_le(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }

    fn read_le(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(value: f64) -> f64 {
        Value::Float(value).convert(DType::Half).as_f64()
    }

    #[test]
    fn narrow_floats_are_rounded_once() {
        let tie = 1.0 + 2f64.powi(-11);
        assert_eq!(half(tie), 1.0, "ties go to even");
        assert_eq!(half(tie + 2f64.powi(-45)), 1.0 + 2f64.powi(-10), "just above a tie");
        assert_eq!(half(-(tie + 2f64.powi(-45))), -1.0 - 2f64.powi(-10));
        assert_eq!(half(65_519.999_999_999), 65504.0);
        assert_eq!(half(65_520.0), f64::INFINITY);
        assert_eq!(half(1e300), f64::INFINITY);
        assert_eq!(half(2f64.powi(-25)), 0.0);
        assert_eq!(half(2f64.powi(-25) * (1.0 + 1e-12)), 2f64.powi(-24));
        assert_eq!(half(f64::MIN_POSITIVE), 0.0);
        assert!(half(f64::NAN).is_nan());
        let bfloat = Value::Float(1.0 + 2f64.powi(-8) + 2f64.powi(-40)).convert(DType::BFloat16);
        assert_eq!(bfloat, Value::Float(1.0 + 2f64.powi(-7)));
    }

    #[test]
    fn conversions_saturate_wrap_and_test() {
        let to = |value: f64, dtype| Value::Float(value).convert(dtype);
        assert_eq!(to(-1.9, DType::Int32), Value::Integer(-1));
        assert_eq!(to(300.0, DType::UInt8), Value::Integer(255));
        assert_eq!(to(-5.0, DType::UInt64), Value::Integer(0));
        assert_eq!(to(1e30, DType::Int64), Value::Integer(i128::from(i64::MAX)));
        assert_eq!(to(f64::NAN, DType::Int16), Value::Integer(0));
        assert_eq!(to(f64::NAN, DType::Bool), Value::Integer(1));
        assert_eq!(to(-0.0, DType::Bool), Value::Integer(0));
        assert_eq!(Value::Integer(300).convert(DType::UInt8), Value::Integer(44));
        assert_eq!(Value::Integer(-1).convert(DType::UInt32), Value::Integer(0xffff_ffff));
        assert_eq!(Value::Integer(-7).convert(DType::Bool), Value::Integer(1));
        let large = (1 << 24) + 1;
        assert_eq!(Value::Integer(large).convert(DType::Float), Value::Float(16_777_216.0));
    }

    #[test]
    fn distances_treat_special_values_as_values() {
        let (nan, inf) = (Value::Float(f64::NAN), Value::Float(f64::INFINITY));
        assert_eq!(nan.distance(nan), 0.0);
        assert_eq!(inf.distance(inf), 0.0);
        assert_eq!(inf.distance(nan), f64::INFINITY);
        assert_eq!(inf.distance(Value::Float(f64::NEG_INFINITY)), f64::INFINITY);
        assert_eq!(Value::Integer(3).distance(Value::Integer(-4)), 7.0);
    }
}
