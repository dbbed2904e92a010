//! Tests of tensor operations: golden texts, runs on fibres, NVIDIA's compiler.
#![allow(unsafe_code, reason = "the support of other tests calls compiled kernels")]
#![allow(clippy::print_stdout, reason = "tests")]

use crate::support;
use crate::support::fibres::{End, Fibres};
use crate::support::kernels::{Kernel, case};
use crate::support::{nvrtc, run_sanitized};
use tensorwright_codegen_c::{Dialect, emit_device};
use tensorwright_device::cuda::Sass;
use tensorwright_schedule::interface::DeviceProgram;

/// One tile per warp, with operands in global memory.
const PLAIN: &str = "C.sum: split m 16\nC.sum: split n 16\nC.sum: split k 16\nC.sum: split m.0 2\n\
    C.sum: reorder m.0.0 n.0 m.0.1 k.0 m.1 n.1 k.1\nC.sum: bind m.0.0 block.y\nC.sum: bind n.0 block.x\n\
    C.sum: bind m.0.1 thread.y\nC.sum: tensorize m.1 n.1 k.1\nC.sum: cache_write at m.0.1\n\
    C: split n 32\nC: bind m block.x\nC: bind n.1 thread.x\n";

/// Two by two tiles per warp from shared operands, with sums that are converted in the same launch.
const STAGED: &str = "C: split m 64\nC: split n 64\nC: reorder m.0 n.0 m.1 n.1\nC: bind m.0 block.y\nC: bind n.0 block.x\n\
    C.sum: compute_at C n.0\nC.sum: split m 2 2 16\nC.sum: split n 2 2 16\nC.sum: split k 2 16\n\
    C.sum: reorder m.0 n.0 k.0 m.1 n.1 k.1 m.2 n.2 m.3 n.3 k.2\n\
    C.sum: bind m.1 thread.z\nC.sum: bind n.1 thread.y\nC.sum: tensorize m.3 n.3 k.2\n\
    C.sum: cache_read A at k.0 in shared\nC.sum: cache_read B at k.0 in shared\n\
    A.pack: fuse d0 d1 -> t\nA.pack: split t 2 2 32\nA.pack: bind t.1 thread.z\nA.pack: bind t.2 thread.y\nA.pack: bind t.3 thread.x\n\
    B.pack: fuse d0 d1 -> t\nB.pack: split t 2 2 32\nB.pack: bind t.1 thread.z\nB.pack: bind t.2 thread.y\nB.pack: bind t.3 thread.x\n\
    C.sum: cache_write at n.0\nC.sum.tile: unroll m.2\nC.sum.tile: unroll n.2\nC.sum: unroll m.2\nC.sum: unroll n.2\n\
    C: fuse m.1 n.1 -> t\nC: split t 2 2 32\nC: bind t.1 thread.z\nC: bind t.2 thread.y\nC: bind t.3 thread.x\n";

const HALF: &str = "def gemm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

#[rustfmt::skip]
const KERNELS: &[Kernel] = &[
    ("plain", HALF, &[("M", 48), ("N", 32), ("K", 80)], PLAIN),
    ("bfloat16", "def gemm(bfloat16(M,K) A, bfloat16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
     &[("M", 48), ("N", 32), ("K", 80)], PLAIN),
    ("staged", HALF, &[("M", 128), ("N", 64), ("K", 96)], STAGED),
    ("transposed", "def gemm(half(K,M) a, half(N,K) b) -> (C) { C(m,n) +=! b(n,k) * a(k,m) }",
     &[("M", 32), ("N", 48), ("K", 32)], PLAIN),
    // Sums in `float`, and no loop over warps.
    ("wide", "def gemm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) }",
     &[("M", 32), ("N", 16), ("K", 48)],
     "C: split m 16\nC: split n 16\nC: split k 16\nC: reorder m.0 n.0 k.0 m.1 n.1 k.1\nC: bind m.0 block.y\n\
      C: bind n.0 block.x\nC: cache_write at n.0\nC.tile: tensorize m.1 n.1 k.1\nC: tensorize m.1 n.1\n"),
    // One tile and one step: no reduction loop around the operation.
    ("single", "def gemm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) }",
     &[("M", 16), ("N", 16), ("K", 16)],
     "C: split m 16\nC: split k 16\nC: reorder m.0 k.0 m.1 n k.1\nC: bind m.0 block.x\nC: tensorize m.1 n k.1\nC: cache_write at m.0\n"),
    ("conv", "def conv(half(N,H,W,C) in, half(R,S,C,K) w) -> (out) {\n\
           out(n,y,x,k) +=! in(n,y+r,x+s,c) * w(r,s,c,k)\n\
         }", &[("N", 2), ("H", 6), ("W", 34), ("C", 32), ("R", 3), ("S", 3), ("K", 32)],
     "out.sum: split x 16\nout.sum: split k 16\nout.sum: split c 16\n\
      out.sum: reorder n y x.0 k.0 r s c.0 x.1 k.1 c.1\nout.sum: bind n block.z\nout.sum: bind y block.y\n\
      out.sum: bind x.0 block.x\nout.sum: bind k.0 thread.y\nout.sum: tensorize x.1 k.1 c.1\n\
      out.sum: cache_write at x.0\nout: fuse n y -> ny\nout: fuse ny x -> nyx\nout: bind nyx block.x\nout: bind k thread.x\n"),
    ("tf32", "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
     &[("M", 64), ("N", 32), ("K", 48)],
     "C: split m 2 16\nC: split n 16\nC: split k 16\nC: reorder m.0 n.0 m.1 k.0 m.2 n.1 k.1\nC: bind m.0 block.y\n\
      C: bind n.0 block.x\nC: bind m.1 thread.y\nC: tensorize m.2 n.1 k.1 in tf32\nC: cache_write at m.1\n"),
    ("tf32_transposed", "def gemm(float(K,M) a, float(N,K) b) -> (C) { C(m,n) +=! a(k,m) * b(n,k) }",
     &[("M", 32), ("N", 32), ("K", 32)],
     "C: split m 16\nC: split n 16\nC: split k 16\nC: reorder m.0 n.0 k.0 m.1 n.1 k.1\nC: bind m.0 block.y\n\
      C: bind n.0 thread.y\nC: tensorize m.1 n.1 k.1 in tf32\nC: cache_write at n.0\n"),
    ("batched", "def bmm(half(B,M,K) X, half(B,K,N) Y) -> (Z) { Z(b,m,n) +=! X(b,m,k) * Y(b,k,n) }",
     &[("B", 3), ("M", 32), ("N", 32), ("K", 32)],
     "Z.sum: split m 16\nZ.sum: split n 16\nZ.sum: split k 16\nZ.sum: reorder b m.0 n.0 k.0 m.1 n.1 k.1\n\
      Z.sum: bind b block.x\nZ.sum: bind m.0 thread.z\nZ.sum: bind n.0 thread.y\nZ.sum: tensorize m.1 n.1 k.1\n\
      Z.sum: cache_write at b\nZ: bind b block.x\nZ: bind n thread.x\n"),
];

fn written(kernel: &Kernel, dialect: Dialect) -> (support::Case, DeviceProgram) {
    let (name, text, sizes, steps) = kernel;
    let case = case(name, text, sizes, steps);
    let program = emit_device(&case.nest, dialect).unwrap();
    (case, program)
}

#[test]
fn text_of_a_staged_gemm() {
    insta::assert_snapshot!("tensor_gemm_cuda", written(&KERNELS[2], Dialect::Cuda).1.source);
}

#[test]
fn kernels_match_the_reference() {
    for kernel in KERNELS {
        let (case, made) = written(kernel, Dialect::Cuda);
        assert!(made.source.contains("mma_sync"), "{}", made.source);
        let fibres = Fibres::new(&format!("tensor_{}", kernel.0), &case, &made);
        for seed in 1..=3 {
            assert_eq!(fibres.run(seed), End::Status(0), "{}\n{}", kernel.0, made.source);
        }
    }
}

/// Run as plain loops, they compute the same.
#[test]
fn processors_run_plain_loops() {
    let cases: Vec<_> = KERNELS.iter().map(|kernel| written(kernel, Dialect::Cuda).0).collect();
    run_sanitized("tensor_loops", &cases);
}

/// Without tensor operations, the first thread of each warp runs the loops.
#[test]
fn other_languages_have_plain_loops() {
    for dialect in [Dialect::OpenCl, Dialect::Hip] {
        let (_, made) = written(&KERNELS[0], dialect);
        assert!(!made.source.contains("wmma") && !made.source.contains("__align__"));
        assert!(made.source.contains("float C_sum_tile[256];"), "{}", made.source);
    }
    // With CUDA's names, that text can be run.
    for kernel in KERNELS {
        let (case, mut made) = written(kernel, Dialect::Hip);
        let attribute = "__attribute__((amdgpu_flat_work_group_size(";
        let (before, _) = made.source.split_once("#if").unwrap();
        let (_, after) = made.source.split_once("#endif\n").unwrap();
        let after: Vec<String> = after
            .split(attribute)
            .map(|part| {
                part.split_once(")))")
                    .filter(|(at, _)| !at.contains('{'))
                    .map_or(part, |(_, rest)| rest)
                    .to_owned()
            })
            .collect();
        made.source = format!("{before}{}", after.concat());
        let fibres = Fibres::new(&format!("tensor_hip_{}", kernel.0), &case, &made);
        assert_eq!(fibres.run(1), End::Status(0), "{}\n{}", kernel.0, made.source);
    }
}

/// The emulation detects errors: operations that not all threads of a warp execute, misaligned
/// tiles, threads that name different tiles, and uninitialized sums.
#[test]
fn mistakes_are_found() {
    let (case, made) = written(&KERNELS[0], Dialect::Cuda);
    let broken = |name: &str, from: &str, to: &str| {
        let mut broken = made.clone();
        assert!(made.source.contains(from), "{}", made.source);
        broken.source = made.source.replacen(from, to, 1);
        Fibres::new(&format!("tensor_{name}"), &case, &broken).run(1)
    };
    let block = "in block (0, 0, 0)";
    let failed = |why: &str| End::Failed(format!("{why} {block}"));
    assert_eq!(
        broken(
            "divergent",
            "nvcuda::wmma::mma_sync",
            "if (threadIdx.x != 5) nvcuda::wmma::mma_sync"
        ),
        failed("divergent warp: not all threads of it come to an operation")
    );
    assert_eq!(broken("misaligned", "(A + ", "(A + 8 + "), failed("a tile that is not aligned"));
    assert_eq!(
        broken("different", "(A + ", "(A + 16 * (threadIdx.x / 16) + "),
        failed("threads of a warp access different tiles")
    );
    assert_eq!(broken("unfilled", "nvcuda::wmma::fill_fragment", "(void)sizeof"), End::Wrong);
    // Access by element, which depends on the thread.
    let scale = "C_sum_tile[0].x[0] = threadIdx.x; nvcuda::wmma::store_matrix_sync";
    assert_eq!(broken("layout", "nvcuda::wmma::store_matrix_sync", scale), End::Wrong);
}

/// Warps wait for shared operands, and before these are overwritten.
#[test]
fn a_staged_gemm_needs_its_barriers() {
    let (case, made) = written(&KERNELS[2], Dialect::Cuda);
    let barriers: Vec<(usize, &str)> = made.source.match_indices("__syncthreads();").collect();
    assert_eq!(barriers.len(), 3, "{}", made.source);
    for (number, (at, word)) in barriers.iter().enumerate() {
        let mut broken = made.clone();
        broken.source.replace_range(*at..at + word.len(), "");
        let fibres = Fibres::new("tensor_barriers", &case, &broken);
        let ends: Vec<End> = (1..=4).map(|seed| fibres.run(seed)).collect();
        assert!(ends.contains(&End::Wrong), "without barrier {number}: {ends:?}");
    }
}

/// NVIDIA's compiler emits matrix instructions and does not spill.
#[test]
fn nvidia_compiles_it_to_matrix_instructions() {
    let Some(compiler) = nvrtc() else { return };
    for kernel in KERNELS {
        let (_, made) = written(kernel, Dialect::Cuda);
        let compiled = compiler
            .compile(&made.source, "sm_80")
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", kernel.0, made.source));
        for taken in &compiled.kernels {
            println!("{taken:?}");
            assert!(!taken.spills(), "{}: {taken:?}", kernel.0);
        }
        let sass = Sass::of(&compiled.cubin).unwrap();
        // A tile of 16 by 16 by 16 takes two instructions, or eight of four terms and half the
        // columns.
        let (name, count) = match made.source.contains("tf32") {
            true => ("HMMA.1684.F32.TF32", 8),
            false => ("HMMA.16816.F32", 2),
        };
        let matrix = sass.text().matches(name).count();
        println!("{}: {matrix} instructions on matrices", kernel.0);
        assert!(
            matrix >= count && matrix.is_multiple_of(count),
            "{}: {matrix}\n{}",
            kernel.0,
            sass.text()
        );
        if let Some(inner) = sass.inner_loop(&format!("{}_1", kernel.0)) {
            println!("{inner:?}");
        }
    }
    // Volta only multiplies `half`.
    let (_, made) = written(&KERNELS[2], Dialect::Cuda);
    let compiled = compiler.compile(&made.source, "sm_70").unwrap();
    assert!(compiled.ptx.contains("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32"));
}
