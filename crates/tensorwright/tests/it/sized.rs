//! Kernels whose sizes vary, against the reference at many sizes.

use tensorwright::ir::{SizeRange, SizeValue};
use tensorwright::schedule::check::check;
use tensorwright::{Module, SizedKernel, SizedProgram};

/// A definition, and the likely values of its sizes.
const PROGRAMS: [(&str, &[(&str, i64)]); 12] = [
    ("def f(float(N) x) -> (y) { y(i) = 2 * x(i) + N }", &[("N", 100)]),
    ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", &[("M", 20), ("K", 24), ("N", 48)]),
    (
        "def f(float(B,M) I, float(N,M) W, float(N) c) -> (O) { O(b,n) = c(n)  O(b,n) += I(b,m) * W(n,m)  O(b,n) = max(O(b,n), 0) }",
        &[("B", 14), ("M", 40), ("N", 24)],
    ),
    (
        "def f(float(N,D) x) -> (y) { m(n) max=! x(n,d)  s(n) +=! exp(x(n,d) - m(n))  y(n,d) = exp(x(n,d) - m(n)) / s(n) }",
        &[("N", 40), ("D", 100)],
    ),
    ("def f(float(H,W) x) -> (y) { t(i,j) = x(i,j) + x(i,j+1) + x(i,j+2)  y(i,j) = t(i,j) + t(i+1,j) + t(i+2,j) }", &[("H", 60), ("W", 100)]),
    (
        "def f(float(H,W) x) -> (y) { t(i,j) = x(i, min(max(j - 1, 0), W - 1)) + x(i, min(j + 1, W - 1)) where i in 0:H, j in 0:W
          y(i,j) = t(min(i + 1, H - 1), j) - t(max(i - 1, 0), j) where i in 0:H, j in 0:W }",
        &[("H", 60), ("W", 100)],
    ),
    (
        "def f(float(C,H,W) x, float(K,C,3,3) w) -> (y) {
          y(k,h,q) +=! (0 <= h + r - 1 && h + r - 1 < H && 0 <= q + s - 1 && q + s - 1 < W ? x(c, h + r - 1, q + s - 1) : 0) * w(k,c,r,s)
            where h in 0:H, q in 0:W, r in 0:3, s in 0:3 }",
        &[("C", 3), ("H", 12), ("W", 20), ("K", 7)],
    ),
    ("def f(float(N) x) -> (y) { y(i) = x(N - 1 - i) where i in 0:N }", &[("N", 64)]),
    ("def f(float(T,D) x) -> (z) { z(t,d) = 0.5 * z(t-1,d) + x(t,d) scan t from 0 }", &[("T", 50), ("D", 40)]),
    ("def f(float(N) x, int32(N) at) -> (c) { c(b) +=! x(i) scatter b = at(i) where b in 0:16 }", &[("N", 100)]),
    ("def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", &[("M", 12), ("K", 16), ("N", 40)]),
    ("def f(float(E,D) t, int32(N) x) -> (y) { y(n,d) = t(x(n), d) }", &[("E", 30), ("D", 40), ("N", 50)]),
];

/// All sizes vary up to a few times their likely values.
fn bind(text: &str, sizes: &[(&str, i64)]) -> SizedProgram {
    let module = Module::parse("f.tc", text).unwrap();
    let varies = |(name, likely): &(&str, i64)| {
        let range = SizeRange { least: 1, most: 3 * likely, likely: *likely, multiple: 1 };
        ((*name).to_owned(), SizeValue::Varies(range))
    };
    module
        .def("f")
        .unwrap()
        .bind_sized(sizes.iter().map(varies))
        .unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// Runs a kernel at sizes drawn near the edges of tiles and ranges.
fn agree(
    text: &str,
    sizes: &[(&str, i64)],
    kernel: &SizedKernel,
    program: &SizedProgram,
    seed: u64,
) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = |below: i64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as i64
    };
    let module = Module::parse("f.tc", text).unwrap();
    let mut done = 0;
    for round in 0..20 {
        let values: Vec<i64> = sizes
            .iter()
            .map(|(_, likely)| match draw(5) {
                0 => 1 + draw(4),
                1 => *likely,
                2 => (16 * (1 + draw(3)) + draw(3) - 1).min(3 * likely),
                3 => 3 * likely,
                _ => 1 + draw(3 * likely),
            })
            .collect();
        let bound = sizes.iter().zip(&values).map(|((name, _), value)| (*name, *value));
        let concrete = module.def("f").unwrap().bind(bound);
        let checked = program.check(&values);
        let Ok(concrete) = concrete else {
            assert!(checked.is_err(), "{text}\n{values:?} are no sizes of the program");
            continue;
        };
        if checked.is_err() {
            continue;
        }
        let inputs = concrete.random_inputs(seed + round).unwrap();
        let expected = concrete.run_reference(&inputs).unwrap();
        // The loops at these sizes access nothing out of bounds, and write every result.
        let nest = kernel.loops().nest().as_nest().at(&values).unwrap();
        let verdict = check(&nest, 20_000_000);
        assert!(verdict.is_ok(), "{text}\nsizes {values:?}: {verdict:?}\n{nest}");
        let outputs = kernel.run(&inputs).unwrap_or_else(|e| panic!("{text}\n{values:?}\n{e}"));
        for (name, output) in outputs.iter() {
            let wrong = expected.output(name).unwrap().mismatch(output);
            assert!(
                wrong.is_none(),
                "{text}\nsizes {values:?}, seed {seed}: {name} is wrong: {wrong:?}\n{}\n{}",
                kernel.loops().schedule(),
                kernel.loops().nest()
            );
        }
        done += 1;
    }
    assert!(done > 5, "{text}: only {done} sizes were tried");
}

#[test]
fn kernels_without_a_schedule_agree_with_the_reference() {
    for (number, (text, sizes)) in PROGRAMS.iter().enumerate() {
        let program = bind(text, sizes);
        let kernel = program.compile().schedule_text("").unwrap().build().unwrap();
        agree(text, sizes, &kernel, &program, number as u64);
    }
}

#[test]
fn kernels_of_default_schedules_agree_with_the_reference() {
    for (number, (text, sizes)) in PROGRAMS.iter().enumerate() {
        let program = bind(text, sizes);
        for threads in [1, 2] {
            let kernel = program.compile().threads(threads).build().unwrap();
            agree(text, sizes, &kernel, &program, 100 + number as u64);
        }
    }
}
