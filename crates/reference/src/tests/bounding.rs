//! The compiled error analysis is sound, and nearly as tight as the interpreter's.

use std::collections::BTreeMap;
use std::path::Path;

use crate::bounding::bounding;
use crate::{Buffer, Output, random_inputs, run};
use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_testkit::generate;

/// The outputs with the bounds of the analysis, run by the interpreter.
fn analysed(program: &Program, inputs: &BTreeMap<String, Buffer>) -> Vec<Output> {
    let analysis = bounding(program).unwrap();
    let results = run(&analysis.program, inputs).unwrap();
    let of = |name: &str| &results.output(name).unwrap().buffer;
    let outputs = analysis.outputs.iter();
    outputs.map(|o| o.output(of(&o.values), o.bounds.as_deref().map(of)).unwrap()).collect()
}

/// The result of comparing two analyses.
#[derive(Debug, Default)]
struct Compared {
    elements: usize,
    /// Elements that only the interpreter bounds.
    unknown: usize,
    /// Elements whose bound is more than twice the interpreter's.
    loose: usize,
}

/// The interpreter's values must be within the bounds, and the bounds must not be tighter than its
/// own.
fn compare(program: &Program, inputs: &BTreeMap<String, Buffer>, what: &str) -> Compared {
    let direct = run(program, inputs).unwrap();
    let mut compared = Compared::default();
    for (expected, bounded) in direct.outputs.iter().zip(analysed(program, inputs)) {
        let values = expected.buffer.values().zip(bounded.buffer.values());
        let tolerances = expected.tolerance.iter().zip(&bounded.tolerance);
        for ((value, found), (tolerance, bound)) in values.zip(tolerances) {
            compared.elements += 1;
            if bound.is_infinite() {
                compared.unknown += usize::from(tolerance.is_finite());
                continue;
            }
            // The interpreter also rounds stores, and allows for that.
            assert!(
                value.distance(found) <= *bound && *bound >= 0.45 * tolerance,
                "{what}: {} is {value} within {tolerance:e}, and {found} within {bound:e}\n{program}",
                expected.name
            );
            compared.loose += usize::from(*bound > 2.0 * tolerance + 1e-37);
        }
    }
    compared
}

#[test]
fn bounds_cover_the_tolerances_of_random_programs() {
    let mut total = Compared::default();
    for seed in 0..600 {
        let generated = generate(seed);
        let module = Module::parse("t", &generated.text).unwrap();
        let sizes = generated.sizes.iter().map(|(name, size)| (name.clone(), *size));
        let Ok(program) = module.bind(&generated.def, sizes) else { continue };
        let inputs = random_inputs(&program, seed).unwrap();
        if run(&program, &inputs).is_err() {
            continue;
        }
        let compared = compare(&program, &inputs, &format!("seed {seed}"));
        total.elements += compared.elements;
        total.unknown += compared.unknown;
        total.loose += compared.loose;
    }
    assert!(total.elements > 10_000, "{total:?}");
    assert!(total.unknown < total.elements / 10, "{total:?}");
    assert!(total.loose < total.elements / 5, "{total:?}");
}

#[test]
fn bounds_cover_the_tolerances_of_the_examples() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let cases = std::fs::read_to_string(examples.join("golden/cases.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(&cases).unwrap();
    let mut poor = Vec::new();
    for case in cases.as_array().unwrap() {
        let (file, def) = (case["file"].as_str().unwrap(), case["def"].as_str().unwrap());
        let text = std::fs::read_to_string(examples.join("kernels").join(file)).unwrap();
        let sizes: BTreeMap<String, i64> = serde_json::from_value(case["sizes"].clone()).unwrap();
        let program = Module::parse(file, &text).unwrap().bind(def, sizes).unwrap();
        let inputs = random_inputs(&program, 3).unwrap();
        let compared = compare(&program, &inputs, def);
        if 3 * compared.unknown > compared.elements || 4 * compared.loose > 3 * compared.elements {
            poor.push((def.to_owned(), compared));
        }
    }
    assert!(poor.is_empty(), "{poor:#?}");
}

#[test]
fn an_uncertain_integer_stays_uncertain_when_it_is_converted_back() {
    let text = "def f(float(N) X) -> (Y) { Y(i) = 0.5 * float(int8(X(i) * 10.0)) }";
    let program = Module::parse("t", text).unwrap().bind("f", [("N", 100)]).unwrap();
    // Tenths are inexact, so their products with ten may be truncated to either side.
    let tenths = (0..100).map(|i| i as f32 * 0.1).collect();
    let inputs = BTreeMap::from([("X".to_owned(), Buffer::from_f32(&[100], tenths).unwrap())]);
    compare(&program, &inputs, "tenths");
    let bounded = &analysed(&program, &inputs)[0];
    assert!(bounded.tolerance.iter().filter(|bound| (0.5..2.0).contains(*bound)).count() > 50);
}
