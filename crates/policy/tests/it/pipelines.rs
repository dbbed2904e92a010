//! Tests that pipeline search finds legal schedules for every multi-stage example.
#![allow(clippy::print_stdout, reason = "tests")]

use crate::common;

use std::collections::BTreeMap;

use tensorwright_machine::{Cpu, Goal, Target};
use tensorwright_pipeline::BeamOptions;
use tensorwright_policy::cpu::Pipeline;
use tensorwright_policy::{Samples, lower_options, pipeline_schedules, pipeline_search};
use tensorwright_schedule::{Schedule, canonical, lower, lower_with};

/// CPUs with one worker and with several, and a GPU.
fn goals() -> [Goal; 3] {
    let device = Target::named("cuda:sm_80").unwrap();
    [
        Goal::new(Cpu::avx512()).into(),
        Goal::new(Cpu::avx2()).with_workers(2).into(),
        Goal::new(device),
    ]
}

#[test]
fn stages_share_the_blocks_of_a_device() {
    let text = "def blur(float(H,W) in) -> (out) {
        bx(y,x) = exp(in(y,x)) + exp(in(y,x+1)) + exp(in(y,x+2))
        out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
    }";
    let module = tensorwright_lang::Module::parse("blur.tc", text).unwrap();
    let program = module.bind("blur", [("H", 2050), ("W", 2050)]).unwrap();
    let goal = Goal::new(Target::named("cuda:sm_80").unwrap());
    let found = pipeline_schedules(&program, &goal, &BeamOptions::beam(), 1).unwrap();
    let (schedule, _) = &found.schedules[0];
    let nest = schedule.apply(canonical(&program)).unwrap();
    let lowered = lower_with(nest, &lower_options(&goal.target), &mut |_, _| {}).unwrap();
    let printed = lowered.to_string();
    // Expensive stages are computed once per block, and read by its threads after a barrier.
    assert!(schedule.to_string().contains("bx: compute_at out"), "{schedule}");
    assert_eq!(printed.matches("barrier").count(), 1, "{schedule}\n{printed}");
}

#[test]
fn examples_of_several_stages_are_scheduled() {
    let mut poor = Vec::new();
    for common::Example { name, program } in common::examples() {
        if program.stages.len() < 2 {
            continue;
        }
        for goal in goals() {
            for options in [BeamOptions::greedy(), BeamOptions::beam()] {
                let pipeline = pipeline_search(&program, &goal, None).unwrap();
                let found = pipeline.search_while(&options, &mut || true);
                let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
                let mut good = 0;
                for (state, _) in found.states.iter().take(8) {
                    match pipeline.decode(state) {
                        Ok(schedule) => {
                            let nest = schedule.apply(canonical(&program)).unwrap();
                            let options = lower_options(&goal.target);
                            lower_with(nest, &options, &mut |_, _| {}).unwrap();
                            good += 1;
                        }
                        Err(refused) => {
                            let reason = format!("{}: {}", refused.rule, refused.reason);
                            *reasons.entry(reason).or_default() += 1;
                        }
                    }
                }
                let name = format!("{name} on {}", goal.target.name());
                println!("{name}: {good} good, {reasons:?}");
                if good == 0 || !reasons.is_empty() && good < 4 && options.width > 1 {
                    let first = found.states.first();
                    let text = first.map(|(s, _)| s.text(pipeline.dag(), pipeline.levels()));
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
    let found =
        pipeline_schedules(&example.program, &goal, &BeamOptions::beam(), 5).unwrap().schedules;
    assert!(found.len() > 1);
    assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 != pair[1].0));
}

#[test]
fn what_cannot_be_made_of_a_state_is_told() {
    let example = common::examples().into_iter().find(|e| e.name.contains("harris")).unwrap();
    let goal = Goal::new(Cpu::avx512()).with_workers(2);
    let mut samples = Samples::new(Box::new(Pipeline::new(&example.program, &goal)), 3);
    let first = samples.search(&mut || true);
    assert_eq!((first, samples.searches()), (Some(0), 1), "one greedy search finds one state");
    assert!(samples.take(0) && !samples.take(0) && samples.take_best().is_none());
    assert!(samples.search(&mut || true).is_some());
    // Best first, without duplicates.
    let taken: Vec<usize> = std::iter::from_fn(|| samples.take_best()).collect();
    let costs: Vec<f64> = taken.iter().map(|number| samples.cycles(*number).unwrap()).collect();
    assert!(taken.len() > 10 && costs.is_sorted());
    assert!(samples.search(&mut || false).is_none());
    let refused = samples.decode(usize::MAX).unwrap_err();
    assert_eq!(refused.rule, "state");
    // Schedules survive a round trip through text, as in records.
    let schedule = samples.decode(taken[0]).unwrap();
    let read = Schedule::parse(&schedule.to_string()).unwrap();
    assert_eq!(read.to_string(), schedule.to_string());
    lower(read.apply(canonical(&example.program)).unwrap()).unwrap();
}

#[test]
fn large_tensors_that_rules_leave_whole_are_placed_by_a_search() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/pipelines/bgu.tc");
    let module =
        tensorwright_lang::Module::parse("bgu.tc", &std::fs::read_to_string(path).unwrap());
    let sizes =
        [("h", 192), ("w", 320), ("H", 1536), ("W", 2560), ("f", 8), ("s", 16), ("bins", 8)];
    let program = module.unwrap().bind("bgu", sizes).unwrap();
    let goal = Goal::new(Cpu::avx512()).into();
    let schedule = tensorwright_policy::default_schedule(&program, &goal).unwrap();
    let canonical = canonical(&program);
    let nest = schedule.apply(canonical.clone()).unwrap();
    let map = tensorwright_schedule::StageMap::of(&canonical, &nest);
    let moved: i64 = map.stages.iter().map(|stage| stage.moved_bytes).sum();
    // The result has 47 MB, and the transforms of all pixels, if stored, have 189 MB. Their depths
    // and cells are stored, with 31 MB of writes and reads, since each is read for three colours.
    assert!(moved < 300_000_000, "{moved}\n{map}");
    lower(nest).unwrap();
}

/// The filters of a mosaic depend on whether a column is even: lanes are two columns apart, and all
/// results that read the same vectors are computed together.
#[test]
fn filters_that_alternate_have_lanes_apart() {
    let text = "def demosaic(float(H,W) raw, float(2,3,5) filter) -> (out) {
      p(y,x) = raw(y,clamp(x - 2, 0, W-1)) where x in 0:W+4
      colour(c,y,x) +=! filter(x%2,c,j) * p(y,x+j) where x in 0:W
      out(c,y,x) = max(colour(c,y,x), 0) where x in 0:W
    }";
    let program = tensorwright_lang::Module::parse("demosaic.tc", text)
        .unwrap()
        .bind("demosaic", [("H", 512), ("W", 1024)])
        .unwrap();
    let goal = Goal::new(Cpu::avx512());
    let found = pipeline_schedules(&program, &goal.into(), &BeamOptions::greedy(), 1).unwrap();
    let schedule = found.schedules[0].0.to_string();
    let has = |line: &str| schedule.lines().any(|found| found.starts_with(line));
    assert!(has("colour: unroll c") && has("colour: vectorize x.lanes"), "{schedule}");
    assert!(schedule.contains("x.lanes x.phase"), "{schedule}");
    let nest = Schedule::parse(&schedule).unwrap().apply(canonical(&program)).unwrap();
    lower(nest).unwrap();
}
