//! Sampled elements equal those of a whole run, for any program and budget.

use crate::sample::{Effort, OutputElement, choose, sample};
use crate::{random_inputs, run};
use tensorwright_lang::Module;
use tensorwright_lang::program::Program;

const SOFTMAX: &str = "def f(float(M,N) X) -> (Y) {\n\
    Top(m) max=! X(m,n)\n E(m,n) = exp(X(m,n) - Top(m))\n S(m) +=! E(m,n)\n Y(m,n) = E(m,n) / S(m) }";

const PROGRAMS: [(&str, &str); 7] = [
    ("sum", "def f(float(M,N) X, float(N,M) W) -> (Y) { Y(m,k) +=! X(m,n) * W(n,k) }"),
    ("softmax", SOFTMAX),
    (
        "two outputs",
        "def f(float(M,N) X) -> (Y, Z) { Y(m) max=! X(m,n)\n Z(m,n) = X(m,n) * 0.3 + Y(m) }",
    ),
    (
        "a part is written again",
        "def f(float(M,N) X) -> (Y) { Y(m,n) = X(m,n)\n Y(m,n) += X(m,n) * X(m,k) where m in 1:5 }",
    ),
    (
        "guards",
        "def f(float(M,N) X) -> (Y) { T(m,n) = 0.5 * X(m,n)\n\
         Y(m,n) = n > 2 ? T(m,n - 2) : 0 where m in 0:M, n in 0:N }",
    ),
    (
        "gather",
        "def f(float(M,N) X, int32(N) I) -> (Y) { T(m,n) = 0.1 * X(m,n)\n Y(m,n) = T(I(n),n) + X(m,n) }",
    ),
    ("scalar", "def f(float(M,N) X) -> (Y) { Y() +=! X(m,n) }"),
];

fn bound(text: &str, size: i64) -> Program {
    Module::parse("t", text).unwrap().bind("f", [("M", size), ("N", size + 3)]).unwrap()
}

fn everything(program: &Program) -> Vec<OutputElement> {
    let outputs = program.outputs.iter().enumerate();
    let places = outputs.flat_map(|(output, id)| {
        let elements = program.tensor(*id).elements() as usize;
        (0..elements).map(move |position| OutputElement { output, position })
    });
    places.collect()
}

#[test]
fn elements_are_those_of_a_run() {
    for (name, text) in PROGRAMS {
        let program = bound(text, 12);
        let inputs = random_inputs(&program, 5).unwrap();
        let whole = run(&program, &inputs).unwrap();
        // With a large budget small stages are computed as a whole, with a small one nothing is.
        for (iterations, threads) in [(1 << 30, 1), (1 << 30, 3), (60_000, 1), (2_000, 2)] {
            let wanted = everything(&program);
            let effort = Effort { iterations, threads };
            let sampled = sample(&program, &inputs, &wanted, effort).unwrap();
            let is_complete = sampled.len() == wanted.len();
            assert!(is_complete || iterations < 1 << 30, "{name}: {}", sampled.len());
            assert!(sampled.is_sorted_by_key(|element| element.place), "{name}");
            for element in &sampled {
                let OutputElement { output, position } = element.place;
                let expected = &whole.outputs[output];
                assert_eq!(expected.buffer.get(position), Some(element.value), "{name}");
                assert_eq!(expected.tolerance[position], element.tolerance, "{name}");
            }
        }
    }
}

#[test]
fn what_is_too_much_is_left_out_and_the_rest_is_not() {
    // An element of Y needs all of T, an element of Z almost nothing.
    let text = "def f(float(M,N) X) -> (Y, Z) { T(m,n) +=! X(m,k) * X(n,k) where n in 0:M\n\
                Y(m) +=! T(m,n) * T(n,m) where n in 0:M\n Z(m,n) = 0.5 * X(m,n) }";
    let program = bound(text, 200);
    let inputs = random_inputs(&program, 5).unwrap();
    let wanted = choose(&program, 200, 1);
    let effort = Effort { iterations: 20_000, threads: 1 };
    let sampled = sample(&program, &inputs, &wanted, effort).unwrap();
    assert_eq!(sampled.iter().filter(|element| element.place.output == 0).count(), 0);
    assert!(sampled.iter().filter(|element| element.place.output == 1).count() > 50);
}

#[test]
fn a_long_chain_of_stages_is_left_out_and_does_not_exhaust_the_stack() {
    let statements: String = (1..400).map(|n| format!("T{n}(i) = T{}(i) + 1\n", n - 1)).collect();
    let text = format!(
        "def f(float(M) X, float(N) U) -> (Y) {{ T0(i) = X(i)\n{statements}Y(i) = T399(i) + U(0) }}"
    );
    let program = bound(&text, 1000);
    let inputs = random_inputs(&program, 5).unwrap();
    let wanted = choose(&program, 10, 1);
    let little = Effort { iterations: 10_000, threads: 1 };
    assert_eq!(sample(&program, &inputs, &wanted, little).unwrap(), []);
    let much = Effort { iterations: 10_000_000, threads: 1 };
    assert_eq!(sample(&program, &inputs, &wanted, much).unwrap().len(), 10);
}

#[test]
fn rows_are_computed_once() {
    let program = bound(SOFTMAX, 1000);
    let inputs = random_inputs(&program, 5).unwrap();
    let row: Vec<OutputElement> =
        (0..1003).map(|position| OutputElement { output: 0, position }).collect();
    let effort = Effort { iterations: 16 * 1003, threads: 1 };
    assert!(sample(&program, &inputs, &row, effort).unwrap().len() > 900);
}

#[test]
fn subscripts_from_data_are_checked() {
    let program = bound(PROGRAMS[5].1, 12);
    let mut inputs = random_inputs(&program, 5).unwrap();
    let bad = crate::Buffer::from_i32(&[15], vec![99; 15]).unwrap();
    inputs.insert("I".to_owned(), bad);
    let effort = Effort { iterations: 1 << 20, threads: 2 };
    let failure = sample(&program, &inputs, &everything(&program), effort).unwrap_err();
    assert!(failure.message.contains("index 99 is out of bounds"), "{}", failure.message);
}
