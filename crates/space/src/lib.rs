//! Search spaces: products of parameters that know nothing of tensors.
//!
//! A [`SearchSpace`] is a product of [`Parameter`]s, each a finite set with the topology of OpEvo section 3
//! and the directions of FlexTensor section 5.1; it knows its exact size, samples uniformly, and walks. All
//! searches work on it, so they work on every program, on every target, and on recorded landscapes. What
//! the parameters of a program are, and which schedule a [`Point`] stands for, is policy
//! (`tensorwright-policy`).

pub mod parameter;
mod point;
mod rules;
mod search_space;
#[cfg(test)]
mod tests;

pub use parameter::{Domain, Parameter};
pub use point::Point;
pub use rules::{NoRules, Rejection, Rules};
pub use search_space::SearchSpace;
pub use tensorwright_random::Rng;
