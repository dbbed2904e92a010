//! [`Probe`]: benchmarks of a device's current speed.
#![allow(unsafe_code, reason = "launches kernels of its own")]

use tensorwright_lang::Module;
use tensorwright_machine::GpuApi;
use tensorwright_schedule::interface::Function;
use tensorwright_schedule::{Interface, canonical, lower};

use crate::{Device, DeviceError, DeviceProgram, Kernel, LaunchPlan, Memory};

/// The resource that a probe measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    /// Memory: the bytes per second that a copy reads or writes.
    Bandwidth,
    /// Arithmetic: multiply-add operations per second in `float`.
    Arithmetic,
}

/// The bytes of each tensor of a memory probe, unless large caches need more.
const BYTES: i64 = 32 << 20;

/// The most bytes of each tensor.
const MOST_BYTES: i64 = 256 << 20;

/// The elements of an arithmetic probe per multiprocessor.
const ELEMENTS_PER_UNIT: i64 = 1 << 14;

/// The operations per thread of an arithmetic probe: eight chains, which hide latency, of 256
/// steps.
const OPERATIONS: i64 = 2 * 8 * 256;

/// The threads of a block.
const BLOCK: i64 = 128;

const BODY: &str = "
    float x = a[i], c0 = x, c1 = x + 1, c2 = x + 2, c3 = x + 3, c4 = x + 4, c5 = x + 5, c6 = x + 6, c7 = x + 7;
    for (int step = 0; step < 256; step++) {
        c0 = fma(c0, x, c0); c1 = fma(c1, x, c1); c2 = fma(c2, x, c2); c3 = fma(c3, x, c3);
        c4 = fma(c4, x, c4); c5 = fma(c5, x, c5); c6 = fma(c6, x, c6); c7 = fma(c7, x, c7);
    }
    b[i] = ((c0 + c1) + (c2 + c3)) + ((c4 + c5) + (c6 + c7));";

/// A small program whose speed is bound by one resource.
#[derive(Debug)]
pub struct Probe {
    kind: ProbeKind,
    kernel: Kernel,
    tensors: [Memory; 2],
    /// Bytes or operations of a run.
    work: f64,
}

impl Probe {
    /// Compiles a probe for a device.
    ///
    /// # Errors
    /// The device cannot run it.
    ///
    /// ```
    /// use tensorwright_device::{DeviceError, Probe, ProbeKind, open};
    ///
    /// if let Ok(mut device) = open("opencl") {
    ///     let probe = Probe::new(device.as_mut(), ProbeKind::Arithmetic)?;
    ///     assert!(probe.run_once(device.as_mut())? > 1e6);
    /// }
    /// # Ok::<(), DeviceError>(())
    /// ```
    pub fn new(device: &mut dyn Device, kind: ProbeKind) -> Result<Self, DeviceError> {
        let gpu = &device.describe().gpu;
        let elements = match kind {
            ProbeKind::Bandwidth => gpu.l2.saturating_mul(2).clamp(BYTES, MOST_BYTES) / 4,
            ProbeKind::Arithmetic => gpu.units.clamp(1, 1 << 10) * ELEMENTS_PER_UNIT,
        };
        let source = source(gpu.api, kind);
        let no_interface = || device.describe().mismatch("the interface of a probe is none");
        let interface = interface(elements).ok_or_else(no_interface)?;
        let block = BLOCK.min(gpu.threads_per_block).max(1);
        // The number of elements is a multiple of any supported block size.
        let grid = [(elements / block).unsigned_abs(), 1, 1];
        let launch =
            LaunchPlan::new("tw_probe", grid, [block as u32, 1, 1]).with_parameters([0, 1]);
        let program = DeviceProgram::new(source, interface, vec![launch]);
        let kernel = Kernel::load(device, &program)?;
        let bytes = 4 * elements.unsigned_abs();
        let tensors = [device.allocate(bytes)?, device.allocate(bytes)?];
        device.upload(&tensors[0], 0, &vec![0; bytes as usize])?;
        let work = match kind {
            ProbeKind::Bandwidth => 2 * 4 * elements,
            ProbeKind::Arithmetic => OPERATIONS * elements,
        };
        Ok(Self { kind, kernel, tensors, work: work as f64 })
    }

    /// The resource that it measures.
    #[must_use]
    pub fn kind(&self) -> ProbeKind {
        self.kind
    }

    /// Runs it once; returns bytes or operations per second.
    ///
    /// # Errors
    /// The launch fails.
    pub fn run_once(&self, device: &mut dyn Device) -> Result<f64, DeviceError> {
        let tensors = [&self.tensors[0], &self.tensors[1]];
        // SAFETY: the kernels of this file have a thread per element of both tensors, and only
        // access that.
        let elapsed = unsafe { self.kernel.call(device, Function::Compute, &tensors) }?;
        Ok(self.work / elapsed.total.as_secs_f64().max(1e-9))
    }
}

/// The interface of a probe: a tensor in, a tensor out.
fn interface(elements: i64) -> Option<Interface> {
    let text = "def tw_probe(float(N) A) -> (B) { B(i) = A(i) }";
    let program = Module::parse("probe", text).ok()?.bind("tw_probe", [("N", elements)]).ok()?;
    Some(Interface::of(&lower(canonical(&program)).ok()?))
}

fn source(api: GpuApi, kind: ProbeKind) -> String {
    let body = match kind {
        ProbeKind::Bandwidth => " b[i] = a[i];",
        ProbeKind::Arithmetic => BODY,
    };
    match api {
        GpuApi::OpenCl => format!(
            "kernel void tw_probe(global const float *restrict a, global float *restrict b,\n\
             global uchar *workspace, global int *status) {{\n    size_t i = get_global_id(0);{body}\n}}\n"
        ),
        GpuApi::Cuda | GpuApi::Hip => format!(
            "extern \"C\" __global__ void tw_probe(const float *__restrict__ a, float *__restrict__ b,\n\
             unsigned char *workspace, int *status) {{\n    \
             size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;{body}\n}}\n"
        ),
    }
}
