//! [`Gpu`]: a graphics processor.

use std::fmt;

/// A graphics processor: limits and sizes that decide which schedules are legal and which are good.
/// Tensor Comprehensions (section 4), FlexTensor (section 4.2) and Anderson et al. (section 3) map
/// loops to blocks and threads under these.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gpu {
    /// The name, such as `cuda:sm_90`, `hip:gfx90a` or `opencl:0`.
    pub name: String,
    /// What its maker calls it, with the version of its driver if it is a device that is here: measurements of
    /// one hold for another of the same model.
    pub model: String,
    /// What it is programmed by.
    pub api: GpuApi,
    /// The multiprocessors: what blocks are distributed to.
    pub units: i64,
    /// The threads that run in step: a warp, a wavefront.
    pub warp: i64,
    /// The most threads of a block.
    pub threads_per_block: i64,
    /// The bytes of shared memory that a block may have.
    pub shared_per_block: i64,
    /// The bytes of shared memory of a multiprocessor.
    pub shared_per_unit: i64,
    /// The 32-bit registers of a multiprocessor.
    pub registers_per_unit: i64,
    /// The most registers of a thread.
    pub registers_per_thread: i64,
    /// The bytes of the cache that all multiprocessors share.
    pub l2: i64,
    /// The bytes per second of its memory, if that is known: OpenCL does not tell.
    pub bandwidth: Option<i64>,
    /// The cycles per second of a multiprocessor, at most.
    pub clock: i64,
    /// Whether it multiplies small matrices in one instruction.
    pub tensor: bool,
    /// Whether it is a processor that runs threads as lanes of vectors: what a block shares is then memory like any other.
    pub is_processor: bool,
}

/// What a graphics processor is programmed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GpuApi {
    /// NVIDIA's.
    Cuda,
    /// AMD's.
    Hip,
    /// Khronos's.
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

/// The device that stands for an architecture where only the name of the architecture is given: the first large one that
/// had it.
pub(crate) struct Flagship {
    /// What its maker calls it.
    pub(crate) model: &'static str,
    /// The KiB of shared memory that a block may have.
    pub(crate) shared_per_block: i64,
    /// The KiB of shared memory of a multiprocessor.
    pub(crate) shared_per_unit: i64,
    /// The multiprocessors.
    pub(crate) units: i64,
    /// The MiB of its second cache.
    pub(crate) l2: i64,
    /// The GB per second of its memory.
    pub(crate) bandwidth: i64,
    /// The MHz that it can be boosted to.
    pub(crate) clock: i64,
}

/// What tells the compute units of AMD's architectures apart.
pub(crate) struct ComputeUnits {
    /// The thousands (of 1024) of 32-bit registers.
    pub(crate) registers: i64,
    /// The most registers of a thread.
    pub(crate) registers_per_thread: i64,
    /// Whether they multiply small matrices in one instruction.
    pub(crate) tensor: bool,
}

impl Gpu {
    /// Whether it is a device of this machine, which has a number, and not an architecture.
    #[must_use]
    pub fn is_device(&self) -> bool {
        self.name.split_once(':').is_some_and(|(_, number)| number.parse::<u32>().is_ok())
    }

    /// Whether it multiplies matrices of `bfloat16` and `float` (`tf32`) as it does those of `half`: NVIDIA's from `sm_80` on.
    #[must_use]
    pub fn has_wide_tensors(&self) -> bool {
        let capability = [&self.name, &self.model].into_iter().find_map(|text| {
            let (_, after) = text.split_once("sm_")?;
            after.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
        });
        self.tensor && self.api == GpuApi::Cuda && capability.is_some_and(|number| number >= 80)
    }

    /// The bytes that all multiprocessors together move per cycle to and from memory: eight each where the device does not
    /// tell.
    #[must_use]
    pub fn bytes_per_cycle(&self) -> f64 {
        const OF_UNIT: f64 = 8.0;
        match (self.bandwidth, self.clock) {
            (Some(bandwidth), clock) if clock > 0 => bandwidth as f64 / clock as f64,
            _ => OF_UNIT * self.units.max(1) as f64,
        }
    }

    /// The bytes of shared memory that the text of a kernel may declare. CUDA has more for those who ask for it at run time.
    #[must_use]
    pub fn declared_shared(&self) -> i64 {
        const OF_CUDA: i64 = 48 << 10;
        match self.api {
            GpuApi::Cuda => self.shared_per_block.min(OF_CUDA),
            GpuApi::Hip | GpuApi::OpenCl => self.shared_per_block,
        }
    }

    /// An architecture of NVIDIA's: the limits of its compute capability, the sizes of its flagship.
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

    /// An architecture of AMD's: the limits of its compute units, the sizes of its flagship.
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
