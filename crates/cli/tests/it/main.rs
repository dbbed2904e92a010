//! Tests of the crate through its public interface, one program for all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is how a test speaks"
)]

mod cli;
mod cost_model;
mod db;
mod defects;
mod diagnostics;
mod escapes;
mod exports;
#[cfg(feature = "fleet")]
mod fleet;
#[cfg(feature = "fleet")]
mod fleet_tune;
mod mentions;
mod names;
mod operations;
mod package;
#[cfg(feature = "fleet")]
mod server;
mod special_files;
mod trust;
mod tune;
mod tune_examples;
