//! What code is generated for, as data: sizes, limits, names and fingerprints.
//!
//! A [`Target`] says what policy (rules, spaces, cost models) and code generators have to know of a
//! device. A [`Goal`] is a target with the wishes of somebody: how many workers, which precision. Code
//! generators derive from a target what their compiler wants to know, such as triples and feature strings;
//! nothing of that is here.
//!
//! | where | what |
//! | --- | --- |
//! | `cpu.rs`, `isa.rs` | processors, and the vector instructions that tell them apart |
//! | `gpu.rs`, `fpga.rs` | graphics processors and gate arrays |
//! | `named.rs` | the names of targets: one line each |
//! | `native.rs` | this machine, as its system describes it |
//! | `fingerprint.rs` | the name of a target in records |

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

/// What code is generated for.
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
    /// A processor.
    Cpu(Cpu),
    /// A graphics processor.
    Gpu(Gpu),
    /// A gate array.
    Fpga(Fpga),
}

impl Target {
    /// This machine's processor.
    ///
    /// # Errors
    /// If it is neither x86-64 nor AArch64.
    pub fn native() -> Result<Self, TargetError> {
        Cpu::native().map(Self::Cpu)
    }

    /// The target of a name: `native`, a kind of processor such as `avx2`, or a device such as
    /// `cuda:sm_90`. [`Target::names`] lists them.
    ///
    /// # Errors
    /// A name that nothing has, and a device that is not there.
    pub fn named(name: &str) -> Result<Self, TargetError> {
        named::named(name)
    }

    /// The names that [`Target::named`] takes, for people.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        named::names()
    }

    /// The name that [`Target::named`] takes.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Cpu(cpu) => cpu.name(),
            Self::Gpu(gpu) => &gpu.name,
            Self::Fpga(fpga) => &fpga.name,
        }
    }

    /// The processor, if it is one.
    #[must_use]
    pub fn cpu(&self) -> Option<&Cpu> {
        match self {
            Self::Cpu(cpu) => Some(cpu),
            _ => None,
        }
    }

    /// The graphics processor, if it is one.
    #[must_use]
    pub fn gpu(&self) -> Option<&Gpu> {
        match self {
            Self::Gpu(gpu) => Some(gpu),
            _ => None,
        }
    }

    /// The same with what this machine has, if this machine runs its code.
    #[must_use]
    pub fn on_this_machine(self) -> Self {
        match self {
            Self::Cpu(cpu) => Self::Cpu(cpu.on_this_machine()),
            other => other,
        }
    }

    /// Checks that this machine can run code for the target. A device that was found here is believed to be here still.
    ///
    /// # Errors
    /// If it cannot.
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

    /// The name of what measures here in records: two targets have the same one only if measurements of
    /// one hold for the other.
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
