//! [`Description`]: the properties of a device.

use std::fmt;

use tensorwright_machine::Gpu;

/// The properties of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The platform: `Portable Computing Language`, `NVIDIA CUDA`.
    pub platform: String,
    /// The version of the API.
    pub version: String,
    /// The version of the driver.
    pub driver: String,
    /// The kind of device.
    pub kind: DeviceKind,
    /// The name, model and properties for scheduling.
    pub gpu: Gpu,
    /// The limits.
    pub limits: Limits,
    /// Whether kernels can access the memory of this process
    /// ([`Device::adopt`](crate::Device::adopt)) without a copy.
    pub shares_memory: bool,
}

/// The kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    /// A GPU.
    Gpu,
    /// Another accelerator.
    Accelerator,
    /// The CPU of this machine: its timings do not apply to GPUs.
    Cpu,
}

/// Limits of a device beyond those of [`Gpu`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most threads of a block in x, y and z.
    pub block: [u64; 3],
    /// The most blocks in x, y and z.
    pub grid: [u64; 3],
    /// The bytes of its memory.
    pub memory: u64,
    /// The most bytes of one allocation.
    pub allocation: u64,
}

impl Description {
    /// The name that [`open`](crate::open) accepts.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.gpu.name
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gpu => "graphics processor",
            Self::Accelerator => "accelerator",
            Self::Cpu => "processor",
        })
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { platform, version, gpu, kind, limits, .. } = self;
        let (units, threads, shared) = (gpu.units, gpu.threads_per_block, gpu.shared_per_block);
        write!(
            f,
            "{} ({platform}, {version}; a {kind} of {units} units, {:.1} GB, blocks of at most {threads} \
             threads and {} KiB)",
            gpu.model,
            limits.memory as f64 / 1e9,
            shared >> 10,
        )
    }
}
