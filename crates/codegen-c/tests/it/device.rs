//! Tests of device programs: golden texts, and CUDA C++ run on fibres.
//!
//! The system's C++ compiler compiles the CUDA C++.
#![allow(unsafe_code, reason = "the support of other tests calls compiled kernels")]

use crate::support::fibres::{End, Fibres};
use crate::support::kernels::{GEMM, KERNELS, TILED, case, device};
use crate::support::program;
use tensorwright_codegen_c::{Dialect, emit_device};
use tensorwright_lang::dtype::DType;
use tensorwright_reference::Buffer;

#[test]
fn text_of_a_tiled_gemm() {
    let gemm = program(GEMM, &[("M", 33), ("N", 40), ("K", 10)]);
    let nest = device(&gemm, TILED);
    for dialect in Dialect::ALL {
        let made = emit_device(&nest, dialect).unwrap();
        let name = format!("gemm_{dialect:?}").to_lowercase();
        insta::assert_snapshot!(name, made.source);
        insta::assert_snapshot!("gemm_launches", format!("{:#?}", made.launches));
    }
}

#[test]
fn kernels_match_the_reference() {
    for (name, text, sizes, steps) in KERNELS {
        let case = case(name, text, sizes, steps);
        let made = emit_device(&case.nest, Dialect::Cuda).unwrap();
        let fibres = Fibres::new(&format!("fibres_{name}"), &case, &made);
        for seed in 1..=3 {
            assert_eq!(fibres.run(seed), End::Status(0), "{name}, seed {seed}\n{}", made.source);
        }
    }
}

#[test]
fn a_gemm_needs_its_barriers() {
    let sizes = [("M", 67), ("N", 50), ("K", 45)];
    let case = case("gemm", GEMM, &sizes, TILED);
    let made = emit_device(&case.nest, Dialect::Cuda).unwrap();
    let barriers = made.source.matches("__syncthreads();").count();
    // Before and after the copies of operands, in border and interior blocks.
    assert_eq!(barriers, 2);
    assert_eq!(Fibres::new("fibres_gemm", &case, &made).run(1), End::Status(0));
    for barrier in 0..barriers {
        let mut broken = made.clone();
        let (at, word) = made.source.match_indices("__syncthreads();").nth(barrier).unwrap();
        broken.source.replace_range(at..at + word.len(), "");
        let fibres = Fibres::new("fibres_gemm_broken", &case, &broken);
        let ends: Vec<End> = (1..=4).map(|seed| fibres.run(seed)).collect();
        assert!(ends.contains(&End::Wrong), "without barrier {barrier}: {ends:?}");
    }
    let mut divergent = made.clone();
    divergent.source =
        made.source.replacen("__syncthreads();", "if (threadIdx.x != 3) __syncthreads();", 1);
    let message = "divergent barrier: not all threads of block (0, 0, 0) come to it";
    assert_eq!(
        Fibres::new("fibres_gemm_divergent", &case, &divergent).run(1),
        End::Failed(message.to_owned())
    );
}

/// An out-of-bounds subscript is reported, and the read does not happen.
#[test]
fn a_failed_check_is_the_status() {
    let text = "def pick(float(N) x, int(M) at) -> (y) { y(i) = x(at(i)) where i in 0:M }";
    let mut case = case(
        "pick",
        text,
        &[("N", 2), ("M", 40)],
        "y: split i 8\ny: bind i.0 block.x\ny: bind i.1 thread.x\n",
    );
    let at: Vec<u8> =
        (0..40i32).flat_map(|i| i32::from(i == 39).wrapping_mul(2).to_ne_bytes()).collect();
    case.inputs.insert("at".to_owned(), Buffer::from_bytes(DType::Int32, &[40], &at).unwrap());
    let made = emit_device(&case.nest, Dialect::Cuda).unwrap();
    assert_eq!(Fibres::new("fibres_pick", &case, &made).run(1), End::Status(1));
}
