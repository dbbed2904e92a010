//! Decodes points to schedules.
//!
//! Every step is applied immediately. If a step that the point requires is refused, the point is
//! illegal, with that reason. Optional steps (such as vectorizing the copy of a panel) are skipped
//! if refused.

mod loops;
mod pack;
mod partial;
mod tiled;

use crate::cpu::rules::movement;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::nest::{Role, Store};
use tensorwright_schedule::placement::{latest_loop, store_of};
use tensorwright_schedule::primitives::{
    ComputeAt, Inline, Parallel, Primitive, Reorder, Split, Tail, Vectorize, loops_of,
};
use tensorwright_schedule::{Schedule, ScheduleError, ScheduleState};

use crate::cpu::blocks::{self, BLOCK, Block, RowTilings};
use crate::cpu::group::{Group, Vector};
use crate::cpu::knobs::place::{NAME, Place, Placement};
use crate::cpu::rows::{self, Chain, ROWS};
use crate::cpu::sketch::CpuSketch;
use crate::cpu::tiling::Tiling;
use crate::sketch::Values;
use crate::stages::steps::{apply, fuse_first};
use loops::Loops;
use tensorwright_space::Rejection;

/// Decodes the values of all parameters.
pub(crate) fn decode(sketch: &CpuSketch, values: Values<'_>) -> Result<Schedule, Rejection> {
    let draft = sketch.begun.clone();
    let mut decoder = Decoder { draft, sketch, values, goal: &sketch.goal, inside: Vec::new() };
    for placement in &sketch.places.placements {
        if decoder.place(placement) == Place::Inline {
            decoder.apply(&placement.stage, Inline)?;
        }
    }
    for block in &sketch.blocks {
        decoder.block(block)?;
    }
    for chain in &sketch.chains {
        decoder.rows_of(chain)?;
    }
    // Readers first: other stages are computed inside their loops.
    for group in sketch.groups.iter().rev() {
        decoder.group(group)?;
    }
    for stage in sketch.fixed.iter().filter(|stage| !sketch.is_together(stage, values)) {
        movement(&mut decoder.draft, stage, &sketch.goal);
    }
    sketch.places.placements.iter().try_for_each(|placement| decoder.expect_placed(placement))?;
    Ok(decoder.draft.schedule)
}

struct Decoder<'a> {
    draft: ScheduleState,
    sketch: &'a CpuSketch,
    values: Values<'a>,
    goal: &'a Goal<Cpu>,
    /// The stages that are computed inside the loops of their readers.
    inside: Vec<&'a str>,
}

impl<'a> Decoder<'a> {
    /// Applies a required step.
    fn apply(&mut self, stage: &str, primitive: impl Into<Primitive>) -> Result<(), Rejection> {
        apply(&mut self.draft, stage, primitive)
    }

    /// Reorders loops, if there are several.
    fn reorder(&mut self, stage: &str, order: Vec<String>) -> Result<(), Rejection> {
        if order.len() < 2 {
            return Ok(());
        }
        self.apply(stage, Reorder { order })
    }

    fn place(&self, placement: &Placement) -> Place {
        self.sketch.place_of(&placement.stage, self.values)
    }

    /// Computes products and chains in blocks, if the point says so.
    fn block(&mut self, block: &Block) -> Result<(), Rejection> {
        let (sketch, values) = (self.sketch, self.values);
        let Some(shape) = sketch.block_shape(block, values) else { return Ok(()) };
        let refused = |error: ScheduleError| Rejection { rule: BLOCK, reason: error.to_string() };
        let tiling = |chain: &Chain| sketch.row_tiling(chain, values);
        let chains = (sketch.chains.as_slice(), &tiling as RowTilings<'_>);
        blocks::compute(&mut self.draft, block, shape, chains, self.goal).map(drop).map_err(refused)
    }

    /// Computes the stages of a chain row by row, if the point says so.
    fn rows_of(&mut self, chain: &Chain) -> Result<(), Rejection> {
        let tiling = self.sketch.row_tiling(chain, self.values);
        if !tiling.is_fused || self.sketch.blocked(&chain.root, self.values).is_some() {
            return Ok(());
        }
        let refused = |error: ScheduleError| Rejection { rule: ROWS, reason: error.to_string() };
        rows::compute(&mut self.draft, chain, &tiling, self.goal).map(drop).map_err(refused)
    }

    fn group(&mut self, group: &Group) -> Result<(), Rejection> {
        // The root may be inlined or part of another group.
        if store_of(&self.draft.nest, &group.root).is_none()
            || self.is_inside(&group.root)
            || self.sketch.is_together(&group.root, self.values)
        {
            return Ok(());
        }
        if let Some(placement) =
            self.sketch.places.placements.iter().find(|p| p.stage == group.root)
        {
            self.expect_placed(placement)?;
        }
        let tiling = self.sketch.tiling(group, self.values);
        let loops = match tiling.vector {
            Vector::Reduce { .. } => self.partial(group, &tiling)?,
            _ => self.tiled(group, &tiling)?,
        };
        self.pack(group, &tiling, &loops)?;
        for placement in self.sketch.places.placements.iter().rev() {
            let reads = placement.reader.as_deref();
            if reads == Some(&group.root) || reads == group.epilogue_of.as_deref() {
                self.inside(placement, &loops)?;
            }
        }
        if tiling.parallel > 0
            && let Some(outermost) = loops.outer.first()
        {
            let stage = if tiling.is_fused(group) { &group.root } else { group.stage() };
            self.apply(stage, Parallel { target: outermost.clone() })?;
        }
        Ok(())
    }

    /// Whether a stage is computed inside the loops of its reader.
    fn is_inside(&self, stage: &str) -> bool {
        let nest = &self.draft.nest;
        let own = store_of(nest, stage).map(Store::stage);
        loops_of(nest, stage).iter().any(|l| l.stage != own)
    }

    /// Computes a stage inside the loops of its reader: at the requested loop, or at the next
    /// enclosing one if a reduction starts from it earlier.
    fn inside(&mut self, placement: &'a Placement, loops: &Loops) -> Result<(), Rejection> {
        let at = match self.place(placement) {
            Place::Outer => loops.outer.last(),
            Place::Middle => loops.host(),
            Place::Root | Place::Inline => return Ok(()),
        };
        let (Some(at), Some(reader)) = (at, placement.reader.clone()) else { return Ok(()) };
        let Some(at) = latest_loop(&self.draft.nest, &placement.stage, &reader, at) else {
            return Ok(());
        };
        self.apply(&placement.stage, ComputeAt { consumer: reader, at })?;
        self.rows(&placement.stage);
        self.inside.push(&placement.stage);
        Ok(())
    }

    /// Rejects a point that needs a stage inside loops of its reader if there is no such loop.
    fn expect_placed(&self, placement: &Placement) -> Result<(), Rejection> {
        if !self.place(placement).is_inside() || self.inside.contains(&placement.stage.as_str()) {
            return Ok(());
        }
        let reader = placement.reader.as_deref().unwrap_or("its reader");
        let reason = format!("{reader} has no loop for {}", placement.stage);
        Err(Rejection { rule: NAME, reason })
    }

    /// Vectorizes the rows of a stage without parameters.
    fn rows(&mut self, stage: &str) {
        let Some(accesses) = Accesses::of(&self.draft.nest, stage) else { return };
        let bytes = self.draft.nest.dtype(accesses.write.buffer).bytes() as i64;
        let lanes = self.goal.target.lanes(bytes);
        let row = accesses.of_role(Role::Spatial).find(|a| accesses.write.stride(a) == Some(1));
        let Some(row) = row.cloned().filter(|row| row.extent > 1 && lanes > 1) else { return };
        self.draft.steps(|draft| {
            let split = Split::new(&row.name, &[lanes]).tail(Tail::Guard);
            draft.step(stage, split)
                && draft.step(stage, Vectorize { target: format!("{}.1", row.name) })
        });
    }

    /// Fuses the outermost parallel loops.
    fn fuse(&mut self, stage: &str, tiling: &Tiling, loops: &mut Loops) -> Result<(), Rejection> {
        let wanted = usize::try_from(tiling.parallel).unwrap_or(0).min(loops.outer.len());
        for _ in 1..wanted {
            fuse_first(&mut self.draft, stage, &mut loops.outer)?;
        }
        Ok(())
    }
}
