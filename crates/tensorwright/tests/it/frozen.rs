//! Frozen constants: snapshots for kernels with shared code.

use tensorwright::{
    Arguments, Buffer, Code, Frozen, Inputs, Kernel, Module, Program, View, compilations,
};

const LAYER: &str = "def layer(float(M,K) A, const float(K,N) W, const float(N) b) -> (C) { C(m,n) = b(n)  C(m,n) += A(m,k) * W(k,n) }";

/// `W` in panels of 16 columns.
const PREPARED: &str = "W: layout [d1/16, d0, d1%16]";

fn layer(text: &str) -> Program {
    let module = Module::parse("layer.tc", text).unwrap();
    module.def("layer").unwrap().bind([("M", 5), ("K", 7), ("N", 20)]).unwrap()
}

fn kernel(program: &Program) -> Kernel {
    program.compile().schedule_text(PREPARED).unwrap().build().unwrap()
}

fn constants(inputs: &Inputs) -> Arguments<'_> {
    Arguments::new().buffer("W", &inputs["W"]).buffer("b", &inputs["b"])
}

/// Compares calls that get only frozen constants with the reference.
fn agrees(kernel: &Kernel, frozen: &Frozen, inputs: &Inputs) {
    let arguments = Arguments::new().buffer("A", &inputs["A"]).frozen(frozen);
    let outputs = kernel.run(arguments).unwrap();
    assert!(kernel.verify(inputs, &outputs).unwrap().passed());
}

#[test]
fn equal_layers_share_one_kernel() {
    let before = compilations();
    let inputs: Vec<Inputs> =
        (0..4).map(|seed| layer(LAYER).random_inputs(seed).unwrap()).collect();

    // One kernel, a snapshot for every layer.
    let shared = kernel(&layer(LAYER));
    let snapshots: Vec<Frozen> =
        inputs.iter().map(|inputs| shared.freeze(constants(inputs)).unwrap()).collect();
    // A kernel for every layer, compiled from the text.
    let kernels: Vec<Kernel> = inputs.iter().map(|_| kernel(&layer(LAYER))).collect();
    assert_eq!(compilations(), before + 1);
    for ((inputs, frozen), own) in inputs.iter().zip(&snapshots).zip(&kernels) {
        agrees(&shared, frozen, inputs);
        assert!(std::ptr::eq(own.object().unwrap(), shared.object().unwrap()));
        agrees(own, &own.freeze(constants(inputs)).unwrap(), inputs);
        // They share code, so constants frozen for one work for the other.
        agrees(own, frozen, inputs);
    }

    // Kernels with different threads, schedules or texts do not share code.
    let other = layer(LAYER).compile().schedule_text(PREPARED).unwrap().threads(2).build().unwrap();
    let plain = layer(LAYER).compile().schedule_text("").unwrap().build().unwrap();
    let renamed = kernel(&layer(&LAYER.replace("A(", "X(").replace(") A", ") X")));
    let twice = format!("{LAYER}\n{}", LAYER.replace("def layer", "def same"));
    let module = Module::parse("layer.tc", &twice).unwrap();
    let [first, second] = ["layer", "same"].map(|name| {
        let program = module.def(name).unwrap().bind([("M", 5), ("K", 7), ("N", 20)]).unwrap();
        program.compile().symbol("one_name").build().unwrap()
    });
    assert!(
        !std::ptr::eq(first.object().unwrap(), second.object().unwrap()),
        "their errors are about other places"
    );
    for other in [&other, &plain, &renamed] {
        assert!(!std::ptr::eq(other.object().unwrap(), shared.object().unwrap()));
    }
    let error = plain.run(Arguments::from(&inputs[0]).frozen(&snapshots[0])).unwrap_err();
    assert_eq!(error.list()[0].code, Code::InputType);
    assert!(error.to_string().contains("frozen by another kernel"), "{error}");
}

#[test]
fn what_is_frozen_is_a_snapshot() {
    let program = layer(LAYER);
    let kernel = kernel(&program);
    let inputs = program.random_inputs(1).unwrap();
    let mut weights = inputs["W"].as_f32().unwrap().to_vec();
    let given = |weights: &[f32]| Buffer::from_f32(&[7, 20], weights.to_vec()).unwrap();
    let frozen = {
        let view = View::dense(&weights, &[7, 20]).unwrap();
        kernel.freeze(Arguments::new().view("W", view).buffer("b", &inputs["b"])).unwrap()
    };
    weights.fill(0.0);
    agrees(&kernel, &frozen, &inputs);

    // Calls with other constants do not change the snapshot, nor does it change their prepared
    // constants.
    let other = program.random_inputs(2).unwrap();
    kernel.run(&other).unwrap();
    agrees(&kernel, &frozen, &inputs);
    let outputs = kernel.run(Arguments::new().buffer("A", &other["A"])).unwrap();
    assert!(kernel.verify(&other, &outputs).unwrap().passed());

    // An additional constant overrides the frozen one, for that snapshot or call.
    let zero = given(&weights);
    let mut zeroed = inputs.clone();
    zeroed.insert("W".to_owned(), zero.clone());
    let second = kernel.freeze(Arguments::new().buffer("W", &zero).frozen(&frozen)).unwrap();
    agrees(&kernel, &second, &zeroed);
    let arguments = Arguments::new().buffer("A", &inputs["A"]).buffer("W", &zero).frozen(&frozen);
    assert!(kernel.verify(&zeroed, &kernel.run(arguments).unwrap()).unwrap().passed());
    agrees(&kernel, &frozen, &inputs);
}

#[test]
fn all_constants_are_needed() {
    let program = layer(LAYER);
    let kernel = kernel(&program);
    let inputs = program.random_inputs(1).unwrap();
    kernel.prepare(&inputs).unwrap();
    let error = kernel.freeze(Arguments::new().buffer("W", &inputs["W"])).unwrap_err();
    assert_eq!(error.list()[0].code, Code::MissingInput, "{error}");
}
