#![allow(clippy::unwrap_used, reason = "a failed expectation is how a test speaks")]

use std::path::Path;

use tensorwright_lang::syntax::ast::Stmt;

use crate::analysis::Analysis;
use crate::analysis::poly::Values;

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
    let text = "def f(float(1000) A, float(N) B) -> (s) { s() +=! A(i) * B(i) }";
    assert_eq!(ranges(text), ["i: min(1000, N)"], "a number that no sample reaches");
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

/// Every formula for the example kernels gives what the compiler infers, for sizes that played no
/// part in finding it.
#[test]
fn formulas_hold_for_other_sizes() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels");
    let (mut formulas, mut without, mut compared) = (0, Vec::new(), 0);
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let analysis = Analysis::new("t.tc", &text);
        for (number, tree) in analysis.tree.defs.iter().enumerate() {
            let def = analysis.def(number).unwrap();
            let inferred = analysis.inferred(number).unwrap();
            assert!(!inferred.samples.is_empty(), "{}: {}", path.display(), def.name());
            formulas += inferred.extents.ranges.len();
            for (stmt, axis) in tree.body.iter().enumerate().flat_map(|(stmt, written)| {
                let is_call = matches!(written, Stmt::Call(_));
                let stage = inferred.samples[0].stage(written.span()).filter(|_| !is_call);
                stage.into_iter().flat_map(move |stage| stage.axes.iter().map(move |a| (stmt, a)))
            }) {
                if inferred.extents.range(stmt, &axis.name).is_none() {
                    without.push(format!("{} {}", def.name(), axis.name));
                }
            }
            for variant in 0..60i64 {
                let size = |(k, name): (usize, &&str)| {
                    ((*name).to_owned(), 1 + (variant * (7 + 6 * k as i64) + 5 * k as i64) % 71)
                };
                let scalar = |(k, name): (usize, &&str)| {
                    ((*name).to_owned(), 1 + (variant + variant / 5 * k as i64) % 5)
                };
                let mut values: Values = def.sizes().iter().enumerate().map(size).collect();
                values.extend(def.integer_scalars().iter().enumerate().map(scalar));
                let Ok(program) = def.bind(values.clone()) else { continue };
                for ((stmt, name), upper) in &inferred.extents.ranges {
                    if upper.basis.sampled {
                        continue;
                    }
                    let span = tree.body[*stmt].span();
                    let stage = program.stages.iter().find(|stage| stage.span == span).unwrap();
                    let axis = stage.axes.iter().find(|axis| axis.name == *name).unwrap();
                    compared += 1;
                    assert_eq!(
                        upper.value(&values),
                        Some(axis.hi),
                        "{} {} {name} < {upper} for {values:?}",
                        path.display(),
                        def.name()
                    );
                }
            }
        }
    }
    assert!(compared > 10_000, "only {compared} comparisons");
    let total = formulas + without.len();
    assert!(formulas * 10 > total * 9, "{formulas} of {total}: {without:#?}");
}
