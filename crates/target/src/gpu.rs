//! [`Gpu`]: a graphics processor.

/// A graphics processor: limits and sizes that decide which schedules are legal and which are good.
/// Tensor Comprehensions (section 4), FlexTensor (section 4.2) and Anderson et al. (section 3) map
/// loops to blocks and threads under these.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gpu {
    /// The name, such as `cuda:sm_90`.
    pub name: String,
    /// What it is programmed by.
    pub api: GpuApi,
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

impl Gpu {
    /// An architecture of NVIDIA's, by the limits of its compute capability.
    pub(crate) fn cuda(name: &str, shared_per_block: i64, shared_per_unit: i64) -> Self {
        Self {
            name: name.to_owned(),
            api: GpuApi::Cuda,
            warp: 32,
            threads_per_block: 1024,
            shared_per_block,
            shared_per_unit,
            registers_per_unit: 64 << 10,
            registers_per_thread: 255,
        }
    }
}
