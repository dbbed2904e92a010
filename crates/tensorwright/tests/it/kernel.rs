//! Compiled kernels through the public Rust API.

use tensorwright::{
    Against, Arguments, Buffer, Code, Inputs, Kernel, Module, Program, Schedule, Target, View,
};

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", text).unwrap();
    module.defs().next().unwrap().bind(sizes.iter().copied()).unwrap()
}

const DENSE: &str =
    "def dense(float(M,K) A, const float(K,N) W) -> (C) { C(m,n) +=! A(m,k) * W(k,n) }";
const DENSE_SIZES: [(&str, i64); 3] = [("M", 5), ("K", 7), ("N", 20)];

/// `W` in panels of 16 columns.
const PREPARED: &str = "W: layout [d1/16, d0, d1%16]";

fn agrees(program: &Program, kernel: &Kernel, inputs: &Inputs) {
    let verification = kernel.verify(inputs, &kernel.run(inputs).unwrap()).unwrap();
    assert!(verification.passed(), "{}: {:?}", program.name(), verification.mismatches);
    assert_eq!(verification.against, Against::Reference);
}

#[test]
fn constants_are_prepared_once_and_again_when_they_change() {
    let program = program(DENSE, &DENSE_SIZES);
    let kernel = program.compile().schedule_text(PREPARED).unwrap().build().unwrap();
    let first = program.random_inputs(1).unwrap();
    agrees(&program, &kernel, &first);

    // Without weights, those of the last call are used.
    let mut without = program.random_inputs(2).unwrap();
    without.remove("W");
    let outputs = kernel.run(&without).unwrap();
    let mut complete = without.clone();
    complete.insert("W".to_owned(), first["W"].clone());
    assert!(kernel.verify(&complete, &outputs).unwrap().passed());

    // Changed weights are prepared again.
    agrees(&program, &kernel, &program.random_inputs(3).unwrap());
}

#[test]
fn constants_can_be_given_ahead() {
    let program = program(DENSE, &DENSE_SIZES);
    let kernel = program.compile().schedule_text(PREPARED).unwrap().build().unwrap();
    let inputs = program.random_inputs(1).unwrap();
    let missing = kernel.run(Arguments::new().buffer("A", &inputs["A"])).unwrap_err();
    assert_eq!(missing.list()[0].code, Code::MissingInput);
    kernel.prepare(Arguments::new().buffer("W", &inputs["W"])).unwrap();
    let outputs = kernel.run(Arguments::new().buffer("A", &inputs["A"])).unwrap();
    assert!(kernel.verify(&inputs, &outputs).unwrap().passed());
}

#[test]
fn inputs_are_checked_as_the_reference_checks_them() {
    let program = program(DENSE, &DENSE_SIZES);
    let kernel = program.compile().build().unwrap();
    let good = program.random_inputs(0).unwrap();
    let with = |name: &str, buffer: Buffer| {
        let mut inputs = good.clone();
        inputs.insert(name.to_owned(), buffer);
        inputs
    };
    for inputs in [
        with("A", Buffer::from(vec![1.0f32])),
        with("A", Buffer::from_i32(&[5, 7], vec![0; 35]).unwrap()),
        with("B", Buffer::from(1.0f32)),
        Inputs::new(),
    ] {
        let expected = program.run_reference(&inputs).unwrap_err();
        assert_eq!(kernel.run(&inputs).unwrap_err(), expected);
    }
    let bytes = [0u16; 35];
    let view = View::dense(&bytes, &[5, 7]).unwrap();
    let arguments = Arguments::from(&good).view("A", view);
    let error = kernel.run(arguments).unwrap_err();
    assert_eq!(error.list()[0].code, Code::InputType);
    assert!(error.to_string().contains("elements of 2 bytes"), "{error}");
}

#[test]
fn indices_out_of_bounds_are_the_same_diagnostic() {
    let text = "def gather(float(N) x, int32(M) at) -> (y) { y(i) = x(at(i)) }";
    let small = program(text, &[("N", 4), ("M", 3)]);
    let inputs = Inputs::from([
        ("x".to_owned(), Buffer::from(vec![1.0f32, 2.0, 3.0, 4.0])),
        ("at".to_owned(), Buffer::from(vec![0i32, 3, 9])),
    ]);
    let expected = small.run_reference(&inputs).unwrap_err();
    let error = small.compile().build().unwrap().run(&inputs).unwrap_err();
    assert_eq!(error, expected);

    // The reference would take too long: the message names only the read.
    let large = program(text, &[("N", 4), ("M", 20_000_000)]);
    let mut inputs = inputs;
    inputs.insert("at".to_owned(), Buffer::from(vec![4i32; 20_000_000]));
    let error = large.compile().build().unwrap().run(&inputs).unwrap_err();
    assert_eq!(error.list()[0].code, Code::IndexOutOfBounds);
    assert!(error.to_string().contains("`x(at(i))`"), "{error}");
}

#[test]
fn parallel_loops_use_threads() {
    let program = program(DENSE, &[("M", 37), ("K", 16), ("N", 8)]);
    let inputs = program.random_inputs(0).unwrap();
    for threads in [1, 2, 3] {
        let builder = program.compile().threads(threads);
        let kernel = builder.schedule_text("C: parallel m").unwrap().build().unwrap();
        assert_eq!(kernel.threads(), threads);
        agrees(&program, &kernel, &inputs);
    }
    let error = program.compile().threads(5000).build().unwrap_err();
    assert!(error.to_string().contains("1 to 1024"), "{error}");
}

#[test]
fn kernels_of_other_machines_are_written_and_not_run() {
    let program = program(DENSE, &DENSE_SIZES);
    let foreign = if cfg!(target_arch = "x86_64") { "neon" } else { "avx2" };
    let kernel = program.compile().target(Target::named(foreign).unwrap()).build().unwrap();
    assert!(!kernel.object().unwrap().is_empty());
    assert!(kernel.assembly().unwrap().contains("dense"));
    let error = kernel.run(&program.random_inputs(0).unwrap()).unwrap_err();
    assert_eq!(error.list()[0].code, Code::UnknownTarget);
}

#[test]
fn refusals_point_at_the_step() {
    let program = program(DENSE, &DENSE_SIZES);
    let schedule = Schedule::parse("C: split m 2\nC: parallel k").unwrap();
    let error = program.compile().schedule(schedule).build().unwrap_err();
    assert_eq!(error.list()[0].code, Code::ScheduleRefused);
    assert_eq!(error.source().slice(error.list()[0].span().unwrap()), "C: parallel k");
    let error = program.compile().schedule_text("C: spilt m 2").unwrap_err();
    assert_eq!(error.list()[0].code, Code::ScheduleSyntax);
}

#[test]
fn every_text_of_a_kernel_names_it() {
    let program = program(DENSE, &DENSE_SIZES);
    let kernel = program.compile().build().unwrap();
    let lowered = kernel.lowered();
    for text in [
        kernel.loops(),
        kernel.c_source().unwrap(),
        kernel.llvm_ir().unwrap(),
        kernel.assembly().unwrap(),
        lowered.c_header().unwrap(),
        lowered.c_wrapper().unwrap(),
        lowered.rust_module().unwrap(),
    ] {
        assert!(text.contains(lowered.symbol()), "{text}");
    }
    let steps = kernel.loops_after_each_pass();
    assert_eq!(steps[0].0, "canonical");
    assert_eq!(steps.last().unwrap().1, kernel.loops());
    assert!(kernel.compile_times().total() >= kernel.compile_times().codegen);
    let again = program.compile().schedule(kernel.schedule().clone()).build().unwrap();
    assert_eq!(again.loops(), kernel.loops());
}

#[test]
fn views_are_read_where_they_are_or_copied() {
    let program =
        program("def f(bool(N) m, double(N) x) -> (y) { y(i) = m(i) ? x(i) : 0.0 }", &[("N", 4)]);
    let kernel = program.compile().build().unwrap();
    let (mask, values) = ([1u8, 0, 1, 1], [1.0f64, 2.0, 3.0, 4.0]);
    let reversed = View::new(&values, 3, &[4], &[-1]).unwrap();
    let arguments =
        Arguments::new().view("m", View::dense(&mask, &[4]).unwrap()).view("x", reversed);
    let mut call = kernel.bind(arguments).unwrap();
    call.run().unwrap();
    assert_eq!(call.output::<f64>("y"), Some(&[4.0, 0.0, 2.0, 1.0][..]));
    assert_eq!(call.output::<f32>("y"), None);
    assert!(call.input_mut::<u8>("m").is_none(), "a byte is not a bool");

    let bad = [2u8; 4];
    let arguments = Arguments::new()
        .view("m", View::dense(&bad, &[4]).unwrap())
        .view("x", View::dense(&values, &[4]).unwrap());
    assert!(kernel.run(arguments).is_err());
}

#[test]
fn versions_of_a_tensor_are_told_apart() {
    // Reads the caller's `y` and returns a new `y`.
    let program = program("def add(float(N) x, float(N) y) -> (y) { y(i) += x(i) }", &[("N", 3)]);
    let kernel = program.compile().build().unwrap();
    agrees(&program, &kernel, &program.random_inputs(0).unwrap());
}

#[test]
fn kernels_are_shared_between_threads() {
    let program = program(DENSE, &DENSE_SIZES);
    let kernel = program.compile().build().unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (program, kernel) = (&program, &kernel);
            scope.spawn(move || {
                let inputs = program.random_inputs(seed).unwrap();
                for _ in 0..10 {
                    agrees(program, kernel, &inputs);
                }
            });
        }
    });
}
