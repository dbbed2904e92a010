//! Tests of the CUDA host code against a stand-in driver.
//!
//! They check functions, order and arguments of driver calls. They say nothing about GPUs.
#![allow(unsafe_code, reason = "launches kernels and asks the stand-in")]

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cuda::open_with;
use crate::tests::common::{gemm, nvrtc, shift};
use crate::{
    Arguments, DEFAULT_DEADLINE, Device, DeviceError, DeviceProgram, Kernel, Memory, Probe,
    ProbeKind, StreamHandle, set_deadline,
};
use tensorwright_schedule::interface::Function;

/// Translates an OpenCL program to CUDA.
fn translate(mut program: DeviceProgram) -> DeviceProgram {
    let words = [
        ("kernel void", "extern \"C\" __global__ void"),
        ("global const ", "const "),
        ("global uchar", "unsigned char"),
        ("global ", ""),
        ("local float", "__shared__ float"),
        ("get_local_id(0)", "threadIdx.x"),
        ("get_local_id(1)", "threadIdx.y"),
        ("get_group_id(0)", "blockIdx.x"),
        ("get_group_id(1)", "blockIdx.y"),
        ("get_global_id(0)", "blockIdx.x * blockDim.x + threadIdx.x"),
        ("barrier(CLK_LOCAL_MEM_FENCE)", "__syncthreads()"),
        ("*restrict", "*__restrict__"),
    ];
    for (from, to) in words {
        program.source = program.source.replace(from, to);
    }
    program.source = program.source.replace("__global__", "\u{1}").replace("global ", "");
    program.source = program.source.replace('\u{1}', "__global__");
    program
}

/// A driver that runs a program's text, and its folder.
struct StandIn {
    path: PathBuf,
    library: libloading::Library,
    _folder: tempfile::TempDir,
}

impl StandIn {
    /// `None` without NVIDIA's compiler, which creates the machine code for the driver.
    fn new(program: &DeviceProgram) -> Option<Self> {
        nvrtc()?;
        let folder = tempfile::tempdir().unwrap();
        let (text, path) = (folder.path().join("text.cu"), folder.path().join("libcuda.so.1"));
        std::fs::write(&text, &program.source).unwrap();
        let entry = |launch: &crate::LaunchPlan| {
            let (name, arguments) = (&launch.kernel, launch.parameters.len() + 2);
            format!("{{\"{name}\", (void *){name}, {arguments}, {}}}, ", launch.shared_bytes)
        };
        let entries: String = program.launches.iter().map(entry).collect();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/stand_in/libcuda.cpp");
        let output = Command::new("g++")
            .args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o"])
            .arg(&path)
            .arg(format!("-DTEXT=\"{}\"", text.display()))
            .arg(format!("-DENTRIES={entries}"))
            .arg(source)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // SAFETY: the library was just built, and runs no code when loaded.
        let library = unsafe { libloading::Library::new(&path) }.unwrap();
        Some(Self { path, library, _folder: folder })
    }

    fn open(&self) -> Box<dyn Device> {
        open_with(&self.path, 0).unwrap()
    }

    /// The functions that were called since the last call.
    fn calls(&self) -> Vec<String> {
        // SAFETY: both functions have these types in the stand-in.
        unsafe {
            let calls =
                self.library.get::<extern "C" fn() -> *const c_char>(b"stand_in_calls").unwrap();
            let forget = self.library.get::<extern "C" fn()>(b"stand_in_forget").unwrap();
            let text = CStr::from_ptr(calls()).to_str().unwrap().to_owned();
            forget();
            text.lines().map(str::to_owned).collect()
        }
    }

    /// Makes a function fail from now on.
    fn fail(&self, name: &str, code: c_int) {
        let name = CString::new(name).unwrap();
        // SAFETY: the function has this type in the stand-in.
        unsafe {
            let fail = self.library.get::<extern "C" fn(*const c_char, c_int)>(b"stand_in_fail");
            fail.unwrap()(name.as_ptr(), code);
        }
    }

    /// The number of allocations.
    fn memory(&self) -> usize {
        // SAFETY: the function has this type in the stand-in.
        unsafe { self.library.get::<extern "C" fn() -> usize>(b"stand_in_memory").unwrap()() }
    }
}

fn tensor(device: &mut dyn Device, values: &[f32]) -> Memory {
    let memory = device.allocate(4 * values.len() as u64).unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    device.upload(&memory, 0, &bytes).unwrap();
    memory
}

fn floats(device: &mut dyn Device, memory: &Memory) -> Vec<f32> {
    let mut bytes = vec![0; memory.bytes() as usize];
    device.download(memory, 0, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn devices_say_what_they_are() {
    let Some(stand_in) = StandIn::new(&translate(gemm(64))) else { return };
    let device = stand_in.open();
    let (description, gpu) = (device.describe(), &device.describe().gpu);
    assert_eq!(gpu.model, "Stand-in (sm_80, CUDA 12.9)");
    assert_eq!((gpu.name.as_str(), gpu.units, gpu.warp, gpu.tensor), ("cuda:0", 108, 32, true));
    assert_eq!(gpu.bandwidth, Some(1_555_200_000_000));
    assert_eq!(description.limits.grid, [2_147_483_647, 65535, 65535]);
    assert_eq!(
        description.to_string(),
        "Stand-in (sm_80, CUDA 12.9) (NVIDIA CUDA, CUDA 12.9; a graphics processor of 108 \
         units, 1.1 GB, blocks of at most 1024 threads and 48 KiB)"
    );
    let error = open_with(&stand_in.path, 3).err().unwrap();
    assert_eq!(error.to_string(), "there is no device `cuda:3`");
}

#[test]
fn a_product_runs_as_the_driver_wants_it() {
    let program = translate(gemm(64));
    let Some(stand_in) = StandIn::new(&program) else { return };
    let mut device = stand_in.open();
    let device = device.as_mut();
    let kernel = Kernel::load(device, &program).unwrap();
    let values: Vec<f32> = (0..64 * 64).map(|i| (i % 7) as f32 - 3.0).collect();
    let (a, b) = (tensor(device, &values), tensor(device, &values));
    let c = tensor(device, &vec![f32::NAN; 64 * 64]);
    let _ = stand_in.calls();
    // SAFETY: the kernel is the one of the test.
    let call = unsafe { kernel.call(device, Function::Compute, &[&a, &b, &c]) };
    assert_eq!(call.unwrap().launches.len(), 1);
    assert_eq!(
        stand_in.calls(),
        [
            "cuEventRecord",
            "cuLaunchKernel",
            "cuEventRecord",
            "cuStreamSynchronize",
            "cuMemcpyDtoH_v2"
        ]
    );
    for (at, found) in floats(device, &c).into_iter().enumerate() {
        let sum: f32 = (0..64).map(|k| values[at / 64 * 64 + k] * values[k * 64 + at % 64]).sum();
        assert_eq!(found, sum);
    }
}

/// Other libraries have memory on the device, and streams for ordering.
#[test]
fn memory_and_streams_of_others_are_honoured() {
    let program = translate(shift(100));
    let Some(stand_in) = StandIn::new(&program) else { return };
    let mut device = stand_in.open();
    let device = device.as_mut();
    let loaded = device.load(&program).unwrap();
    let theirs: [Vec<Cell<f32>>; 2] =
        [(0..100).map(|i| Cell::new(i as f32)).collect(), vec![Cell::new(0.0); 100]];
    let found = || theirs[1].iter().map(Cell::get).collect::<Vec<f32>>();
    let (workspace, status) = (device.allocate(4096).unwrap(), device.allocate(4).unwrap());
    let stream = StreamHandle(77);
    let _ = stand_in.calls();
    let streams = device.streams().unwrap();
    // SAFETY: the stand-in's device has the memory of the process, and the kernels are those of the test.
    unsafe {
        let memory = theirs.each_ref().map(|tensor| streams.borrow(tensor.as_ptr() as u64, 400));
        let parameters: Vec<&Memory> = memory.iter().collect();
        let arguments =
            Arguments { parameters: &parameters, workspace: &workspace, status: &status };
        streams.launch_on(stream, &loaded, Function::Compute, &arguments).unwrap();
    }
    assert_eq!(found(), [0.0; 100], "nobody has waited");
    streams.wait_for(stream).unwrap();
    assert_eq!(stand_in.calls(), ["cuLaunchKernel", "cuLaunchKernel", "cuStreamSynchronize"]);
    let expected: Vec<f32> = (0..100).map(|i| 2.0 * ((i + 1) % 100) as f32).collect();
    assert_eq!(found(), expected);
    assert_eq!(stand_in.memory(), 2, "what others own is theirs");

    let short = streams.upload_on(stream, &status, &[0; 8]).unwrap_err();
    assert!(short.to_string().contains("not inside of memory of 4 bytes"), "{short}");
}

#[test]
fn launches_run_in_order_and_all_is_given_back() {
    let program = translate(shift(100));
    let Some(stand_in) = StandIn::new(&program) else { return };
    let mut device = stand_in.open();
    let kernel = Kernel::load(device.as_mut(), &program).unwrap();
    let values: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let (a, b) = (tensor(device.as_mut(), &values), tensor(device.as_mut(), &[0.0; 100]));
    // SAFETY: the kernels are those of the test.
    let call = unsafe { kernel.call(device.as_mut(), Function::Compute, &[&a, &b]) };
    assert_eq!(call.unwrap().launches.len(), 2);
    let expected: Vec<f32> = (0..100).map(|i| 2.0 * ((i + 1) % 100) as f32).collect();
    assert_eq!(floats(device.as_mut(), &b), expected);
    let _ = stand_in.calls();
    drop((a, b, kernel));
    let calls = stand_in.calls();
    assert_eq!(calls.iter().filter(|call| *call == "cuMemFree_v2").count(), 4, "{calls:?}");
    assert_eq!(calls.iter().filter(|call| *call == "cuModuleUnload").count(), 1, "{calls:?}");
    assert_eq!(stand_in.memory(), 0);
    drop(device);
    assert_eq!(stand_in.calls(), ["cuStreamDestroy_v2", "cuDevicePrimaryCtxRelease_v2"]);
}

#[test]
fn failures_say_what_failed() {
    let program = translate(shift(100));
    let Some(stand_in) = StandIn::new(&program) else { return };
    let mut device = stand_in.open();
    let device = device.as_mut();
    let error = device.allocate(1 << 40).unwrap_err();
    assert_eq!(error.to_string(), "cuda:0 cannot allocate 1099511627776 bytes");
    let mut missing = program.clone();
    missing.launches[0].kernel = "thrice".to_owned();
    let error = device.load(&missing).unwrap_err();
    assert!(error.to_string().contains("the text has no kernel `thrice`"), "{error}");
    let mut few = program.clone();
    few.launches[0].parameters.clear();
    let error = device.load(&few).unwrap_err();
    assert!(error.to_string().contains("takes 3 arguments and is passed 2"), "{error}");
    let mut large = program.clone();
    large.launches[0].grid[1] = 70_000;
    assert!(matches!(device.load(&large).unwrap_err(), DeviceError::Limit { .. }));
    let mut text = program.clone();
    text.source.push_str("nonsense");
    assert!(matches!(device.load(&text).unwrap_err(), DeviceError::Build { .. }));

    let kernel = Kernel::load(device, &program).unwrap();
    let (a, b) = (tensor(device, &[0.0; 100]), tensor(device, &[0.0; 100]));
    // SAFETY: the kernels are those of the test.
    let mut call = || unsafe { kernel.call(device, Function::Compute, &[&a, &b]) };
    stand_in.fail("cuStreamSynchronize", 700);
    let error = call().unwrap_err();
    let text = "kernel `shift` failed on cuda:0: `cuStreamSynchronize` returned CUDA_ERROR_ILLEGAL_ADDRESS (700)";
    assert_eq!(error.to_string(), text);
    stand_in.fail("cuStreamSynchronize", 999);
    assert!(matches!(call().unwrap_err(), DeviceError::Lost { .. }));
    stand_in.fail("", 0);
    call().unwrap();
}

/// All later calls fail too, and nothing is released, because the driver would wait for the kernel.
#[test]
fn a_kernel_that_does_not_end_is_late() {
    let program = translate(shift(100));
    let Some(stand_in) = StandIn::new(&program) else { return };
    let mut device = stand_in.open();
    let kernel = Kernel::load(device.as_mut(), &program).unwrap();
    let (a, b) = (tensor(device.as_mut(), &[0.0; 100]), tensor(device.as_mut(), &[0.0; 100]));
    set_deadline(Duration::from_millis(50));
    stand_in.fail("cuStreamQuery", 600);
    for _ in 0..2 {
        // SAFETY: the kernels are those of the test.
        let call = unsafe { kernel.call(device.as_mut(), Function::Compute, &[&a, &b]) };
        let text = "kernel `shift` did not end on cuda:0 within 50ms";
        assert_eq!(call.unwrap_err().to_string(), text);
        stand_in.fail("", 0);
    }
    set_deadline(DEFAULT_DEADLINE);
    stand_in.calls();
    drop((kernel, a, b, device));
    assert_eq!(stand_in.calls(), [""; 0]);
}

#[test]
fn the_text_of_probes_compiles() {
    let Some(stand_in) = StandIn::new(&translate(shift(100))) else { return };
    let mut device = stand_in.open();
    for kind in [ProbeKind::Bandwidth, ProbeKind::Arithmetic] {
        // The stand-in lacks this text, and reports it after the compiler has accepted it.
        let error = Probe::new(device.as_mut(), kind).unwrap_err();
        assert!(error.to_string().contains("no kernel `tw_probe`"), "{error}");
    }
}
