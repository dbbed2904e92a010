//! Parameters: finite sets with a topology (OpEvo section 3), one module per kind.
//!
//! The values of a parameter are numbered by rank. Two values are neighbours if similar performance
//! is expected; the relation is symmetric. A direction is a named step from a value to a neighbour,
//! the same for all values, so that a network can learn its effect (FlexTensor section 5.1); some
//! values have no neighbour along some directions.

mod categorical;
mod discrete;
mod factorization;
mod permutation;

pub use categorical::Categorical;
pub use discrete::Discrete;
pub use factorization::{Factorization, Splits};
pub use permutation::Permutation;

use serde::{Deserialize, Serialize};

/// A named parameter. It is serialized with all its values, so that points stay valid if a later
/// version generates other values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    name: String,
    domain: Domain,
}

/// The values of a parameter and their topology.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Domain {
    /// Splits of an extent.
    Factorization(Factorization),
    /// Permutations.
    Permutation(Permutation),
    /// Ordered numbers.
    Discrete(Discrete),
    /// Unordered choices.
    Categorical(Categorical),
}

/// Dispatches a method to the kind of a domain.
macro_rules! each {
    ($domain:expr, $inner:ident => $call:expr) => {
        match $domain {
            Domain::Factorization($inner) => $call,
            Domain::Permutation($inner) => $call,
            Domain::Discrete($inner) => $call,
            Domain::Categorical($inner) => $call,
        }
    };
}

impl Parameter {
    /// A parameter.
    #[must_use]
    pub fn new(name: impl Into<String>, domain: impl Into<Domain>) -> Self {
        Self { name: name.into(), domain: domain.into() }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The kind, in OpEvo's terms.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.domain {
            Domain::Factorization(_) => "factorization",
            Domain::Permutation(_) => "permutation",
            Domain::Discrete(_) => "discrete",
            Domain::Categorical(_) => "categorical",
        }
    }

    /// The number of values; at least 1.
    #[must_use]
    pub fn count(&self) -> u32 {
        each!(&self.domain, inner => inner.count())
    }

    /// The number of directions.
    #[must_use]
    pub fn directions(&self) -> usize {
        each!(&self.domain, inner => inner.directions())
    }

    /// The neighbour of a value along a direction, if there is one.
    #[must_use]
    pub fn step(&self, rank: u32, direction: usize) -> Option<u32> {
        each!(&self.domain, inner => inner.step(rank, direction)).filter(|next| *next != rank)
    }

    /// The distinct neighbours of a value, in increasing order.
    #[must_use]
    pub fn neighbours(&self, rank: u32) -> Vec<u32> {
        let all = (0..self.directions()).filter_map(|direction| self.step(rank, direction));
        let mut all: Vec<u32> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The value as text: `[4,8,2]`, `k.0 i.1 j.1`, `16`, `peel`.
    #[must_use]
    pub fn text(&self, rank: u32) -> String {
        each!(&self.domain, inner => inner.text(rank))
    }

    /// Appends the features of a value for a model, a constant number of them.
    pub fn features(&self, rank: u32, to: &mut Vec<f32>) {
        each!(&self.domain, inner => inner.features(rank, to));
    }
}

impl From<Factorization> for Domain {
    fn from(inner: Factorization) -> Self {
        Self::Factorization(inner)
    }
}

impl From<Permutation> for Domain {
    fn from(inner: Permutation) -> Self {
        Self::Permutation(inner)
    }
}

impl From<Discrete> for Domain {
    fn from(inner: Discrete) -> Self {
        Self::Discrete(inner)
    }
}

impl From<Categorical> for Domain {
    fn from(inner: Categorical) -> Self {
        Self::Categorical(inner)
    }
}
