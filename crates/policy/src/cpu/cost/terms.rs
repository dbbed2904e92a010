//! Combines the terms of the cost model to cycles.

/// The terms of the model.
pub(crate) const TERMS: [&str; 8] =
    ["arithmetic", "loads", "gathers", "loops", "near bytes", "far bytes", "copies", "stores"];

/// The costs of the terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Constants {
    /// Cycles per byte from the L2 cache.
    pub(crate) near: f64,
    /// Cycles per byte from beyond the L2 cache.
    pub(crate) far: f64,
    /// The fraction of the shorter overlapping terms that is added.
    pub(crate) overlap: f64,
    /// Factors for gathers, copies, stores and loop overhead.
    pub(crate) rest: [f64; 4],
}

impl Default for Constants {
    fn default() -> Self {
        Self { near: 1.0 / 28.0, far: 1.0 / 4.5, overlap: 0.3, rest: [1.0; 4] }
    }
}

impl Constants {
    /// The cycles of a tiling. Arithmetic, loads and both kinds of traffic overlap: the longest
    /// counts, plus a fraction of the others.
    #[must_use]
    pub(crate) fn cycles(&self, terms: &[f64; TERMS.len()]) -> f64 {
        let [arithmetic, loads, gathers, loops, near, far, copies, stores] = *terms;
        let side_by_side = [arithmetic, loads, self.near * near, self.far * far];
        let longest = side_by_side.iter().copied().fold(0.0, f64::max);
        let others = side_by_side.iter().sum::<f64>() - longest;
        let [gather, copy, store, jump] = self.rest;
        longest
            + self.overlap * others
            + gather * gathers
            + jump * loops
            + copy * copies
            + store * stores
    }
}
