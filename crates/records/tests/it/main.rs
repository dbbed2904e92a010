//! Tests of the crate through its public interface, one program for all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is how a test speaks"
)]

#[cfg(feature = "postgres")]
mod encrypted;
mod faults;
mod older;
mod processes;
mod scale;
#[cfg(feature = "postgres")]
mod server;
mod store;
mod support;
mod transfer;
mod trust;
