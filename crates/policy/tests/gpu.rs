//! Schedules for graphics processors.
#![allow(clippy::unwrap_used, reason = "a failed expectation is how a test speaks")]

use std::collections::BTreeMap;
use std::path::Path;

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_policy::{Preset, ScheduleSpace, lower_options, untuned_schedule};
use tensorwright_schedule::{Schedule, canonical, lower_with};
use tensorwright_space::Rng;
use tensorwright_target::{Goal, Target};

const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

/// Points of each example that are decoded.
const POINTS: usize = 12;

fn gemm(size: i64) -> Program {
    let module = Module::parse("gemm.tc", GEMM).unwrap();
    module.bind("gemm", [("M", size), ("N", size), ("K", size)]).unwrap()
}

fn goal() -> Goal {
    Goal::new(Target::named("cuda:sm_80").unwrap())
}

/// The kernels with golden results, at their sizes.
fn examples() -> Vec<Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let cases = std::fs::read_to_string(root.join("golden/cases.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(&cases).unwrap();
    let program = |case: &serde_json::Value| {
        let file = case["file"].as_str().unwrap();
        let text = std::fs::read_to_string(root.join("kernels").join(file)).unwrap();
        let sizes: BTreeMap<String, i64> = serde_json::from_value(case["sizes"].clone()).unwrap();
        Module::parse(file, &text).unwrap().bind(case["def"].as_str().unwrap(), sizes).ok()
    };
    cases.as_array().unwrap().iter().filter_map(program).collect()
}

/// Why a schedule cannot be lowered for the device.
fn refusal(schedule: &Schedule, program: &Program, goal: &Goal) -> Option<String> {
    let nest = schedule.apply(canonical(program)).map_err(|error| error.to_string());
    let lowered = nest.and_then(|nest| {
        lower_with(nest, &lower_options(&goal.target), &mut |_, _| {})
            .map_err(|error| error.to_string())
    });
    lowered.err().map(|error| format!("{error}\n{schedule}"))
}

#[test]
fn what_the_model_ranks_first_can_be_lowered() {
    let (program, goal) = (gemm(1024), goal());
    let space = ScheduleSpace::new(&program, &goal, &Preset::Full.options()).unwrap();
    for point in space.ranked(16) {
        let schedule = space.decode(&point).unwrap();
        assert_eq!(refusal(&schedule, &program, &goal), None);
        assert!(space.estimate(&point).is_finite());
    }
}

#[test]
fn legal_points_of_examples_are_schedules() {
    let (goal, mut rng) = (goal(), Rng::new(1));
    let (mut decoded, mut drawn) = (0, 0);
    for program in examples() {
        let space = ScheduleSpace::new(&program, &goal, &Preset::Full.options()).unwrap();
        for _ in 0..POINTS {
            let point = space.search_space().sample_legal(&mut rng).unwrap();
            drawn += 1;
            // Primitives may refuse what no rule does; what they accept can be lowered.
            if let Ok(schedule) = space.decode(&point) {
                decoded += 1;
                assert_eq!(refusal(&schedule, &program, &goal), None);
            }
        }
    }
    assert!(decoded * 100 >= drawn * 98, "{decoded} of {drawn} points are schedules");
}

/// Without records, examples are computed by several threads, unless they have one line of results.
#[test]
fn untuned_schedules_of_examples_bind_loops() {
    let goal = goal();
    for program in examples() {
        let schedule = untuned_schedule(&program, &goal).unwrap();
        assert_eq!(refusal(&schedule, &program, &goal), None);
        let results: i64 = program.outputs.iter().map(|id| program.tensor(*id).elements()).sum();
        let is_scan = program.stages.iter().any(|stage| stage.scan.is_some());
        if results > 1 && !is_scan {
            assert!(schedule.to_string().contains(": bind "), "{}: {schedule}", program.name);
        }
    }
}
