//! Stages computed in the blocks or the threads of another.

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{Dim, Role};
use tensorwright_schedule::primitives::{Bind, Split, ThreadAxis, Unroll};
use tensorwright_space::Rejection;

use crate::gpu::tiling::Tiling;
use crate::stages::steps::{apply, order_own};

/// The maximum number of elements that a thread holds in registers.
const MOST_HELD: i64 = 64;

/// Distributes the elements of a stage over the threads of the block that contains it.
pub(super) fn in_turns(
    draft: &mut ScheduleState,
    stage: &str,
    host: &Tiling,
) -> Result<(), Rejection> {
    const DIRECTIONS: [Dim; 3] = [Dim::X, Dim::Y, Dim::Z];
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return Ok(()) };
    let own: Vec<Axis> = accesses.of_role(Role::Spatial).cloned().collect();
    let terms: Vec<Axis> = accesses.of_role(Role::Reduce).cloned().collect();
    // The threads of the host, by dimension: x is the last.
    let threads: Vec<i64> =
        host.thread_axes().iter().rev().map(|axis| host.threads(*axis)).collect();
    let (mut bound, mut serial) = (Vec::new(), Vec::new());
    for (axis, (threads, dim)) in own.iter().rev().zip(threads.iter().zip(DIRECTIONS)) {
        if axis.extent <= *threads {
            bound.insert(0, (axis.name.clone(), dim));
            continue;
        }
        apply(draft, stage, Split::new(&axis.name, &[*threads]))?;
        bound.insert(0, (format!("{}.1", axis.name), dim));
        serial.insert(0, format!("{}.0", axis.name));
    }
    // Further dimensions are sequential.
    let others = own.len().saturating_sub(threads.len().min(DIRECTIONS.len()));
    serial.splice(..0, own.iter().take(others).map(|axis| axis.name.clone()));
    let terms = terms.into_iter().map(|axis| axis.name);
    let order: Vec<String> =
        bound.iter().map(|(name, _)| name.clone()).chain(serial).chain(terms).collect();
    order_own(draft, stage, order)?;
    for (target, dim) in &bound {
        apply(draft, stage, Bind { target: target.clone(), to: ThreadAxis::Thread(*dim) })?;
    }
    Ok(())
}

/// Keeps a stage in the registers of a thread by unrolling all its loops.
pub(super) fn in_registers(draft: &mut ScheduleState, stage: &str) -> Result<(), Rejection> {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return Ok(()) };
    let own: Vec<Axis> = accesses.of_role(Role::Spatial).cloned().collect();
    let held = own.iter().fold(1i64, |held, axis| held.saturating_mul(axis.extent));
    if held > MOST_HELD {
        let reason = format!("`{stage}` needs {held} registers per thread, limit {MOST_HELD}");
        return Err(Rejection { rule: "registers", reason });
    }
    for axis in own {
        apply(draft, stage, Unroll { target: axis.name })?;
    }
    Ok(())
}
