//! The element types of tensors.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// `bool`: one byte, 0 or 1.
    Bool,
    /// `int8`.
    Int8,
    /// `int16`.
    Int16,
    /// `int32`, also spelled `int`.
    Int32,
    /// `int64`.
    Int64,
    /// `uint8`, also spelled `byte`.
    UInt8,
    /// `uint16`.
    UInt16,
    /// `uint32`.
    UInt32,
    /// `uint64`.
    UInt64,
    /// `half`: IEEE binary16, also spelled `float16`.
    Half,
    /// `bfloat16`.
    BFloat16,
    /// `float`: IEEE binary32, also spelled `float32`.
    Float,
    /// `double`: IEEE binary64, also spelled `float64`.
    Double,
}

impl DType {
    /// Every type, in the order of declaration.
    pub const ALL: [DType; 13] = [
        DType::Bool,
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
        DType::Half,
        DType::BFloat16,
        DType::Float,
        DType::Double,
    ];

    /// The aliases in source text.
    pub const ALIASES: [(&'static str, DType); 5] = [
        ("int", DType::Int32),
        ("byte", DType::UInt8),
        ("float16", DType::Half),
        ("float32", DType::Float),
        ("float64", DType::Double),
    ];

    /// The name in source text, which is also how the type prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::Int8 => "int8",
            DType::Int16 => "int16",
            DType::Int32 => "int32",
            DType::Int64 => "int64",
            DType::UInt8 => "uint8",
            DType::UInt16 => "uint16",
            DType::UInt32 => "uint32",
            DType::UInt64 => "uint64",
            DType::Half => "half",
            DType::BFloat16 => "bfloat16",
            DType::Float => "float",
            DType::Double => "double",
        }
    }

    /// The type of a name or an alias.
    #[must_use]
    pub fn from_name(name: &str) -> Option<DType> {
        let canonical = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        canonical
            .or_else(|| DType::ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, d)| *d))
    }

    /// Bytes per element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            DType::Bool | DType::Int8 | DType::UInt8 => 1,
            DType::Int16 | DType::UInt16 | DType::Half | DType::BFloat16 => 2,
            DType::Int32 | DType::UInt32 | DType::Float => 4,
            DType::Int64 | DType::UInt64 | DType::Double => 8,
        }
    }

    /// Whether this is one of the floating-point types.
    #[must_use]
    pub const fn is_float(self) -> bool {
        self.unit_roundoff().is_some()
    }

    /// Whether this is one of the integer types; `bool` is not.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, DType::Bool)
    }

    /// The smallest and largest value of an integer type (`bool` counts as 0 and 1).
    #[must_use]
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        Some(match self {
            DType::Bool => (0, 1),
            DType::Int8 => (i8::MIN as i128, i8::MAX as i128),
            DType::Int16 => (i16::MIN as i128, i16::MAX as i128),
            DType::Int32 => (i32::MIN as i128, i32::MAX as i128),
            DType::Int64 => (i64::MIN as i128, i64::MAX as i128),
            DType::UInt8 => (0, u8::MAX as i128),
            DType::UInt16 => (0, u16::MAX as i128),
            DType::UInt32 => (0, u32::MAX as i128),
            DType::UInt64 => (0, u64::MAX as i128),
            DType::Half | DType::BFloat16 | DType::Float | DType::Double => return None,
        })
    }

    /// The unit roundoff of a floating-point type: half the distance from 1 to the next number.
    #[must_use]
    pub const fn unit_roundoff(self) -> Option<f64> {
        Some(match self {
            DType::Half => 1.0 / 2048.0,
            DType::BFloat16 => 1.0 / 256.0,
            DType::Float => 1.0 / 16_777_216.0,
            DType::Double => f64::EPSILON / 2.0,
            DType::Bool
            | DType::Int8
            | DType::Int16
            | DType::Int32
            | DType::Int64
            | DType::UInt8
            | DType::UInt16
            | DType::UInt32
            | DType::UInt64 => return None,
        })
    }

    /// The type in which values of this one are computed and summed. Most types are their own;
    /// storage-only floats are widened by a load and rounded by a store.
    #[must_use]
    pub const fn computed_in(self) -> DType {
        match self {
            DType::Half | DType::BFloat16 => DType::Float,
            DType::Bool
            | DType::Int8
            | DType::Int16
            | DType::Int32
            | DType::Int64
            | DType::UInt8
            | DType::UInt16
            | DType::UInt32
            | DType::UInt64
            | DType::Float
            | DType::Double => self,
        }
    }

    /// Whether this is a storage-only type: [`DType::computed_in`] is another type.
    #[must_use]
    pub fn is_storage_only(self) -> bool {
        self.computed_in() != self
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_round_trip() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
        assert!(DType::ALL.is_sorted(), "in the order of declaration");
        assert_eq!(DType::from_name("int"), Some(DType::Int32));
        assert_eq!(DType::from_name("byte"), Some(DType::UInt8));
        assert_eq!(DType::from_name("float128"), None);
    }
}
