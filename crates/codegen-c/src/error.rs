//! Errors of C emission.

use std::fmt;

/// The reason why a nest cannot be emitted as C.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmitError {
    /// The nest violates an invariant of lowering.
    Malformed(String),
    /// Sizes of a nest for a device vary.
    Sized,
    /// The offset of an element does not fit 64 bits.
    Overflow {
        /// The name of the buffer.
        buffer: String,
    },
}

impl EmitError {
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        EmitError::Malformed(what.into())
    }
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EmitError::Malformed(what) => write!(f, "the loop nest is malformed: {what}"),
            EmitError::Sized => f.write_str("sizes of kernels for devices cannot vary yet"),
            EmitError::Overflow { buffer } => {
                write!(f, "an offset in `{buffer}` does not fit 64 bits")
            }
        }
    }
}

impl std::error::Error for EmitError {}
