//! Running sums and products: any order of terms is within the bounds.

use std::collections::BTreeMap;

use crate::bounding::bounding;
use crate::sample::{Effort, OutputElement, sample};
use crate::{Buffer, random_inputs, run};
use tensorwright_lang::Module;
use tensorwright_lang::program::Program;

/// A running statement, and the equivalent reduction per element.
const PROGRAMS: [(&str, &str); 6] = [
    (
        "y(n,t) = y(n,t-1) + x(n,t) scan t from 0",
        "y(n,t) +=! s <= t ? x(n,s) : 0 where t in 0:T, s in 0:T",
    ),
    (
        "y(n,t) = x(n,t) + y(n,t+1) scan t from 0",
        "y(n,t) +=! s >= t ? x(n,s) : 0 where t in 0:T, s in 0:T",
    ),
    (
        "y(n,t) = x(n,t) * 0.3 + y(n,t-1) + a(n) scan t from 2.5",
        "y(n,t) = 2.5 where t in 0:T\n y(n,t) += s <= t ? x(n,s) * 0.3 + a(n) : 0 where s in 0:T",
    ),
    (
        "y(n,t) = y(n,t-1) * x(n,t) scan t from 1",
        "y(n,t) *=! s <= t ? x(n,s) : 1 where t in 0:T, s in 0:T",
    ),
    (
        "y(n,t) = y(n,t+1) * x(n,t) scan t from a(n)",
        "y(n,t) = a(n) where t in 0:T\n y(n,t) *= s >= t ? x(n,s) : 1 where s in 0:T",
    ),
    (
        "y(n,t) = max(x(n,t), y(n,t-1)) scan t from a(n)",
        "y(n,t) = a(n) where t in 0:T\n y(n,t) max= s <= t ? x(n,s) : -INFINITY where s in 0:T",
    ),
];

fn program(statements: &str) -> Program {
    let text = format!("def f(float(N,T) x, float(N) a) -> (y) {{\n {statements} }}");
    Module::parse("t", &text).unwrap().bind("f", [("N", 3), ("T", 40)]).unwrap()
}

#[test]
fn running_sums_are_the_sums_of_the_terms_so_far() {
    for (running, reduced) in PROGRAMS {
        let (running, reduced) = (program(running), program(reduced));
        let inputs = random_inputs(&running, 5).unwrap();
        let (a, b) = (run(&running, &inputs).unwrap(), run(&reduced, &inputs).unwrap());
        let (a, b) = (&a.outputs[0], &b.outputs[0]);
        assert_eq!(a.mismatch(&b.buffer), None, "{running}");
        for (position, (a, b)) in a.tolerance.iter().zip(&b.tolerance).enumerate() {
            // A reduction counts masked terms.
            assert!(*a <= 1.05 * b + 1e-37, "{position}: {a:e} {b:e}\n{running}");
        }
    }
}

#[test]
fn the_analysis_as_a_program_covers_them() {
    for (running, _) in PROGRAMS {
        let program = program(running);
        let inputs = random_inputs(&program, 7).unwrap();
        let direct = &run(&program, &inputs).unwrap().outputs[0];
        let analysis = bounding(&program).unwrap();
        let results = run(&analysis.program, &inputs).unwrap();
        let of = |name: &str| &results.output(name).unwrap().buffer;
        let bounded = &analysis.outputs[0];
        let output =
            bounded.output(of(&bounded.values), bounded.bounds.as_deref().map(of)).unwrap();
        assert_eq!(output.mismatch(&direct.buffer), None, "{program}");
        for (bound, tolerance) in output.tolerance.iter().zip(&direct.tolerance) {
            assert!(
                *bound >= 0.45 * tolerance && *bound <= 3.0 * tolerance + 1e-6,
                "{bound:e} {tolerance:e}\n{program}"
            );
        }
    }
}

#[test]
fn samples_are_elements_of_a_run() {
    for (running, _) in PROGRAMS {
        let program = program(running);
        let inputs = random_inputs(&program, 9).unwrap();
        let whole = &run(&program, &inputs).unwrap().outputs[0];
        let wanted = [119, 0, 57, 58, 3].map(|position| OutputElement { output: 0, position });
        // Not enough budget for whole tensors.
        let effort = Effort { iterations: 4000, threads: 1 };
        let sampled = sample(&program, &inputs, &wanted, effort).unwrap();
        assert_eq!(sampled.len(), wanted.len(), "{program}");
        for element in sampled {
            let position = element.place.position;
            assert_eq!(whole.buffer.get(position), Some(element.value), "{program}");
            assert_eq!(whole.tolerance[position], element.tolerance, "{program}");
        }
    }
}

/// The error of a reordered sum is bounded by the magnitudes of its terms, not by the partial sums.
#[test]
fn terms_that_cancel_leave_their_errors() {
    let program = program("y(n,t) = y(n,t-1) + x(n,t) scan t from 0");
    let mut inputs: BTreeMap<String, Buffer> = random_inputs(&program, 1).unwrap();
    let terms = (0..120).map(|at| if at % 2 == 0 { 1e6_f32 } else { -1e6 }).collect();
    inputs.insert("x".to_owned(), Buffer::from_f32(&[3, 40], terms).unwrap());
    let output = &run(&program, &inputs).unwrap().outputs[0];
    assert_eq!(output.buffer.get(39).map(|value| value.as_f64()), Some(0.0));
    assert!((1.0..200.0).contains(&output.tolerance[39]), "{}", output.tolerance[39]);
}
