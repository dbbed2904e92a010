//! [`Point`]: one choice per parameter.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point of a [`SearchSpace`](crate::SearchSpace): for every parameter the rank of its value.
///
/// The space defines the meaning of ranks; a point from a file may lie outside
/// ([`SearchSpace::contains`](crate::SearchSpace::contains) checks).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(Box<[u32]>);

impl Point {
    /// A point with these ranks.
    #[must_use]
    pub fn new(ranks: impl Into<Box<[u32]>>) -> Self {
        Self(ranks.into())
    }

    /// The ranks, one per parameter.
    #[must_use]
    pub fn ranks(&self) -> &[u32] {
        &self.0
    }

    /// The rank of a parameter's value; 0 if there is no such parameter.
    #[must_use]
    pub fn rank(&self, parameter: usize) -> u32 {
        self.0.get(parameter).copied().unwrap_or(0)
    }

    /// The point with another value of a parameter.
    #[must_use]
    pub fn with(&self, parameter: usize, rank: u32) -> Self {
        let mut ranks = self.0.clone();
        if let Some(place) = ranks.get_mut(parameter) {
            *place = rank;
        }
        Self(ranks)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, rank) in self.0.iter().enumerate() {
            write!(f, "{}{rank}", if place == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}
