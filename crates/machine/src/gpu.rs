//! [`Gpu`]: a GPU target.

use std::fmt;

/// A GPU: the limits and sizes that decide which schedules are legal and which are good. Tensor
/// Comprehensions (section 4), FlexTensor (section 4.2) and Anderson et al. (section 3) map loops
/// to blocks and threads under these constraints.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gpu {
    /// The name, such as `cuda:sm_90`, `hip:gfx90a` or `opencl:0`.
    pub name: String,
    /// The vendor's model name, with the driver version if it is a device of this machine:
    /// measurements apply to all devices of the same model.
    pub model: String,
    /// The API.
    pub api: GpuApi,
    /// The number of multiprocessors, to which blocks are distributed.
    pub units: i64,
    /// The number of threads that run in lockstep: a warp or wavefront.
    pub warp: i64,
    /// The most threads of a block.
    pub threads_per_block: i64,
    /// The most bytes of shared memory of a block.
    pub shared_per_block: i64,
    /// The bytes of shared memory of a multiprocessor.
    pub shared_per_unit: i64,
    /// The 32-bit registers of a multiprocessor.
    pub registers_per_unit: i64,
    /// The most registers of a thread.
    pub registers_per_thread: i64,
    /// The bytes of the last-level cache, which all multiprocessors share.
    pub l2: i64,
    /// The memory bandwidth in bytes per second, if known: OpenCL does not report it.
    pub bandwidth: Option<i64>,
    /// The peak clock rate of a multiprocessor, in cycles per second.
    pub clock: i64,
    /// Whether it has matrix instructions (tensor cores).
    pub tensor: bool,
    /// Whether it is a CPU that runs threads as vector lanes: shared memory is then ordinary
    /// memory.
    pub is_processor: bool,
}

/// The API of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GpuApi {
    /// NVIDIA.
    Cuda,
    /// AMD.
    Hip,
    /// Khronos.
    OpenCl,
}

impl fmt::Display for GpuApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cuda => "CUDA",
            Self::Hip => "HIP",
            Self::OpenCl => "OpenCL",
        })
    }
}

/// The reference device of an architecture that is given by name only: its first large GPU.
pub(crate) struct Flagship {
    /// The vendor's model name.
    pub(crate) model: &'static str,
    /// The KiB of shared memory that a block may use.
    pub(crate) shared_per_block: i64,
    /// The KiB of shared memory of a multiprocessor.
    pub(crate) shared_per_unit: i64,
    /// The multiprocessors.
    pub(crate) units: i64,
    /// The MiB of its L2 cache.
    pub(crate) l2: i64,
    /// The memory bandwidth in GB per second.
    pub(crate) bandwidth: i64,
    /// The boost clock in MHz.
    pub(crate) clock: i64,
}

/// The differences between compute units of AMD's architectures.
pub(crate) struct ComputeUnits {
    /// The number of 32-bit registers, in units of 1024.
    pub(crate) registers: i64,
    /// The most registers of a thread.
    pub(crate) registers_per_thread: i64,
    /// Whether they have matrix instructions.
    pub(crate) tensor: bool,
}

impl Gpu {
    /// Whether it is a numbered device of this machine, and not an architecture.
    #[must_use]
    pub fn is_device(&self) -> bool {
        self.name.split_once(':').is_some_and(|(_, number)| number.parse::<u32>().is_ok())
    }

    /// Whether its tensor cores support `bfloat16` and `float` (`tf32`) besides `half`: NVIDIA's do
    /// from `sm_80` on.
    #[must_use]
    pub fn has_wide_tensors(&self) -> bool {
        let capability = [&self.name, &self.model].into_iter().find_map(|text| {
            let (_, after) = text.split_once("sm_")?;
            after.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
        });
        self.tensor && self.api == GpuApi::Cuda && capability.is_some_and(|number| number >= 80)
    }

    /// The memory bandwidth of all multiprocessors in bytes per cycle: eight per multiprocessor if
    /// unknown.
    #[must_use]
    pub fn bytes_per_cycle(&self) -> f64 {
        const OF_UNIT: f64 = 8.0;
        match (self.bandwidth, self.clock) {
            (Some(bandwidth), clock) if clock > 0 => bandwidth as f64 / clock as f64,
            _ => OF_UNIT * self.units.max(1) as f64,
        }
    }

    /// The bytes of shared memory that a kernel may declare statically. CUDA allows more if
    /// requested at run time.
    #[must_use]
    pub fn declared_shared(&self) -> i64 {
        const OF_CUDA: i64 = 48 << 10;
        match self.api {
            GpuApi::Cuda => self.shared_per_block.min(OF_CUDA),
            GpuApi::Hip | GpuApi::OpenCl => self.shared_per_block,
        }
    }

    /// An NVIDIA architecture: the limits of its compute capability, the sizes of its reference
    /// device.
    pub(crate) fn cuda(name: &str, flagship: &Flagship) -> Self {
        Self {
            name: name.to_owned(),
            model: flagship.model.to_owned(),
            api: GpuApi::Cuda,
            units: flagship.units,
            warp: 32,
            threads_per_block: 1024,
            shared_per_block: flagship.shared_per_block << 10,
            shared_per_unit: flagship.shared_per_unit << 10,
            registers_per_unit: 64 << 10,
            registers_per_thread: 255,
            l2: flagship.l2 << 20,
            bandwidth: Some(flagship.bandwidth * 1_000_000_000),
            clock: flagship.clock * 1_000_000,
            tensor: true,
            is_processor: false,
        }
    }

    /// An AMD architecture: the limits of its compute units, the sizes of its reference device.
    pub(crate) fn hip(name: &str, units: &ComputeUnits, flagship: &Flagship) -> Self {
        Self {
            api: GpuApi::Hip,
            warp: 64,
            registers_per_unit: units.registers << 10,
            registers_per_thread: units.registers_per_thread,
            tensor: units.tensor,
            is_processor: false,
            ..Self::cuda(name, flagship)
        }
    }
}
