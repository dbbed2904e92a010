//! Tests of all examples as CUDA C++ with default schedules.
//!
//! They run on fibres, and NVIDIA's compiler compiles them.
#![allow(unsafe_code, reason = "the support of other tests calls compiled kernels")]
#![allow(clippy::print_stdout, reason = "what spills is listed, and a skipped test says so")]

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::fibres::{End, Fibres};
use crate::support::{Case, nvrtc};
use tensorwright_codegen_c::{Dialect, emit_device};
use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, Target};
use tensorwright_policy::{default_schedule, lower_options};
use tensorwright_reference::run;
use tensorwright_schedule::{LoweredNest, canonical, lower_with};

/// Every definition with a golden result, at the sizes of the first one.
fn examples() -> BTreeMap<String, Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut programs = BTreeMap::new();
    for (folder, list) in [("kernels", "cases"), ("pipelines", "pipelines")] {
        let cases = std::fs::read_to_string(root.join(format!("golden/{list}.json"))).unwrap();
        let cases: serde_json::Value = serde_json::from_str(&cases).unwrap();
        for case in cases.as_array().unwrap() {
            let (file, def) = (case["file"].as_str().unwrap(), case["def"].as_str().unwrap());
            let name = format!("{}_{def}", file.trim_end_matches(".tc"));
            if programs.contains_key(&name) {
                continue;
            }
            let text = std::fs::read_to_string(root.join(folder).join(file)).unwrap();
            let sizes: BTreeMap<String, i64> =
                serde_json::from_value(case["sizes"].clone()).unwrap();
            let program = Module::parse(file, &text).unwrap().bind(def, sizes);
            programs.insert(name, program.unwrap_or_else(|errors| panic!("{errors}")));
        }
    }
    programs
}

/// A program with the default schedule for an architecture.
fn untuned(program: &Program, architecture: &str) -> LoweredNest {
    let target = Target::named(&format!("cuda:{architecture}")).unwrap();
    let schedule = default_schedule(program, &Goal::new(target.clone())).unwrap();
    let nest = schedule.apply(canonical(program)).unwrap();
    lower_with(nest, &lower_options(&target), &mut |_, _| {}).unwrap()
}

/// One half of the examples, so that both halves run concurrently.
fn run_with_fibres(half: usize) {
    for (number, (name, program)) in examples().iter().enumerate() {
        if number % 2 != half {
            continue;
        }
        let case = Case::new(name, program, untuned(program, "sm_80"));
        let made = emit_device(&case.nest, Dialect::Cuda).unwrap();
        let end = Fibres::new(&format!("example_{name}"), &case, &made).run(1);
        // Random subscripts may be out of bounds; the reference then reports it too.
        let is_right = match run(&case.program, &case.inputs) {
            Ok(_) => end == End::Status(0),
            Err(_) => matches!(end, End::Status(status) if status != 0),
        };
        assert!(is_right, "{name}: {end:?}\n{}", made.source);
    }
}

#[test]
fn one_half_run_with_fibres_agrees_with_the_reference() {
    run_with_fibres(0);
}

#[test]
fn the_other_half_run_with_fibres_agrees_with_the_reference() {
    run_with_fibres(1);
}

/// Compiles all examples and lists those that spill.
fn compile_all(architecture: &str) {
    let Some(compiler) = nvrtc() else { return };
    let (mut kernels, mut spills) = (0, 0);
    for (name, program) in examples() {
        let made = emit_device(&untuned(&program, architecture), Dialect::Cuda).unwrap();
        let compiled = compiler.compile(&made.source, architecture);
        let compiled = compiled.unwrap_or_else(|error| panic!("{name}: {error}\n{}", made.source));
        for kernel in &compiled.kernels {
            kernels += 1;
            if kernel.spills() {
                spills += 1;
                println!("{name}: {kernel:?}");
            }
        }
    }
    println!("{architecture}: {kernels} kernels, {spills} of them spill");
    assert!(kernels > 150);
}

#[test]
fn all_are_compiled_for_sm_70() {
    compile_all("sm_70");
}

#[test]
fn all_are_compiled_for_sm_80() {
    compile_all("sm_80");
}

#[test]
fn all_are_compiled_for_sm_90() {
    compile_all("sm_90");
}
