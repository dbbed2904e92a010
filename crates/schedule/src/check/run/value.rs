//! [`Value`]: what is known of a value without the data.

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// An integer or a truth value that loops decide.
    Known(i128),
    /// Some number that data decide.
    Data,
    /// The contents of memory that nothing has written.
    Undefined,
}

impl Value {
    pub(super) fn truth(holds: bool) -> Self {
        Self::Known(i128::from(holds))
    }

    /// A result that depends on two values in an unknown way.
    pub(super) fn with(self, other: Self) -> Self {
        if self == Self::Undefined || other == Self::Undefined {
            Self::Undefined
        } else {
            Self::Data
        }
    }

    /// One of two values, whichever data say.
    pub(super) fn or(self, other: Self) -> Self {
        if self == other { self } else { self.with(other) }
    }
}
