//! Large or very erroneous texts: answers come quickly, and stay short.

use std::time::{Duration, Instant};

use crate::Module;
use crate::diagnostic::{Code, Diagnostics};
use crate::program::Program;

fn bind(text: &str, sizes: &[(&str, i64)]) -> Result<Program, Diagnostics> {
    Module::parse("limits.tc", text)?.bind("f", sizes.iter().copied())
}

/// Ten times the time of an optimised build, and far below that of exponential work.
fn quickly<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
    result
}

/// Joins texts pairwise, so that they nest as little as possible.
fn balanced(mut parts: Vec<String>, join: impl Fn(&[String]) -> String) -> String {
    while parts.len() > 1 {
        parts = parts
            .chunks(2)
            .map(|pair| if pair.len() > 1 { join(pair) } else { pair[0].clone() })
            .collect();
    }
    parts.remove(0)
}

#[test]
fn a_read_that_is_wrong_in_two_dimensions_is_one_error() {
    for text in [
        "def f(float(N,N) A) -> (B) { B(i,j) = A(i+1,j+1) where i in 0:N, j in 0:N }",
        "def f(float(N,N) A) -> (B) { B(i,j) = A(i-1,j-1) }",
    ] {
        let errors = bind(text, &[("N", 5)]).unwrap_err();
        let list = errors.list();
        assert_eq!(list.len(), 1, "{errors}");
        assert_eq!(list[0].code, Code::OutOfBounds);
        assert!(list[0].notes.iter().any(|note| note.starts_with("also, ")), "{errors}");
    }
}

#[test]
fn thousands_of_missing_sizes_are_named_in_part() {
    let params: Vec<String> = (0..5000).map(|n| format!("float(S{n}) A{n}")).collect();
    let text = format!("def f({}) -> (B) {{ B(i) = A0(i) }}", params.join(", "));
    let message = quickly(|| bind(&text, &[]).unwrap_err().to_string());
    assert!(message.contains("and 4992 others"), "{message}");
}

#[test]
fn hard_conditions_take_bounded_time() {
    let hard = |k: i32| format!("min(max(i+{k},j),i-j+{k}) < max(i,{k})");
    let all: Vec<String> = (0..6).map(hard).collect();
    let (any, all) = (all.join(" || "), all.join(" && "));
    let statements: Vec<String> = (0..60)
        .map(|n| format!("T{n}(i,j) = ({any}) && ({all}) ? A(i+j) : 0 where i in 0:N, j in 0:N"))
        .collect();
    let text = format!("def f(float(N) A) -> (B) {{ {}; B(i,j) = T0(i,j) }}", statements.join(";"));
    quickly(|| drop(bind(&text, &[("N", 8)])));
}

#[test]
fn subscripts_of_many_parts_take_bounded_time_and_have_a_range() {
    let parts: Vec<String> = (0..120).map(|n| format!("i/{}", n + 2)).collect();
    let sum = balanced(parts, |pair| format!("({})", pair.join(" + ")));
    let text = format!("def f(float(N) A) -> (B) {{ B(i) = A({sum}) }}");
    let program = quickly(|| bind(&text, &[("N", 8)]).unwrap());
    assert_eq!(program.stages[0].axes[0].hi, 6, "6/2 + 6/3 + ... is 8 or more");

    let clamps = format!("{}i{}", "clamp(".repeat(75), ", 0, N-1)".repeat(75));
    let text = format!("def f(float(N) A) -> (B) {{ B(i) = A({clamps}) where i in 0:N }}");
    quickly(|| bind(&text, &[("N", 8)]).unwrap());
}

#[test]
fn reads_inside_reads_take_bounded_time() {
    let chain = format!("{}i{}", "I(".repeat(70), ")".repeat(70));
    let sum = balanced(vec![chain; 100], |pair| format!("({})", pair.join(" + ")));
    let text = format!("def f(int(N) I) -> (B) {{ B(i) = {sum} where i in 0:N }}");
    let program = quickly(|| bind(&text, &[("N", 8)]).unwrap());
    assert_eq!(program.stages.len(), 1);
}

#[test]
fn sizes_that_might_be_equal_do_not_hide_a_variable() {
    let text = "def f(float(N) A, float(M) C) -> (B) { B(i) = A((N - M) * i) + 0 * C(0) }";
    let program = bind(text, &[("N", 8), ("M", 6)]).unwrap();
    assert_eq!(program.stages[0].axes[0].hi, 4);
    let text = "def f(float(N) A, int s) -> (B) { B(i) = A((s - 1) * i) }";
    let program = bind(text, &[("N", 8), ("s", 3)]).unwrap();
    assert_eq!(program.stages[0].axes[0].hi, 4);
}
