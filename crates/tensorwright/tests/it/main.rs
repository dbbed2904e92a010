//! Tests of the crate through its public interface, one program for all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is how a test speaks"
)]

mod conversions;
mod devices;
mod frozen;
mod golden;
mod kernel;
mod language_page;
mod many_statements;
mod object_cache;
mod oracle;
mod pipelines;
mod properties;
mod scale;
mod sized;
mod softmax;
mod winograd;
