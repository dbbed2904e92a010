//! CUDA, by its libraries at run time.
//!
//! Two libraries that know nothing of each other. NVIDIA's compiler ([`Nvrtc`]) needs no graphics processor: it makes
//! PTX and machine code of a text, and says what each kernel takes ([`Resources`]). The driver (`cuda`, `cuda:1`
//! among [devices](crate::devices)) runs them.
//!
//! | where | what |
//! | --- | --- |
//! | `find.rs` | where `pip` and installers put NVIDIA's files |
//! | `nvrtc.rs`, `resources.rs` | [`Nvrtc`], and what it says of kernels |
//! | `sass.rs` | [`Sass`]: machine code as text, and the cycles that an inner loop takes to issue |
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
