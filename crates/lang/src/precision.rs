//! [`Precision`]: which rewrites of sums are allowed.

use std::fmt;
use std::str::FromStr;

/// Which rewrites of sums are allowed.
///
/// ```
/// use tensorwright_lang::precision::Precision;
///
/// assert_eq!(Precision::default(), Precision::Exact);
/// assert_eq!("fast".parse(), Ok(Precision::Fast));
/// assert!(Precision::Fast.allows(Precision::Exact) && !Precision::Exact.allows(Precision::Fast));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Precision {
    /// Only reordering of the terms of sums: rounding errors are bounded element by element, as in
    /// the program itself.
    #[default]
    Exact,
    /// Also faster algebraic rewrites that round differently: Winograd convolution, factors moved
    /// out of sums. Errors are bounded by the largest intermediate values of the elements computed
    /// together, and an infinity or overflow in one reaches all of these.
    Fast,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Exact, Self::Fast];

    /// The name in commands, manifests and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Fast => "fast",
        }
    }

    /// Whether a schedule or record with another precision may be used.
    #[must_use]
    pub fn allows(self, made_with: Self) -> bool {
        self == Self::Fast || made_with == Self::Exact
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|precision| precision.name() == text);
        found.ok_or_else(|| format!("there is no precision `{text}`: it is `exact` or `fast`"))
    }
}
