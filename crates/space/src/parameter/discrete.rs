//! Ordered numbers: adjacent ones are neighbours.

use serde::{Deserialize, Serialize};

/// Numbers in increasing order: adjacent ones are neighbours. The directions are down and up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Discrete {
    values: Vec<i64>,
}

/// The serialized fields, untrusted.
#[derive(Deserialize)]
#[serde(expecting = "struct Discrete")]
struct Stored {
    values: Vec<i64>,
}

impl From<Stored> for Discrete {
    fn from(stored: Stored) -> Self {
        Self::new(stored.values)
    }
}

impl Discrete {
    /// A parameter with these distinct values; with 0 if there are none.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = i64>) -> Self {
        let mut values: Vec<i64> = values.into_iter().collect();
        values.sort_unstable();
        values.dedup();
        if values.is_empty() {
            values.push(0);
        }
        Self { values }
    }

    /// The values in increasing order.
    #[must_use]
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    pub(super) fn count(&self) -> u32 {
        self.values.len() as u32
    }

    pub(super) fn directions(&self) -> usize {
        2
    }

    pub(super) fn step(&self, rank: u32, direction: usize) -> Option<u32> {
        match direction {
            0 => rank.checked_sub(1),
            _ => Some(rank + 1).filter(|next| *next < self.count()),
        }
    }

    /// The value with a rank.
    #[must_use]
    pub fn value(&self, rank: u32) -> i64 {
        self.values.get(rank as usize).copied().unwrap_or(self.values[0])
    }

    pub(super) fn text(&self, rank: u32) -> String {
        self.value(rank).to_string()
    }

    pub(super) fn features(&self, rank: u32, to: &mut Vec<f32>) {
        let value = self.value(rank);
        to.push((value.unsigned_abs() as f32 + 1.0).log2().copysign(value as f32));
    }
}
