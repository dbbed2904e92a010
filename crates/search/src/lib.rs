//! Search strategies of five papers, and more, on a common search space.
//!
//! A [`SearchStrategy`] proposes points and observes their outcomes. It never blocks, is
//! deterministic for a seed, and knows nothing of clocks, devices or programs. So the same
//! strategies drive a tuning run, a fleet, and the replay of a recorded landscape.
//!
//! [`registry`] lists them; a new strategy is one file in `strategies` and one line there.

mod base;
pub mod registry;
pub mod strategies;
mod strategy;
#[cfg(test)]
mod tests;
mod visited;

// Tests and an example share a file that refers to the crate by name.
#[cfg(test)]
extern crate self as tensorwright_search;

pub use registry::{Strategy, find};
pub use strategies::q_random_walk;
pub use strategy::{Observation, Proposal, SearchStrategy, StrategySettings};
pub use visited::Visited;
