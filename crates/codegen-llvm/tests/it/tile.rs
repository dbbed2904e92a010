//! Tests that the inner loop of a register tile is optimal.
#![allow(unsafe_code, reason = "tests call generated code")]

use crate::support;

use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::{CodegenOptions, Listing, listing};

/// The lines between a label and the branch back to it with the most multiplications.
fn hottest_loop(assembly: &str) -> Vec<&str> {
    let lines: Vec<&str> = assembly.lines().map(str::trim).collect();
    let mut best: Vec<&str> = Vec::new();
    let count = |lines: &[&str]| lines.iter().filter(|l| l.starts_with("vfmadd")).count();
    for (end, line) in lines.iter().enumerate() {
        let Some(label) = line.split_whitespace().nth(1).filter(|_| line.starts_with('j')) else {
            continue;
        };
        let label = format!("{label}:");
        let Some(start) = lines[..end].iter().rposition(|l| l.starts_with(&label)) else {
            continue;
        };
        let body = &lines[start..=end];
        if count(body) > count(&best) || (count(body) == count(&best) && body.len() < best.len()) {
            best = body.to_vec();
        }
    }
    best
}

#[test]
fn a_tile_stays_in_registers() {
    let source = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
    let program = support::program(source, None, &[("M", 192), ("N", 256), ("K", 256)]);
    let schedule = "C: split m 6\nC: split n 4 16\nC: reorder m.0 n.0 k m.1 n.1 n.2\n\
        C: cache_write at n.0\nC.tile: unroll m.1\nC.tile: unroll n.1\nC.tile: vectorize n.2\n\
        C: unroll m.1\nC: unroll n.1\nC: vectorize n.2\n";
    let nest = support::scheduled(&program, schedule);
    let target = Processor::named("avx512").unwrap();
    let text = listing(&nest, &target, &CodegenOptions::default(), Listing::Assembly).unwrap();
    let body = hottest_loop(&text);
    let shown = body.join("\n");
    let count = |what: &str| body.iter().filter(|line| line.contains(what)).count();
    assert_eq!(count("vfmadd"), 24, "{shown}\n{nest}");
    assert_eq!(count("vmovups"), 4, "{shown}");
    assert_eq!(count("(%rsp)") + count("(%rbp)"), 0, "{shown}");
    assert!(count("vbroadcastss") + count("{1to16}") >= 6, "{shown}");
    assert!(body.len() <= 42, "{shown}");
}
