//! The plan of a chain.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_plan::levels::cpu::{AROUND, BLOCK, PANEL, ROW};
use tensorwright_plan::{LoopKind, LoopRef, Placement, Plan, PlannedLoop, Stage, Stages};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::ComputeAt;
use tensorwright_schedule::{ScheduleError, ScheduleState};

use super::{Chain, RowStage, RowTiling};
use crate::cpu::fusion::{Body, Member, fuse};
use crate::cpu::loops::row::Row;
use crate::stages::sibling_fusion::RowShares;

/// Fuses the stages of a chain row by row.
///
/// # Errors
/// If a required step is refused.
pub(crate) fn compute(
    draft: &mut ScheduleState,
    chain: &Chain,
    tiling: &RowTiling,
    goal: &Goal<Cpu>,
) -> Result<(Stages, Plan), ScheduleError> {
    // Workers add to copies of their own, with as many rows each.
    let shares = chain.shares(draft, tiling, goal);
    let mut copies = Vec::new();
    if let Some(shares) = shares {
        for sibling in chain.adding_up() {
            copies.push(sibling.privatize(draft, shares)?);
        }
    }
    let names = chain.stages.iter().map(|stage| &stage.name).chain(&copies);
    let stages = Stages::of(&draft.nest, names.map(String::as_str));
    let Some((root, found)) = stages.named(&chain.root) else {
        return Ok((Stages::default(), Plan::default()));
    };
    let mut outer = chain.rows_of(found, shares);
    let is_shared = tiling.is_parallel && copies.len() == chain.adding_up().count();
    if let Some(first) = outer.first_mut().filter(|_| is_shared) {
        first.kind = LoopKind::Parallel;
    }
    let mut members = chain.members(&stages, tiling, (Placement::Root, outer));
    for sibling in &chain.siblings {
        let Some(at) = members.iter().position(|own| stages.name(own.stage) == sibling.stage)
        else {
            continue;
        };
        let placement = Placement::With(LoopRef { stage: root, level: ROW });
        let own = &mut members[at];
        own.placement = placement;
        if let Some((stage, found)) = stages.named(&sibling.copy()).filter(|_| sibling.adds_up) {
            let outer = rows_of(found, &sibling.rows_of_copy(), None);
            let copy = Member { stage, outer, ..own.clone() };
            own.placement = Placement::Root;
            members.insert(at, copy);
        } else if let Some(found) = stages.get(own.stage) {
            own.outer = rows_of(found, &sibling.rows, shares);
        }
    }
    // Hosts come first: the root, then its siblings, then what they read, last to first.
    let rank = |member: &Member| match member.placement {
        Placement::Root => 0,
        Placement::With(_) => 1,
        _ => 2,
    };
    members.sort_by_key(rank);
    let plan = fuse(draft, &stages, members, goal)?;
    Ok((stages, plan))
}

/// The row loops of a stage, shared among workers if given.
fn rows_of(stage: &Stage, rows: &[String], shares: Option<RowShares>) -> Vec<PlannedLoop> {
    let mut loops = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let Some(axis) = stage.axis(row) else { continue };
        let shares = shares.filter(|_| place == 0);
        loops.extend(shares.map(|shares| PlannedLoop::new(axis, shares.each, BLOCK)));
        let level = if place + 1 == rows.len() { ROW } else { AROUND };
        loops.push(PlannedLoop::new(axis, 1, level));
    }
    loops
}

impl Chain {
    /// Its stages, the root first: they are computed in its row loop, and those of small windows in
    /// its vectors. An inlined stage is part of its readers.
    pub(crate) fn members(
        &self,
        stages: &Stages,
        tiling: &RowTiling,
        (placement, outer): (Placement, Vec<PlannedLoop>),
    ) -> Vec<Member> {
        let Some((root, _)) = stages.named(&self.root) else { return Vec::new() };
        let in_loop = |level| LoopRef { stage: root, level };
        let member = |(own, vectors): (&RowStage, &i64)| {
            let (stage, _) = stages.named(&own.name)?;
            let row = Row { vectors: *vectors, is_short: false, at: in_loop(ROW) };
            let (level, body) = match own.in_tile {
                true => (PANEL, Body::Registers { otherwise: None }),
                false => (ROW, Body::Row(row)),
            };
            let inside =
                Member { stage, placement: Placement::At(in_loop(level)), outer: Vec::new(), body };
            Some(if stage == root {
                Member { placement, outer: outer.clone(), ..inside }
            } else {
                inside
            })
        };
        let mut members: Vec<Member> =
            self.stages.iter().zip(&tiling.vectors).rev().filter_map(member).collect();
        let rank = |own: &Member| (own.stage != root, matches!(own.body, Body::Registers { .. }));
        members.sort_by_key(rank);
        members
    }

    /// The loops of the root up to the row loop.
    pub(crate) fn rows_of(&self, root: &Stage, shares: Option<RowShares>) -> Vec<PlannedLoop> {
        let count = root.axis(&self.row).map_or(0, |axis| usize::from(axis.0) + 1);
        let rows = root.axes.iter().take(count).map(|axis| axis.name.clone());
        rows_of(root, &rows.collect::<Vec<_>>(), shares)
    }

    /// Computes the other stages at a loop of the root, without tilings.
    ///
    /// # Errors
    /// If that is refused.
    pub(crate) fn place(&self, draft: &mut ScheduleState, row: &str) -> Result<(), ScheduleError> {
        let is_sibling = |name: &String| self.siblings.iter().any(|other| other.stage == *name);
        for RowStage { name, .. } in self.stages.iter().rev() {
            let is_other = *name != self.root && !is_sibling(name);
            if is_other && store_of(&draft.nest, name).is_some() {
                let at = ComputeAt { consumer: self.root.clone(), at: row.to_owned() };
                draft.apply(name, at)?;
            }
        }
        Ok(())
    }

    /// The shares of workers, if sums over rows are among parallel stages.
    fn shares(
        &self,
        draft: &ScheduleState,
        tiling: &RowTiling,
        goal: &Goal<Cpu>,
    ) -> Option<RowShares> {
        self.adding_up().next().filter(|_| tiling.is_parallel)?;
        let stages = Stages::of(&draft.nest, [self.root.as_str()]);
        let (_, root) = stages.named(&self.root)?;
        RowShares::of(root.axes.first()?.extent, goal.workers)
    }
}
