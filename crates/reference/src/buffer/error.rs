//! Errors of buffer construction.

use std::fmt;

use tensorwright_lang::dtype::DType;

use super::MAX_BYTES;

/// Errors of buffer construction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BufferError {
    /// An extent is below zero.
    NegativeExtent {
        /// The shape.
        shape: Vec<i64>,
    },
    /// The buffer would exceed [`MAX_BYTES`] or the available memory.
    TooLarge {
        /// The element type.
        dtype: DType,
        /// The shape.
        shape: Vec<i64>,
    },
    /// Buffers do not support the element type yet.
    UnsupportedType {
        /// The element type.
        dtype: DType,
    },
    /// The number of elements (or bytes) does not match the shape.
    WrongLength {
        /// The shape.
        shape: Vec<i64>,
        /// The number expected.
        expected: usize,
        /// The number found.
        actual: usize,
    },
    /// Some bytes are not an element of the type: a `bool` that is neither 0 nor 1.
    InvalidElement {
        /// The position of the element.
        position: usize,
    },
}

impl fmt::Display for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferError::NegativeExtent { shape } => {
                write!(f, "the shape {} has a negative extent", ShapeText(shape))
            }
            BufferError::TooLarge { dtype, shape } => {
                let shape = ShapeText(shape);
                write!(f, "a {dtype} buffer of shape {shape} is too large: ")?;
                write!(f, "the limit is {MAX_BYTES} bytes, or less if memory is short")
            }
            BufferError::UnsupportedType { dtype } => write!(f, "buffers of {dtype} do not exist"),
            BufferError::WrongLength { shape, expected, actual } => {
                let shape = ShapeText(shape);
                write!(f, "the shape {shape} needs a length of {expected}, and there are ")?;
                write!(f, "{actual}")
            }
            BufferError::InvalidElement { position } => {
                write!(f, "the byte of element {position} is not a bool: it is neither 0 nor 1")
            }
        }
    }
}

impl std::error::Error for BufferError {}

/// A shape as text: `(2, 3)`.
pub(crate) struct ShapeText<'a>(pub(crate) &'a [i64]);

impl fmt::Display for ShapeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<String> = self.0.iter().map(i64::to_string).collect();
        write!(f, "({})", extents.join(", "))
    }
}
