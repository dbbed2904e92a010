//! Measures how close a register tile comes to peak performance.
//!
//! ```text
//! cargo run --release -p tensorwright-codegen-llvm --example tile
//! ```
#![allow(unsafe_code, reason = "an example that calls generated code")]
#![allow(clippy::print_stdout, reason = "an example that prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::c_void;
use std::ptr;
use std::time::Instant;

use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_codegen_llvm::{CodegenOptions, JitKernel, compile};
use tensorwright_lang::Module;
use tensorwright_schedule::{Schedule, canonical, lower};

const SOURCE: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

const SCHEDULE: &str = "\
C: split m 6
C: split n 4 16
C: reorder m.0 n.0 k m.1 n.1 n.2
C: cache_write at n.0
C.tile: unroll m.1
C.tile: unroll n.1
C.tile: vectorize n.2
C: unroll m.1
C: unroll n.1
C: vectorize n.2
";

fn main() -> Result<(), Box<dyn Error>> {
    let target = Processor::native()?;
    for (m, n, k) in [(6, 64, 256), (240, 256, 256)] {
        let module = Module::parse("gemm.tc", SOURCE).map_err(|e| e.to_string())?;
        let sizes = BTreeMap::from([("M", m), ("N", n), ("K", k)]);
        let def = module.def("gemm").map_err(|e| e.to_string())?;
        let program = def.bind(sizes).map_err(|e| e.to_string())?;
        let schedule = Schedule::parse(SCHEDULE).map_err(|e| format!("{e:?}"))?;
        let nest = schedule.apply(canonical(&program)).map_err(|e| format!("{e:?}"))?;
        let nest = lower(nest).map_err(|e| e.to_string())?;
        let compiled = compile(&nest, &target, &CodegenOptions::default())?;
        let kernel = JitKernel::load(&Jit::new(&target)?, &compiled.interface, &compiled.object)?;
        let best = time(&kernel, &[m * k, k * n, m * n])?;
        let flops = 2.0 * (m * n * k) as f64;
        println!(
            "{m}x{n}x{k}: {:.1} GFLOP/s; {:?}, load {:?}",
            flops / best / 1e9,
            compiled.times,
            kernel.load_time()
        );
    }
    Ok(())
}

/// The shortest time of a call, in seconds.
fn time(kernel: &JitKernel, elements: &[i64]) -> Result<f64, Box<dyn Error>> {
    #[repr(align(64))]
    struct Line(#[allow(dead_code, reason = "only the kernel reads it")] [f32; 16]);
    let line = |i: i64| Line([(i % 7) as f32; 16]);
    let mut memory: Vec<Vec<Line>> =
        elements.iter().map(|n| (0..(n + 15) / 16).map(line).collect()).collect();
    let pointers: Vec<*mut c_void> =
        memory.iter_mut().map(|buffer| buffer.as_mut_ptr().cast()).collect();
    let mut best = f64::INFINITY;
    let calls = 20;
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..calls {
            // SAFETY: the buffers have the sizes of the program; the tile needs no workspace.
            unsafe { kernel.call(&pointers, ptr::null_mut(), ptr::null_mut()) }?;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(calls));
    }
    Ok(best)
}
