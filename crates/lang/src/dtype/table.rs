//! The table of element types.
//!
//! A new type is a variant and a row, in the same place; `docs/adding.md` has the other steps.

use serde::{Deserialize, Serialize};

use super::format::FloatFormat;

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

/// What kind of numbers a type has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 0 or 1, in a byte.
    Bool,
    /// Signed integers of so many bits.
    Signed(u32),
    /// Unsigned integers of so many bits.
    Unsigned(u32),
    /// Floating-point numbers.
    Float(FloatFormat),
}

/// The columns of an element type: names and numbers. Where only these differ between types, code
/// reads the column; it matches on a [`DType`] only where it does something else.
#[derive(Debug)]
pub struct Row {
    /// The type.
    pub dtype: DType,
    /// The name in source text.
    pub name: &'static str,
    /// Other names in source text.
    pub aliases: &'static [&'static str],
    /// Names in other languages, which a message corrects.
    pub foreign: &'static [&'static str],
    /// The kind and the bits.
    pub kind: Kind,
    /// The type in which values are computed and summed. A type with another one is storage-only:
    /// its values are widened by a load and rounded by a store.
    pub computed_in: DType,
    /// What people call the format, for comments in generated code; the last word is an identifier.
    pub format_name: &'static str,
    /// The type in C and OpenCL C; that of the bits for storage-only types.
    pub c: &'static str,
    /// What is written around the digits of a literal in C, in the type for computing. An integer
    /// literal has no suffix if it is an `int`.
    pub c_literal: [&'static str; 2],
    /// The type in CUDA C++, with storage-only types.
    pub cuda: &'static str,
    /// The type in Rust; that of the bits for storage-only types.
    pub rust: &'static str,
    /// The type in NumPy, if there is one. Its `.npy` code follows from kind and size.
    pub numpy: Option<&'static str>,
    /// The letters of Python's buffer protocol; a letter may have several sizes.
    pub buffer: &'static str,
    /// The type code of DLPack.
    pub dlpack: u8,
    /// The type in PyTorch; also that of the package `ml_dtypes` if NumPy has none.
    pub torch: &'static str,
}

/// The rows, in the order of the variants.
pub(super) static TABLE: [Row; 13] = [
    Row {
        dtype: DType::Bool,
        name: "bool",
        aliases: &[],
        foreign: &["boolean"],
        kind: Kind::Bool,
        computed_in: DType::Bool,
        format_name: "bool",
        c: "uint8_t",
        c_literal: ["", ""],
        cuda: "uint8_t",
        rust: "bool",
        numpy: Some("bool_"),
        buffer: "?",
        dlpack: 6,
        torch: "bool",
    },
    Row {
        dtype: DType::Int8,
        name: "int8",
        aliases: &[],
        foreign: &["i8", "char"],
        kind: Kind::Signed(8),
        computed_in: DType::Int8,
        format_name: "int8",
        c: "int8_t",
        c_literal: ["", ""],
        cuda: "int8_t",
        rust: "i8",
        numpy: Some("int8"),
        buffer: "b",
        dlpack: 0,
        torch: "int8",
    },
    Row {
        dtype: DType::Int16,
        name: "int16",
        aliases: &[],
        foreign: &["i16", "short"],
        kind: Kind::Signed(16),
        computed_in: DType::Int16,
        format_name: "int16",
        c: "int16_t",
        c_literal: ["", ""],
        cuda: "int16_t",
        rust: "i16",
        numpy: Some("int16"),
        buffer: "h",
        dlpack: 0,
        torch: "int16",
    },
    Row {
        dtype: DType::Int32,
        name: "int32",
        aliases: &["int"],
        foreign: &["i32"],
        kind: Kind::Signed(32),
        computed_in: DType::Int32,
        format_name: "int32",
        c: "int32_t",
        c_literal: ["", ""],
        cuda: "int32_t",
        rust: "i32",
        numpy: Some("int32"),
        buffer: "il",
        dlpack: 0,
        torch: "int32",
    },
    Row {
        dtype: DType::Int64,
        name: "int64",
        aliases: &[],
        foreign: &["i64", "long"],
        kind: Kind::Signed(64),
        computed_in: DType::Int64,
        format_name: "int64",
        c: "int64_t",
        c_literal: ["INT64_C(", ")"],
        cuda: "int64_t",
        rust: "i64",
        numpy: Some("int64"),
        buffer: "ql",
        dlpack: 0,
        torch: "int64",
    },
    Row {
        dtype: DType::UInt8,
        name: "uint8",
        aliases: &["byte"],
        foreign: &["u8"],
        kind: Kind::Unsigned(8),
        computed_in: DType::UInt8,
        format_name: "uint8",
        c: "uint8_t",
        c_literal: ["", ""],
        cuda: "uint8_t",
        rust: "u8",
        numpy: Some("uint8"),
        buffer: "Bc",
        dlpack: 1,
        torch: "uint8",
    },
    Row {
        dtype: DType::UInt16,
        name: "uint16",
        aliases: &[],
        foreign: &["u16"],
        kind: Kind::Unsigned(16),
        computed_in: DType::UInt16,
        format_name: "uint16",
        c: "uint16_t",
        c_literal: ["", ""],
        cuda: "uint16_t",
        rust: "u16",
        numpy: Some("uint16"),
        buffer: "H",
        dlpack: 1,
        torch: "uint16",
    },
    Row {
        dtype: DType::UInt32,
        name: "uint32",
        aliases: &[],
        foreign: &["u32", "unsigned", "uint"],
        kind: Kind::Unsigned(32),
        computed_in: DType::UInt32,
        format_name: "uint32",
        c: "uint32_t",
        c_literal: ["", "u"],
        cuda: "uint32_t",
        rust: "u32",
        numpy: Some("uint32"),
        buffer: "IL",
        dlpack: 1,
        torch: "uint32",
    },
    Row {
        dtype: DType::UInt64,
        name: "uint64",
        aliases: &[],
        foreign: &["u64", "size_t"],
        kind: Kind::Unsigned(64),
        computed_in: DType::UInt64,
        format_name: "uint64",
        c: "uint64_t",
        c_literal: ["UINT64_C(", ")"],
        cuda: "uint64_t",
        rust: "u64",
        numpy: Some("uint64"),
        buffer: "QL",
        dlpack: 1,
        torch: "uint64",
    },
    Row {
        dtype: DType::Half,
        name: "half",
        aliases: &["float16"],
        foreign: &["f16"],
        kind: Kind::Float(FloatFormat::BINARY16),
        computed_in: DType::Float,
        format_name: "IEEE binary16",
        c: "uint16_t",
        c_literal: ["", ""],
        cuda: "__half",
        rust: "u16",
        numpy: Some("float16"),
        buffer: "e",
        dlpack: 2,
        torch: "float16",
    },
    Row {
        dtype: DType::BFloat16,
        name: "bfloat16",
        aliases: &[],
        foreign: &["bf16"],
        kind: Kind::Float(FloatFormat::ieee(8, 7)),
        computed_in: DType::Float,
        format_name: "bfloat16",
        c: "uint16_t",
        c_literal: ["", ""],
        cuda: "__nv_bfloat16",
        rust: "u16",
        numpy: None,
        buffer: "",
        dlpack: 4,
        torch: "bfloat16",
    },
    Row {
        dtype: DType::Float,
        name: "float",
        aliases: &["float32"],
        foreign: &["f32", "real"],
        kind: Kind::Float(FloatFormat::BINARY32),
        computed_in: DType::Float,
        format_name: "IEEE binary32",
        c: "float",
        c_literal: ["", "f"],
        cuda: "float",
        rust: "f32",
        numpy: Some("float32"),
        buffer: "f",
        dlpack: 2,
        torch: "float32",
    },
    Row {
        dtype: DType::Double,
        name: "double",
        aliases: &["float64"],
        foreign: &["f64"],
        kind: Kind::Float(FloatFormat::BINARY64),
        computed_in: DType::Double,
        format_name: "IEEE binary64",
        c: "double",
        c_literal: ["", ""],
        cuda: "double",
        rust: "f64",
        numpy: Some("float64"),
        buffer: "d",
        dlpack: 2,
        torch: "float64",
    },
];
