//! CUDA, loaded at run time.
//!
//! Two independent libraries. NVIDIA's compiler ([`Nvrtc`]) needs no GPU: it compiles a text to PTX
//! and machine code, and reports each kernel's [`Resources`]. The driver (`cuda`, `cuda:1` among
//! [devices](crate::devices)) runs them.
//!
//! | file | contents |
//! | --- | --- |
//! | `find.rs` | finds NVIDIA's files |
//! | `nvrtc.rs`, `resources.rs` | [`Nvrtc`], and the resources of kernels |
//! | `sass.rs` | [`Sass`]: disassembly, and the issue cycles of an inner loop |
//! | `driver/` | [`Device`](crate::Device) |

mod driver;
mod find;
mod nvrtc;
mod resources;
mod sass;

pub use driver::open_with;
pub use nvrtc::{Compiled, Nvrtc};
pub use resources::Resources;
pub use sass::{InnerLoop, Sass};

pub(crate) use driver::API;
