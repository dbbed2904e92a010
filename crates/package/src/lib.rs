//! Ahead-of-time packages: libraries with kernels for given operators, sizes and processors.
//!
//! ```text
//! Manifest -> Plan          every program bound, sizes that vary proven to
//!          -> kernels       compiled in parallel, with schedules from records
//!          -> Package       C source that dispatches, libraries, header, crate
//! ```
//!
//! These steps are [`Plan::new`], [`Plan::build`] and [`Package::write`]. docs/packaging.md is for
//! users of packages.

mod archive;
pub mod buckets;
pub mod cc;
mod compile;
mod level;
mod names;
mod operator;
mod options;
mod package;
mod plan;
mod sizes;
pub mod system;
#[cfg(test)]
mod tests;
mod text;

pub use level::Level;
pub use options::{BuildOptions, Progress};
pub use package::Package;
pub use plan::Plan;
pub use sizes::{SizedProgram, Sizes};
