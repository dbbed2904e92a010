//! Difficult cases of range inference: text in, ranges out.

use crate::Module;
use crate::diagnostic::Code;
use crate::program::Program;

fn bind(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("t.tc", text).unwrap();
    let def = module.defs().last().unwrap().name();
    module.bind(def, sizes.iter().copied()).unwrap()
}

/// The ranges of the last stage, such as `i 0:4, k 0:3`.
fn ranges(text: &str, sizes: &[(&str, i64)]) -> String {
    let program = bind(text, sizes);
    let axes = program.stages.last().unwrap().axes.iter();
    let texts: Vec<String> = axes.map(|a| format!("{} {}:{}", a.name, a.lo, a.hi)).collect();
    texts.join(", ")
}

#[test]
fn a_guard_by_remainder_does_not_shorten_a_range() {
    // At d = 5 the guard is false, so x(t,6) is not read: six columns, not five.
    let text = "def f(float(T,D) x) -> (y) {
      y(t,d) = d % 2 == 0 ? x(t,d+1) : x(t,d-1)
    }";
    assert_eq!(ranges(text, &[("T", 2), ("D", 6)]), "t 0:2, d 0:6");
}

#[test]
fn extents_may_come_from_several_statements() {
    let text = "def f(float(N) B, float(M) R) -> (O) {
      O(b,n) = B(n)
      O(b,n) += R(b)
    }";
    assert_eq!(ranges(text, &[("N", 3), ("M", 4)]), "b 0:4, n 0:3");
}

#[test]
fn reads_that_cancel_still_determine_ranges() {
    let text = "def f(float(N) X, int(M) A) -> (Y) { Y(i) = X(A(i) - A(i)) }";
    assert_eq!(ranges(text, &[("N", 3), ("M", 4)]), "i 0:4");
}

#[test]
fn programs_with_aliases_print_and_parse() {
    let text = "def g(float(N) A, int(N) src, int(N) x) -> (x, y) {
      y(i) = A(min(src(i), x(i)))
      x(i) = x(i) + 1
    }
    def f(float(N) A, int(N) I) -> (T, Y) { T, Y = g(A, I, I) }";
    let program = bind(text, &[("N", 4)]);
    let again = bind(&program.to_string(), &[]);
    assert_eq!(again.hash(), program.hash(), "{program}\n{again}");
}

#[test]
fn conditions_on_converted_arithmetic_print_and_parse() {
    for value in [
        "x(i) % y(i)",
        "x(i) + 1",
        "-x(i)",
        "min(x(i), y(i) * y(i))",
        "abs(x(i) / y(i))",
        "x(i) > 3 ? x(i) * y(i) : y(i)",
        "uint64(x(i)) * uint64(y(i))",
        "x(i) - x(i) * y(i)",
        "x(i) / 2",
        "2 * x(i)",
        "5 / y(i)",
    ] {
        for dtype in ["int8", "uint8", "int", "int64"] {
            let text = format!(
                "def f({dtype}(N) x, {dtype}(N) y) -> (z) {{
                  z(i) = int64({value}) != 0 ? i : int64({value}) * int64({value})
                }}"
            );
            let program = bind(&text, &[("N", 4)]);
            let again = bind(&program.to_string(), &[]);
            assert_eq!(again.hash(), program.hash(), "{text}\n{program}\n{again}");
        }
    }
}

/// A sum of `count` different terms, nested as little as possible.
fn balanced(count: usize, first: usize) -> String {
    if count == 1 {
        return format!("i / {}", first + 2);
    }
    let half = count / 2;
    format!("({} + {})", balanced(half, first), balanced(count - half, first + half))
}

#[test]
fn subscripts_that_could_not_be_printed_are_refused() {
    for count in [100, 400, 20_000] {
        let text = format!(
            "def f(float(N) A) -> (B) {{ B(i) = A({}) where i in 0:2 }}",
            balanced(count, 0)
        );
        // On the stack of a thread, which is smaller than the main one.
        let bound = std::thread::spawn(move || {
            let module = Module::parse("t.tc", &text)?;
            let program = module.bind("f", [("N", 1 << 20)])?;
            Ok::<_, crate::diagnostic::Diagnostics>(program.to_string())
        });
        match bound.join().unwrap() {
            Ok(text) => drop(bind(&text, &[])),
            Err(error) => assert_eq!(error.list()[0].code, Code::NestingTooDeep, "{error}"),
        }
    }
}
