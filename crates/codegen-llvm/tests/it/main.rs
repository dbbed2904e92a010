//! Tests of the crate through its public interface, in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is how a test speaks"
)]

mod emit;
mod exact;
mod jit;
mod kernels;
mod math;
mod support;
mod tile;
