//! Tests of the crate through its public interface, one program for all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is how a test speaks"
)]

mod common;
mod examples;
mod functions;
mod page;
mod properties;
mod random;
mod snapshots;
