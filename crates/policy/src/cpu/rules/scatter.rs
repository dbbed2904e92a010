//! Scheduling of scatters.
//!
//! Terms determine their store positions, so reduction loops are sequential and spatial loops are
//! free.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::primitives::{Split, Tail, Vectorize, loops_of};

use super::recurrence::VECTORS;
use super::share::inner_work;
use crate::cpu::work::PARALLEL_WORK;
use crate::stages::steps::order;

/// Parallel spatial loops outside, then reduction loops, then vectors of contiguous results. If
/// these are the only results and there is enough parallel work, blocks of them enclose the
/// reduction loops.
pub(super) fn schedule(draft: &mut ScheduleState, stage: &str, goal: &Goal<Cpu>) {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return };
    let lanes = goal.target.lanes(draft.nest.dtype(accesses.write.buffer).bytes() as i64);
    let next_to_each_other = |axis: &&Axis| {
        axis.extent > 1 && axis.extent * 2 >= lanes && accesses.write.stride(axis) == Some(1)
    };
    let names = |role: Role, but: Option<&Axis>| -> Vec<String> {
        let all = accesses.of_role(role).filter(|axis| but.is_none_or(|but| but.var != axis.var));
        all.map(|axis| axis.name.clone()).collect()
    };
    let vector = accesses.of_role(Role::Spatial).find(next_to_each_other).cloned();
    let (results, terms) = (names(Role::Spatial, vector.as_ref()), names(Role::Reduce, None));
    let Some(vector) = vector else {
        order(draft, stage, [results, terms].concat());
        return;
    };
    let lanes = lanes.min(vector.extent);
    let work =
        loops_of(&draft.nest, stage).first().map_or(0, |first| inner_work(&draft.nest, first));
    let in_blocks =
        results.is_empty() && vector.extent >= 2 * VECTORS * lanes && work >= PARALLEL_WORK;
    let part = |number: usize| format!("{}.{number}", vector.name);
    let (factors, parts): (&[i64], [Vec<String>; 2]) = match in_blocks {
        true => (&[VECTORS, lanes], [vec![part(0)], vec![part(1), part(2)]]),
        false => (&[lanes], [Vec::new(), vec![part(0), part(1)]]),
    };
    let [blocks, vectors] = parts;
    let lane = vectors.last().cloned().unwrap_or_default();
    draft.steps(|draft| {
        draft.step(stage, Split::new(&vector.name, factors).tail(Tail::Peel))
            && order(draft, stage, [results, blocks, terms, vectors].concat())
            && draft.step(stage, Vectorize { target: lane })
    });
}
