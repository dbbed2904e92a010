//! What compiled kernels run on, and how they are measured.
//!
//! | module | what |
//! | --- | --- |
//! | [`element`] | the number types that memory may be read as |
//! | [`buffer`] | [`AlignedBuffer`]: owned, zeroed, 64-byte aligned memory |
//! | [`view`] | [`View`]: a borrowed, strided input, and its dense copy |
//! | [`abi`] | the C types that a kernel and its caller share |
//! | [`pool`] | [`Pool`]: pinned threads that spin, then park, and notice a crowded machine |
//! | [`affinity`] | the processors this process may use, and pinning to one of them |
//! | [`machine`] | [`Machine`]: processor, features, caches and memory |
//! | [`probe`] | what the machine can do at this moment: FMA peak, read and copy bandwidth |
//! | [`timing`] | timing a kernel on a noisy machine, interleaved with a probe or a rival |
//!
//! This crate knows nothing of tensors, programs or schedules. It is also, with the LLVM back end,
//! one of the two places where `unsafe` is allowed; each block says why it is sound.

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
pub use view::{View, ViewError};
