//! Scatters: values, bounds, samples, and out-of-bounds positions.

use std::collections::BTreeMap;

use crate::bounding::bounding;
use crate::sample::{Effort, OutputElement, sample};
use crate::{Buffer, random_inputs, run};
use tensorwright_lang::Module;
use tensorwright_lang::program::Program;

/// Pairs of a scatter and an equivalent reduction `at == b ? value : nothing`, with sizes M and N.
const PROGRAMS: [(&str, &str); 8] = [
    ("c(b) +=! 1 scatter b = p(i) where b in 0:M", "c(b) +=! p(i) == b ? 1 : 0 where b in 0:M"),
    (
        "c(b,j) +=! x(i,j) * 0.3 scatter b = p(i) where b in 0:M",
        "c(b,j) +=! p(i) == b ? x(i,j) * 0.3 : 0 where b in 0:M",
    ),
    (
        "c(i,b) max=! x(i,j) scatter b = p(j) where b in 0:M",
        "c(i,b) max=! p(j) == b ? x(i,j) : -INFINITY where b in 0:M",
    ),
    (
        "c(b) *=! x(i,j) scatter b = (i + 2*j) % 3 where b in 0:3",
        "c(b) *=! (i + 2*j) % 3 == b ? x(i,j) : 1 where b in 0:3",
    ),
    (
        "c(a,j,b) +=! x(i,j) scatter b = p(i), a = p(i) / 2 where a in 0:M, b in 0:M",
        "c(a,j,b) +=! p(i) == b && p(i) / 2 == a ? x(i,j) : 0 where a in 0:M, b in 0:M",
    ),
    (
        "c(b,j) = x(b,j)\n c(b,j) += x(i,j) scatter b = p(i)",
        "c(b,j) = x(b,j)\n c(b,j) += p(i) == b ? x(i,j) : 0 where i in 0:N",
    ),
    (
        "c(b,j) = x(b,j)\n c(b,j) min=! x(i,j) scatter b = p(i) where j in 1:3",
        "c(b,j) = x(b,j)\n c(b,j) min=! p(i) == b ? x(i,j) : INFINITY where i in 0:N, j in 1:3",
    ),
    // Another evaluation may compute another position.
    (
        "c(b) +=! x(i,j) scatter b = clamp(int(x(i,j) * 3.3), 0, M - 1) where b in 0:M",
        "c(b) +=! clamp(int(x(i,j) * 3.3), 0, M - 1) == b ? x(i,j) : 0 where b in 0:M",
    ),
];

fn program(statements: &str) -> Program {
    let text = format!("def f(int(N) p, float(N,N) x, float(M,N) u) -> (c) {{\n {statements} }}");
    Module::parse("t", &text).unwrap().bind("f", [("M", 5), ("N", 5)]).unwrap()
}

#[test]
fn a_scatter_is_the_sum_of_the_terms_that_go_to_an_element() {
    for (scattered, selected) in PROGRAMS {
        let (scattered, selected) = (program(scattered), program(selected));
        let inputs = random_inputs(&scattered, 3).unwrap();
        let (a, b) = (run(&scattered, &inputs).unwrap(), run(&selected, &inputs).unwrap());
        let (a, b) = (a.output("c").unwrap(), b.output("c").unwrap());
        for (number, (a, b)) in a.buffer.values().zip(b.buffer.values()).enumerate() {
            assert_eq!(a, b, "{number}\n{scattered}");
        }
        let tolerances = a.tolerance.iter().zip(&b.tolerance);
        assert!(tolerances.clone().all(|(a, b)| a <= b), "{scattered}");
        let again = Module::parse("t", &scattered.to_string()).unwrap();
        let again = again.bind("f", [] as [(&str, i64); 0]).unwrap();
        assert_eq!(again.hash(), scattered.hash(), "{scattered}");
        assert_ne!(selected.hash(), scattered.hash(), "{scattered}");
    }
}

#[test]
fn samples_are_elements_of_a_run() {
    for (scattered, _) in PROGRAMS {
        let program = program(scattered);
        let inputs = random_inputs(&program, 4).unwrap();
        let whole = run(&program, &inputs).unwrap();
        let whole = whole.output("c").unwrap();
        let places: Vec<OutputElement> =
            (0..whole.buffer.len()).map(|position| OutputElement { output: 0, position }).collect();
        for iterations in [1 << 30, 4000] {
            let effort = Effort { iterations, threads: 1 };
            let sampled = sample(&program, &inputs, &places, effort).unwrap();
            assert!(!sampled.is_empty());
            for element in sampled {
                let position = element.place.position;
                assert_eq!(Some(element.value), whole.buffer.get(position), "{program}");
                assert_eq!(Some(&element.tolerance), whole.tolerance.get(position), "{program}");
            }
        }
    }
}

#[test]
fn bounds_cover_scatters() {
    for (scattered, _) in PROGRAMS {
        let program = program(scattered);
        let inputs = random_inputs(&program, 5).unwrap();
        let whole = run(&program, &inputs).unwrap();
        let whole = whole.output("c").unwrap();
        let analysis = bounding(&program).unwrap();
        let results = run(&analysis.program, &inputs).unwrap();
        let of = |name: &str| &results.output(name).unwrap().buffer;
        let output = &analysis.outputs[0];
        let bounded = output.output(of(&output.values), output.bounds.as_deref().map(of)).unwrap();
        let values = whole.buffer.values().zip(bounded.buffer.values());
        for ((value, found), bound) in values.zip(&bounded.tolerance) {
            assert!(value.distance(found) <= *bound, "{value} {found} {bound}\n{program}");
        }
    }
}

#[test]
fn a_position_out_of_bounds_is_an_error() {
    let checked = program("c(b) +=! 1 scatter b = p(i) where b in 0:M");
    let mut inputs: BTreeMap<String, Buffer> = random_inputs(&checked, 1).unwrap();
    inputs.insert("p".to_owned(), Buffer::from_i32(&[5], vec![0, 4, 5, 1, 2]).unwrap());
    let error = run(&checked, &inputs).unwrap_err();
    assert_eq!(error.code.to_string(), "E0805");
    assert_eq!(
        error.message,
        "index 5 is out of bounds for dimension 0 of `c` (extent 5) at i = 2"
    );
    // Proven positions are not checked.
    let clamped = program("c(b) +=! 1 scatter b = clamp(p(i), 0, M - 1) where b in 0:M");
    assert!(!clamped.stages[0].scatter[0].checked && checked.stages[0].scatter[0].checked);
}
