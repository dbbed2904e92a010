//! Every example of several stages is scheduled by the search over pipelines: what it proposes applies and can be lowered.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use tensorwright_pipeline::Options;
use tensorwright_policy::cpu::Pipeline;
use tensorwright_policy::pipeline_schedules;
use tensorwright_schedule::{canonical, lower};
use tensorwright_target::{Cpu, Goal};

#[test]
fn examples_of_several_stages_are_scheduled() {
    let mut poor = Vec::new();
    for common::Example { name, program } in common::examples() {
        if program.stages.len() < 2 {
            continue;
        }
        for goal in [Goal::new(Cpu::avx512()), Goal::new(Cpu::avx2()).with_workers(2)] {
            for options in [Options::greedy(), Options::beam()] {
                let found = Pipeline::search(&program, &goal, &options);
                let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
                let mut good = 0;
                for (state, _) in found.states.iter().take(8) {
                    match found.decode(state) {
                        Ok(schedule) => {
                            let nest = schedule.apply(canonical(&program)).unwrap();
                            lower(nest).unwrap();
                            good += 1;
                        }
                        Err(refused) => {
                            let reason = format!("{}: {}", refused.rule, refused.reason);
                            *reasons.entry(reason).or_default() += 1;
                        }
                    }
                }
                println!("{name}: {good} good, {reasons:?}");
                if good == 0 || !reasons.is_empty() && good < 4 && options.width > 1 {
                    let text = found.states.first().map(|(s, _)| s.text(&found.dag, &found.levels));
                    poor.push(format!("{name}: {good} good, {reasons:?}\n{text:?}"));
                }
            }
        }
    }
    assert!(poor.is_empty(), "{}", poor.join("\n"));
}

#[test]
fn schedules_come_best_first_and_differ() {
    let example = common::examples().into_iter().find(|e| e.name.contains("harris")).unwrap();
    let goal = Goal::new(Cpu::avx512()).with_workers(2).into();
    let found = pipeline_schedules(&example.program, &goal, &Options::beam(), 5).unwrap();
    assert!(found.len() > 1);
    assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 != pair[1].0));
}
