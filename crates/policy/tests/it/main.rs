//! Tests of the public interface, in one test program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is how a test speaks"
)]

mod choices;
mod common;
mod definedness;
mod gpu;
mod many_statements;
mod pipelines;
mod rewritings;
mod rows;
mod schedules;
mod search_limits;
mod stencils;
mod targets;
