//! [`Value`]: abstract values of the interpreter.

/// An abstract value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// An integer or truth value that depends only on loop variables.
    Known(i128),
    /// An unknown number that depends on data.
    Data,
    /// The value of memory that was never written.
    Undefined,
}

impl Value {
    pub(super) fn truth(holds: bool) -> Self {
        Self::Known(i128::from(holds))
    }

    /// The result of an operation on two values whose result is unknown.
    pub(super) fn with(self, other: Self) -> Self {
        if self == Self::Undefined || other == Self::Undefined {
            Self::Undefined
        } else {
            Self::Data
        }
    }

    /// One of two values, depending on data.
    pub(super) fn or(self, other: Self) -> Self {
        if self == other { self } else { self.with(other) }
    }
}
