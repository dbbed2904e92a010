//! [`Description`]: what a device is, as its runtime tells.

use std::fmt;

use tensorwright_machine::Gpu;

/// What a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// What runs it: `Portable Computing Language`, `NVIDIA CUDA`.
    pub platform: String,
    /// The version of the API that it has.
    pub version: String,
    /// The version of its driver.
    pub driver: String,
    /// What kind of device it is.
    pub kind: DeviceKind,
    /// Its name among devices, its model, and what schedules have to know of it.
    pub gpu: Gpu,
    /// What it refuses.
    pub limits: Limits,
    /// Whether kernels can work on the memory of this process ([`Device::adopt`](crate::Device::adopt)), not
    /// on a copy.
    pub shares_memory: bool,
}

/// What kind of device it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    /// A graphics processor.
    Gpu,
    /// Something that is neither of the others.
    Accelerator,
    /// The processor of this machine: what it takes says nothing about graphics processors.
    Cpu,
}

/// What a device refuses, beside what [`Gpu`] says.
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
    /// The name that [`open`](crate::open) takes.
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
