//! Programs of many statements: results are right, and time grows with them.
#![allow(clippy::print_stdout, reason = "tests")]

use std::fmt::Write as _;

use tensorwright::{Kernel, Module, Program};

/// A chain of element-wise statements.
fn chain(count: usize) -> String {
    let mut text = format!("def f(float(N) T0) -> (T{count}) {{\n");
    (1..=count).for_each(|n| writeln!(text, "  T{n}(i) = T{}(i) + 1.0", n - 1).unwrap());
    text + "}\n"
}

/// Independent outputs.
fn outputs(count: usize) -> String {
    many(count, |n| format!("O{n}(i) = A(i) * {n}.0 + B(i)"))
}

/// Small sums.
fn sums(count: usize) -> String {
    many(count, |n| format!("O{n}(i) +=! A(i) * B(j) * {n}.0 where i in 0:N, j in 0:N"))
}

fn many(count: usize, statement: impl Fn(usize) -> String) -> String {
    let names: Vec<String> = (0..count).map(|n| format!("O{n}")).collect();
    let mut text = format!("def f(float(N) A, float(N) B) -> ({}) {{\n", names.join(", "));
    (0..count).for_each(|n| writeln!(text, "  {}", statement(n)).unwrap());
    text + "}\n"
}

/// All that is read first, then all that reads it, and updates of a tensor among it.
fn apart(count: usize) -> String {
    // One of 200 is an update.
    let half = (count - count / 100) / 2;
    let names: Vec<String> = (0..half).map(|n| format!("O{n}")).collect();
    let mut text =
        format!("def f(float(N) A) -> (sum, {}) {{\n  sum(i) = A(i)\n", names.join(", "));
    (0..half).for_each(|n| writeln!(text, "  T{n}(i) = A(i) * {n}.0").unwrap());
    for n in 0..half {
        writeln!(text, "  O{n}(i) = T{n}(i) + A(N-1-i)").unwrap();
        if n % 100 == 7 {
            writeln!(text, "  sum(i) = sum(i) + O{n}(i)").unwrap();
        }
    }
    text + "}\n"
}

fn bound(text: &str) -> Program {
    let module = Module::parse("f.tc", text).unwrap();
    module.def("f").unwrap().bind([("N", 5)]).unwrap()
}

fn built(program: &Program) -> Kernel {
    program.compile().threads(1).build().unwrap()
}

/// The processor time of this thread in seconds, where the system says it.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

#[test]
fn programs_of_many_statements_are_right() {
    for text in [chain(1200), outputs(700), sums(700), apart(1300)] {
        let program = bound(&text);
        let kernel = built(&program);
        let inputs = program.random_inputs(7).unwrap();
        let verified = kernel.verify(&inputs, &kernel.run(&inputs).unwrap()).unwrap();
        assert!(verified.mismatches.is_empty(), "{:?}", verified.mismatches.first());
    }
}

/// From the text to code that can be called, and a run of the reference.
fn seconds(text: &str) -> Option<f64> {
    let start = processor_seconds()?;
    let program = bound(text);
    let kernel = built(&program);
    let inputs = program.random_inputs(7).unwrap();
    program.run_reference(&inputs).unwrap();
    kernel.run(&inputs).unwrap();
    Some(processor_seconds()? - start)
}

#[test]
fn time_grows_with_the_statements() {
    let mut slow = Vec::new();
    for (name, shape) in shapes() {
        let few = (0..2).filter_map(|_| seconds(&shape(600))).reduce(f64::min);
        let (Some(few), Some(many)) = (few, seconds(&shape(2400))) else { return };
        println!("{name}: 600 statements {few:.2} s, 2400 statements {many:.2} s");
        if many > 10.0 * few {
            slow.push(format!("{name}: {few:.2} s, and for 4 times as many {many:.2} s"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

/// `cargo nextest run --release -p tensorwright many_statements --run-ignored only --no-capture`
#[test]
#[ignore = "a measurement"]
fn twenty_thousand_statements() {
    for (name, shape) in shapes() {
        let seconds = seconds(&shape(19_999)).unwrap_or_default();
        println!("{name}: {seconds:.2} s of processor time");
    }
}

type Shape = (&'static str, fn(usize) -> String);

fn shapes() -> [Shape; 4] {
    [("chain", chain), ("outputs", outputs), ("sums", sums), ("apart", apart)]
}
