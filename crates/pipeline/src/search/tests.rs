#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use tensorwright_lang::Module;
use tensorwright_machine::{Cpu, Goal};

use super::*;
use crate::cost::{AnalyticalModel, Machine};

fn chain(stages: usize) -> Dag {
    let all: String = (1..=stages)
        .map(|n| {
            format!(
                "s{n}(y,x) = (s{}(y,x) + s{}(y+1,x+1) + s{}(y+2,x+2)) / 3\n",
                n - 1,
                n - 1,
                n - 1
            )
        })
        .collect();
    let text =
        format!("def f(float(H,W) in) -> (s{stages}) {{ s0(y,x) = in(y,x) + in(y,x+1)\n{all} }}");
    Dag::new(&Module::parse("t.tc", &text).unwrap().bind("f", [("H", 1600), ("W", 2600)]).unwrap())
}

fn run(dag: &Dag, options: &BeamOptions) -> Outcome {
    let goal = Goal::new(Cpu::avx512()).with_workers(2);
    let levels = Levels::of_cpu(&goal);
    let model = AnalyticalModel::new(dag, &levels, Machine::of(&goal));
    search(dag, &levels, &model, options)
}

#[test]
fn searches_depend_on_their_seed_alone() {
    let dag = chain(6);
    let text = |options: &BeamOptions| {
        let levels = Levels::of_cpu(&Goal::new(Cpu::avx512()));
        run(&dag, options).states[0].0.text(&dag, &levels)
    };
    assert_eq!(text(&BeamOptions::beam()), text(&BeamOptions::beam()));
    assert_eq!(
        text(&BeamOptions::greedy().with_seed(3)),
        text(&BeamOptions::greedy().with_seed(3))
    );
}

#[test]
fn memory_of_costs_changes_no_choice() {
    let dag = chain(5);
    let forgetful = BeamOptions { memoization: false, ..BeamOptions::beam() };
    let (a, b) = (run(&dag, &BeamOptions::beam()), run(&dag, &forgetful));
    assert_eq!(a.states[0].1, b.states[0].1);
    assert_eq!(a.statistics.states, b.statistics.states);
    assert_eq!(b.statistics.states, b.statistics.computed);
    assert!(a.statistics.computed < a.statistics.states, "{:?}", a.statistics);
    assert!(a.statistics.groups < b.statistics.groups, "{:?} {:?}", a.statistics, b.statistics);
}

#[test]
fn samples_ask_for_fewer_costs() {
    let dag = chain(5);
    let all = BeamOptions { sampling: false, ..BeamOptions::beam() };
    let (some, all) = (run(&dag, &BeamOptions::beam()), run(&dag, &all));
    assert!(some.statistics.states * 2 < all.statistics.states);
    assert!(some.states[0].1 < all.states[0].1 * 1.2);
}

#[test]
fn beams_fuse_stages() {
    let dag = chain(5);
    let levels = Levels::of_cpu(&Goal::new(Cpu::avx512()));
    let found = run(&dag, &BeamOptions::beam());
    let text = found.states[0].0.text(&dag, &levels);
    assert!(text.matches(": at ").count() >= 2, "{text}");
    assert!(found.states.windows(2).all(|pair| pair[0].1 <= pair[1].1));
}

#[test]
fn long_chains_are_searched() {
    let found = run(&chain(32), &BeamOptions::greedy());
    assert!(!found.states.is_empty());
}

#[test]
fn a_search_that_is_ended_keeps_the_passes_that_it_finished() {
    let dag = chain(5);
    let goal = Goal::new(Cpu::avx512()).with_workers(2);
    let levels = Levels::of_cpu(&goal);
    let model = AnalyticalModel::new(&dag, &levels, Machine::of(&goal));
    let until = |most: usize| {
        let mut asked = 0;
        let found = search_while(&dag, &levels, &model, &BeamOptions::beam(), &mut || {
            asked += 1;
            asked <= most
        });
        (found, asked)
    };
    let (all, asked) = until(usize::MAX);
    assert!(asked > 100, "{asked}");
    assert!(until(1).0.states.is_empty());
    let (some, _) = until(asked / 2);
    assert!(!some.states.is_empty() && some.statistics.states < all.statistics.states);
}
