//! Searches: five papers' strategies, and what joins them, on one kind of space.
//!
//! A [`SearchStrategy`] is asked for points and told what became of them. It knows nothing of
//! clocks, devices or programs, never blocks, and is deterministic for a seed; the same strategies
//! therefore drive a tuning run, a fleet, and the replay of a recorded landscape.
//!
//! [`registry`] lists them; a new strategy is one file in `strategies` and one line there.

mod base;
pub mod registry;
pub mod strategies;
mod strategy;
#[cfg(test)]
mod tests;
mod visited;

// Tests and an example share a file that names the crate.
#[cfg(test)]
extern crate self as tensorwright_search;

pub use registry::{Strategy, find};
pub use strategies::q_random_walk;
pub use strategy::{Observation, Proposal, SearchStrategy, StrategySettings};
pub use visited::Visited;
