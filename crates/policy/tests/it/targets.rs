//! Tests that all entry points refuse unsupported targets with the same error.

use tensorwright_lang::Module;
use tensorwright_machine::{Fpga, Goal, Target, TargetError};
use tensorwright_pipeline::BeamOptions;
use tensorwright_policy::{
    DefaultSchedule, Preset, ScheduleSpace, default_schedule, pipeline_schedules,
};
use tensorwright_schedule::{ScheduleState, canonical};

const TEXT: &str = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

/// The errors of all entry points for a goal.
fn said(goal: &Goal) -> Vec<Option<TargetError>> {
    let program = Module::parse("f.tc", TEXT).unwrap();
    let program = program.bind("f", [("M", 32), ("N", 32), ("K", 32)]).unwrap();
    let full = Preset::Full.options();
    let begun = ScheduleState::new(canonical(&program));
    vec![
        default_schedule(&program, goal).err(),
        DefaultSchedule::of(&program, goal).err(),
        ScheduleSpace::new(&program, goal, &full).err(),
        ScheduleSpace::new(&program, goal, &Preset::Tiles.options()).err(),
        ScheduleSpace::alternatives(&program, goal, &full).err(),
        ScheduleSpace::alternatives(&program, goal, &Preset::Tiles.options()).err(),
        ScheduleSpace::of(begun, goal, &full).err(),
        pipeline_schedules(&program, goal, &BeamOptions::greedy(), 1).err(),
    ]
}

#[test]
fn every_target_is_served_or_refused_by_all_alike() {
    let fpga =
        Fpga { name: "fpga".to_owned(), multipliers: 1 << 12, memory: 1 << 23, bandwidth: 1 << 34 };
    // Only runtimes know the available devices.
    let named = Target::names().into_iter().filter_map(|name| Target::named(name).ok());
    for target in named.chain([Target::Fpga(fpga)]) {
        let name = target.name().to_owned();
        let refused = match &target {
            Target::Cpu(_) | Target::Gpu(_) => None,
            Target::Fpga(_) => Some(TargetError::Unavailable { name: name.clone() }),
        };
        for said in said(&Goal::new(target).with_workers(2)) {
            assert_eq!(said, refused, "{name}");
        }
    }
}
