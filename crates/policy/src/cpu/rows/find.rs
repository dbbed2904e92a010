//! Finds row chains, and their vector counts.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::nest::{Owner, Role};
use tensorwright_schedule::placement::{reader_names, store_of};

use super::{Chain, RowStage};
use crate::cpu::loops::row::{lane_axis, most_vectors};
use crate::cpu::loops::stencil::MOST_TERMS;
use crate::cpu::work::weight;
use crate::stages::rows::{self, Limits, Rows, iterations};

/// Finds the chains among the unscheduled stages of a program. No stage is in two of them.
pub(crate) fn find(draft: &ScheduleState, goal: &Goal<Cpu>) -> Vec<Chain> {
    let chain = |of: Rows| {
        let stage = |name: &String| {
            let depth = if *name == of.root { of.depth } else { 0 };
            let in_tile = *name != of.root && is_window_of(draft, name, &of.root);
            let accesses = Accesses::of(&of.fused.nest, name).filter(|_| !in_tile);
            let vectors =
                accesses.map_or(1, |found| most_vectors(&of.fused.nest, &found, depth, goal));
            RowStage { name: name.clone(), vectors, in_tile }
        };
        let stages = of.stages.iter().map(stage).collect();
        let (parameters, knobs) = (0..0, Vec::new());
        Chain {
            root: of.root,
            row: of.row,
            rows: of.rows,
            work: of.stages.iter().map(|stage| work(draft, stage)).fold(0, i128::saturating_add),
            stages,
            siblings: of.siblings,
            parameters,
            knobs,
        }
    };
    let limits = Limits { room: goal.target.caches().l2 / 2, sibling_workers: Some(goal.workers) };
    rows::find(draft, limits).into_iter().map(chain).collect()
}

/// The work of a stage.
fn work(draft: &ScheduleState, stage: &str) -> i128 {
    let (Some(accesses), Some(store)) =
        (Accesses::of(&draft.nest, stage), store_of(&draft.nest, stage))
    else {
        return 0;
    };
    i128::from(iterations(&accesses.axes)).saturating_mul(weight(&draft.nest, store))
}

/// Whether an element-wise stage is the only reader of a stage, in place, and that stage is a sum
/// over a small window.
fn is_window_of(draft: &ScheduleState, stage: &str, reader: &str) -> bool {
    let nest = &draft.nest;
    let (Some(own), Some(root)) = (store_of(nest, stage), store_of(nest, reader)) else {
        return false;
    };
    let Some(accesses) = Accesses::of(nest, stage) else { return false };
    let terms = iterations(accesses.of_role(Role::Reduce));
    let mut in_place = root.combine.is_none();
    root.value.walk_reads(&mut |read| {
        in_place &= read.tensor != own.buffer || read.subscripts == root.subscripts;
    });
    let is_intermediate = nest.buffer(own.buffer).owner == Owner::Intermediate;
    let is_alone = reader_names(nest, own.buffer) == [reader];
    let has_rows = lane_axis(&accesses, 0).is_some_and(|axis| axis.role == Role::Spatial);
    let is_window = own.combine.is_some() && (2..=MOST_TERMS).contains(&terms) && has_rows;
    is_window && in_place && is_alone && is_intermediate
}
