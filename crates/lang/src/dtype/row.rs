//! The columns of the table of element types.

use super::DType;
use super::format::FloatFormat;

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
