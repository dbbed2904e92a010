//! Mistakes in results of programs that are too large for the interpreter are found, and right results pass.

use tensorwright::{Against, Buffer, Expected, Inputs, Module, Oracle, Program, Schedule};
use tensorwright_testkit::{Scale, generate_at};

const GEMM: &str = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

/// Rows whose magnitudes differ by a hundred million.
const GRADED: &str = "def f(float(M,K) A, float(K,N) B, float(M) scale) -> (C) {\n\
    S(m,k) = scale(m) * A(m,k)\n C(m,n) +=! S(m,k) * B(k,n) }";

const SOFTMAX: &str = "def f(float(M,N) X) -> (Y) {\n\
    Top(m) max=! X(m,n)\n E(m,n) = exp(X(m,n) - Top(m))\n S(m) +=! E(m,n)\n Y(m,n) = E(m,n) / S(m) }";

const LAYER_NORM: &str = "def f(float(M,N) X) -> (Y) {\n\
    Mean(m) +=! X(m,n) / N\n Var(m) +=! (X(m,n) - Mean(m)) * (X(m,n) - Mean(m)) / N\n\
    Y(m,n) = (X(m,n) - Mean(m)) / sqrt(Var(m) + 1e-5) }";

const ATTENTION: &str = "def f(float(M,K) Q, float(N,K) T, float(N,K) V) -> (O) {\n\
    P(m,n) +=! Q(m,k) * T(n,k)\n\
    Masked(m,n) = n <= m ? P(m,n) * 0.125 : -INFINITY\n\
    Top(m) max=! Masked(m,n)\n E(m,n) = exp(Masked(m,n) - Top(m))\n S(m) +=! E(m,n)\n\
    O(m,k) +=! E(m,n) * V(n,k) / S(m) }";

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let sizes = sizes.iter().map(|(name, size)| (*name, *size));
    Module::parse("t", text).unwrap().def("f").unwrap().bind(sizes).unwrap()
}

/// As if the program were too large.
fn expect(program: &Program, inputs: &Inputs) -> Expected {
    let oracle = Oracle { whole_iterations: 0, sample_iterations: 1_000_000, threads: 2, seed: 11 };
    program.expect(inputs, oracle).unwrap()
}

fn result(program: &Program, inputs: &Inputs) -> Buffer {
    let outputs = program.compile().build().unwrap().run(inputs).unwrap();
    outputs.into_iter().next().unwrap().1
}

/// Whether the change of one element is noticed.
fn notices(
    expected: &Expected,
    right: &Buffer,
    index: &[i64],
    change: impl Fn(f32) -> f32,
) -> bool {
    let mut wrong = right.clone();
    let position = wrong.position(index).unwrap();
    let element = &mut wrong.as_mut_slice::<f32>().unwrap()[position];
    *element = change(*element);
    expected.run.outputs[0].mismatch(&wrong).is_some()
}

#[test]
fn right_results_of_pipelines_pass_and_all_elements_have_bounds() {
    let sizes = [("M", 203), ("N", 301), ("K", 67)];
    for (name, text) in [
        ("gemm", GEMM),
        ("graded", GRADED),
        ("softmax", SOFTMAX),
        ("layer norm", LAYER_NORM),
        ("attention", ATTENTION),
    ] {
        let used = sizes.iter().filter(|(size, _)| {
            text.contains(&format!(",{size})")) || text.contains(&format!("({size}"))
        });
        let program = program(text, &used.copied().collect::<Vec<_>>());
        let inputs = program.random_inputs(4).unwrap();
        let expected = expect(&program, &inputs);
        let Against::Sampled { sampled, bounded, estimated, elements } = expected.against else {
            panic!("{name}")
        };
        assert_eq!((bounded, estimated), (elements, 0), "{name}");
        assert!(sampled > 100, "{name}: {sampled}");
        assert_eq!(expected.run.outputs[0].mismatch(&result(&program, &inputs)), None, "{name}");
        // The bounds are close enough to notice a small relative error nearly anywhere. In attention errors go
        // through two sums and a quotient.
        let relative = if name == "attention" { 1e-2 } else { 1e-3 };
        let output = &expected.run.outputs[0];
        let tolerances = output.buffer.values().zip(&output.tolerance);
        let loose = tolerances.filter(|(value, bound)| relative * value.as_f64().abs() < **bound);
        let loose = loose.count();
        assert!(loose < elements / 10, "{name}: {loose} of {elements}");
    }
}

#[test]
fn one_wrong_element_in_a_tail_is_found() {
    let program = program(GEMM, &[("M", 131), ("N", 517), ("K", 100)]);
    let inputs = program.random_inputs(1).unwrap();
    let (expected, right) = (expect(&program, &inputs), result(&program, &inputs));
    for index in [[130, 516], [130, 0], [57, 515], [129, 300], [0, 512], [64, 256]] {
        assert!(notices(&expected, &right, &index, |value| value + 1e-3), "{index:?}");
        assert!(notices(&expected, &right, &index, |_| f32::NAN), "{index:?}");
        assert!(!notices(&expected, &right, &index, |value| value), "{index:?}");
    }
}

#[test]
fn a_dropped_last_term_of_a_sum_is_found() {
    let sizes = [("M", 120), ("N", 140), ("K", 300)];
    let program = program(GEMM, &sizes);
    let inputs = program.random_inputs(2).unwrap();
    let expected = expect(&program, &inputs);
    let mut shorter = inputs.clone();
    let a = shorter.get_mut("A").unwrap();
    for row in a.as_mut_slice::<f32>().unwrap().chunks_mut(300) {
        row[299] = 0.0;
    }
    let wrong = result(&program, &shorter);
    let found = expected.run.outputs[0].mismatch(&wrong).unwrap().to_string();
    // Nearly all of them: a product of two random numbers is rarely next to nothing.
    let count: usize = found.split(' ').next().unwrap().parse().unwrap();
    assert!(count > 120 * 140 * 9 / 10, "{found}");
}

#[test]
fn errors_of_a_thousandth_in_small_elements_beside_large_ones_are_found() {
    let program = program(GRADED, &[("M", 100), ("N", 110), ("K", 200)]);
    let mut inputs = program.random_inputs(3).unwrap();
    let scale = (0..100).map(|row| if row % 10 == 9 { 1e-4 } else { 1e4 }).collect();
    inputs.insert("scale".to_owned(), Buffer::from_f32(&[100], scale).unwrap());
    let (expected, right) = (expect(&program, &inputs), result(&program, &inputs));
    assert_eq!(expected.run.outputs[0].mismatch(&right), None);
    let mut wrong = right.clone();
    for (position, element) in wrong.as_mut_slice::<f32>().unwrap().iter_mut().enumerate() {
        *element *= if position / 110 % 10 == 9 { 1.001 } else { 1.0 };
    }
    let found = expected.run.outputs[0].mismatch(&wrong).unwrap().to_string();
    let count: usize = found.split(' ').next().unwrap().parse().unwrap();
    assert!(count > 900, "{found}");
}

#[test]
fn verify_finds_them_in_programs_that_are_too_large_for_the_interpreter() {
    let program = program(GEMM, &[("M", 401), ("N", 403), ("K", 407)]);
    let kernel = program.compile().build().unwrap();
    let mut inputs = program.random_inputs(5).unwrap();
    // Rows of small numbers beside rows of large ones.
    for row in
        inputs.get_mut("A").unwrap().as_mut_slice::<f32>().unwrap().chunks_mut(407).step_by(2)
    {
        row.iter_mut().for_each(|number| *number *= 1e-6);
    }
    let verification = kernel.verify(&inputs, &kernel.run(&inputs).unwrap()).unwrap();
    assert!(verification.passed(), "{:?}", verification.mismatches);
    assert_eq!(
        verification.against.to_string(),
        "the reference interpreter on 4,096 sampled elements, and element-wise bounds on all 161,603"
    );
    // What is wrong in the small rows: a dropped term of all their sums.
    let mut shorter = inputs.clone();
    let a = shorter.get_mut("A").unwrap().as_mut_slice::<f32>().unwrap();
    a.chunks_mut(407).step_by(2).for_each(|row| row[406] = 0.0);
    let wrong = kernel.run(&shorter).unwrap();
    assert!(!kernel.verify(&inputs, &wrong).unwrap().passed());
}

#[test]
fn kernels_of_any_schedule_are_within_the_bounds() {
    let program = program(GEMM, &[("M", 65), ("N", 70), ("K", 513)]);
    let inputs = program.random_inputs(6).unwrap();
    let expected = expect(&program, &inputs);
    let plain = program.compile().schedule(Schedule::default()).build().unwrap();
    let outputs = plain.run(&inputs).unwrap();
    assert_eq!(expected.run.outputs[0].mismatch(outputs.get("C").unwrap()), None);
}

#[test]
fn whatever_has_no_bound_is_estimated_or_said_to_be_unknown() {
    // The interpreter bounds a tangent of what is inexact, the compiled analysis does not.
    let sizes = [("M", 50), ("N", 60)];
    let tangent = program("def f(float(M,N) X) -> (Y) { Y(m,n) = tan(0.3 * X(m,n)) }", &sizes);
    let inputs = tangent.random_inputs(7).unwrap();
    let expected = expect(&tangent, &inputs);
    let Against::Sampled { sampled, bounded, estimated, elements } = expected.against else {
        panic!()
    };
    assert_eq!((sampled, bounded, estimated, elements), (3000, 3000, 0, 3000), "all are sampled");
    let larger = program(
        "def f(float(M,N) X) -> (Y) { Y(m,n) = tan(0.3 * X(m,n)) }",
        &[("M", 100), ("N", 90)],
    );
    let inputs = larger.random_inputs(7).unwrap();
    let expected = expect(&larger, &inputs);
    assert_eq!(
        expected.against.to_string(),
        "the reference interpreter on 4,096 sampled elements, and element-wise bounds on 4,096 of 9,000, an \
         estimate on 4,904"
    );
    assert_eq!(expected.run.outputs[0].mismatch(&result(&larger, &inputs)), None);

    // What overflows in `float` depends on the last bits.
    let text = "def f(float(M,N) X) -> (Y) { Y(m,n) = exp(177.5 * abs(X(m,n))) / exp(88.7) }";
    let overflowing = program(text, &[("M", 100), ("N", 90)]);
    let inputs = overflowing.random_inputs(7).unwrap();
    let expected = expect(&overflowing, &inputs);
    let text = expected.against.to_string();
    assert!(text.contains("nothing known of ") && !text.contains("estimate"), "{text}");
    assert_eq!(expected.run.outputs[0].mismatch(&result(&overflowing, &inputs)), None);
}

#[test]
fn integers_are_exact() {
    let text =
        "def f(int8(M,K) A, int8(K,N) B) -> (C) { C(m,n) +=! int32(A(m,k)) * int32(B(k,n)) }";
    let program = program(text, &[("M", 90), ("N", 100), ("K", 80)]);
    let inputs = program.random_inputs(1).unwrap();
    let expected = expect(&program, &inputs);
    assert!(expected.run.outputs[0].tolerance.iter().all(|tolerance| *tolerance == 0.0));
    let mut wrong = result(&program, &inputs);
    assert_eq!(expected.run.outputs[0].mismatch(&wrong), None);
    wrong.as_mut_slice::<i32>().unwrap()[8999] += 1;
    assert!(expected.run.outputs[0].mismatch(&wrong).is_some());
}

#[test]
fn kernels_of_random_programs_are_within_the_bounds() {
    let mut bounded = 0;
    for seed in 0..80 {
        let generated = generate_at(Scale::Tileable, seed);
        let module = Module::parse("t", &generated.text).unwrap();
        let sizes = generated.sizes.iter().map(|(name, size)| (name.clone(), *size));
        let Ok(program) = module.def(&generated.def).unwrap().bind(sizes) else { continue };
        let inputs = program.random_inputs(seed).unwrap();
        let Ok(outputs) = program.compile().build().unwrap().run(&inputs) else { continue };
        let oracle = Oracle { whole_iterations: 0, sample_iterations: 100_000, threads: 1, seed };
        if let Err(contradiction) = program.expect(&inputs, oracle) {
            panic!("seed {seed}: {contradiction}\n{program}");
        }
        // If nothing is sampled, the compiled analysis judges alone.
        let oracle = Oracle { sample_iterations: 0, ..oracle };
        let expected = program.expect(&inputs, oracle).unwrap();
        let Against::Sampled { bounded: known, .. } = expected.against else { panic!("{seed}") };
        bounded += known;
        for output in &expected.run.outputs {
            let mismatch = output.mismatch(outputs.get(&output.name).unwrap());
            assert_eq!(mismatch, None, "seed {seed}, {}\n{program}", output.name);
        }
    }
    assert!(bounded > 10_000, "{bounded}");
}
