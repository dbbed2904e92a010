//! Tests of the number of states that pipeline search evaluates.
//!
//! `xtask study` prints the same for all applications, with times; counts do not depend on the
//! machine.
#![allow(clippy::print_stdout, reason = "tests")]

use std::path::Path;

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_pipeline::{BeamOptions, Outcome};
use tensorwright_policy::cpu::Pipeline;

fn example(file: &str, def: &str, sizes: &[(&str, i64)]) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    Module::parse(file, &text).unwrap().bind(def, sizes.to_vec()).unwrap()
}

/// A chain of stencils with clamped borders.
fn chain(stages: usize) -> Program {
    let stage = |n: usize| {
        let of = n - 1;
        format!(
            "s{n}(y,x) = s{of}(max(y-1,0),x) + s{of}(y,x) + s{of}(y,min(x+1,W-1)) where y in 0:H, x in 0:W\n"
        )
    };
    let all: String = (1..=stages).map(stage).collect();
    let text = format!("def chain(float(H,W) s0) -> (s{stages}) {{ {all} }}");
    Module::parse("chain.tc", &text).unwrap().bind("chain", [("H", 1536), ("W", 2560)]).unwrap()
}

fn search(program: &Program, options: &BeamOptions) -> Outcome {
    let found = Pipeline::new(program, &Goal::new(Cpu::avx512())).search(options);
    println!("{:?}, {:?}", found.states.first().map(|(_, cost)| cost), found.statistics);
    found
}

/// A state takes about 30 microseconds: 5 seconds are 160,000 states.
#[test]
fn the_full_beam_asks_about_few_states_of_a_chain_of_32_stencils() {
    let sizes = [("H", 2560), ("W", 1536)];
    let program = example("kernels/stencil_chain.tc", "stencil_chain", &sizes);
    let taken = search(&program, &BeamOptions::beam()).statistics;
    assert!(taken.states < 120_000 && taken.groups < 60_000, "{taken:?}");
}

/// A state of this size takes about 80 microseconds: 20 seconds are 250,000 states.
#[test]
fn the_full_beam_asks_about_few_states_of_a_local_laplacian() {
    let sizes = [("H", 1536), ("W", 2560), ("K", 8)];
    let program = example("pipelines/local_laplacian.tc", "local_laplacian", &sizes);
    let taken = search(&program, &BeamOptions::beam()).statistics;
    assert!(taken.states < 200_000 && taken.groups < 60_000, "{taken:?}");
    assert!(taken.frozen * 2 > program.stages.len(), "coarse levels are cheap: {taken:?}");
}

#[test]
fn what_is_asked_about_grows_as_the_stages_do() {
    let states = |stages| search(&chain(stages), &BeamOptions::beam()).statistics.states;
    let (few, many) = (states(12), states(48));
    assert!(many < 6 * few, "{few} of 12 stages, {many} of 48");
}

/// Sampling, freezing and memoization reduce the states to about a tenth (section 6.3: 5 %),
/// without a worse result.
#[test]
fn what_makes_the_search_fast_loses_little_and_leaves_a_tenth_of_the_states() {
    let picture = [("H", 1536), ("W", 2560)];
    let with = |more: &[(&'static str, i64)]| [&picture[..], more].concat();
    let small = [("h", 192), ("w", 320), ("f", 8), ("s", 16), ("bins", 8)];
    let programs = [
        example("pipelines/bgu.tc", "bgu", &with(&small)),
        example("pipelines/bilateral_grid.tc", "bilateral_grid", &with(&[("s", 8), ("bins", 10)])),
        example("pipelines/unsharp_mask.tc", "unsharp_mask", &picture),
        example("kernels/harris.tc", "harris", &picture),
    ];
    let mut share = 1.0;
    for program in &programs {
        let mut slow = BeamOptions::beam();
        (slow.sampling, slow.freezing) = (false, false);
        let (all, some) = (search(program, &slow), search(program, &BeamOptions::beam()));
        let (all_cost, some_cost) = (all.states[0].1, some.states[0].1);
        assert!(some_cost < 1.05 * all_cost, "{some_cost} for {all_cost}");
        share *= some.statistics.computed as f64 / all.statistics.states as f64;
    }
    let share = share.powf(1.0 / programs.len() as f64);
    assert!(share < 0.2, "{share}");
}

/// The stages of a camera pipeline cost about the same: freezing most of them, as the paper does,
/// would lose essential fusion.
#[test]
fn stages_that_cost_about_the_same_are_not_frozen() {
    let program = example("pipelines/camera_pipe.tc", "camera_pipe", &[("H", 984), ("W", 1296)]);
    let mut open = BeamOptions::beam();
    open.freezing = false;
    let (open, frozen) = (search(&program, &open), search(&program, &BeamOptions::beam()));
    assert!(frozen.statistics.frozen < program.stages.len() / 3, "{:?}", frozen.statistics);
    assert!(frozen.states[0].1 < 1.3 * open.states[0].1);
}
