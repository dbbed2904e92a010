//! Search strategies, one file each.

mod annealed;
pub(crate) mod descent;
pub(crate) mod exhaustive;
pub(crate) mod gaussian;
pub(crate) mod gbfs;
pub(crate) mod genetic;
mod learned;
pub(crate) mod n_a2c;
pub(crate) mod op_evo;
pub(crate) mod p_method;
pub(crate) mod portfolio;
pub(crate) mod q_method;
pub(crate) mod random;
pub(crate) mod surrogate;

pub use op_evo::q_random_walk;
