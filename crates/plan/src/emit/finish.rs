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
            let Some(mut placed) = self.placed[stage.0 as usize].take() else { continue };
            match placed.plan.tiling.partial {
                Some(at) => self.partial(stage, &placed, at)?,
                None => self.kinds(stage, &placed)?,
            }
            let name = self.stages.name(stage);
            let mut reading = name.to_owned();
            if let Some(level) = placed.plan.tiling.accumulate {
                let place = placed.plan.tiling.last_of(level);
                let at = place.and_then(|place| placed.names.get(place)).cloned();
                self.draft.apply(name, CacheWrite { at: at.unwrap_or_default() })?;
                reading = format!("{name}.tile");
            }
            let mut packs = std::mem::take(&mut placed.plan.tiling.packs);
            self.placed[stage.0 as usize] = Some(placed);
            packs.retain(|pack| self.pack(&reading, pack));
            if let Some(placed) = &mut self.placed[stage.0 as usize] {
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
    fn kinds(&mut self, stage: StageId, placed: &Placed) -> Result<(), ScheduleError> {
        let stage = self.stages.name(stage);
        for target in of_kind(placed, LoopKind::Unrolled) {
            self.draft.apply(stage, Unroll { target })?;
        }
        for target in of_kind(placed, LoopKind::Vector) {
            self.draft.apply(stage, Vectorize { target })?;
        }
        Ok(())
    }

    /// Computes partial results in the lanes of several vectors, and combines them.
    fn partial(
        &mut self,
        stage: StageId,
        placed: &Placed,
        at: LoopRef,
    ) -> Result<(), ScheduleError> {
        let name = self.stages.name(stage);
        let tiling = &placed.plan.tiling;
        let at = if at.stage == stage {
            let place = tiling.last_of(at.level);
            place.and_then(|place| placed.names.get(place)).cloned().unwrap_or_default()
        } else {
            self.loop_name(at)?.to_owned()
        };
        let Some(vector) = tiling.loops.iter().find(|l| l.kind == LoopKind::Vector) else {
            return Ok(());
        };
        let is_unrolled = |l: &&PlannedLoop| l.kind == LoopKind::Unrolled && l.axis == vector.axis;
        let block = placed.names.last().cloned().unwrap_or_default();
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
        let rows: Vec<String> = of_kind(placed, LoopKind::Unrolled).collect();
        for row in rows {
            self.draft.apply(&partial, Unroll { target: row.clone() })?;
            self.draft.apply(name, Unroll { target: row })?;
        }
        self.draft.apply(&partial, Vectorize { target })?;
        self.draft.apply(name, Vectorize { target: block })
    }

    /// Copies an operand into panels, contiguous along the lanes; returns whether that is possible.
    fn pack(&mut self, stage: &str, pack: &Pack) -> bool {
        let Pack { tensor, at, is_alone, along, width, lanes } = pack;
        let Ok(at) = self.loop_name(*at).map(str::to_owned) else { return false };
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
