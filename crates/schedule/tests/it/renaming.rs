//! Tests of translating schedules between programs that differ only in names.

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_schedule::nest::Buffer;
use tensorwright_schedule::{LoopNest, Schedule, canonical};

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", text).unwrap();
    let def = module.defs().last().unwrap();
    def.bind(sizes.iter().copied()).unwrap()
}

fn scheduled(program: &Program, schedule: &Schedule) -> LoopNest {
    let nest = schedule.apply(canonical(program));
    nest.unwrap_or_else(|why| panic!("{why}\nin\n{schedule}"))
}

/// The text of a nest with names replaced by positions.
fn nameless(mut nest: LoopNest) -> String {
    let name = |(number, buffer): (usize, &mut Buffer)| buffer.name = format!("b{number}");
    nest.buffers.iter_mut().enumerate().for_each(name);
    nest.vars.iter_mut().enumerate().for_each(|(number, var)| *var = format!("x{number}").into());
    nest.to_string()
}

/// A translated schedule, checked to yield the same nest.
fn renamed(one: &Program, other: &Program, steps: &str) -> String {
    let schedule = Schedule::parse(steps).unwrap();
    let renamed = schedule.renamed(one, other).unwrap();
    let (nest, again) = (scheduled(one, &schedule), scheduled(other, &renamed));
    assert_eq!(nameless(nest), nameless(again), "{renamed}");
    renamed.to_string()
}

/// A translated schedule, checked to translate back.
fn there_and_back(one: &Program, other: &Program, steps: &str) -> String {
    let there = renamed(one, other, steps);
    assert_eq!(renamed(other, one, &there), steps);
    there
}

const GEMM: &str = "def f(float(M,K) A, const float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const SIZES: [(&str, i64); 3] = [("M", 12), ("K", 16), ("N", 32)];

#[test]
fn names_that_primitives_derive_follow() {
    let gemm = program(GEMM, &SIZES);
    let other =
        program(&GEMM.replace("m,k", "x,q").replace("k,n", "q,n").replace("m,n", "x,n"), &SIZES);
    let steps = "B: layout [d1/16, d0, d1%16]
C: split m 6 [peel]
C: split n 16
C: split k 4
C: reorder m.0 n.0 k.0 m.1 k.1 n.1
C: cache_write at k.0
C.tile: vectorize n.1
";
    let there = there_and_back(&gemm, &gemm.canonically_named(), steps);
    insta::assert_snapshot!(there, @r"
    v_1: layout [d1/16, d0, d1%16]
    v_2: split i_0 6 [peel]
    v_2: split i_1 16
    v_2: split i_2 4
    v_2: reorder i_0.0 i_1.0 i_2.0 i_0.1 i_2.1 i_1.1
    v_2: cache_write at i_2.0
    v_2.tile: vectorize i_1.1
    ");
    let expected = steps.replace("k.", "q.").replace("split k", "split q");
    let expected = expected.replace("m.", "x.").replace("split m", "split x");
    assert_eq!(there_and_back(&gemm, &other, steps), expected);
}

#[test]
fn a_loop_that_another_of_its_name_hides_has_marks() {
    let apart = "def f(float(N,D) x) -> (y) { t(i,j) = 2 * x(i,j) y(a,b) = t(a,b) + 1 }";
    let alike = apart.replace("(a,b)", "(i,j)");
    let sizes = [("N", 8), ("D", 32)];
    let (apart, alike) = (program(apart, &sizes), program(&alike, &sizes));
    let steps = "t: compute_at y b\nt: parallel a\n";
    let there = there_and_back(&apart, &alike, steps);
    assert_eq!(there, "t: compute_at y j\nt: parallel i'\n");
}

#[test]
fn names_that_are_taken_are_replaced() {
    let one = program("def f(float(N,D) x) -> (y) { y(a,b) = x(a,b) }", &[("N", 8), ("D", 32)]);
    let other =
        program("def f(float(N,D) x) -> (y) { y(c,a_b) = x(c,a_b) }", &[("N", 8), ("D", 32)]);
    let there = renamed(&one, &other, "y: split b 4 -> c d\ny: vectorize d\n");
    assert_eq!(there, "y: split a_b 4 -> c_2 d\ny: vectorize d\n");
    let derived = "y: split b 4 -> b.outer b.inner\ny: vectorize b.inner\n";
    let there = there_and_back(&one, &one.canonically_named(), derived);
    assert_eq!(there, "v_1: split i_1 4 -> i_1.outer i_1.inner\nv_1: vectorize i_1.inner\n");
    let swapped = program("def f(float(N,D) x) -> (y) { y(b,a) = x(b,a) }", &[("N", 8), ("D", 32)]);
    assert_eq!(
        there_and_back(&one, &swapped, "y: fuse a b\ny: parallel a_b\n"),
        "y: fuse b a\ny: parallel b_a\n"
    );
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let gemm = program(GEMM, &SIZES);
    let larger = program(&GEMM.replace("m", "x"), &[("M", 24), ("K", 16), ("N", 32)]);
    let schedule = Schedule::parse("C: split m 6\nC: unroll z\n").unwrap();
    let refused = |to: &Program| schedule.renamed(&gemm, to).unwrap_err().to_string();
    assert_eq!(refused(&larger), "the schedule belongs to another program");
    let other = program(&GEMM.replace('m', "x"), &SIZES);
    assert_eq!(
        refused(&other),
        "`C: unroll z`: `C` has no loop `z` (help: its loops are `m.0`, `m.1`, `n`, `k`)"
    );
    let marks = Schedule::parse("C: split m 6 -> x' y\n").unwrap().apply(canonical(&gemm));
    assert_eq!(
        marks.unwrap_err().to_string(),
        "`C: split m 6 -> x' y`: a new loop cannot be called `x'` (help: a `'` stands for the next loop of that name \
         further out)"
    );
}
