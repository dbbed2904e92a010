#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;

use tensorwright_lang::Module;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_pipeline::Machine;
use tensorwright_policy::cpu::Pipeline;

use super::*;

fn program(seed: u64) -> tensorwright_lang::program::Program {
    let text = RandomPipeline::new(seed).text;
    let module = Module::parse("random.tc", &text);
    let module = module.unwrap_or_else(|error| panic!("seed {seed}:\n{text}\n{error}"));
    let none: [(&str, i64); 0] = [];
    module.bind("random", none).unwrap_or_else(|error| panic!("seed {seed}:\n{text}\n{error}"))
}

#[test]
fn every_seed_makes_a_program() {
    let mut counts = BTreeSet::new();
    for seed in 0..300 {
        let program = program(seed);
        counts.insert(program.stages.len());
        // Every stage has a consumer.
        let dag = tensorwright_pipeline::Dag::new(&program);
        for (stage, consumers) in dag.stages.iter().zip(&dag.consumers) {
            assert_eq!(consumers.is_empty(), stage.is_output, "seed {seed}: {}", stage.name);
        }
    }
    assert!(counts.len() > 6, "{counts:?}");
}

#[test]
fn candidates_of_a_program_are_all_different_and_depend_on_the_seed() {
    let goal = Goal::new(Cpu::avx512());
    let pipeline = Pipeline::new(&program(3), &goal);
    let texts = |seed: u64| -> Vec<String> {
        let found = crate::candidates(&pipeline, &Machine::of(&goal), 12, seed);
        found.iter().map(|(_, schedule)| schedule.to_string()).collect()
    };
    let (all, again, others) = (texts(1), texts(1), texts(2));
    assert!(all.len() >= 8, "{}", all.len());
    assert_eq!(all, again);
    assert_ne!(all, others);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}
