//! Tests of the public interface.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is how a test speaks"
)]

mod common;
mod cuda_stand_in;
mod nvrtc;
mod opencl;
