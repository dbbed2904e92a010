//! Tests that legal points decode to schedules, or are refused with a reason.
#![allow(clippy::print_stdout, reason = "tests")]

use crate::common;

use std::collections::BTreeMap;

use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::{Preset, ScheduleSpace};
use tensorwright_schedule::{canonical, lower};
use tensorwright_space::Rng;

/// The number of points to test per space.
const POINTS: usize = 12;

/// The number of legal points that decode and lower, with the reasons of the others.
fn survey(program: &Program, target: &Goal, preset: Preset) -> (usize, BTreeMap<String, usize>) {
    let space = ScheduleSpace::new(program, target, &preset.options()).unwrap();
    let mut rng = Rng::new(1);
    let mut good = 0;
    let mut reasons = BTreeMap::new();
    for _ in 0..POINTS {
        let Some(point) = space.search_space().sample_legal(&mut rng) else {
            *reasons.entry("no legal point found".to_owned()).or_default() += 1;
            continue;
        };
        match space.decode(&point) {
            Ok(schedule) => {
                let nest = schedule.apply(canonical(program)).unwrap_or_else(|e| panic!("{e}"));
                match lower(nest) {
                    Ok(_) => good += 1,
                    Err(error) => *reasons.entry(error.to_string()).or_default() += 1,
                }
            }
            Err(refused) => {
                *reasons.entry(format!("{}: {}", refused.rule, refused.reason)).or_default() += 1;
            }
        }
    }
    let start = space.decode(&space.start());
    if let Err(refused) = start {
        *reasons.entry(format!("START {}: {}", refused.rule, refused.reason)).or_default() += 1;
    }
    (good, reasons)
}

#[test]
fn points_of_every_example_become_schedules() {
    let mut poor = Vec::new();
    for common::Example { name, program } in common::examples() {
        for target in [Goal::new(Cpu::avx512()), Goal::new(Cpu::avx2()).with_workers(2)] {
            let (good, reasons) = survey(&program, &target.into(), Preset::Full);
            println!("{name}: {good} of {POINTS} good");
            for (reason, count) in &reasons {
                println!("    {count} {reason}");
            }
            if good < POINTS / 4 || reasons.keys().any(|reason| reason.starts_with("START")) {
                poor.push(format!("{name}: {good} of {POINTS}, {reasons:?}"));
            }
        }
    }
    assert!(poor.is_empty(), "{}", poor.join("\n"));
}
