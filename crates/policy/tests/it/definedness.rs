//! Tests that no schedule reads uninitialized memory.
//!
//! Every example runs at the sizes of its golden test and at odd sizes, under the rule-based
//! schedule, the default schedule and random points. The memory tracks writes, before lowering and
//! after each lowering pass.

use std::path::Path;

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::cpu::rules::schedule_by_rules;
use tensorwright_policy::{Preset, ScheduleSpace, default_schedule};
use tensorwright_schedule::check::{Verdict, check};
use tensorwright_schedule::{Schedule, canonical, lower_traced};
use tensorwright_space::Rng;

/// The maximum number of stores and elements of a check.
const LIMIT: u64 = 200_000;

/// The maximum number of operations of a program to check.
const MOST_FLOPS: u128 = 5_000;

const ODD: [i64; 8] = [1, 2, 3, 5, 7, 11, 13, 17];

/// An example, bound.
struct Example {
    name: String,
    program: Program,
}

/// The examples at the sizes of their golden tests, and at `variants` random odd sizes.
fn examples(variants: usize, rng: &mut Rng) -> Vec<Example> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let cases = std::fs::read_to_string(folder.join("golden/cases.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(&cases).unwrap();
    let mut all = Vec::new();
    for case in cases.as_array().unwrap() {
        let (file, def) = (case["file"].as_str().unwrap(), case["def"].as_str().unwrap());
        let text = std::fs::read_to_string(folder.join("kernels").join(file)).unwrap();
        let module = Module::parse(file, &text).unwrap();
        let golden: Vec<(String, i64)> = case["sizes"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (name.clone(), value.as_i64().unwrap()))
            .collect();
        let mut add = |sizes: Vec<(String, i64)>| {
            let Ok(program) = module.bind(def, sizes.clone()) else { return false };
            let small = program.analysis().flops <= MOST_FLOPS;
            if small {
                all.push(Example { name: format!("{def} {sizes:?}"), program });
            }
            small
        };
        add(golden.clone());
        for _ in 0..variants {
            // Some sizes of a program depend on each other: these are kept until it binds.
            (0..20).find(|round| {
                let odd = |(name, size): &(String, i64)| {
                    let keeps = rng.below(100) < 10 + 4 * round;
                    let drawn = ODD[rng.below(ODD.len() as u64) as usize];
                    (name.clone(), if keeps { *size } else { drawn })
                };
                add(golden.iter().map(odd).collect())
            });
        }
    }
    all
}

/// Checks a schedule of an example; returns whether all of it could be run.
fn sound(example: &Example, what: &str, schedule: &Schedule) -> bool {
    let nest = schedule.apply(canonical(&example.program)).unwrap();
    let mut complete = true;
    let mut look = |when: &str, nest: &_| match check(nest, LIMIT) {
        Ok(verdict) => complete &= verdict == Verdict::Sound,
        Err(flaw) => {
            panic!("{}, {what}, {when}: {flaw}\n{schedule}\n{nest}", example.name)
        }
    };
    look("before lowering", &nest);
    // Too large programs are refused and do not run.
    let _ = lower_traced(nest, &mut |pass, nest| look(pass, nest));
    complete
}

#[test]
fn rules_make_nests_that_read_what_was_written() {
    let mut rng = Rng::new(1);
    let (mut all, mut complete) = (0, 0);
    for example in examples(1, &mut rng) {
        complete += usize::from(sound(&example, "canonical", &Schedule::default()));
        all += 1;
        for target in [Goal::new(Cpu::avx512()), Goal::new(Cpu::neon()).with_workers(2)] {
            let rules = schedule_by_rules(&example.program, &target);
            complete += usize::from(sound(&example, "default", &rules));
            all += 1;
        }
        let untuned = default_schedule(&example.program, &Goal::new(Cpu::avx2()).into()).unwrap();
        complete += usize::from(sound(&example, "untuned", &untuned));
        all += 1;
    }
    assert!(complete * 10 > all * 9, "only {complete} of {all} nests could be run whole");
}

#[test]
fn points_decode_to_nests_that_read_what_was_written() {
    // A longer run: TENSORWRIGHT_SEED=17 TENSORWRIGHT_POINTS=100.
    let number =
        |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (seed, points) = (number("TENSORWRIGHT_SEED", 2), number("TENSORWRIGHT_POINTS", 2));
    let mut rng = Rng::new(seed);
    let (mut all, mut complete) = (0, 0);
    for example in examples(1, &mut rng) {
        let target = match rng.below(3) {
            0 => Goal::new(Cpu::avx512()),
            1 => Goal::new(Cpu::avx2()).with_workers(2),
            _ => Goal::new(Cpu::neon()),
        };
        let preset = Preset::ALL[rng.below(Preset::ALL.len() as u64) as usize].1;
        let spaces =
            ScheduleSpace::alternatives(&example.program, &target.into(), &preset.options());
        for space in spaces.unwrap() {
            for _ in 0..points {
                let Some(point) = space.search_space().sample_legal(&mut rng) else { continue };
                let Ok(schedule) = space.decode(&point) else { continue };
                complete += usize::from(sound(&example, &space.algorithm(), &schedule));
                all += 1;
            }
        }
    }
    assert!(complete * 10 > all * 9, "only {complete} of {all} nests could be run whole");
}
