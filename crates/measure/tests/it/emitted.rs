//! Emitted device code on every device here: checked and timed.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::time::Duration;

use crate::common::{config, next};
use tensorwright::{Dialect, Module, Program, Target};
use tensorwright_machine::GpuApi;
use tensorwright_measure::Measurer;

/// The schedule of `docs/schedules.md`: operand tiles in shared memory, results in registers.
const GEMM: &str = "
C: split m 8 4
C: split n 8 4
C: split k 16
C: reorder m.0 n.0 k.0 m.1 n.1 k.1 m.2 n.2
C: bind m.0 block.y
C: bind n.0 block.x
C: bind m.1 thread.y
C: bind n.1 thread.x
C: cache_read A at k.0 in shared
A.pack: fuse d0 d1 -> t
A.pack: split t 8 8
A.pack: bind t.1 thread.y
A.pack: bind t.2 thread.x
C: cache_write at n.0
";

/// The text of a program, its sizes and a schedule.
type Case = (&'static str, &'static [(&'static str, i64)], &'static str);

/// The cases: tiles do not divide the sizes.
const CASES: &[Case] = &[
    (
        "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
        &[("M", 67), ("N", 45), ("K", 35)],
        GEMM,
    ),
    (
        "def softmax(float(N,D) x) -> (y) {
          top(n) max=! x(n,d)
          e(n,d) = exp(x(n,d) - top(n))
          total(n) +=! e(n,d)
          y(n,d) = e(n,d) / total(n)
        }",
        &[("N", 50), ("D", 100)],
        "y: bind n block.x\ntotal: compute_at y n\ne: compute_at y n\ntop: compute_at y n\n\
         e: split d 32\ne: reorder d.1 d.0\ne: bind d.1 thread.x\n\
         y: split d 32\ny: reorder d.1 d.0\ny: bind d.1 thread.x",
    ),
    (
        "def embed(float(V,D) table, int32(N) at) -> (out) { out(n,d) = table(at(n),d) }",
        &[("V", 9), ("D", 40), ("N", 13)],
        "out: bind n block.x\nout: bind d thread.x",
    ),
    // A matrix multiply-accumulate tile, which OpenCL has no instruction for.
    (
        "def tiles(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) }",
        &[("M", 48), ("N", 32), ("K", 64)],
        "C: split m 16\nC: split n 16\nC: split k 16\nC: reorder m.0 k.0 n.0 m.1 n.1 k.1\nC: bind m.0 block.x\n\
         C: bind n.0 thread.y\nC: tensorize m.1 n.1 k.1\nC: cache_read A at k.0 in shared\nA.pack: bind d0 thread.y\n\
         A.pack: bind d1 thread.x\nC: cache_write at m.0",
    ),
    // No loop is bound: one thread does all the work.
    ("def cumsum(float(N) x) -> (y) { y(t) = y(t-1) + x(t) scan t from 0 }", &[("N", 200)], ""),
];

fn programs() -> impl Iterator<Item = (Program, &'static str)> {
    CASES.iter().map(|(text, sizes, steps)| {
        let module = Module::parse("case.tc", text).unwrap_or_else(|e| panic!("{e}"));
        let name = text.split_whitespace().nth(1).and_then(|n| n.split('(').next()).unwrap();
        let def = module.def(name).unwrap();
        (def.bind(sizes.iter().copied()).unwrap_or_else(|e| panic!("{e}")), *steps)
    })
}

#[test]
fn what_is_written_for_devices_computes_what_the_reference_does() {
    let listings = tensorwright_device::devices().into_iter().filter_map(|list| list.devices.ok());
    let devices: Vec<_> =
        listings.flatten().filter(|device| device.gpu.api == GpuApi::OpenCl).collect();
    if devices.is_empty() {
        assert!(std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_none(), "there is no OpenCL");
        println!("skipped: there is no OpenCL here");
    }
    for device in devices {
        for (program, steps) in programs() {
            let lowered = program.compile().schedule_text(steps).and_then(|b| b.lower());
            let lowered = lowered.unwrap_or_else(|e| panic!("{}: {e}", program.name()));
            let written = lowered.device_program(Dialect::OpenCl);
            let written = written.unwrap_or_else(|e| panic!("{}: {e}", program.name()));
            let mut config = config();
            config.target = Target::Gpu(device.gpu.clone());
            config.run_deadline = Duration::from_secs(10);
            config.build_deadline = Duration::from_secs(60);
            let mut measurer = Measurer::start(&program, config).unwrap();
            measurer.submit_program(0, &written, lowered.error_growth());
            let outcome = next(&mut measurer).outcome;
            let timing = outcome.timing();
            let case = (program.name(), device.name().to_owned());
            assert!(
                timing.is_some_and(|t| t.seconds > 0.0),
                "{case:?}: {outcome}\n{}",
                written.source
            );
        }
    }
}
