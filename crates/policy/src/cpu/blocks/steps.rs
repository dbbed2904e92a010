//! The plan of a block.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_plan::levels::cpu::{AROUND, BLOCK, PACK, PANEL, ROW};
use tensorwright_plan::{
    Level, LoopKind, LoopRef, Placement, Plan, PlannedLoop, Stage, StageId, Stages,
};
use tensorwright_schedule::{ScheduleError, ScheduleState};

use super::row_reduction::RowReduction;
use super::{Block, Shape, Unit, is_product_unit};
use crate::cpu::fusion::{Body, Member, fuse};
use crate::cpu::loops::row::Row;
use crate::cpu::rows::{Chain, RowTiling};

/// The number of vectors per step of a stage without register tiles.
const VECTORS: i64 = 4;

/// The tiling of each chain.
pub(crate) type RowTilings<'a> = &'a dyn Fn(&Chain) -> RowTiling;

/// Schedules a block in a shape. `row_tiling` returns the tiling of a chain.
///
/// # Errors
/// If a step is refused.
pub(crate) fn compute(
    draft: &mut ScheduleState,
    block: &Block,
    shape: Shape,
    (chains, row_tiling): (&[Chain], RowTilings<'_>),
    goal: &Goal<Cpu>,
) -> Result<(Stages, Plan), ScheduleError> {
    let stages = Stages::of(&draft.nest, block.stages.iter().map(String::as_str));
    let Some((root, _)) = stages.named(&block.root) else {
        return Ok((Stages::default(), Plan::default()));
    };
    let members = {
        let fusion = BlockFusion { draft, stages: &stages, block, root, shape, chains, row_tiling };
        let outer = fusion.outer(goal);
        match &block.columns {
            Some(columns) => columns.members(&fusion, outer),
            None => fusion.members(outer),
        }
    };
    let plan = fuse(draft, &stages, members, goal)?;
    Ok((stages, plan))
}

/// A block whose stages are about to be computed.
pub(super) struct BlockFusion<'a> {
    draft: &'a ScheduleState,
    pub(super) stages: &'a Stages,
    block: &'a Block,
    root: StageId,
    shape: Shape,
    chains: &'a [Chain],
    row_tiling: RowTilings<'a>,
}

impl BlockFusion<'_> {
    /// The loops of the root over blocks, shared among workers, and over the rows of a block if
    /// these go one by one.
    fn outer(&self, goal: &Goal<Cpu>) -> Vec<PlannedLoop> {
        let Some(found) = self.stages.get(self.root) else { return Vec::new() };
        let around = found.axis(&self.block.row).map_or(0, |axis| usize::from(axis.0));
        let mut outer = blocks_of(found, around, &self.block.row, self.shape.rows);
        if goal.workers > 1 {
            let first = found.axes.first().map_or(1, |axis| axis.extent);
            let is_first = around > 0 && is_for_all(first, goal);
            let shared = if is_first { outer.first_mut() } else { outer.last_mut() };
            shared.into_iter().for_each(|l| l.kind = LoopKind::Parallel);
        }
        let is_product = |unit| is_product_unit(self.draft, unit);
        if self.shape.tile == 1 && !self.block.units.last().is_some_and(is_product) {
            outer.extend(found.axis(&self.block.row).map(|axis| PlannedLoop::new(axis, 1, ROW)));
        }
        outer
    }

    /// A loop of the root.
    pub(super) fn at(&self, level: Level) -> LoopRef {
        LoopRef { stage: self.root, level }
    }

    /// A stage that goes row by row, with partial results in a loop.
    pub(super) fn row(&self, at: LoopRef) -> Body {
        Body::Row(Row { vectors: VECTORS, is_short: false, at })
    }

    /// A product, whose strided operands are packed for all blocks.
    pub(super) fn product(&self, reduction: Option<&String>) -> Body {
        let reduction = reduction.and_then(|name| self.stages.named(name));
        Body::Product { reduction: reduction.map(|(stage, _)| stage), pack: self.at(PACK) }
    }

    /// The units from the last to the first: row chains, products, other stages.
    fn members(&self, outer: Vec<PlannedLoop>) -> Vec<Member> {
        let mut members = Vec::new();
        for unit in self.block.units.iter().rev() {
            let is_last = *unit.root(self.chains) == self.block.root;
            let place = match is_last {
                true => (Placement::Root, outer.clone()),
                false => (Placement::At(self.at(BLOCK)), Vec::new()),
            };
            match unit {
                Unit::Chain(number) if !is_last || self.shape.tile == 1 => {
                    members.extend(self.chain(&self.chains[*number], place));
                }
                Unit::Group { root, reduction } if is_product_unit(self.draft, unit) => {
                    members.extend(self.member(root, place, self.product(reduction.as_ref())));
                }
                _ => members.extend(self.group(unit, place)),
            }
            if is_last {
                let reductions = self.block.row_reductions.iter();
                members.extend(reductions.filter_map(|reduction| self.row_reduction(reduction)));
            }
        }
        members
    }

    /// A reduction over the rows of the root shares its loop over blocks.
    fn row_reduction(&self, reduction: &RowReduction) -> Option<Member> {
        let (stage, found) = self.stages.named(&reduction.stage)?;
        let around = self.stages.get(self.root)?.axis(&self.block.row)?;
        let outer = blocks_of(found, usize::from(around.0), &reduction.terms, self.shape.rows);
        let placement = Placement::With(self.at(BLOCK));
        Some(Member { stage, placement, outer, body: self.product(None) })
    }

    /// A chain goes row by row; blocks are parallel, not rows.
    fn chain(
        &self,
        chain: &Chain,
        (placement, mut outer): (Placement, Vec<PlannedLoop>),
    ) -> Vec<Member> {
        if let Some((_, root)) = self.stages.named(&chain.root).filter(|_| outer.is_empty()) {
            outer = chain.rows_of(root, None);
        }
        chain.members(self.stages, &(self.row_tiling)(chain), (placement, outer))
    }

    /// Other stages go row by row, or by tiles of several rows.
    fn group(&self, unit: &Unit, place: (Placement, Vec<PlannedLoop>)) -> Vec<Member> {
        let sums = match unit {
            Unit::Chain(place) => self.chains[*place].stages.len() as i64 - 1,
            Unit::Group { .. } => 1,
        };
        let row = Row { vectors: VECTORS, is_short: false, at: self.at(BLOCK) };
        let member = |name: &String| {
            let (stage, found) = self.stages.named(name)?;
            let inside = |level| (Placement::At(self.at(level)), Vec::new());
            let ((placement, outer), body) = match (stage == self.root, self.shape.tile) {
                (true, 1) => (place.clone(), Body::Row(row)),
                (false, 1) => (inside(BLOCK), Body::Row(row)),
                (true, rows) => {
                    let axis = found.axis(&self.block.row)?;
                    (place.clone(), Body::Stencil { row: axis, rows, sums })
                }
                (false, _) => (inside(PANEL), Body::Registers { otherwise: Some(row) }),
            };
            Some(Member { stage, placement, outer, body })
        };
        unit.stages(self.chains).into_iter().rev().filter_map(member).collect()
    }

    /// A stage of the block, unless it has been inlined.
    pub(super) fn member(
        &self,
        name: &str,
        (placement, outer): (Placement, Vec<PlannedLoop>),
        body: Body,
    ) -> Option<Member> {
        let (stage, _) = self.stages.named(name)?;
        Some(Member { stage, placement, outer, body })
    }
}

/// Whether a loop around all blocks has enough iterations for all workers.
pub(super) fn is_for_all(extent: i64, goal: &Goal<Cpu>) -> bool {
    extent >= 2 * goal.workers
}

/// The loops of a stage over blocks of `rows` iterations of an axis, inside of its first `around`
/// loops.
fn blocks_of(stage: &Stage, around: usize, row: &str, rows: i64) -> Vec<PlannedLoop> {
    let around = stage.axes.iter().take(around).filter_map(|axis| stage.axis(&axis.name));
    let mut loops: Vec<PlannedLoop> =
        around.map(|axis| PlannedLoop::new(axis, 1, AROUND)).collect();
    if let Some(axis) = stage.axis(row) {
        let extent = stage.axes[usize::from(axis.0)].extent;
        loops.push(PlannedLoop::new(axis, (extent + rows - 1) / rows * rows, PACK));
        loops.push(PlannedLoop::new(axis, rows, BLOCK));
    }
    loops
}
