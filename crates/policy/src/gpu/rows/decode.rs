//! Schedule steps of a row chain: one launch, one block per row.

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{Dim, Role};
use tensorwright_schedule::primitives::{Bind, ComputeAt, Rfactor, Split, ThreadAxis};
use tensorwright_space::Rejection;

use super::Chain;
use crate::stages::steps::{apply, fuse_first, order_own};

/// Adds the steps that compute a chain with a number of threads per row.
pub(crate) fn launch(
    draft: &mut ScheduleState,
    chain: &Chain,
    threads: i64,
) -> Result<(), Rejection> {
    let root = &chain.of.root;
    let mut rows: Vec<String> = draft.loop_names(root).into_iter().take(chain.of.depth).collect();
    while rows.len() > 1 {
        fuse_first(draft, root, &mut rows)?;
    }
    let Some(row) = rows.pop() else { return Ok(()) };
    let bind = Bind { target: row.clone(), to: ThreadAxis::Block(Dim::X) };
    apply(draft, root, bind)?;
    // Intermediates are private to the chain: readers come first.
    for stage in chain.of.stages.iter().rev().filter(|stage| *stage != root) {
        apply(draft, stage, ComputeAt { consumer: root.clone(), at: row.clone() })?;
    }
    for stage in chain.of.stages.iter().rev() {
        in_row(draft, stage, &row, threads)?;
    }
    Ok(())
}

/// Distributes a row of a stage over threads: its elements, or the terms of its sum.
fn in_row(
    draft: &mut ScheduleState,
    stage: &str,
    row: &str,
    threads: i64,
) -> Result<(), Rejection> {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return Ok(()) };
    let long = |role| {
        let own = accesses.of_role(role).filter(|axis| axis.name != row && axis.extent > 1);
        own.cloned().collect::<Vec<Axis>>()
    };
    let (results, terms) = (long(Role::Spatial), long(Role::Reduce));
    let written = results.iter().position(|axis| accesses.write.stride(axis) == Some(1));
    if let Some(place) = written.or_else(|| results.len().checked_sub(1)) {
        let (serial, bound) = cut(draft, stage, &results[place], threads)?;
        let others = results.iter().enumerate().filter(|(at, _)| *at != place);
        let others = others.map(|(_, axis)| axis.name.clone());
        let mut order = vec![bound.clone()];
        order.extend(others.chain(serial).chain(terms.into_iter().map(|axis| axis.name)));
        order_own(draft, stage, order)?;
        return apply(draft, stage, Bind { target: bound, to: ThreadAxis::Thread(Dim::X) });
    }
    let in_order =
        |axis: &Axis| accesses.reads.iter().filter(|read| read.stride(axis) == Some(1)).count();
    let Some(shared) = terms.iter().max_by_key(|axis| (in_order(axis), axis.extent)) else {
        return Ok(());
    };
    if shared.extent <= threads {
        // Too few terms to distribute: one thread sums them.
        return Ok(());
    }
    let (serial, bound) = cut(draft, stage, shared, threads)?;
    apply(draft, stage, Rfactor { target: bound.clone(), at: row.to_owned() })?;
    let partial = format!("{stage}.rf");
    let others = terms.iter().filter(|axis| axis.name != shared.name);
    let mut order = vec![bound.clone()];
    order.extend(others.map(|axis| axis.name.clone()).chain(serial));
    order_own(draft, &partial, order)?;
    apply(draft, &partial, Bind { target: bound, to: ThreadAxis::Thread(Dim::X) })
}

/// Splits a loop by the number of threads; returns the outer loop, if there is one, and the thread
/// loop.
fn cut(
    draft: &mut ScheduleState,
    stage: &str,
    axis: &Axis,
    threads: i64,
) -> Result<(Option<String>, String), Rejection> {
    if axis.extent <= threads {
        return Ok((None, axis.name.clone()));
    }
    apply(draft, stage, Split::new(&axis.name, &[threads]))?;
    Ok((Some(format!("{}.0", axis.name)), format!("{}.1", axis.name)))
}
