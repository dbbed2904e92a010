//! [`NoisyModel`]: a cost model with random errors.

use tensorwright_random::SplitMix;

use super::CostModel;
use crate::state::Layout;

/// Multiplies another model's cost of each group by a random factor. Searches with it find other
/// states, good ones and bad ones, as training needs them (section 5.3).
pub struct NoisyModel<'a> {
    inner: &'a dyn CostModel,
    strength: f64,
    seed: u64,
}

impl<'a> NoisyModel<'a> {
    /// Adds errors of up to a factor of `e` to the power of `strength` either way.
    #[must_use]
    pub fn new(inner: &'a dyn CostModel, strength: f64, seed: u64) -> Self {
        Self { inner, strength, seed }
    }
}

impl CostModel for NoisyModel<'_> {
    fn group(&self, layout: &Layout<'_>, group: usize) -> Vec<(usize, f64)> {
        let key = layout.keys().into_iter().find(|(of, _)| *of == group).map_or(0, |(_, key)| key);
        let noise = 2.0 * SplitMix::of(self.seed, key).unit() - 1.0;
        let factor = libm::exp(self.strength * noise);
        let costs = self.inner.group(layout, group);
        costs.into_iter().map(|(stage, cost)| (stage, cost * factor)).collect()
    }
}
