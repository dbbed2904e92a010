//! Tests that every choice of a point affects its schedule.
//!
//! Two points that differ in one choice have different schedules, unless the space marks the choice
//! as idle or refuses the point. Every space contains the schedule that it starts from.
#![allow(clippy::print_stdout, reason = "tests")]

use crate::common;

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::{Preset, ScheduleSpace, default_schedule};
use tensorwright_schedule::primitives::loops_of;
use tensorwright_schedule::{canonical, lower};
use tensorwright_space::{Point, Rng};

/// The number of points to test per space.
const POINTS: usize = 3;

/// The number of choices to test per point.
const CHOICES: usize = 24;

/// The number of other values to try per choice.
const OTHERS: usize = 2;

fn goals() -> [Goal; 2] {
    [Goal::new(Cpu::avx512()).into(), Goal::new(Cpu::avx2()).with_workers(2).into()]
}

/// Maps both names of a loop to one: a single outermost loop is also the last outermost one.
fn are_places(space: &ScheduleSpace, parameter: usize, values: [u32; 2]) -> bool {
    let parameter = &space.search_space().parameters()[parameter];
    let is_loop = |rank| matches!(parameter.text(rank).as_str(), "outer" | "middle" | "inner");
    values.into_iter().all(is_loop)
}

/// The number of compared choices of random points, and the errors found.
fn survey(what: &str, space: &ScheduleSpace, wrong: &mut Vec<String>) -> usize {
    let search = space.search_space();
    let mut rng = Rng::new(3);
    let mut compared = 0;
    let mut look = |point: &Point, rng: &mut Rng| {
        let Ok(schedule) = space.decode(point) else { return };
        let idle = space.idle(point);
        let count = search.parameters().len();
        // All choices in turn, or a random sample for a program of many stages.
        for turn in 0..CHOICES.min(count) {
            let place = if count > CHOICES { rng.below(count as u64) as usize } else { turn };
            let parameter = &search.parameters()[place];
            let reason = idle.iter().find(|(idle, _)| *idle == place).map(|(_, reason)| reason);
            for _ in 0..OTHERS.min(parameter.count() as usize - 1) {
                let rank = rng.below(u64::from(parameter.count())) as u32;
                let other = point.with(place, rank);
                if rank == point.rank(place) || are_places(space, place, [rank, point.rank(place)])
                {
                    continue;
                }
                let Ok(changed) = space.decode(&other) else { continue };
                compared += 1;
                if (schedule == changed) == reason.is_some() {
                    continue;
                }
                wrong.push(format!(
                    "{what}, {} is {} or {} ({})\n{}\n{schedule}\n{changed}",
                    parameter.name(),
                    parameter.text(point.rank(place)),
                    parameter.text(rank),
                    reason.map_or_else(|| "should differ".to_owned(), |r| format!("idle: {r}")),
                    search.text(point),
                ));
            }
        }
    };
    look(&space.start(), &mut rng);
    for _ in 0..POINTS {
        if let Some(point) = search.sample_legal(&mut rng) {
            look(&point, &mut rng);
        }
    }
    compared
}

fn spaces(program: &Program, preset: Preset) -> Vec<ScheduleSpace> {
    let of = |goal| ScheduleSpace::alternatives(program, &goal, &preset.options()).unwrap();
    goals().into_iter().flat_map(of).collect()
}

#[test]
fn choices_are_found_in_schedules() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for example in common::examples() {
        for space in spaces(&example.program, Preset::Full) {
            compared += survey(&example.name, &space, &mut wrong);
        }
    }
    println!("{compared} choices compared");
    assert!(compared > 4_000, "{compared} choices compared");
    let first = wrong.iter().take(5).cloned().collect::<Vec<_>>();
    assert!(wrong.is_empty(), "{} choices are wrong\n{}", wrong.len(), first.join("\n\n"));
}

#[test]
fn spaces_contain_the_schedule_that_they_start_from() {
    for example in common::examples() {
        for (preset, space) in Preset::ALL.iter().flat_map(|(name, preset)| {
            spaces(&example.program, *preset).into_iter().map(move |space| (name, space))
        }) {
            let what = format!("{}, {preset}, {}", example.name, space.algorithm());
            let start = space.start();
            assert!(space.search_space().contains(&start), "{what}");
            let schedule = space.decode(&start);
            let schedule = schedule.unwrap_or_else(|r| panic!("{what}: {}: {}", r.rule, r.reason));
            let nest = schedule.apply(canonical(&example.program));
            let nest = nest.unwrap_or_else(|e| panic!("{what}: {e}"));
            lower(nest).unwrap_or_else(|e| panic!("{what}: {e}"));
        }
    }
}

/// A dense layer as frameworks write it: the weights are not constant, and their rows are outputs.
#[test]
fn loops_of_a_fused_product_have_names_of_their_own() {
    let text = "def f(float(B,N,I) x, float(O,I) w) -> (y) {
      y(b,n,o) +=! x(b,n,i) * w(o,i)
      y(b,n,o) = max(y(b,n,o), 0)
    }";
    for batch in [1, 8] {
        let module = Module::parse("f.tc", text).unwrap();
        let sizes = [("B", batch), ("N", 384), ("I", 256), ("O", 256)];
        let program = module.bind("f", sizes).unwrap();
        let goal = Goal::new(Cpu::avx512()).into();
        let schedule = default_schedule(&program, &goal).unwrap();
        let nest = schedule.apply(canonical(&program)).unwrap();
        let mut names: Vec<&str> =
            loops_of(&nest, "y.0").iter().map(|l| nest.var_name(l.var)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        // Steps name the loops of packed panels: at the wrong loop, a panel is packed again for
        // every term.
        assert_eq!(names.len(), count, "{schedule}");
        assert!(schedule.to_string().contains("y.0: cache_read w at "), "{schedule}");
    }
}
