//! [`Emitter`]: a plan to steps of a schedule.
//!
//! Every stage is placed first, then its loops are cut; hosts before their guests. A host is cut
//! only as deep as other stages are computed in it before these are placed, so that their footprints
//! are exact. Kinds of loops, partial results and copies follow at the end.

mod cut;
mod finish;

use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::primitives::{ComputeAt, ComputeWith, Inline};
use tensorwright_schedule::{Refusal, ScheduleError, ScheduleState};

use crate::levels::{Level, Levels};
use crate::placement::{LoopRef, Placement};
use crate::plan::{Plan, StagePlan};
use crate::stages::{AxisId, StageId, Stages};
use crate::tiling::{PlannedLoop, Tiling};

/// Applies the decisions of a plan to a draft, and records them.
#[derive(Debug)]
pub struct Emitter<'a> {
    draft: &'a mut ScheduleState,
    stages: &'a Stages,
    levels: Levels,
    /// The stages placed so far, by number.
    placed: Vec<Option<Placed>>,
    /// The stages in the order in which their tilings were given.
    tiled: Vec<StageId>,
}

/// A stage with a placement.
#[derive(Debug)]
struct Placed {
    plan: StagePlan,
    /// The names of the loops of its tiling so far.
    names: Vec<String>,
    /// The loops that are not cut yet, in order.
    rest: Vec<(AxisId, String)>,
}

impl Placed {
    /// The name of the innermost loop of a level.
    fn name_of(&self, level: Level) -> Option<&str> {
        self.names.get(self.plan.tiling.last_of(level)?).map(String::as_str)
    }

    /// The loop that it is computed in.
    fn around(&self) -> Option<LoopRef> {
        match self.plan.placement {
            Placement::At(host) => Some(host),
            _ => None,
        }
    }
}

/// The loops of a stage that its tiling has yet to cut.
#[derive(Debug, Clone)]
pub struct Open {
    /// The loops and accesses as they are now. The open loops come last.
    pub accesses: Accesses,
    /// The number of loops that are cut already.
    pub depth: usize,
    rest: Vec<(AxisId, String)>,
}

impl Open {
    /// The open loops, outermost first.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        self.accesses.axes.get(self.depth..).unwrap_or_default()
    }

    /// The axis that a loop iterates over, or the rest of it.
    #[must_use]
    pub fn axis(&self, of: &Axis) -> AxisId {
        let known = self.rest.iter().find(|(_, name)| *name == of.name);
        known.map_or(AxisId(u16::MAX), |(axis, _)| *axis)
    }
}

impl<'a> Emitter<'a> {
    /// Starts with no decision. The loops of the stages are as the program has them.
    pub fn new(draft: &'a mut ScheduleState, stages: &'a Stages, levels: Levels) -> Self {
        let placed = (0..stages.len()).map(|_| None).collect();
        Self { draft, stages, levels, placed, tiled: Vec::new() }
    }

    /// The draft with all decisions so far.
    #[must_use]
    pub fn draft(&self) -> &ScheduleState {
        self.draft
    }

    /// Places a stage and cuts its outer loops, in which other stages will be computed.
    ///
    /// # Errors
    /// If the host has no such loop, or a primitive refuses.
    pub fn place(
        &mut self,
        stage: StageId,
        placement: Placement,
        outer: Vec<PlannedLoop>,
    ) -> Result<(), ScheduleError> {
        let name = self.stages.name(stage);
        match placement {
            Placement::Inline => self.draft.apply(name, Inline)?,
            Placement::At(host) => self.compute_at(name, host)?,
            Placement::Root => {}
            // Siblings are computed in the same loop.
            Placement::With(host) => {
                if let Some(around) = self.placed(host.stage).and_then(Placed::around) {
                    self.compute_at(name, around)?;
                }
            }
        }
        let own = Accesses::of(&self.draft.nest, name).map_or_else(Vec::new, |own| own.axes);
        let axis = |axis: Axis| Some((self.stages.get(stage)?.axis(&axis.name)?, axis.name));
        let rest = own.into_iter().filter_map(axis).collect();
        let plan = StagePlan { placement, tiling: Tiling::default() };
        *self.slot(stage)? = Some(Placed { plan, names: Vec::new(), rest });
        self.cut(stage, outer)?;
        match placement {
            Placement::With(host) => self.compute_with(stage, host),
            _ => Ok(()),
        }
    }

    /// Fuses the loops of a stage with those of another: one of them moves to the other, depending
    /// on what is between them.
    fn compute_with(&mut self, stage: StageId, host: LoopRef) -> Result<(), ScheduleError> {
        let at = self.loop_name(host)?;
        let shared = self.placed(host.stage).and_then(|host_of| {
            host_of.plan.tiling.last_of(host.level).map(|at| host_of.names[..=at].to_vec())
        });
        let theirs = shared.unwrap_or_default();
        let own = self.placed(stage).map(|own| own.names.iter().take(theirs.len()).cloned());
        let own: Vec<String> = own.map_or_else(Vec::new, Iterator::collect);
        let [name, other] = [stage, host.stage].map(|stage| self.stages.name(stage).to_owned());
        let moved = self.draft.apply(&name, ComputeWith { other: other.clone(), at });
        let back = own.last().cloned().map(|at| ComputeWith { other: name, at });
        let (stage, names) = match (moved, back) {
            (Ok(()), _) => (stage, theirs),
            (Err(_), Some(back)) if self.draft.step(&other, back.clone()) => (host.stage, own),
            (Err(refused), _) => return Err(refused),
        };
        // The shared loops belong to the stage that stayed.
        if let Some(placed) = self.slot(stage)? {
            let count = names.len().min(placed.names.len());
            placed.names.splice(..count, names);
        }
        Ok(())
    }

    fn compute_at(&mut self, stage: &str, host: LoopRef) -> Result<(), ScheduleError> {
        let at = self.loop_name(host)?;
        let consumer = self.stages.name(host.stage).to_owned();
        self.draft.apply(stage, ComputeAt { consumer, at })
    }

    /// The loops of a placed stage that are not cut yet; `None` if the stage was inlined.
    #[must_use]
    pub fn open(&self, stage: StageId) -> Option<Open> {
        let accesses = Accesses::of(&self.draft.nest, self.stages.name(stage))?;
        let rest = self.placed(stage)?.rest.clone();
        let depth = accesses.axes.len().saturating_sub(rest.len());
        Some(Open { accesses, depth, rest })
    }

    /// Cuts the open loops of a placed stage. Its kinds of loops, copies and partial results are
    /// applied by [`finish`](Self::finish).
    ///
    /// # Errors
    /// If a primitive refuses.
    pub fn tile(&mut self, stage: StageId, tiling: Tiling) -> Result<(), ScheduleError> {
        let Tiling { loops, tails, accumulate, partial, packs } = tiling;
        if let Some(placed) = self.slot(stage)? {
            let own = &mut placed.plan.tiling;
            (own.tails, own.accumulate, own.partial, own.packs) =
                (tails, accumulate, partial, packs);
        }
        self.cut(stage, loops)?;
        self.tiled.push(stage);
        Ok(())
    }

    /// Cuts the open loops of a placed stage as `propose` says, given the nest and the open loops.
    ///
    /// # Errors
    /// If a primitive refuses.
    pub fn tile_by(
        &mut self,
        stage: StageId,
        propose: impl FnOnce(&LoopNest, &Open) -> Tiling,
    ) -> Result<(), ScheduleError> {
        match self.open(stage).map(|open| propose(&self.draft.nest, &open)) {
            Some(tiling) => self.tile(stage, tiling),
            None => Ok(()),
        }
    }

    /// Places a stage inside a loop if that is possible and `accepts` the loops that it has then;
    /// returns whether it did.
    pub fn place_if(
        &mut self,
        stage: StageId,
        placement: Placement,
        accepts: impl FnOnce(&LoopNest, &Open) -> bool,
    ) -> bool {
        let (nest, steps) = (self.draft.nest.clone(), self.draft.schedule.steps.len());
        let is_placed = self.place(stage, placement, Vec::new()).is_ok()
            && self.open(stage).is_some_and(|open| accepts(&self.draft.nest, &open));
        if !is_placed {
            self.draft.nest = nest;
            self.draft.schedule.steps.truncate(steps);
            let _ = self.slot(stage).map(Option::take);
        }
        is_placed
    }

    /// The name of the innermost loop of a level of a placed stage.
    fn loop_name(&self, of: LoopRef) -> Result<String, ScheduleError> {
        let found = self.placed(of.stage).and_then(|placed| placed.name_of(of.level));
        found.map(str::to_owned).ok_or_else(|| {
            let (stage, level) = (self.stages.name(of.stage), self.levels.name(of.level));
            Refusal::new(format!("`{stage}` has no loop of the level `{level}` yet")).into()
        })
    }

    /// The elements of its axis per iteration of a loop; `None` if the loop has not been cut.
    #[must_use]
    pub fn size_of(&self, of: LoopRef) -> Option<i64> {
        let tiling = &self.placed(of.stage)?.plan.tiling;
        Some(tiling.loops[tiling.last_of(of.level)?].size)
    }

    /// The decisions about a stage, which may be one of another program.
    fn slot(&mut self, stage: StageId) -> Result<&mut Option<Placed>, ScheduleError> {
        let unknown = || Refusal::new("the plan is about other stages").into();
        self.placed.get_mut(stage.0 as usize).ok_or_else(unknown)
    }

    fn placed(&self, stage: StageId) -> Option<&Placed> {
        self.placed.get(stage.0 as usize)?.as_ref()
    }
}

/// Applies a plan to a draft whose stages are not scheduled yet; returns the plan without copies
/// that are not possible.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_plan::levels::cpu::{LANES, PANEL, TERMS};
/// use tensorwright_plan::{
///     AxisId, Levels, LoopKind, Placement, Plan, PlannedLoop, StagePlan, Stages, Tiling, emit,
/// };
/// use tensorwright_schedule::{ScheduleState, canonical};
///
/// let text = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
/// let program = Module::parse("gemm.tc", text)?.bind("gemm", [("M", 64), ("N", 64), ("K", 64)])?;
/// let mut draft = ScheduleState::new(canonical(&program));
/// let stages = Stages::of(&draft.nest, ["C"]);
/// let (c, stage) = stages.named("C").ok_or("no stage")?;
/// let [m, n, k] = ["m", "n", "k"].map(|name| stage.axis(name).unwrap_or(AxisId(0)));
/// let tiling = Tiling {
///     loops: vec![
///         PlannedLoop::new(m, 1, PANEL).kind(LoopKind::Parallel),
///         PlannedLoop::new(n, 16, PANEL),
///         PlannedLoop::new(k, 1, TERMS),
///         PlannedLoop::new(n, 1, LANES).kind(LoopKind::Vector),
///     ],
///     accumulate: Some(PANEL),
///     ..Tiling::default()
/// };
/// let plan = Plan::default().with(c, StagePlan { placement: Placement::Root, tiling });
/// emit(&plan, &stages, Levels::CPU, &mut draft)?;
/// let steps = "C: split n 16 -> n.panel n.lanes [peel]\n\
///              C: reorder m n.panel k n.lanes\n\
///              C: vectorize n.lanes\n\
///              C: cache_write at n.panel\n\
///              C: parallel m\n";
/// assert_eq!(draft.schedule.to_string(), steps);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first decision that a primitive refuses; the draft is then of no use.
pub fn emit(
    plan: &Plan,
    stages: &Stages,
    levels: Levels,
    draft: &mut ScheduleState,
) -> Result<Plan, ScheduleError> {
    let mut emitter = Emitter::new(draft, stages, levels);
    let mut left: Vec<(StageId, &StagePlan)> = plan.iter().collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_left = |stage: StageId| left.iter().any(|(other, _)| *other == stage);
        // The last stage of the program whose host and readers have been placed.
        let is_next = |(stage, own): &(StageId, &StagePlan)| {
            let readers = stages.get(*stage).map_or(&[][..], |stage| &stage.readers);
            let waits = readers.iter().any(|reader| is_left(*reader));
            let host = own.placement.host();
            !host.is_some_and(|host| is_left(host.stage))
                && (matches!(own.placement, Placement::With(_)) || !waits)
        };
        let Some(next) = left.iter().rposition(is_next) else {
            let (stage, _) = left[0];
            let name = stages.name(stage);
            return Err(Refusal::new(format!("`{name}` is computed inside itself")).into());
        };
        let (stage, own) = left.remove(next);
        emitter.place(stage, own.placement, own.tiling.loops[..hosting(plan, stage)].to_vec())?;
        order.push((stage, own));
    }
    for (stage, own) in order {
        if own.placement != Placement::Inline {
            let mut tiling = own.tiling.clone();
            tiling.loops.drain(..hosting(plan, stage));
            emitter.tile(stage, tiling)?;
        }
    }
    emitter.finish()
}

/// The number of loops of a stage up to the innermost one that it shares with other stages.
fn hosting(plan: &Plan, stage: StageId) -> usize {
    let Some(own) = plan.get(stage) else { return 0 };
    let guests = plan.iter().filter_map(|(_, guest)| guest.placement.host());
    let guests = guests.filter(|host| host.stage == stage);
    let shared = match own.placement {
        Placement::With(host) => Some(host),
        _ => None,
    };
    let levels = guests.chain(shared).map(|host| host.level);
    levels.filter_map(|level| own.tiling.last_of(level)).map(|at| at + 1).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tensorwright_lang::Module;
    use tensorwright_schedule::{ScheduleState, canonical};

    use super::emit;
    use crate::levels::cpu::{BLOCK, LANES, ROW, VECTORS};
    use crate::{
        AxisId, Levels, LoopKind, LoopRef, Placement, Plan, PlannedLoop, StageId, StagePlan,
        Stages, Tiling,
    };

    /// Emits decisions about the stages of a blur.
    fn emitted(decisions: &[(&str, Placement, &[PlannedLoop])]) -> Result<String, String> {
        let text = "def f(float(H,W) in) -> (out) {
          bx(y,x) = in(y,x) + in(y,x+1)
          out(y,x) = bx(y,x) + bx(y+1,x)
        }";
        let program = Module::parse("f.tc", text).unwrap().bind("f", [("H", 101), ("W", 101)]);
        let mut draft = ScheduleState::new(canonical(&program.unwrap()));
        let stages = Stages::of(&draft.nest, ["out", "bx"]);
        let mut plan = Plan::default();
        for (name, placement, loops) in decisions {
            let tiling = Tiling { loops: loops.to_vec(), ..Tiling::default() };
            let (stage, _) = stages.named(name).unwrap();
            plan = plan.with(stage, StagePlan { placement: *placement, tiling });
        }
        let found = emit(&plan, &stages, Levels::CPU, &mut draft).map_err(|e| e.to_string())?;
        assert_eq!(found, plan);
        Ok(draft.schedule.to_string())
    }

    const BX: StageId = StageId(0);
    const OUT: StageId = StageId(1);
    const Y: AxisId = AxisId(0);
    const X: AxisId = AxisId(1);

    #[test]
    fn hosts_are_cut_as_deep_as_needed_before_their_guests_are_placed() {
        let vectors = [
            PlannedLoop::new(X, 16, ROW),
            PlannedLoop::new(X, 8, VECTORS).kind(LoopKind::Unrolled),
            PlannedLoop::new(X, 1, LANES).kind(LoopKind::Vector),
        ];
        let own = [&[PlannedLoop::new(Y, 32, BLOCK), PlannedLoop::new(Y, 1, ROW)], &vectors[..]];
        let guest = [&[PlannedLoop::new(Y, 1, ROW)], &vectors[..]].concat();
        let at = LoopRef { stage: OUT, level: BLOCK };
        let steps =
            emitted(&[("out", Placement::Root, &own.concat()), ("bx", Placement::At(at), &guest)]);
        assert_eq!(
            steps.unwrap(),
            "out: split y 32 -> y.block y.in [peel]\n\
             bx: compute_at out y.block\n\
             out: split x 2 8 -> x.row x.vectors x.lanes [peel]\n\
             bx: split x 2 8 -> x.row x.vectors x.lanes [peel]\n\
             out: unroll x.vectors\n\
             out: vectorize x.lanes\n\
             bx: unroll x.vectors\n\
             bx: vectorize x.lanes\n"
        );
    }

    #[test]
    fn sizes_that_do_not_divide_each_other_are_cut_one_after_another() {
        let loops = [
            PlannedLoop::new(Y, 1, ROW),
            PlannedLoop::new(X, 32, BLOCK),
            PlannedLoop::new(X, 6, VECTORS),
            PlannedLoop::new(X, 1, LANES),
        ];
        assert_eq!(
            emitted(&[("out", Placement::Root, &loops)]).unwrap(),
            "out: split x 32 -> x.block x.rest [peel]\n\
             out: split x.rest 6 -> x.vectors x.lanes [peel]\n"
        );
    }

    #[test]
    fn impossible_decisions_are_refused() {
        let rows = [PlannedLoop::new(Y, 1, ROW), PlannedLoop::new(X, 1, ROW)];
        let at = |stage, level| Placement::At(LoopRef { stage, level });
        let missing = emitted(&[("out", Placement::Root, &rows), ("bx", at(OUT, BLOCK), &rows)]);
        assert_eq!(missing.unwrap_err(), "`out` has no loop of the level `block` yet");
        let inside = emitted(&[("out", at(BX, ROW), &rows), ("bx", at(OUT, ROW), &rows)]);
        assert_eq!(inside.unwrap_err(), "`bx` is computed inside itself");
        let inlined = emitted(&[("out", Placement::Inline, &[])]).unwrap_err();
        assert!(inlined.contains("`out` is a result of the program"), "{inlined}");
    }
}
