//! Tests of kernels whose sizes vary.

use crate::support::sized::{SizedCase, run_sized, up_to};
use tensorwright_codegen_c::{Dialect, EmitError, emit, emit_device};
use tensorwright_lang::Module;
use tensorwright_lang::program::{SizeRange, SizeValue, SizedProgram};
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::{default_sized, lower_options};
use tensorwright_schedule::{canonical_sized, lower, lower_with};
use tensorwright_testkit::generate;

const ADD: &str = "def add(float(N,M) x, float(M) b) -> (y) { y(n,m) = x(n,m) + b(m) + N }";
const PAIRS: &str = "def pairs(float(N,M) x) -> (y) { y(n,m) = x(n,m) + x(n+1,m) }";
const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const TILED: &str = "C: split m 4\nC: split n 8\nC: split k 4\nC: reorder m.0 n.0 k.0 m.1 k.1 n.1\n\
    C: vectorize n.1\nC: parallel m.0";
const STENCIL: &str = "def stencil(float(H,W) x) -> (y) {
  t(i,j) = x(i, min(max(j - 1, 0), W - 1)) + x(i, min(j + 1, W - 1)) where i in 0:H, j in 0:W
  y(i,j) = t(min(i + 1, H - 1), j) - t(max(i - 1, 0), j) where i in 0:H, j in 0:W
}";
const SOFTMAX: &str = "def softmax(float(N,D) x) -> (y) {
  top(n) max=! x(n,d)
  e(n,d) = exp(x(n,d) - top(n))
  total(n) +=! e(n,d)
  y(n,d) = e(n,d) / total(n)
}";

fn multiple(most: i64, likely: i64, multiple: i64) -> SizeValue {
    SizeValue::Varies(SizeRange { least: multiple, most, likely, multiple })
}

/// Definitions, sizes and schedules: dense and strided accesses, tiles, clamps, intermediates in the
/// workspace, workers, gathers, scatters, recurrences, and conversions.
fn cases() -> Vec<(SizedCase, Vec<Vec<i64>>)> {
    let of = SizedCase::new;
    vec![
        (
            of("add", ADD, &[("N", up_to(20, 5)), ("M", up_to(70, 40))], ""),
            vec![
                vec![1, 1],
                vec![0, 4],
                vec![21, 4],
                vec![4, 71],
                vec![-1, 3],
                vec![i64::MAX, i64::MIN],
            ],
        ),
        (
            of(
                "pairs",
                PAIRS,
                &[("N", up_to(30, 10)), ("M", up_to(60, 20))],
                "y: split n 2\ny: split m 8\ny: vectorize m.1\ny: unroll n.1\ny: reorder n.0 m.0 n.1 m.1",
            ),
            vec![vec![1, 5], vec![2, 5], vec![30, 60]],
        ),
        (
            of(
                "gemm",
                GEMM,
                &[("M", up_to(20, 12)), ("N", up_to(40, 24)), ("K", up_to(30, 16))],
                TILED,
            ),
            vec![vec![1, 1, 1], vec![0, 1, 1]],
        ),
        (
            of(
                "gemm_cached",
                GEMM,
                &[("M", up_to(20, 12)), ("N", multiple(40, 24, 8)), ("K", SizeValue::Known(5))],
                "C: split m 4\nC: parallel m.0\nC: cache_write at m.0",
            ),
            vec![vec![3, 12], vec![3, 0], vec![3, 8], vec![20, 48]],
        ),
        (
            of(
                "stencil",
                STENCIL,
                &[("H", up_to(25, 12)), ("W", up_to(50, 30))],
                "t: parallel i\ny: parallel i\ny: split j 8\ny: vectorize j.1",
            ),
            vec![vec![1, 1]],
        ),
        (
            of("softmax", SOFTMAX, &[("N", up_to(20, 8)), ("D", up_to(70, 33))], "y: parallel n\ntop: prefetch x at d 4\ntotal: prefetch e at d 4"),
            vec![vec![1, 1]],
        ),
        (
            of(
                "images",
                "def images(half(N,C,H,W) x, half a, half(C) w) -> (y, s) { y(n,h,v) +=! x(n,c,h,v) * w(c)  s(n) max=! y(n,h,v) * a }",
                &[
                    ("N", up_to(3, 2)),
                    ("C", SizeValue::Known(3)),
                    ("H", up_to(9, 5)),
                    ("W", up_to(20, 8)),
                ],
                "",
            ),
            vec![],
        ),
        (
            of(
                "gather",
                "def gather(float(E,D) t, uint8(N) x) -> (y) { y(n,d) = t(min(int32(x(n)), E - 1), d) }",
                &[("E", up_to(30, 10)), ("D", up_to(20, 8)), ("N", up_to(20, 7))],
                "y: split d 8",
            ),
            vec![],
        ),
        (
            of(
                "scan",
                "def scan(float(T,D) x) -> (z) { z(t,d) = 0.5 * z(t-1,d) + x(t,d) scan t from 0 }",
                &[("T", up_to(20, 8)), ("D", up_to(20, 8))],
                "z: reorder d t\nz: parallel d",
            ),
            vec![],
        ),
        (
            of(
                "count",
                "def count(float(N) x, int32(N) at) -> (c) { c(b) +=! x(i) scatter b = clamp(at(i), 0, 3) where b in 0:4 }",
                &[("N", up_to(50, 20))],
                "",
            ),
            vec![],
        ),
    ]
}

#[test]
fn kernels_agree_with_the_reference_at_many_sizes() {
    let calls = run_sized("sized", &cases(), 24);
    assert!(calls > 150, "{calls}");
}

/// A random program under the default schedule; `None` if its sizes cannot vary.
fn random(seed: u64) -> Option<SizedCase> {
    let program = generate(seed);
    let module = Module::parse("random.tc", &program.text).unwrap();
    let def = module.def(&program.def).unwrap();
    let scalars = def.integer_scalars();
    let is_known = |(name, _): &&(String, i64)| scalars.contains(&name.as_str());
    let values = program.sizes.iter().map(|size @ (name, likely)| match is_known(&size) {
        true => (name.clone(), SizeValue::Known(*likely)),
        false => (name.clone(), up_to(2 * likely + 3, *likely)),
    });
    let mut sized: SizedProgram = def.bind_sized(values).ok()?;
    // Nothing is prepared ahead of calls.
    for program in [&mut sized.likely, &mut sized.general] {
        program.tensors.iter_mut().for_each(|tensor| tensor.is_const = false);
    }
    let goal: Goal = Goal::new(Cpu::avx2()).with_workers(1 + (seed % 2) as i64).into();
    let (_, nest) = default_sized(&sized, canonical_sized(&sized)?, &goal).unwrap();
    let nest = lower_with(nest, &lower_options(&goal.target), &mut |_, _| {}).unwrap();
    let known = program.sizes.iter().filter(is_known).cloned().collect();
    let name = format!("random{seed}");
    Some(SizedCase::lowered(&name, module, program.def, sized, nest, known))
}

/// `TENSORWRIGHT_SIZED=FIRST..END` tries programs of these seeds.
#[test]
fn kernels_of_random_programs_agree_with_the_reference() {
    let given = std::env::var("TENSORWRIGHT_SIZED").ok();
    let seeds = given.as_deref().and_then(|given| {
        let (first, end) = given.split_once("..")?;
        Some(first.parse::<u64>().ok()?..end.parse::<u64>().ok()?)
    });
    let seeds = seeds.unwrap_or(0..14);
    let all = seeds.end - seeds.start;
    let cases: Vec<_> = seeds.filter_map(random).map(|case| (case, Vec::new())).collect();
    let calls = run_sized("sized_random", &cases, 8);
    println!("{all} programs, {} whose sizes can vary, {calls} calls", cases.len());
    assert!(calls as u64 > 2 * all, "{calls} calls");
}

#[test]
fn text_of_a_kernel() {
    let sizes = [("N", up_to(4096, 64)), ("D", multiple(1024, 512, 8))];
    let case = SizedCase::new("softmax", SOFTMAX, &sizes, "y: parallel n\ntop: parallel n");
    insta::assert_snapshot!("sized", case.code());
    let sizes = [("N", up_to(4096, 64)), ("M", multiple(1024, 512, 8))];
    let pairs = SizedCase::new("pairs", PAIRS, &sizes, "");
    insta::assert_snapshot!("sized_header", tensorwright_codegen_c::header(&pairs.interface, None));
}

#[test]
fn devices_refuse_sizes_that_vary() {
    let module = Module::parse("test.tc", ADD).unwrap();
    let sizes = [("N", up_to(8, 4)), ("M", up_to(8, 4))];
    let program = module.bind_sized("add", sizes).unwrap();
    let nest = lower(canonical_sized(&program).unwrap()).unwrap();
    let error = emit_device(&nest, Dialect::OpenCl).unwrap_err();
    assert_eq!(error, EmitError::Sized);
    assert_eq!(error.to_string(), "sizes of kernels for devices cannot vary yet");
    assert!(emit(&nest).is_ok());
}
