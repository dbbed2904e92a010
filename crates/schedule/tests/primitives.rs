//! Every primitive and every tail as text: the schedule, the nest that it makes, the lowered nest.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_schedule::primitives::Primitive;
use tensorwright_schedule::{Schedule, canonical, lower, lower_traced};

const GEMM: &str =
    "def gemm(float(M,K) A, const float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const MV: &str = "def mv(float(M,K) A, float(K) x) -> (y) { y(i) +=! A(i,k) * x(k) }";
const BLUR: &str = "def blur(float(N) A) -> (out) {
  rows(i) = A(i) + A(i+1)
  out(i) = rows(i) * rows(i+1)
}";

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", text).unwrap();
    let def = module.defs().next().unwrap();
    def.bind(sizes.iter().copied()).unwrap()
}

/// What a reader sees of a schedule: itself, what it makes, what emitters get.
fn show(program: &Program, steps: &str) -> String {
    let schedule = Schedule::parse(steps).unwrap();
    assert_eq!(Schedule::parse(&schedule.to_string()).unwrap().to_string(), schedule.to_string());
    let nest = schedule.apply(canonical(program)).unwrap();
    let lowered = lower(nest.clone()).unwrap();
    assert!(lowered.is_lowered());
    format!("{schedule}\n--- scheduled\n{nest}\n--- lowered\n{lowered}")
}

macro_rules! shows {
    ($($name:ident: $text:expr, $sizes:expr, $steps:expr;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), show(&program($text, &$sizes), $steps));
        })*

        /// The schedules above use every primitive.
        #[test]
        fn every_primitive_is_shown() {
            let all = [$($steps),*].concat();
            for keyword in Primitive::KEYWORDS {
                assert!(all.contains(keyword), "no test shows `{keyword}`");
            }
        }
    };
}

shows! {
    split_guard: BLUR, [("N", 24)], "out: split i 8\n";
    split_peel: BLUR, [("N", 24)], "out: split i 8 [peel]\n";
    split_shift: BLUR, [("N", 24)], "out: split i 8 [shift]\n";
    split_round_up: BLUR, [("N", 24)], "out: split i 8 [round_up]\nout: vectorize i.1\n";
    split_three_ways: BLUR, [("N", 42)], "out: split i 2 4 -> outer middle inner\n";
    fuse: GEMM, [("M", 4), ("N", 6), ("K", 8)], "C: fuse m n -> mn\nC: parallel mn\n";
    reorder: GEMM, [("M", 4), ("N", 6), ("K", 8)], "C: reorder k m n\n";
    unroll: MV, [("M", 3), ("K", 8)], "y: unroll i\n";
    vectorize_across_lanes: MV, [("M", 3), ("K", 8)], "y: vectorize k\n";
    inline: BLUR, [("N", 24)], "rows: inline\n";
    compute_at: BLUR, [("N", 26)], "out: split i 8\nrows: compute_at out i.0\n";
    cache_read: GEMM, [("M", 4), ("N", 20), ("K", 8)],
        "C: split n 8\nC: reorder n.0 m k n.1\nC: cache_read B at n.0 as [d1, d0]\n";
    cache_write: GEMM, [("M", 4), ("N", 8), ("K", 8)],
        "C: split n 4\nC: reorder m n.0 k n.1\nC: unroll n.1\nC: cache_write at n.0\n";
    cache_write_inside_reduction: GEMM, [("M", 4), ("N", 8), ("K", 8)],
        "C: split k 4\nC: reorder k.0 m k.1 n\nC: cache_write at m\n";
    layout: GEMM, [("M", 4), ("N", 20), ("K", 8)],
        "B: layout [d1/8, d0, d1%8]\nC: split n 8 [round_up]\nC: reorder n.0 m k n.1\n\
         C: vectorize n.1\nC: cache_write at m\n";
    rfactor: MV, [("M", 3), ("K", 20)],
        "y: split k 8\ny: rfactor k.1 at i\ny.rf: vectorize k.1\n";
    prefetch: GEMM, [("M", 4), ("N", 8), ("K", 8)], "C: reorder m k n\nC: prefetch B at k 2\n";
}

/// One GEMM with tails in both directions, after every pass.
#[test]
fn passes() {
    let program = program(GEMM, &[("M", 5), ("N", 21), ("K", 3)]);
    let schedule = "C: split m 2 [peel]\nC: split n 2 8 [round_up]\n\
                    C: reorder n.0 m.0 k m.1 n.1 n.2\nC: unroll m.1\nC: unroll n.1\n\
                    C: vectorize n.2\nC: cache_read B at n.0\nC: cache_write at m.0\n";
    let nest = Schedule::parse(schedule).unwrap().apply(canonical(&program)).unwrap();
    let mut text = format!("{nest}");
    lower_traced(nest, &mut |pass, nest| text.push_str(&format!("--- {pass}\n{nest}"))).unwrap();
    insta::assert_snapshot!("passes", text);
}

#[test]
fn refusals_name_the_loop_and_the_reason() {
    let gemm = program(GEMM, &[("M", 5), ("N", 21), ("K", 3)]);
    let blur = program(BLUR, &[("N", 24)]);
    let wide = program(BLUR, &[("N", 100)]);
    let cases = [
        (&gemm, "D: split m 2"),
        (&gemm, "C: split x 2"),
        (&gemm, "C: split k 2 [round_up]"),
        (&gemm, "C: split k 2 [shift]"),
        (&gemm, "C: split m 8 [shift]"),
        (&gemm, "C: reorder k m n\nC: split m 2 [shift]"),
        (&gemm, "C: split m 2 -> n x"),
        (&gemm, "C: fuse m k"),
        (&gemm, "C: fuse n k"),
        (&gemm, "C: parallel k"),
        (&gemm, "C: parallel m\nC: parallel n"),
        (&gemm, "C: split m 2 [shift]\nC: parallel m.0"),
        (&gemm, "C: vectorize m"),
        (&gemm, "C: unroll n\nC: split n 2"),
        (&gemm, "C: inline"),
        (&gemm, "A: layout [d1, d0]"),
        (&gemm, "B: layout [d1]"),
        (&gemm, "C: cache_read X at m"),
        (&gemm, "C: rfactor n at m"),
        (&gemm, "C: rfactor k at k"),
        (&blur, "rows: compute_at rows i"),
        (&wide, "out: vectorize i"),
        (&blur, "rows: split i 2\nrows: compute_at out i"),
        (&blur, "out: split i 8\nout: vectorize i.1\nrows: compute_at out i.1"),
        (&blur, "out: split i"),
        (&blur, "out: split i 0"),
        (&blur, "out: split i 8 [wrap]"),
        (&blur, "out: tile i 8"),
        (&blur, "out split i 8"),
        (&blur, "out: split i 8 $"),
    ];
    let mut text = String::new();
    for (program, steps) in cases {
        let result = Schedule::parse(steps).and_then(|schedule| schedule.apply(canonical(program)));
        let error = result.err().map_or("ACCEPTED".to_owned(), |error| error.to_string());
        text.push_str(&format!("{steps}\n  {error}\n"));
    }
    insta::assert_snapshot!("refusals", text);
}

#[test]
fn tails_inside_each_other_are_limited() {
    let axes: Vec<String> = (0..12).map(|axis| format!("i{axis}")).collect();
    let shape = ["N"; 12].join(",");
    let all = axes.join(",");
    let text = format!("def f(float({shape}) A) -> (B) {{ B({all}) = A({all}) }}");
    let program = program(&text, &[("N", 3)]);
    let steps: String = axes.iter().map(|axis| format!("B: split {axis} 2 [peel]\n")).collect();
    let nest = Schedule::parse(&steps).unwrap().apply(canonical(&program)).unwrap();
    let error = lower(nest).unwrap_err();
    let text = "peeled loops inside each other make more than 500 tails; use the tail `guard` for \
                some of them";
    assert_eq!(error.to_string(), text);
}
