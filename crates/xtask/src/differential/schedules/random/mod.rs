//! Random schedules: proposes primitives and keeps those that the nest accepts.
//!
//! Independent primitives seldom combine well: a tile only matters once its loops are reordered,
//! vectorized and accumulated in registers. So a schedule consists of *recipes*, which propose
//! related primitives, and of single primitives in between.

mod bound;
mod propose;
mod recipes;
mod size;

use std::panic::{AssertUnwindSafe, catch_unwind};

use tensorwright_schedule::Schedule;
use tensorwright_schedule::nest::{Loop, LoopKind, LoopNest, Role, StageId, for_each_store};
use tensorwright_schedule::primitives::{Primitive, Tail, loops_of, stages};
use tensorwright_schedule::schedule::Step;
use tensorwright_testkit::Rng;

use super::DrawnSchedule;
use crate::differential::tally::Tally;

pub(super) use size::is_small;

/// A random schedule of a canonical nest.
pub(super) fn random(nest: LoopNest, rng: &mut Rng, tally: &mut Tally) -> DrawnSchedule {
    let (schedule, is_broken) = (Schedule::default(), false);
    let mut draft = Draft { nest, schedule, is_broken, rng, tally };
    if draft.rng.percent(40) {
        recipes::rewritten(&mut draft);
    }
    recipes::privatized(&mut draft);
    recipes::rebased(&mut draft);
    recipes::segmented(&mut draft);
    recipes::stepped(&mut draft);
    recipes::multiplied(&mut draft);
    for _ in 0..draft.rng.index(4) {
        let recipe = *draft.rng.pick(recipes::RECIPES);
        recipe(&mut draft);
    }
    for _ in 0..draft.rng.index(7) {
        propose::single(&mut draft);
    }
    if draft.rng.percent(70) {
        recipes::finish(&mut draft);
    }
    let nest = (!draft.is_broken).then_some(draft.nest);
    DrawnSchedule { schedule: draft.schedule, nest }
}

/// A random schedule for a device.
pub(super) fn for_device(nest: LoopNest, rng: &mut Rng, tally: &mut Tally) -> DrawnSchedule {
    let (schedule, is_broken) = (Schedule::default(), false);
    let mut draft = Draft { nest, schedule, is_broken, rng, tally };
    if draft.rng.percent(15) {
        recipes::rewritten(&mut draft);
    }
    recipes::privatized(&mut draft);
    bound::bound(&mut draft);
    for _ in 0..draft.rng.index(3) {
        propose::single(&mut draft);
    }
    let nest = (!draft.is_broken).then_some(draft.nest);
    DrawnSchedule { schedule: draft.schedule, nest }
}

/// A schedule under construction.
struct Draft<'a> {
    nest: LoopNest,
    schedule: Schedule,
    /// Whether the last step panicked, which ends the schedule.
    is_broken: bool,
    rng: &'a mut Rng,
    tally: &'a mut Tally,
}

/// A loop around a stage.
#[derive(Debug, Clone)]
struct EnclosingLoop {
    name: String,
    extent: i64,
    role: Role,
    is_serial: bool,
    /// Whether the loop belongs to the stage, not to one that it is computed in.
    is_own: bool,
}

impl Draft<'_> {
    /// Applies a primitive if the nest accepts it and stays small.
    fn accept(&mut self, stage: &str, primitive: impl Into<Primitive>) -> bool {
        if self.is_broken {
            return false;
        }
        let (primitive, span) = (primitive.into(), Default::default());
        let step = Step { stage: stage.to_owned(), primitive, span };
        let names = self.kinds(&step);
        let mut changed = self.nest.clone();
        let apply = AssertUnwindSafe(|| step.apply(&mut changed).is_ok());
        let Ok(accepted) = catch_unwind(apply) else {
            // Replaying the schedule will show the problem.
            self.schedule.steps.push(step);
            self.is_broken = true;
            return false;
        };
        let kept = accepted && size::is_quick_to_compile(&changed);
        for name in names {
            self.tally.count(&name, kept);
        }
        if kept {
            self.nest = changed;
            self.schedule.steps.push(step);
        }
        kept
    }

    /// The counters of a step.
    fn kinds(&self, step: &Step) -> Vec<String> {
        let mut kinds = vec![step.primitive.keyword().to_owned()];
        match &step.primitive {
            Primitive::Split(split) => {
                kinds.push(format!("split into {}", split.factors.len() + 1));
                let loops = self.loops(&step.stage);
                let extent = loops.iter().rev().find(|l| l.name == split.target).map(|l| l.extent);
                let block: i64 = split.factors.iter().product();
                // Without a remainder, the tail strategy has no effect.
                if extent.is_some_and(|extent| extent % block != 0) {
                    kinds.push(tail_name(split.tail));
                }
            }
            Primitive::CacheRead(read) if read.layout.is_some() => {
                kinds.push("cache_read as".to_owned());
            }
            Primitive::CacheRead(read) if read.is_shared => {
                kinds.push("cache_read in shared".to_owned());
            }
            Primitive::Bind(bind) => kinds.push(format!("bind to {}", bind.to)),
            Primitive::Layout(_) => {
                let is_input =
                    self.nest.constants.iter().any(|id| self.nest.buffer(*id).name == step.stage);
                let what = if is_input { "const input" } else { "intermediate" };
                kinds.push(format!("layout of {what}"));
            }
            _ => {}
        }
        kinds
    }

    fn stages(&self) -> Vec<String> {
        stages(&self.nest)
    }

    /// A random stage; `None` if all were inlined.
    fn stage(&mut self) -> Option<String> {
        let stages = self.stages();
        (!stages.is_empty()).then(|| self.rng.pick(&stages).clone())
    }

    /// The loops around a stage, outermost first.
    fn loops(&self, stage: &str) -> Vec<EnclosingLoop> {
        let around = loops_of(&self.nest, stage);
        let own = around.last().and_then(|l| l.stage);
        around.into_iter().map(|l| self.around(l, own)).collect()
    }

    fn around(&self, l: &Loop, own: Option<StageId>) -> EnclosingLoop {
        EnclosingLoop {
            name: self.nest.var_name(l.var).to_owned(),
            extent: l.extent,
            role: l.role,
            is_serial: l.kind == LoopKind::Serial,
            is_own: l.stage == own,
        }
    }

    /// The stage's own loops.
    fn own_loops(&self, stage: &str) -> Vec<EnclosingLoop> {
        self.loops(stage).into_iter().filter(|l| l.is_own).collect()
    }

    /// A random loop around a stage.
    fn any_loop(&mut self, stage: &str) -> Option<EnclosingLoop> {
        let loops = self.loops(stage);
        (!loops.is_empty()).then(|| self.rng.pick(&loops).clone())
    }

    /// The names of the buffers that a stage reads.
    fn reads(&self, stage: &str) -> Vec<String> {
        let mut names = Vec::new();
        for_each_store(&self.nest.body, &mut |store| {
            if self.nest.buffer(store.buffer).name == stage {
                for (_, read) in store.reads() {
                    let name = &self.nest.buffer(read.tensor).name;
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
            }
        });
        names
    }
}

/// The counter of a tail strategy.
pub(crate) fn tail_name(tail: Tail) -> String {
    format!("tail {}", tail.name())
}

/// Everything that a long run must accept at least once.
pub(crate) fn required() -> Vec<String> {
    let keywords = Primitive::KEYWORDS.iter().map(|keyword| (*keyword).to_owned());
    let tails = Tail::ALL.iter().map(|(_, tail)| tail_name(*tail));
    let others = [
        "split into 2",
        "split into 3",
        "split into 4",
        "cache_read as",
        "layout of const input",
        "layout of intermediate",
    ];
    keywords.chain(tails).chain(others.map(str::to_owned)).collect()
}
