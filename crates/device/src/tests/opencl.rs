//! Tests of programs on all OpenCL devices of this machine.
#![allow(unsafe_code, reason = "launches kernels")]

use crate::tests::common::{devices, gemm, interface, shift};
use std::time::Duration;

use crate::{
    Arguments, Device, DeviceError, DeviceKind, DeviceProgram, GuardedMemory, Kernel, LaunchPlan,
    Memory, Overrun, Probe, ProbeKind, STATUS_BYTES, open, set_deadline,
};
use tensorwright_schedule::interface::Function;

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

fn tensor(device: &mut dyn Device, values: &[f32]) -> Memory {
    let memory = device.allocate(4 * values.len() as u64).unwrap();
    device.upload(&memory, 0, &bytes(values)).unwrap();
    memory
}

#[test]
fn devices_say_what_they_are() {
    for device in devices() {
        let description = device.describe();
        let gpu = &description.gpu;
        assert!(gpu.units > 0 && gpu.warp > 0 && gpu.threads_per_block >= 64, "{description:?}");
        assert!(gpu.shared_per_block >= 16 << 10 && description.limits.memory > 64 << 20);
        assert_eq!(gpu.bandwidth, None);
        assert!(description.version.starts_with("OpenCL"), "{description}");
        assert!(!gpu.model.is_empty() && !description.platform.is_empty());
        assert_eq!(open(description.name()).unwrap().describe(), description);
        if description.kind == DeviceKind::Cpu {
            assert!(description.shares_memory);
        }
    }
}

#[test]
fn a_product_with_shared_memory_and_barriers() {
    let size = 64;
    let values = |seed: usize| -> Vec<f32> {
        (0..size * size).map(|i| ((i * seed + i / size) % 7) as f32 - 3.0).collect()
    };
    let (a, b) = (values(3), values(5));
    for mut device in devices() {
        let device = device.as_mut();
        let kernel = Kernel::load(device, &gemm(size as i64)).unwrap();
        let (left, right) = (tensor(device, &a), tensor(device, &b));
        let product = tensor(device, &vec![f32::NAN; size * size]);
        // SAFETY: the kernel is the one of the test, whose interface is that of the product.
        let call = unsafe { kernel.call(device, Function::Compute, &[&left, &right, &product]) };
        let elapsed = call.unwrap();
        assert_eq!(elapsed.launches.len(), 1);
        assert!(elapsed.total.as_nanos() > 0 && elapsed.total.as_secs() < 60);
        let mut found = vec![0; 4 * size * size];
        device.download(&product, 0, &mut found).unwrap();
        for (at, found) in floats(&found).into_iter().enumerate() {
            let (m, n) = (at / size, at % size);
            let sum: f32 = (0..size).map(|k| a[m * size + k] * b[k * size + n]).sum();
            assert_eq!(found, sum, "({m}, {n})");
        }
    }
}

#[test]
fn launches_run_in_order_and_share_a_workspace() {
    for mut device in devices() {
        let device = device.as_mut();
        let program = shift(1000);
        let kernel = Kernel::load(device, &program).unwrap();
        let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let (input, output) = (tensor(device, &values), tensor(device, &[0.0; 1000]));
        // SAFETY: the kernels are those of the test.
        let call = unsafe { kernel.call(device, Function::Compute, &[&input, &output]) };
        assert_eq!(call.unwrap().launches.len(), 2);
        let mut found = vec![0; 4000];
        device.download(&output, 0, &mut found).unwrap();
        let expected: Vec<f32> = (0..1000).map(|i| 2.0 * ((i + 1) % 1000) as f32).collect();
        assert_eq!(floats(&found), expected);
    }
}

#[test]
fn a_failed_read_is_reported_once() {
    let source = "kernel void f(global const float *a, global float *b, global uchar *w, global int *status) {
        if (a[0] > 0) atomic_cmpxchg(status, 0, 2);
        b[get_global_id(0)] = 0;
    }";
    for mut device in devices() {
        let device = device.as_mut();
        let launch = LaunchPlan::new("f", [1, 1, 1], [8, 1, 1]).with_parameters([0, 1]);
        let program = DeviceProgram::new(source.to_owned(), interface(8), vec![launch]);
        let kernel = Kernel::load(device, &program).unwrap();
        let output = tensor(device, &[0.0; 8]);
        for (value, status) in [(1.0, Some(2)), (-1.0, None), (1.0, Some(2))] {
            let input = tensor(device, &[value; 8]);
            // SAFETY: the kernel is the one of the test.
            let call = unsafe { kernel.call(device, Function::Compute, &[&input, &output]) };
            match (call, status) {
                (Err(error), Some(status)) => {
                    assert_eq!(error, DeviceError::FailedRead { status });
                }
                (Ok(_), None) => {}
                (call, _) => panic!("{call:?}"),
            }
        }
    }
}

#[test]
fn texts_that_do_not_compile_are_refused_with_their_line() {
    for mut device in devices() {
        let mut program = gemm(64);
        program.source = program.source.replace("float sum = 0;", "float sum = zero;");
        let error = device.load(&program).unwrap_err();
        let DeviceError::Build { log, .. } = &error else { panic!("{error}") };
        let first = log.first_error().unwrap_or_else(|| panic!("{log}"));
        assert_eq!(first.source, "float sum = zero;", "{log}");
        assert!(error.to_string().contains("zero"), "{error}");
        assert!(error.help().contains("float sum = zero;"), "{}", error.help());
        // The device is still usable.
        device.load(&gemm(64)).unwrap();
    }
}

/// Changes a program, and returns the errors of all devices.
type Case = (fn(&mut DeviceProgram), &'static str);

fn refusal(change: impl Fn(&mut DeviceProgram)) -> Vec<DeviceError> {
    let refuse = |mut device: Box<dyn Device>| {
        let mut program = gemm(64);
        change(&mut program);
        let error = device.load(&program).map(drop).unwrap_err();
        device.load(&gemm(64)).unwrap();
        error
    };
    devices().into_iter().map(refuse).collect()
}

#[test]
fn limits_are_checked_before_the_driver_sees_anything() {
    let cases: [Case; 6] = [
        (|program| program.launches[0].block = [1 << 20, 1, 1], "the block of kernel `gemm`"),
        (|program| program.launches[0].block = [u32::MAX; 3], "the block of kernel `gemm`"),
        (|program| program.launches[0].grid = [u64::MAX; 3], "the grid of kernel `gemm` in x"),
        (|program| program.launches[0].shared_bytes = 1 << 30, "the shared memory of kernel"),
        (|program| program.workspace_bytes = u64::MAX, "the workspace"),
        (|program| program.launches[0].grid[1] = 0, "8x0x1 blocks of 8x8x1 threads"),
    ];
    for (change, words) in cases {
        for error in refusal(change) {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

#[test]
fn more_local_memory_than_there_is_is_refused_although_nobody_declared_it() {
    let change = |program: &mut DeviceProgram| {
        program.source = program.source.replace("left[8][8]", "left[8000][800]");
    };
    for error in refusal(change) {
        let known = matches!(
            error,
            DeviceError::Limit { .. } | DeviceError::Build { .. } | DeviceError::Runtime { .. }
        );
        assert!(known, "{error}");
    }
}

#[test]
fn texts_and_launches_that_contradict_each_other_are_refused() {
    let cases: [Case; 3] = [
        (|program| program.launches[0].kernel = "gem".to_owned(), "the text has no kernel `gem`"),
        (
            |program| program.launches[0].parameters = vec![0, 1],
            "kernel `gemm` takes 5 arguments and is passed 4",
        ),
        (
            |program| program.launches[0].parameters = vec![0, 1, 7],
            "kernel `gemm` takes parameter 7, but there are 3",
        ),
    ];
    for (change, words) in cases {
        for error in refusal(change) {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    for mut device in devices() {
        let device = device.as_mut();
        let error = device.allocate(u64::MAX).unwrap_err();
        assert!(matches!(error, DeviceError::OutOfMemory { bytes: u64::MAX, .. }), "{error}");
        let memory = device.allocate(8).unwrap();
        for (offset, length) in [(0, 9), (8, 1), (u64::MAX, 8)] {
            assert!(device.upload(&memory, offset, &vec![0; length]).is_err());
            assert!(device.download(&memory, offset, &mut vec![0; length]).is_err());
        }
        assert!(device.upload(&memory, 8, &[]).is_ok());
        let kernel = Kernel::load(device, &gemm(64)).unwrap();
        let small = [&memory, &memory, &memory];
        for tensors in [&small[..], &small[..2], &[&memory; 4]] {
            // SAFETY: nothing is launched, since the memory is too small.
            let error = unsafe { kernel.call(device, Function::Compute, tensors) }.unwrap_err();
            assert!(matches!(error, DeviceError::Mismatch { .. }), "{error}");
        }
        assert_eq!(device.allocate(0).unwrap().bytes(), 0);
    }
}

#[test]
fn memory_and_programs_of_others_are_refused() {
    let mut all = devices();
    let Some(mut one) = all.pop() else { return };
    // The same device, opened again: another context.
    let mut other = open(one.describe().name()).unwrap();
    let memory = one.allocate(8).unwrap();
    assert!(matches!(other.upload(&memory, 0, &[0; 8]), Err(DeviceError::Mismatch { .. })));
    assert!(matches!(other.download(&memory, 0, &mut [0; 8]), Err(DeviceError::Mismatch { .. })));
}

#[test]
fn probes_find_a_speed() {
    for mut device in devices() {
        for kind in [ProbeKind::Bandwidth, ProbeKind::Arithmetic] {
            let probe = Probe::new(device.as_mut(), kind).unwrap();
            let rates: Vec<f64> =
                (0..3).map(|_| probe.run_once(device.as_mut()).unwrap()).collect();
            assert!(rates.iter().all(|rate| *rate > 1e6 && *rate < 1e16), "{kind:?}: {rates:?}");
            println!("{}: {kind:?}: {rates:?}", device.describe().name());
        }
    }
}

/// Writes its first output, and some floats at an offset relative to it.
fn stray(place: i64, count: i64) -> DeviceProgram {
    let source = format!(
        "kernel void f(global const float *a, global float *b, global uchar *w, global int *status) {{
            const int i = get_global_id(0);
            b[i] = 2 * a[i];
            if (i < {count}) b[{place} + i] = 1;
        }}"
    );
    let launch = LaunchPlan::new("f", [4, 1, 1], [8, 1, 1]).with_parameters([0, 1]);
    DeviceProgram::new(source, interface(32), vec![launch])
}

#[test]
fn guards_show_what_is_written_beside_memory() {
    let cases = [
        (0, 0, None),
        (32, 9, Some((0, 36, "36 bytes after the end"))),
        (-3, 3, Some((12, 0, "12 bytes before the start"))),
        (-2, 1, Some((4, 0, "4 bytes before the start"))),
        (32 + 16_000, 4, Some((0, 16, "16 bytes after the end"))),
    ];
    for mut device in devices() {
        let device = device.as_mut();
        for (place, count, expected) in cases {
            let loaded = device.load(&stray(place, count)).unwrap();
            let input = tensor(device, &[1.5; 32]);
            let output = GuardedMemory::allocate(device, 4 * 32).unwrap();
            let (workspace, status) = (device.allocate(4).unwrap(), device.allocate(4).unwrap());
            device.upload(&status, 0, &[0; STATUS_BYTES as usize]).unwrap();
            let arguments = Arguments {
                parameters: &[&input, output.memory()],
                workspace: &workspace,
                status: &status,
            };
            // SAFETY: what the kernel writes beyond its output lies in the guards.
            unsafe { device.launch(&loaded, Function::Compute, &arguments) }.unwrap();
            let found = output.overrun(device).unwrap();
            let overrun = expected.map(|(before, after, _)| Overrun { before, after });
            assert_eq!(found, overrun, "{count} at {place}");
            let text = found.map(|overrun| overrun.to_string());
            assert_eq!(text.as_deref(), expected.map(|(_, _, text)| text));
            // The guards are restored, and the values were never touched.
            assert_eq!(output.overrun(device).unwrap(), None);
            let mut values = vec![0; 128];
            device.download(output.memory(), 0, &mut values).unwrap();
            assert_eq!(floats(&values), [3.0; 32]);
        }
    }
}

/// A kernel that never ends blocks threads of the runtime, so it runs in a separate process.
#[test]
fn a_kernel_that_does_not_end_is_late() {
    if devices().is_empty() {
        return;
    }
    let arguments = ["--exact", "tests::opencl::never_ends", "--ignored", "--nocapture"];
    let program = std::env::current_exe().unwrap();
    let ended = std::process::Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    let ran = ended.status.success() && text.contains("1 passed");
    assert!(ran, "{text}{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
#[ignore = "leaves threads behind: a_kernel_that_does_not_end_is_late runs it"]
fn never_ends() {
    let source = "kernel void never(global const volatile float *a, global volatile float *b, global uchar *w,
                                    global int *status) {
        while (a[0] > 0) b[get_global_id(0)] += 1;
    }";
    set_deadline(Duration::from_millis(500));
    for mut device in devices() {
        let device = device.as_mut();
        let name = device.describe().name().to_owned();
        let launch = LaunchPlan::new("never", [1, 1, 1], [8, 1, 1]).with_parameters([0, 1]);
        let program = DeviceProgram::new(source.to_owned(), interface(8), vec![launch]);
        let kernel = Kernel::load(device, &program).unwrap();
        let (input, output) = (tensor(device, &[1.0; 8]), tensor(device, &[0.0; 8]));
        for _ in 0..2 {
            // SAFETY: the kernel is the one of the test.
            let call = unsafe { kernel.call(device, Function::Compute, &[&input, &output]) };
            let error = call.unwrap_err();
            let text = format!("kernel `never` did not end on {name} within 500ms");
            assert_eq!(error.to_string(), text);
            assert!(error.help().contains("device.deadline"), "{}", error.help());
        }
        assert!(matches!(device.allocate(4), Err(DeviceError::Late { .. })));
        assert!(matches!(device.upload(&input, 0, &[0; 4]), Err(DeviceError::Late { .. })));
    }
}
