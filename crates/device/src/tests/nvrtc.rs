//! Tests of NVIDIA's compiler on a machine without a GPU.

use crate::DeviceError;
use crate::cuda::{Compiled, Sass};
use crate::tests::common::nvrtc;

/// A hand-written product of 128 by 128 by 8 with 8 by 8 results per thread.
fn sgemm(bounds: &str, unroll: &str) -> String {
    format!(
        "extern \"C\" __global__ void {bounds} sgemm(const float *__restrict__ a, const float *__restrict__ b,
    float *__restrict__ c, unsigned char *workspace, int *status) {{
  const int K = 1024, N = 1024;
  __shared__ float as[8][128], bs[8][128];
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const int row = blockIdx.y * 128, column = blockIdx.x * 128;
  float sum[8][8] = {{}};
  for (int k = 0; k < K; k += 8) {{
    const float4 left = *(const float4 *)&a[(row + t / 2) * K + k + t % 2 * 4];
    as[t % 2 * 4 + 0][t / 2] = left.x; as[t % 2 * 4 + 1][t / 2] = left.y;
    as[t % 2 * 4 + 2][t / 2] = left.z; as[t % 2 * 4 + 3][t / 2] = left.w;
    *(float4 *)&bs[t / 32][t % 32 * 4] = *(const float4 *)&b[(k + t / 32) * N + column + t % 32 * 4];
    __syncthreads();
    {unroll}
    for (int i = 0; i < 8; i++) {{
      float x[8], y[8];
      #pragma unroll
      for (int j = 0; j < 8; j++) {{ x[j] = as[i][ty * 8 + j]; y[j] = bs[i][tx * 8 + j]; }}
      #pragma unroll
      for (int m = 0; m < 8; m++)
        #pragma unroll
        for (int n = 0; n < 8; n++) sum[m][n] += x[m] * y[n];
    }}
    __syncthreads();
  }}
  for (int m = 0; m < 8; m++)
    for (int n = 0; n < 8; n++) c[(row + ty * 8 + m) * N + column + tx * 8 + n] = sum[m][n];
}}
"
    )
}

const UNROLLED: &str = "#pragma unroll";

fn only(compiled: &Compiled) -> &crate::cuda::Resources {
    assert_eq!(compiled.kernels.len(), 1, "{:?}", compiled.kernels);
    &compiled.kernels[0]
}

#[test]
fn a_product_compiles_for_every_architecture_and_says_what_it_takes() {
    let Some(compiler) = nvrtc() else { return };
    assert!(compiler.version().unwrap() >= (11, 2));
    let text = sgemm("__launch_bounds__(256)", UNROLLED);
    for architecture in ["sm_70", "sm_80", "sm_90"] {
        let compiled = compiler.compile(&text, architecture).unwrap();
        assert!(compiled.ptx.contains(&format!(".target {architecture}")), "{}", compiled.ptx);
        assert!(compiled.cubin.starts_with(b"\x7fELF"));
        assert_eq!(compiled.arguments("sgemm"), Some(5));
        let kernel = only(&compiled);
        assert_eq!((kernel.kernel.as_str(), kernel.shared_bytes), ("sgemm", 8192));
        // 64 accumulators alone need this many.
        assert!(kernel.registers > 64 && kernel.registers <= 255, "{kernel:?}");
        assert!(!kernel.spills(), "{kernel:?}");
        assert_eq!(kernel.barriers, 1);
    }
}

#[test]
fn too_few_registers_spill_and_cost_cycles() {
    let Some(compiler) = nvrtc() else { return };
    let compile = |text: &str| compiler.compile(text, "sm_80").unwrap();
    let good = compile(&sgemm("__launch_bounds__(256)", UNROLLED));
    let spilling = compile(&sgemm("__launch_bounds__(256, 4)", UNROLLED));
    let rolled = compile(&sgemm("__launch_bounds__(256)", "#pragma unroll 1"));
    assert!(only(&spilling).spills() && only(&spilling).registers <= 64);
    let inner = |compiled: &Compiled| match Sass::of(&compiled.cubin) {
        Ok(sass) => Some(sass.inner_loop("sgemm").unwrap_or_else(|| panic!("{}", sass.text()))),
        Err(error) => {
            assert!(std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_none(), "{error}");
            None
        }
    };
    let (Some(good), Some(spilling), Some(rolled)) =
        (inner(&good), inner(&spilling), inner(&rolled))
    else {
        return;
    };
    println!("{good:?}\n{spilling:?}\n{rolled:?}");
    assert_eq!((good.multiply_adds, spilling.multiply_adds), (512, 512));
    assert_eq!(rolled.multiply_adds, 64);
    assert!(good.share() > 0.8, "{good:?}");
    let cycles = |inner: crate::cuda::InnerLoop| inner.cycles_per_multiply_add().unwrap();
    assert!(cycles(good) < cycles(rolled) && cycles(rolled) < cycles(spilling));
}

#[test]
fn texts_that_do_not_compile_are_refused_with_their_line() {
    let Some(compiler) = nvrtc() else { return };
    let text = "extern \"C\" __global__ void f(float *a) {\n  a[threadIdx.x] = b;\n}\n";
    let error = compiler.compile(text, "sm_80").unwrap_err();
    let DeviceError::Build { log, .. } = &error else { panic!("{error}") };
    let first = log.first_error().unwrap_or_else(|| panic!("{log}"));
    assert_eq!((first.line, first.source.as_str()), (2, "a[threadIdx.x] = b;"));
    assert!(error.to_string().contains("NVRTC for sm_80 cannot compile the program: line 2"));
    // The compiler is still usable.
    compiler.compile("extern \"C\" __global__ void f() {}", "sm_80").unwrap();
}

#[test]
fn what_is_no_architecture_or_no_text_is_refused() {
    let Some(compiler) = nvrtc() else { return };
    for architecture in ["sm_1", "", "vax", "sm_80\0", "sm_80 --help"] {
        let error = compiler.compile("", architecture).unwrap_err();
        assert!(matches!(error, DeviceError::Runtime { .. }), "{architecture}: {error}");
    }
    assert!(compiler.compile("\0", "sm_80").is_err());
    assert_eq!(compiler.compile("", "sm_80").unwrap().kernels, []);
    assert!(matches!(Sass::of(b"no code").unwrap_err(), DeviceError::Tool { .. }));
}

#[test]
fn headers_for_half_are_found() {
    let Some(compiler) = nvrtc() else { return };
    let text = "#include <cuda_fp16.h>
extern \"C\" __global__ void f(__half *a) { a[threadIdx.x] = __hadd(a[threadIdx.x], a[0]); }";
    match compiler.compile(text, "sm_80") {
        Ok(compiled) => assert_eq!(only(&compiled).kernel, "f"),
        Err(error) => {
            assert!(std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_none(), "{error}");
        }
    }
}
