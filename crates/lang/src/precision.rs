//! [`Precision`]: with which numbers the sums of a program may be computed.

use std::fmt;
use std::str::FromStr;

/// With which numbers the sums of a program may be computed.
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
    /// With the products and terms that the program names, added up in any order: rounding errors
    /// are bounded as the program's own, element by element.
    #[default]
    Exact,
    /// With other numbers where that is faster: Winograd's algorithm for convolutions, factors taken
    /// out of sums. Errors are bounded by the largest numbers that are computed together with an
    /// element, and an infinity or an overflow among them reaches all of these.
    Fast,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Exact, Self::Fast];

    /// The word for it, in commands, manifests and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Fast => "fast",
        }
    }

    /// Whether what was made with another precision may be used.
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
