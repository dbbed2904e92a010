#![allow(clippy::unwrap_used, reason = "a failed expectation is how a test speaks")]

use std::path::Path;

use tensorwright_lang::syntax::ast::Stmt;

use tensorwright_testkit::{Rng, generate};

use crate::analysis::poly::Values;
use crate::analysis::samples::Sample;
use crate::analysis::{Analysis, names};

/// `name: formula` for each range of each statement, in the order of the text.
fn ranges(text: &str) -> Vec<String> {
    let analysis = Analysis::new("t.tc", text);
    assert!(analysis.problems().is_empty(), "{:?}", analysis.problems);
    let last = analysis.tree.defs.len() - 1;
    let inferred = analysis.inferred(last).unwrap();
    let sample = inferred.samples.first().unwrap();
    let mut found = Vec::new();
    for (number, stmt) in analysis.tree.defs[last].body.iter().enumerate() {
        if matches!(stmt, Stmt::Call(_)) {
            continue;
        }
        for axis in sample.stage(stmt.span()).into_iter().flat_map(|stage| &stage.axes) {
            let upper = inferred.extents.range(number, &axis.name);
            found.push(match upper {
                Some(upper) if upper.basis.sampled => {
                    format!("{}: {upper} for the samples", axis.name)
                }
                Some(upper) if upper.basis.positive.is_empty() => format!("{}: {upper}", axis.name),
                Some(upper) => format!("{}: {upper} if {:?} > 0", axis.name, upper.basis.positive),
                None => format!("{}: ?", axis.name),
            });
        }
    }
    found
}

#[test]
fn a_product_has_the_sizes_of_its_inputs() {
    let text = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
    assert_eq!(ranges(text), ["m: M", "n: N", "k: K"]);
}

#[test]
fn the_least_of_several_reads_holds() {
    let text = "def f(float(M) A, float(N) B) -> (s) { s() +=! A(i) * B(i) }";
    assert_eq!(ranges(text), ["i: min(M, N)"]);
    let text = "def f(float(1000) A, float(N) B) -> (s) { s() +=! A(i + 1) * B(i) }";
    assert_eq!(ranges(text), ["i: min(999, N)"], "a number that no sample reaches");
}

#[test]
fn sums_steps_and_reversals_are_solved() {
    let text = "def f(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i + x) }";
    assert_eq!(ranges(text), ["i: M - N + 1", "x: N"]);
    let text = "def f(float(H) A) -> (B) { B(i) max=! A(2 * i + k) where k in 0:2 }";
    assert_eq!(ranges(text), ["i: (H - 2) / 2 + 1", "k: 2"]);
    let text = "def f(float(N) I, float(K) W, int s) -> (O) { O(i) +=! I(s * i + x) * W(x) }";
    assert_eq!(ranges(text), [r#"i: (N - K) / s + 1 if {"s"} > 0"#, "x: K"]);
    let text = "def f(float(N) A) -> (B) { B(i) = A(N - 1 - i) }";
    assert_eq!(ranges(text), ["i: N"]);
    let text = "def f(float(N) A, float(K) W) -> (B) { B(i) +=! A(N - 1 - i - k) * W(k) }";
    assert_eq!(ranges(text), ["i: N - K + 1", "k: K"]);
}

#[test]
fn a_guard_takes_away_the_say_of_a_read_and_samples_tell_whether_it_does() {
    let text = "def f(float(N) A) -> (B) { B(i) = i >= 1 ? A(i - 1) : 0 }";
    assert_eq!(ranges(text), ["i: N + 1 for the samples"]);
    let text =
        "def f(float(N) A) -> (B) { B(i) = A(i) + A(max(i - 1, 0)) + A(clamp(i + 1, 0, N - 1)) }";
    assert_eq!(ranges(text), ["i: N for the samples"]);
}

#[test]
fn what_is_no_sum_has_no_formula() {
    let text = "def f(float(N) A) -> (B) { B(i) = A(i / 2) }";
    assert_eq!(ranges(text), ["i: ?"]);
}

#[test]
fn shapes_come_from_later_statements_calls_and_concat() {
    let text = "def f(float(C,N) I, float(F,C,K) W, float(F) B) -> (O) {
      O(f,n) = B(f)
      O(f,n) += I(c, n + k) * W(f,c,k)
    }";
    assert_eq!(ranges(text), ["f: F", "n: N - K + 1", "f: F", "n: N - K + 1", "c: C", "k: K"]);
    let text = "
    def conv(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i + x) }
    def f(float(A) x, float(B) k) -> (z) {
      y = conv(x, k)
      w = concat(y, k)
      z(i) = w(i + 1)
    }";
    assert_eq!(ranges(text), ["i: A"]);
}

/// Compares the formulas of a definition with the ranges inferred for given sizes; returns their
/// number, or `None` if the sizes do not bind.
fn compare(analysis: &Analysis, number: usize, values: &Values) -> Option<usize> {
    let program = analysis.def(number)?.bind(values.clone()).ok()?;
    let sample = Sample { sizes: values.clone(), program };
    let tree = &analysis.tree.defs[number];
    let known = &analysis.inferred(number)?.extents;
    let certain = known.ranges.iter().filter(|(_, upper)| !upper.basis.sampled);
    let mut compared = 0;
    for ((stmt, name), upper) in certain {
        let axis = sample.axis(tree.body[*stmt].span(), name).unwrap();
        let value = upper.value(values);
        let text = analysis.text();
        assert_eq!(value, Some(axis.hi), "{text}\n{name} < {upper} for {values:?}");
        compared += 1;
    }
    for (name, shape) in &known.shapes {
        let tensor = sample.tensor(names::tensor(tree, name).unwrap());
        for (extent, inferred) in shape.iter().zip(tensor.map_or(&[][..], |t| &t.shape)) {
            let Some(upper) = extent.as_ref().filter(|upper| !upper.basis.sampled) else {
                continue;
            };
            let value = upper.value(values);
            let text = analysis.text();
            assert_eq!(value, Some(*inferred), "{text}\n{name}: {upper} for {values:?}");
            compared += 1;
        }
    }
    Some(compared)
}

/// Every formula for the example kernels agrees with the compiler, for sizes that were not samples.
#[test]
fn formulas_hold_for_other_sizes() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels");
    let (mut formulas, mut ranges, mut compared) = (0, 0, 0);
    for entry in std::fs::read_dir(directory).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let analysis = Analysis::new("t.tc", &text);
        for (number, tree) in analysis.tree.defs.iter().enumerate() {
            let def = analysis.def(number).unwrap();
            let inferred = analysis.inferred(number).unwrap();
            let sample = inferred.samples.first().unwrap();
            let written = tree.body.iter().filter(|stmt| matches!(stmt, Stmt::Comprehension(_)));
            let stages = written.filter_map(|stmt| sample.stage(stmt.span()));
            ranges += stages.map(|stage| stage.axes.len()).sum::<usize>();
            formulas += inferred.extents.ranges.len();
            for variant in 0..60i64 {
                let size = |(k, name): (usize, &&str)| {
                    ((*name).to_owned(), 1 + (variant * (7 + 6 * k as i64) + 5 * k as i64) % 71)
                };
                let scalar = |(k, name): (usize, &&str)| {
                    ((*name).to_owned(), 1 + (variant + variant / 5 * k as i64) % 5)
                };
                let mut values: Values = def.sizes().iter().enumerate().map(size).collect();
                values.extend(def.integer_scalars().iter().enumerate().map(scalar));
                compared += compare(&analysis, number, &values).unwrap_or(0);
            }
        }
    }
    assert!(compared > 10_000, "only {compared} comparisons");
    assert!(formulas * 10 > ranges * 9, "only {formulas} of {ranges} ranges have a formula");
}

#[test]
fn formulas_hold_for_random_programs() {
    let mut compared = 0;
    for seed in 0..400 {
        let generated = generate(seed);
        let analysis = Analysis::new("generated.tc", &generated.text);
        let defs = &analysis.tree.defs;
        let number = defs.iter().position(|def| def.name.name == generated.def).unwrap();
        let mut rng = Rng::of(seed, 1);
        for _ in 0..10 {
            let near =
                |(name, value): &(String, i64)| (name.clone(), (value + rng.range(-2, 4)).max(1));
            let values: Values = generated.sizes.iter().map(near).collect();
            compared += compare(&analysis, number, &values).unwrap_or(0);
        }
    }
    assert!(compared > 2_000, "only {compared} comparisons");
}
