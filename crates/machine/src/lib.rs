//! Targets of code generation: sizes, limits, names and fingerprints.
//!
//! A [`Target`] describes a device for policy (rules, spaces, cost models) and code generators. A
//! [`Goal`] adds user options: the number of workers and the precision. Code generators derive
//! compiler-specific data from a target, such as triples and feature strings; this crate has none
//! of that.
//!
//! | file | contents |
//! | --- | --- |
//! | `cpu.rs`, `isa.rs` | CPUs, and their vector instruction sets |
//! | `gpu.rs`, `fpga.rs` | GPUs and FPGAs |
//! | `named.rs` | the names of targets: one line each |
//! | `native.rs` | detection of this machine's CPU |
//! | `fingerprint.rs` | the identifier of a target in records |

mod cpu;
mod error;
mod fingerprint;
mod fpga;
mod goal;
mod gpu;
mod isa;
mod named;
mod native;

use std::fmt;
use std::str::FromStr;

pub use cpu::{Cpu, CpuCaches};
pub use error::TargetError;
pub use fingerprint::{fingerprint, fingerprint_features, fingerprint_parts};
pub use fpga::Fpga;
pub use goal::Goal;
pub use gpu::{Gpu, GpuApi};
pub use isa::VectorIsa;
pub use native::{Caches, features, model};

/// A target of code generation.
///
/// ```
/// use tensorwright_machine::Target;
///
/// let target = Target::named("avx512")?;
/// assert_eq!(target.cpu().map(|cpu| cpu.lanes(4)), Some(16));
/// assert!(Target::named("cuda:sm_90")?.cpu().is_none());
/// # Ok::<(), tensorwright_machine::TargetError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// A CPU.
    Cpu(Cpu),
    /// A GPU.
    Gpu(Gpu),
    /// An FPGA.
    Fpga(Fpga),
}

impl Target {
    /// The CPU of this machine.
    ///
    /// # Errors
    /// The CPU is neither x86-64 nor AArch64.
    pub fn native() -> Result<Self, TargetError> {
        Cpu::native().map(Self::Cpu)
    }

    /// The target of a name: `native`, a generic CPU such as `avx2`, or a device such as
    /// `cuda:sm_90`. [`Target::names`] lists them.
    ///
    /// # Errors
    /// An unknown name, or an unavailable device.
    pub fn named(name: &str) -> Result<Self, TargetError> {
        named::named(name)
    }

    /// The names that [`Target::named`] accepts, for display.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        named::names()
    }

    /// The name that [`Target::named`] accepts.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Cpu(cpu) => cpu.name(),
            Self::Gpu(gpu) => &gpu.name,
            Self::Fpga(fpga) => &fpga.name,
        }
    }

    /// The CPU, if it is one.
    #[must_use]
    pub fn cpu(&self) -> Option<&Cpu> {
        match self {
            Self::Cpu(cpu) => Some(cpu),
            _ => None,
        }
    }

    /// The GPU, if it is one.
    #[must_use]
    pub fn gpu(&self) -> Option<&Gpu> {
        match self {
            Self::Gpu(gpu) => Some(gpu),
            _ => None,
        }
    }

    /// Uses this machine's properties, if this machine can run the code.
    #[must_use]
    pub fn on_this_machine(self) -> Self {
        match self {
            Self::Cpu(cpu) => Self::Cpu(cpu.on_this_machine()),
            other => other,
        }
    }

    /// Checks that this machine can run code for the target. A device that was detected earlier is
    /// assumed to be still available.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_runs_here(&self) -> Result<(), TargetError> {
        match self {
            Self::Cpu(cpu) => cpu.check_runs_here(),
            Self::Gpu(gpu) if gpu.is_device() => Ok(()),
            other => {
                let here = Cpu::native()?.name().to_owned();
                Err(TargetError::Foreign { name: other.name().to_owned(), here })
            }
        }
    }

    /// The identifier in records: two targets share it only if measurements of one apply to the
    /// other.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Cpu(cpu) => cpu.fingerprint(),
            Self::Gpu(gpu) => fingerprint(&gpu.model, [gpu.api.to_string().as_str()]),
            Self::Fpga(fpga) => fingerprint(&fpga.name, []),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(name: &str) -> Result<Self, TargetError> {
        Self::named(name)
    }
}

impl From<Gpu> for Target {
    fn from(gpu: Gpu) -> Self {
        Self::Gpu(gpu)
    }
}

impl From<Cpu> for Target {
    fn from(cpu: Cpu) -> Self {
        Self::Cpu(cpu)
    }
}
