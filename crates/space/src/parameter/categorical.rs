//! Unordered choices: all are neighbours.

use serde::{Deserialize, Serialize};

/// Unordered choices: all are neighbours. A direction leads to one of the choices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Categorical {
    choices: Vec<String>,
}

/// The serialized fields, untrusted.
#[derive(Deserialize)]
#[serde(expecting = "struct Categorical")]
struct Stored {
    choices: Vec<String>,
}

impl From<Stored> for Categorical {
    fn from(stored: Stored) -> Self {
        Self::new(stored.choices)
    }
}

impl Categorical {
    /// A parameter with these choices; with an unnamed one if there are none.
    #[must_use]
    pub fn new<S: Into<String>>(choices: impl IntoIterator<Item = S>) -> Self {
        let mut choices: Vec<String> = choices.into_iter().map(Into::into).collect();
        if choices.is_empty() {
            choices.push(String::new());
        }
        Self { choices }
    }

    /// The choices.
    #[must_use]
    pub fn choices(&self) -> &[String] {
        &self.choices
    }

    pub(super) fn count(&self) -> u32 {
        self.choices.len() as u32
    }

    pub(super) fn directions(&self) -> usize {
        self.choices.len()
    }

    pub(super) fn step(&self, _rank: u32, direction: usize) -> Option<u32> {
        (direction < self.choices.len()).then_some(direction as u32)
    }

    pub(super) fn text(&self, rank: u32) -> String {
        self.choices.get(rank as usize).cloned().unwrap_or_default()
    }

    pub(super) fn features(&self, rank: u32, to: &mut Vec<f32>) {
        to.extend((0..self.count()).map(|choice| if choice == rank { 1.0 } else { 0.0 }));
    }
}
