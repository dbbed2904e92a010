//! Runtime of compiled kernels, and tools to measure them.
//!
//! | module | contents |
//! | --- | --- |
//! | [`element`] | the number types of buffers |
//! | [`buffer`] | [`AlignedBuffer`]: owned, zeroed, 64-byte aligned memory |
//! | [`view`] | [`View`]: a borrowed, strided input, and its dense copy |
//! | [`abi`] | the C types of the interface between a kernel and its caller |
//! | [`pool`] | [`Pool`]: pinned threads that spin, then park, and detect oversubscription |
//! | [`affinity`] | the allowed CPUs, and pinning to one of them |
//! | [`machine`] | [`Machine`]: CPU, features, caches and memory |
//! | [`probe`] | current FMA peak, read and copy bandwidth |
//! | [`timing`] | timing a kernel on a noisy machine, interleaved with a probe or a competitor |
//!
//! This crate is independent of tensors, programs and schedules. Like the LLVM back end, it may use
//! `unsafe`; each block states why it is sound.

pub mod abi;
mod activity;
pub mod affinity;
pub mod buffer;
pub mod element;
pub mod fork;
mod installation;
pub mod machine;
pub mod pool;
pub mod probe;
#[cfg(test)]
mod tests;
pub mod timing;
pub mod view;

pub use activity::Activity;
pub use buffer::{AlignedBuffer, AllocError};
pub use element::Element;
pub use installation::installation;
pub use machine::Machine;
pub use pool::{Pool, PoolError};
pub use view::{View, ViewError, ViewMut};
