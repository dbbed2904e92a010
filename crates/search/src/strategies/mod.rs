//! One file per strategy.

pub(crate) mod random;
