//! The registry of strategies.

use std::sync::Arc;

use tensorwright_space::SearchSpace;

use crate::{SearchStrategy, StrategySettings, strategies};

/// A registered strategy.
#[derive(Clone, Copy)]
pub struct Strategy {
    /// Its name on the command line.
    pub name: &'static str,
    /// A short description or reference.
    pub summary: &'static str,
    start: fn(Arc<SearchSpace>, &StrategySettings) -> Box<dyn SearchStrategy>,
}

/// All strategies; the default is the last.
pub const STRATEGIES: &[Strategy] = &[
    strategies::random::STRATEGY,
    strategies::exhaustive::STRATEGY,
    strategies::genetic::STRATEGY,
    strategies::gbfs::STRATEGY,
    strategies::op_evo::STRATEGY,
    strategies::p_method::STRATEGY,
    strategies::q_method::STRATEGY,
    strategies::n_a2c::STRATEGY,
    strategies::surrogate::STRATEGY,
    strategies::descent::STRATEGY,
    strategies::gaussian::STRATEGY,
    strategies::portfolio::STRATEGY,
];

/// Finds a strategy by name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Strategy> {
    STRATEGIES.iter().find(|strategy| strategy.name == name)
}

impl Strategy {
    /// Registers a strategy with its constructor.
    pub(crate) const fn new(
        name: &'static str,
        summary: &'static str,
        start: fn(Arc<SearchSpace>, &StrategySettings) -> Box<dyn SearchStrategy>,
    ) -> Self {
        Self { name, summary, start }
    }

    /// Starts the strategy on a space.
    #[must_use]
    pub fn start(
        &self,
        space: Arc<SearchSpace>,
        settings: &StrategySettings,
    ) -> Box<dyn SearchStrategy> {
        (self.start)(space, settings)
    }
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Strategy").field(&self.name).finish()
    }
}
