//! Tests of GPU schedules.

use std::collections::BTreeMap;
use std::path::Path;

use tensorwright_lang::Module;
use tensorwright_lang::precision::Precision;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, Target};
use tensorwright_policy::{Preset, ScheduleSpace, default_schedule, lower_options};
use tensorwright_schedule::{Schedule, canonical, lower_with};
use tensorwright_space::Rng;

const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

/// The number of points to decode per example.
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

/// Stages that are cheap to recompute share a launch; on processors, where barriers cost more than
/// launches, they do not.
#[test]
fn stencils_share_launches() {
    let stages = (1..=8).map(|n| {
        let before = n - 1;
        format!("  t{n}(y,x) = (t{before}(y,x) + t{before}(y+1,x+1) + t{before}(y,x+2)) / 3\n")
    });
    let text = format!("def f(float(H,W) t0) -> (t8) {{\n{}}}", stages.collect::<String>());
    let module = Module::parse("f.tc", &text).unwrap();
    let program = module.bind("f", [("H", 2000), ("W", 1500)]).unwrap();
    let launches = |goal: &Goal| {
        let schedule = default_schedule(&program, goal).unwrap();
        assert_eq!(refusal(&schedule, &program, goal), None);
        schedule.apply(canonical(&program)).unwrap().body.len()
    };
    assert!(launches(&goal()) <= 4, "{} launches", launches(&goal()));
    let mut device = goal().target.gpu().unwrap().clone();
    device.is_processor = true;
    assert!(launches(&Goal::new(device.into())) > 4);
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
            // Primitives may refuse points that no rule rejects; accepted points can be lowered.
            if let Ok(schedule) = space.decode(&point) {
                decoded += 1;
                assert_eq!(refusal(&schedule, &program, &goal), None);
            }
        }
    }
    assert!(decoded * 100 >= drawn * 98, "{decoded} of {drawn} points are schedules");
}

/// Default schedules compute examples with several threads, unless they have a single line of
/// results.
#[test]
fn untuned_schedules_of_examples_bind_loops() {
    let goal = goal();
    for program in examples() {
        let schedule = default_schedule(&program, &goal).unwrap();
        assert_eq!(refusal(&schedule, &program, &goal), None);
        let results: i64 = program.outputs.iter().map(|id| program.tensor(*id).elements()).sum();
        let is_scan = program.stages.iter().any(|stage| stage.scan.is_some());
        if results > 1 && !is_scan {
            assert!(schedule.to_string().contains(": bind "), "{}: {schedule}", program.name);
        }
    }
}

/// A name, a text and sizes.
type Product = (&'static str, &'static str, &'static [(&'static str, i64)]);

/// Products with factors that tensor cores support.
const PRODUCTS: [Product; 4] = [
    (
        "half with float sums",
        "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) }",
        &[("M", 128), ("N", 256), ("K", 64)],
    ),
    (
        "half",
        "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
        &[("M", 128), ("N", 256), ("K", 64)],
    ),
    (
        "batches of transposed bfloat16",
        "def f(bfloat16(B,K,M) X, bfloat16(B,N,K) Y) -> (Z) { Z(b,m,n) +=! X(b,k,m) * Y(b,n,k) }",
        &[("B", 3), ("M", 64), ("N", 64), ("K", 64)],
    ),
    (
        "convolution",
        "def f(half(N,H,W,C) in, half(R,S,C,K) w) -> (out) { out(n,y,x,k) +=! in(n,y+r,x+s,c) * w(r,s,c,k) }",
        &[("N", 2), ("H", 10), ("W", 34), ("C", 32), ("R", 3), ("S", 3), ("K", 64)],
    ),
];

fn product(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("f.tc", text).unwrap();
    module.bind("f", sizes.iter().copied()).unwrap()
}

/// Products of `half` and `bfloat16` start on tensor cores, and legal points with and without them
/// decode.
#[test]
fn products_are_computed_on_tensor_cores() {
    let (goal, mut rng) = (goal(), Rng::new(3));
    for (name, text, sizes) in PRODUCTS {
        let program = product(text, sizes);
        let untuned = default_schedule(&program, &goal).unwrap().to_string();
        assert!(untuned.contains("tensorize"), "{name}: {untuned}");
        let space = ScheduleSpace::new(&program, &goal, &Preset::Full.options()).unwrap();
        let mut parameters = space.search_space().parameters().iter();
        let switch = parameters.position(|found| found.name().ends_with("tensor.terms")).unwrap();
        let (mut with, mut without) = (0, 0);
        for _ in 0..60 {
            let point = space.search_space().sample_legal(&mut rng).unwrap();
            if point.rank(switch) == 0 {
                without += 1;
                continue;
            }
            with += 1;
            let schedule = space.decode(&point).unwrap_or_else(|why| panic!("{name}: {why:?}"));
            assert!(schedule.to_string().contains("tensorize"), "{name}: {schedule}");
            assert_eq!(refusal(&schedule, &program, &goal), None, "{name}");
        }
        assert!(with > 2 && without > 2, "{name}: {with} with, {without} without");
    }
}

/// `float` values are rounded if the precision allows it and the device supports TF32.
#[test]
fn float_is_rounded_for_tensor_cores_only_where_that_is_allowed() {
    let program = gemm(1024);
    let has_tensors = |target: &str, precision: Precision| {
        let goal = Goal::new(Target::named(target).unwrap()).with_precision(precision);
        let schedule = default_schedule(&program, &goal).unwrap().to_string();
        assert_eq!(refusal(&Schedule::parse(&schedule).unwrap(), &program, &goal), None);
        schedule.contains("in tf32")
    };
    assert!(has_tensors("cuda:sm_80", Precision::Fast));
    assert!(has_tensors("cuda:sm_90", Precision::Fast));
    assert!(!has_tensors("cuda:sm_70", Precision::Fast));
    assert!(!has_tensors("cuda:sm_80", Precision::Exact));
    assert!(!has_tensors("hip:gfx90a", Precision::Fast));
}
