//! Tests of the crate through its public interface, in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is how a test speaks"
)]

mod device;
mod emit;
mod exact;
mod examples;
mod hip;
mod interface;
mod signatures;
mod sized;
mod support;
mod tensor;
