//! Helpers of device tests.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use crate::cuda::Nvrtc;
use crate::{Device, DeviceProgram, LaunchPlan, open};
use tensorwright_lang::Module;
use tensorwright_schedule::{Interface, canonical, lower};

/// All OpenCL devices. Without one nothing can be tested, which is an error if
/// `TENSORWRIGHT_NEEDS_DEVICES` is set, as in CI.
pub(crate) fn devices() -> Vec<Box<dyn Device>> {
    let devices: Vec<_> =
        (0..).map_while(|number| open(&format!("opencl:{number}")).ok()).collect();
    if devices.is_empty() {
        let is_needed = std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_some();
        assert!(!is_needed, "{}", open("opencl").err().unwrap());
        println!("skipped: there is no OpenCL here");
    }
    devices
}

fn interface_of(text: &str, def: &str, sizes: &[(&str, i64)]) -> Interface {
    let program = Module::parse("test.tc", text).unwrap();
    let program = program.bind(def, sizes.iter().copied()).unwrap();
    Interface::of(&lower(canonical(&program)).unwrap())
}

/// A tensor in and a tensor out, of `elements` floats.
pub(crate) fn interface(elements: i64) -> Interface {
    interface_of("def f(float(N) A) -> (B) { B(i) = 2 * A(i) }", "f", &[("N", elements)])
}

/// A hand-written tiled matrix product.
pub(crate) fn gemm(size: i64) -> DeviceProgram {
    let text = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
    let interface = interface_of(text, "gemm", &[("M", size), ("N", size), ("K", size)]);
    let source = format!(
        "#define N {size}
kernel void gemm(global const float *restrict a, global const float *restrict b, global float *restrict c,
                 global uchar *workspace, global int *status) {{
    local float left[8][8], right[8][8];
    const int x = get_local_id(0), y = get_local_id(1);
    const int n = get_group_id(0) * 8 + x, m = get_group_id(1) * 8 + y;
    float sum = 0;
    for (int k = 0; k < N; k += 8) {{
        left[y][x] = a[m * N + k + x];
        right[y][x] = b[(k + y) * N + n];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < 8; i++) sum += left[y][i] * right[i][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }}
    c[m * N + n] = sum;
}}
"
    );
    let blocks = size.unsigned_abs() / 8;
    let launch = LaunchPlan::new("gemm", [blocks, blocks, 1], [8, 8, 1]);
    let launch = launch.with_parameters([0, 1, 2]).with_shared_bytes(2 * 64 * 4);
    DeviceProgram::new(source, interface, vec![launch])
}

/// Two kernels; the second one reads workspace data that other blocks of the first one wrote.
pub(crate) fn shift(size: i64) -> DeviceProgram {
    let source = format!(
        "kernel void twice(global const float *a, global uchar *workspace, global int *status) {{
    const int i = get_global_id(0);
    if (i < {size}) ((global float *)(workspace + 64))[i] = 2 * a[i];
}}
kernel void shift(global float *b, global uchar *workspace, global int *status) {{
    const int i = get_global_id(0);
    if (i < {size}) b[i] = ((global float *)(workspace + 64))[(i + 1) % {size}];
}}
"
    );
    let grid = [size.unsigned_abs().div_ceil(32), 1, 1];
    let launches = vec![
        LaunchPlan::new("twice", grid, [32, 1, 1]).with_parameters([0]),
        LaunchPlan::new("shift", grid, [32, 1, 1]).with_parameters([1]),
    ];
    let mut program = DeviceProgram::new(source, interface(size), launches);
    program.workspace_bytes = 64 + 4 * size.unsigned_abs();
    program
}

/// NVIDIA's compiler, if installed; required if `TENSORWRIGHT_NEEDS_DEVICES` is set.
pub(crate) fn nvrtc() -> Option<Nvrtc> {
    match Nvrtc::find() {
        Ok(compiler) => Some(compiler),
        Err(error) => {
            assert!(std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_none(), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}
