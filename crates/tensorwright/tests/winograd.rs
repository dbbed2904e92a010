//! Winograd's algorithm computes what the direct sum computes: for every tile, filter, number of
//! dimensions and remainder, with the loops as the rewriting leaves them and as rules schedule them.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use tensorwright::schedule::primitives::Winograd;
use tensorwright::schedule::{Draft, Target, canonical, complete};
use tensorwright::{Module, Program};

const CONV2D: &str = "def conv(TYPE(N,C,H,W) in, const TYPE(K,C,R,S) weight) -> (out) {
  out(n,k,h,w) +=! in(n,c,h+r,w+s) * weight(k,c,r,s)
}";

const BIAS: &str = "def conv(TYPE(N,C,H,W) in, TYPE(K,C,R,S) weight, TYPE(K) bias) -> (out) {
  out(n,k,h,w) = bias(k)
  out(n,k,h,w) += in(n,c,h+r,w+s) * weight(k,c,r,s)
  out(n,k,h,w) = fmaxf(out(n,k,h,w), 0)
}";

const CONV3D: &str = "def conv(TYPE(N,C,D,H,W) in, const TYPE(K,C,Q,R,S) weight) -> (out) {
  out(n,k,d,h,w) +=! in(n,c,d+q,h+r,w+s) * weight(k,c,q,r,s)
}";

const GROUPED: &str = "def conv(TYPE(N,G,C,H,W) in, const TYPE(G,K,C,R,S) weight) -> (out) {
  out(n,g,k,h,w) +=! in(n,g,c,h+r,w+s) * weight(g,k,c,r,s)
}";

const CONV1D: &str = "def conv(TYPE(C,W) in, const TYPE(K,C,S) weight) -> (out) {
  out(k,w) +=! in(c,w+s) * weight(k,c,s)
}";

const PADDED: &str = "def conv(TYPE(C,H,W) in, const TYPE(K,C,R,S) weight) -> (out) {
  padded(c,y,x) = (y >= 1 && y < H+1 && x >= 1 && x < W+1) ? in(c,y-1,x-1) : 0 where y in 0:H+2, x in 0:W+2
  out(k,h,w) +=! padded(c,h+r,w+s) * weight(k,c,r,s)
}";

fn program(text: &str, dtype: &str, sizes: &[(&str, i64)]) -> Program {
    let text = text.replace("TYPE", dtype);
    let text = if dtype == "double" { text.replace("fmaxf", "fmax") } else { text };
    let module = Module::parse("conv.tc", &text).unwrap();
    module.def("conv").unwrap().bind(sizes.iter().copied()).unwrap()
}

/// Runs a program with the stage rewritten, once with its loops as they come and once scheduled.
fn check(program: &Program, stage: &str, loops: &[&str], results: i64) {
    let targets = loops.iter().map(|name| (*name).to_owned()).collect();
    let mut draft = Draft::new(canonical(program.ir()));
    draft.apply(stage, Winograd { targets, results }).unwrap();
    assert!(draft.nest.error_growth > 1.0);
    let scheduled = complete(draft.clone(), &Target::avx512().with_workers(2));
    assert!(scheduled.schedule.steps.len() > draft.schedule.steps.len());
    let inputs = program.random_inputs(7).unwrap();
    for (draft, threads) in [(draft, 1), (scheduled.clone(), 1), (scheduled, 2)] {
        let text = draft.schedule.to_string();
        let builder = program.compile().threads(threads).schedule_text(&text).unwrap();
        let kernel = builder.build().unwrap();
        assert!(kernel.lowered().error_growth() > 1.0);
        let outputs = kernel.run(&inputs).unwrap();
        let verification = kernel.verify(&inputs, &outputs).unwrap();
        assert!(verification.passed(), "{program}\n{text}\n{:?}", verification.mismatches);
    }
}

#[test]
fn two_dimensions_with_every_tile_and_remainder() {
    for dtype in ["double", "float"] {
        for results in [2, 3, 4] {
            for (height, width) in [(6, 6), (7, 9), (10, 5)] {
                let sizes = [
                    ("N", 2),
                    ("C", 5),
                    ("K", 18),
                    ("H", height),
                    ("W", width),
                    ("R", 3),
                    ("S", 3),
                ];
                check(&program(CONV2D, dtype, &sizes), "out", &["h", "w"], results);
            }
        }
    }
}

#[test]
fn filters_of_other_lengths() {
    for (taps, results) in [(2, 2), (2, 3), (4, 3), (5, 2)] {
        let sizes = [("N", 1), ("C", 17), ("K", 3), ("H", 9), ("W", 11), ("R", taps), ("S", taps)];
        check(&program(CONV2D, "double", &sizes), "out", &["h", "w"], results);
    }
    let sizes = [("C", 16), ("K", 33), ("W", 40), ("S", 3)];
    check(&program(CONV1D, "double", &sizes), "out", &["w"], 4);
    let sizes = [("N", 1), ("C", 3), ("K", 4), ("H", 9), ("W", 8), ("R", 1), ("S", 3)];
    check(&program(CONV2D, "double", &sizes), "out", &["w"], 4);
}

#[test]
fn more_dimensions_groups_and_starting_values() {
    let sizes =
        [("N", 1), ("C", 4), ("K", 16), ("D", 4), ("H", 6), ("W", 7), ("Q", 3), ("R", 3), ("S", 3)];
    check(&program(CONV3D, "double", &sizes), "out", &["h", "w"], 2);
    check(&program(CONV3D, "double", &sizes), "out", &["d", "w"], 2);
    let sizes = [("N", 2), ("G", 3), ("C", 4), ("K", 5), ("H", 6), ("W", 7), ("R", 3), ("S", 3)];
    check(&program(GROUPED, "double", &sizes), "out", &["h", "w"], 4);
    let sizes = [("N", 2), ("C", 4), ("K", 5), ("H", 6), ("W", 7), ("R", 3), ("S", 3)];
    check(&program(BIAS, "double", &sizes), "out.1", &["h", "w"], 4);
    let sizes = [("C", 20), ("K", 32), ("H", 14), ("W", 14), ("R", 3), ("S", 3)];
    check(&program(PADDED, "float", &sizes), "out", &["h", "w"], 4);
}

#[test]
fn large_convolutions_use_it_unless_told_otherwise() {
    let sizes = [("C", 256), ("K", 256), ("H", 56), ("W", 56), ("R", 3), ("S", 3)];
    let program = program(PADDED, "float", &sizes);
    let steps = |exact| program.compile().exact(exact).lower().unwrap().schedule().to_string();
    assert!(steps(false).contains("out: winograd h w by 4"), "{}", steps(false));
    assert!(!steps(true).contains("winograd"));
}
