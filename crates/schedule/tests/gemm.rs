//! The text of a GEMM at every step.
#![allow(clippy::unwrap_used, reason = "tests")]

use tensorwright_lang::Module;
use tensorwright_schedule::{Schedule, canonical, lower_traced};

#[test]
fn trace() {
    let module = Module::parse(
        "t.tc",
        "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
    )
    .unwrap();
    let def = module.def("gemm").unwrap();
    let program = def.bind([("M", 14), ("N", 37), ("K", 8)]).unwrap();
    let schedule = Schedule::parse(
        "
C: split m 6 [peel]
C: split n 2 16 [round_up]
C: reorder n.0 m.0 k m.1 n.1 n.2
C: unroll m.1
C: unroll n.1
C: vectorize n.2
C: cache_read B at n.0 as [d1/32, d0, d1%32]
C: cache_write at m.0
B.pack: split d1 16
B.pack: vectorize d1.1
",
    )
    .unwrap();
    let nest = schedule.apply(canonical(&program)).unwrap();
    println!("{nest}");
    lower_traced(nest, &mut |pass, nest| println!("--- {pass}\n{nest}")).unwrap();
}
