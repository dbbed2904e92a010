//! What the search over pipelines proposes computes what the reference does, at small odd sizes.

use std::path::Path;

use tensorwright::{Module, Target};
use tensorwright_machine::Goal;
use tensorwright_pipeline::BeamOptions;
use tensorwright_policy::pipeline_schedules;

/// A file, a definition, and sizes.
type Case = (&'static str, &'static str, &'static [(&'static str, i64)]);

/// Examples of several stages, at sizes that are no multiples of anything.
const CASES: [Case; 10] = [
    ("blur", "blur3x3", &[("H", 37), ("W", 149)]),
    ("blur", "gauss5", &[("H", 41), ("W", 83)]),
    ("blur", "separable_blur", &[("H", 23), ("W", 71), ("K", 5)]),
    ("blur", "box_blur", &[("H", 29), ("W", 67), ("r", 2)]),
    ("unsharp", "unsharp", &[("H", 31), ("W", 151)]),
    ("harris", "harris", &[("H", 19), ("W", 133)]),
    ("max_filter", "max_filter", &[("H", 43), ("W", 79), ("r", 3)]),
    ("stencil_chain", "stencil_chain", &[("H", 5), ("W", 7)]),
    ("histogram", "histogram", &[("H", 13), ("W", 17), ("bins", 7)]),
    ("histogram", "equalize", &[("H", 13), ("W", 17), ("bins", 7)]),
];

/// Every definition of several stages in the cases of the golden files, and those above.
fn programs() -> Vec<(String, tensorwright::Program)> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = std::fs::read_to_string(examples.join("golden/cases.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(&text).unwrap();
    let bind = |file: &str, def: &str, sizes: Vec<(String, i64)>| {
        let source = std::fs::read_to_string(examples.join("kernels").join(file)).unwrap();
        let module = Module::parse(file, &source).unwrap();
        (format!("{file} {def} {sizes:?}"), module.def(def).unwrap().bind(sizes).unwrap())
    };
    let golden = cases.as_array().unwrap().iter().map(|case| {
        let sizes: std::collections::BTreeMap<String, i64> =
            serde_json::from_value(case["sizes"].clone()).unwrap();
        let (file, def) = (case["file"].as_str().unwrap(), case["def"].as_str().unwrap());
        bind(file, def, sizes.into_iter().collect())
    });
    let odd = CASES.iter().map(|(file, def, sizes)| {
        let sizes = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        bind(&format!("{file}.tc"), def, sizes)
    });
    golden.chain(odd).filter(|(_, program)| program.ir().stages.len() > 1).collect()
}

#[test]
fn schedules_of_pipelines_compute_what_the_reference_does() {
    let goal = Goal::new(Target::native().unwrap()).with_workers(2).on_this_machine();
    let programs = programs();
    assert!(programs.len() > 40, "{} programs", programs.len());
    for (name, program) in programs {
        for options in [BeamOptions::greedy().with_seed(1), BeamOptions::beam()] {
            let found = pipeline_schedules(program.ir(), &goal, &options, 3).unwrap().schedules;
            assert!(!found.is_empty(), "{name}");
            for (schedule, _) in found {
                let kernel = program.compile().schedule(schedule.clone()).build().unwrap();
                let inputs = program.random_inputs(7).unwrap();
                let verified = kernel.verify(&inputs, &kernel.run(&inputs).unwrap()).unwrap();
                assert!(verified.passed(), "{name}\n{schedule}\n{:?}", verified.mismatches);
            }
        }
    }
}
