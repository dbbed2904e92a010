//! The last steps: kinds of loops, partial results, accumulation, copies.

use tensorwright_schedule::primitives::{
    CacheRead, CacheWrite, Fuse, LayoutText, Parallel, Part, Reorder, Rfactor, Split, Unroll,
    Vectorize,
};
use tensorwright_schedule::{ScheduleError, ScheduleState};

use super::{Emitter, Placed};
use crate::placement::LoopRef;
use crate::plan::Plan;
use crate::stages::StageId;
use crate::tiling::{LoopKind, Pack, PlannedLoop, Tiling};

impl Emitter<'_> {
    /// Applies what remains of all tilings; returns the plan.
    ///
    /// # Errors
    /// If a primitive refuses.
    pub fn finish(mut self) -> Result<Plan, ScheduleError> {
        for stage in std::mem::take(&mut self.tiled) {
            let Some(tiling) = self.placed(stage).map(|placed| placed.plan.tiling.clone()) else {
                continue;
            };
            match tiling.partial {
                Some(at) => self.partial(stage, &tiling, at)?,
                None => self.kinds(stage)?,
            }
            let name = self.stages.name(stage);
            let mut reading = name.to_owned();
            if let Some(level) = tiling.accumulate {
                let at = self.loop_name(LoopRef { stage, level })?;
                self.draft.apply(name, CacheWrite { at })?;
                reading = format!("{name}.tile");
            }
            let mut packs = tiling.packs;
            packs.retain(|pack| self.pack(&reading, pack));
            if let Some(placed) = self.slot(stage)? {
                placed.plan.tiling.packs = packs;
            }
        }
        let stages = self.stages;
        let mut plan = Plan::default();
        for ((stage, found), placed) in stages.iter().zip(std::mem::take(&mut self.placed)) {
            let Some(placed) = placed else { continue };
            share(self.draft, &found.name, &placed)?;
            plan = plan.with(stage, placed.plan);
        }
        Ok(plan)
    }

    /// Unrolls and vectorizes loops.
    fn kinds(&mut self, stage: StageId) -> Result<(), ScheduleError> {
        let name = self.stages.name(stage);
        for target in self.of_kind(stage, LoopKind::Unrolled) {
            self.draft.apply(name, Unroll { target })?;
        }
        for target in self.of_kind(stage, LoopKind::Vector) {
            self.draft.apply(name, Vectorize { target })?;
        }
        Ok(())
    }

    /// Computes partial results in the lanes of several vectors, and combines them.
    fn partial(
        &mut self,
        stage: StageId,
        tiling: &Tiling,
        at: LoopRef,
    ) -> Result<(), ScheduleError> {
        let name = self.stages.name(stage);
        let at = self.loop_name(at)?;
        let Some(vector) = tiling.loops.iter().find(|l| l.kind == LoopKind::Vector) else {
            return Ok(());
        };
        let is_unrolled = |l: &&PlannedLoop| l.kind == LoopKind::Unrolled && l.axis == vector.axis;
        let block = self.placed(stage).and_then(|placed| placed.names.last().cloned());
        let block = block.unwrap_or_default();
        self.draft.apply(name, Rfactor { target: block.clone(), at })?;
        let partial = format!("{name}.rf");
        let mut target = block.clone();
        if let Some(vectors) = tiling.loops.iter().find(is_unrolled) {
            let own = block.strip_suffix(".partial").unwrap_or(&block);
            let (unrolled, lanes) = (format!("{own}.vectors"), format!("{own}.lanes"));
            let mut split = Split::new(&block, &[vectors.size]);
            split.names = vec![unrolled.clone(), lanes.clone()];
            self.draft.apply(&partial, split)?;
            self.draft.apply(&partial, Unroll { target: unrolled })?;
            target = lanes;
        }
        // The rows of a tile are those of its partial results as well.
        for row in self.of_kind(stage, LoopKind::Unrolled) {
            self.draft.apply(&partial, Unroll { target: row.clone() })?;
            self.draft.apply(name, Unroll { target: row })?;
        }
        self.draft.apply(&partial, Vectorize { target })?;
        self.draft.apply(name, Vectorize { target: block })
    }

    /// The names of the loops of a kind of a stage.
    fn of_kind(&self, stage: StageId, kind: LoopKind) -> Vec<String> {
        self.placed(stage).map_or_else(Vec::new, |placed| of_kind(placed, kind).collect())
    }

    /// Copies an operand into panels, contiguous along the lanes; returns whether that is possible.
    fn pack(&mut self, stage: &str, pack: &Pack) -> bool {
        let Pack { tensor, at, is_alone, along, width, lanes } = pack;
        let Ok(at) = self.loop_name(*at) else { return false };
        let nest = &self.draft.nest;
        let buffer = nest.buffers.iter().find(|buffer| buffer.name == *tensor);
        let Some(rank) = buffer.map(|buffer| buffer.shape.len()) else { return false };
        let others = || (0..rank).filter(|other| other != along);
        let along = *along as u32;
        let mut parts = vec![Part::Quotient(along, *width)];
        parts.extend(others().map(|other| Part::Whole(other as u32)));
        parts.push(Part::Remainder(along, *width));
        let layout = Some(LayoutText { parts });
        let read = CacheRead { layout, is_alone: *is_alone, ..CacheRead::new(tensor, at) };
        let (copy, lane) = (format!("{tensor}.pack"), format!("d{along}"));
        let order = others().map(|other| format!("d{other}")).chain([lane.clone()]).collect();
        self.draft.steps(|draft| {
            draft.step(stage, read)
                && draft.step(&copy, Reorder { order })
                && draft.step(&copy, Split::new(&lane, &[*lanes]))
                && draft.step(&copy, Vectorize { target: format!("{lane}.1") })
        })
    }
}

/// The names of the loops of a kind that have been cut.
fn of_kind(placed: &Placed, kind: LoopKind) -> impl Iterator<Item = String> {
    let loops = cut_loops(&placed.plan.tiling).zip(&placed.names);
    loops.filter(move |(l, _)| l.kind == kind).map(|(_, name)| name.clone())
}

/// The loops that have names: without those inside of partial results.
fn cut_loops(tiling: &Tiling) -> impl Iterator<Item = &PlannedLoop> {
    let vector = tiling.loops.iter().find(|l| l.kind == LoopKind::Vector).map(|l| l.axis);
    let partial = vector.filter(|_| tiling.partial.is_some());
    let is_inside = move |l: &&PlannedLoop| l.kind == LoopKind::Unrolled && Some(l.axis) == partial;
    tiling.loops.iter().filter(move |l| !is_inside(l))
}

/// Fuses the parallel loops of a stage, as far as that is possible, and shares them among workers.
fn share(draft: &mut ScheduleState, stage: &str, placed: &Placed) -> Result<(), ScheduleError> {
    let mut loops = of_kind(placed, LoopKind::Parallel);
    let Some(mut target) = loops.next() else { return Ok(()) };
    for inner in loops {
        let name = format!("{target}_{inner}");
        let outer = target.clone();
        if !draft.step(stage, Fuse { outer, inner, name: Some(name.clone()) }) {
            break;
        }
        target = name;
    }
    draft.apply(stage, Parallel { target })
}
