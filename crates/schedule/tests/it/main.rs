//! Tests of the crate through its public interface, in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is how a test speaks"
)]

mod bound;
mod device;
mod limits;
mod primitives;
mod renaming;
mod tensors;
