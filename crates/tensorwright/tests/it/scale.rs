//! Programs of the size that will come: a thousand stages, twelve nested loops, sizes whose
//! products pass 2^40. The limits on time are ten times what an optimised build needs.

use std::fmt::Write;
use std::time::{Duration, Instant};

use tensorwright::Module;

/// A pipeline of `stages` stages, each of which reads the two before it.
fn pipeline(stages: usize) -> String {
    let mut text =
        String::from("def chain(float(H,W) X) -> (Y) {\n  T0(y,x) = X(y,x)\n  T1(y,x) = T0(y,x)\n");
    for stage in 2..stages - 1 {
        let (a, b) = (stage - 1, stage - 2);
        writeln!(
            text,
            "  T{stage}(y,x) = 0.5 * (T{a}(y,x) + T{b}(clamp(y+1, 0, H-1),clamp(x-1, 0, W-1)))"
        )
        .unwrap();
    }
    writeln!(text, "  Y(y,x) = T{}(y,x)\n}}", stages - 2).unwrap();
    text
}

#[test]
fn a_thousand_stages_are_checked_and_bound_quickly() {
    let text = pipeline(1000);
    let start = Instant::now();
    let module = Module::parse("chain.tc", &text).unwrap();
    let program = module.def("chain").unwrap().bind([("H", 1080), ("W", 1920)]).unwrap();
    assert_eq!(program.analysis().nodes, 1000);
    let hash = program.hash();
    let explained = program.explain().to_string();
    assert!(start.elapsed() < Duration::from_secs(10), "took {:?}", start.elapsed());
    assert!(explained.contains("1000 nodes"));
    let again = Module::parse("again.tc", &program.to_string()).unwrap();
    let none: [(&str, i64); 0] = [];
    assert_eq!(again.def("chain").unwrap().bind(none).unwrap().hash(), hash);
}

#[test]
fn a_chain_of_a_thousand_calls_is_flattened_without_recursion() {
    let mut text = String::from("def f0(float(N) X) -> (Y) { Y(i) = X(i) }\n");
    for level in 1..1000 {
        writeln!(
            text,
            "def f{level}(float(N) X) -> (Y) {{ Z = f{}(X)\n Y(i) = Z(i) + 1 }}",
            level - 1
        )
        .unwrap();
    }
    let module = Module::parse("calls.tc", &text).unwrap();
    let program = module.def("f999").unwrap().bind([("N", 4)]).unwrap();
    assert_eq!(program.analysis().nodes, 1000);
}

#[test]
fn loop_nests_may_be_twelve_deep() {
    let module = Module::parse(
        "deep.tc",
        "def deep(float(A,B,C,D,E,F) X, float(G,H,I,J,K,L) Y) -> (Z) {
           Z(a,b,c,g,h,i) +=! X(a,b,c,d,e,f) * Y(g,h,i,j,k,l)
         }",
    )
    .unwrap();
    let sizes = "ABCDEFGHIJKL".chars().map(|name| (name.to_string(), 2));
    let program = module.def("deep").unwrap().bind(sizes).unwrap();
    assert_eq!(program.ir().stages[0].axes.len(), 12);
    assert_eq!(program.analysis().flops, 2 << 12);
}

#[test]
fn products_of_sizes_may_pass_two_to_the_forty() {
    let module = Module::parse(
        "huge.tc",
        "def huge(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
    )
    .unwrap();
    let size = 1 << 20;
    let program =
        module.def("huge").unwrap().bind([("M", size), ("N", size), ("K", size)]).unwrap();
    assert_eq!(program.analysis().flops, 2 << 60);
    assert_eq!(program.analysis().min_bytes, 3 * (4 << 40));
    // Running it is refused, not attempted.
    assert!(program.random_inputs(0).is_err());
}
