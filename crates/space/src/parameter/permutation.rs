//! Permutations: neighbours differ by one transposition.

use serde::{Deserialize, Serialize};

/// The maximum number of items: twelve factorial still fits a rank.
const MOST_ITEMS: usize = 12;

/// Permutations of named items, numbered lexicographically. Neighbours differ by one transposition;
/// a direction swaps the items at two positions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Permutation {
    items: Vec<String>,
}

/// The serialized fields, untrusted.
#[derive(Deserialize)]
#[serde(expecting = "struct Permutation")]
struct Stored {
    items: Vec<String>,
}

impl TryFrom<Stored> for Permutation {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        if stored.items.len() > MOST_ITEMS {
            return Err(format!("a permutation of {} items", stored.items.len()));
        }
        Ok(Self::new(stored.items))
    }
}

impl Permutation {
    /// The permutations of these items; of the first twelve if there are more.
    #[must_use]
    pub fn new<S: Into<String>>(items: impl IntoIterator<Item = S>) -> Self {
        Self { items: items.into_iter().take(MOST_ITEMS).map(Into::into).collect() }
    }

    /// The items, in the order of rank 0.
    #[must_use]
    pub fn items(&self) -> &[String] {
        &self.items
    }

    /// The item numbers in the order of a rank.
    #[must_use]
    pub fn order(&self, rank: u32) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.items.len()).collect();
        let mut rank = rank % self.count();
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let block = factorial(left.len() - 1);
            order.push(left.remove((rank / block) as usize));
            rank %= block;
        }
        order
    }

    /// The rank of an order of item numbers; `None` if it is not a permutation.
    #[must_use]
    pub fn rank(&self, order: &[usize]) -> Option<u32> {
        let mut left: Vec<usize> = (0..self.items.len()).collect();
        let mut rank = 0;
        for item in order {
            let place = left.iter().position(|other| other == item)?;
            left.remove(place);
            rank += place as u32 * factorial(left.len());
        }
        left.is_empty().then_some(rank)
    }

    pub(super) fn count(&self) -> u32 {
        factorial(self.items.len())
    }

    pub(super) fn directions(&self) -> usize {
        self.items.len() * self.items.len().saturating_sub(1) / 2
    }

    pub(super) fn step(&self, rank: u32, direction: usize) -> Option<u32> {
        let (first, second) = pair(direction, self.items.len())?;
        let mut order = self.order(rank);
        order.swap(first, second);
        self.rank(&order)
    }

    pub(super) fn text(&self, rank: u32) -> String {
        let names: Vec<&str> =
            self.order(rank).into_iter().map(|item| self.items[item].as_str()).collect();
        names.join(" ")
    }

    /// The position of every item.
    pub(super) fn features(&self, rank: u32, to: &mut Vec<f32>) {
        let start = to.len();
        to.resize(start + self.items.len(), 0.0);
        for (place, item) in self.order(rank).into_iter().enumerate() {
            to[start + item] = place as f32;
        }
    }
}

fn factorial(n: usize) -> u32 {
    (1..=n as u32).product()
}

/// The pair of positions that a direction swaps: (0,1), (0,2), ... (1,2), ...
fn pair(mut direction: usize, items: usize) -> Option<(usize, usize)> {
    for first in 0..items {
        let partners = items - first - 1;
        if direction < partners {
            return Some((first, first + 1 + direction));
        }
        direction -= partners;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_orders_match() {
        let orders = Permutation::new(["a", "b", "c", "d"]);
        assert_eq!(orders.count(), 24);
        for rank in 0..24 {
            assert_eq!(orders.rank(&orders.order(rank)), Some(rank));
        }
        assert_eq!(orders.text(0), "a b c d");
        assert_eq!(orders.text(23), "d c b a");
        assert_eq!(orders.rank(&[0, 0, 1, 2]), None);
        // OpEvo figure 1b: with three items every order has three neighbours.
        let three = Permutation::new(["x", "y", "z"]);
        let near: Vec<String> =
            (0..3).filter_map(|d| three.step(0, d)).map(|rank| three.text(rank)).collect();
        assert_eq!(near, ["y x z", "z y x", "x z y"]);
    }
}
