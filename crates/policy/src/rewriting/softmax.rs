//! Blocked (online) softmax between two products.
//!
//! Attention needs a row of scores three times: for the maximum, the exponentials and the second
//! product. With a maximum per block (`rebase`) and scales factored out of the sums over a block
//! (`factor`), each block of scores is used up before the next one begins:
//!
//! ```text
//! top(l) max= x(l,s)                 top.block(l,b) max= x(l,s)                  in a block of s
//! w(l,s) = exp(x(l,s) - top(l))      w(l,s) = exp(x(l,s) - top.block(l,b))       in a block of s
//! t(l) += w(l,s)                ->   t.factor(l,b) += w(l,s)                     in a block of s
//! p(l,s) = w(l,s) / t(l)             O.factor(l,b,e) += w(l,s) * V(s,e)          in a block of s
//! O(l,e) += p(l,s) * V(s,e)          top, top.scale, t: of all blocks
//!                                    O(l,e) += top.scale(l,b) * O.factor(l,b,e) / t(l)
//! ```

use tensorwright_lang::ops::ReductionOp;
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::nest::{BufferId, Loop, Owner, Role, Var};
use tensorwright_schedule::placement::{reader_names, store_of};
use tensorwright_schedule::primitives::{Factor, Inline, Rebase, Reorder, Split, loops_of, stages};

/// The terms of a block: several register tiles of a product, and few enough that a cache holds the
/// blocks of many rows.
const MOST_TERMS: i64 = 512;
const LEAST_TERMS: i64 = 64;

/// With fewer rows, a product reads its operands about once anyway.
const LEAST_ROWS: i64 = 16;

/// Blocks the first softmax between products; `None` if there is none.
pub(super) fn in_blocks(draft: &ScheduleState) -> Option<ScheduleState> {
    stages(&draft.nest).iter().find_map(|stage| of_maximum(draft, stage))
}

fn of_maximum(draft: &ScheduleState, stage: &str) -> Option<ScheduleState> {
    let store = store_of(&draft.nest, stage)?;
    let loops = loops_of(&draft.nest, stage);
    let mut terms = loops.iter().filter(|l| l.role == Role::Reduce);
    let (Some(l), None) = (terms.next(), terms.next()) else { return None };
    let rows = loops.iter().rfind(|l| l.role == Role::Spatial).map_or(1, |l| l.extent);
    if store.combine != Some(ReductionOp::Max) || rows < LEAST_ROWS {
        return None;
    }
    let by = (LEAST_TERMS..=MOST_TERMS.min(l.extent)).rev().find(|by| l.extent % by == 0)?;
    let mut blocks = draft.clone();
    let target = blocks.nest.var_name(l.var).to_owned();
    let extent = l.extent;
    blocks.step(stage, Rebase { target, by }).then_some(())?;
    let scale = store_of(&blocks.nest, &format!("{stage}.scale"))?.buffer;
    // Quotients of exponentials are inlined into the sums.
    for reader in reader_names(&blocks.nest, scale) {
        let store = store_of(&blocks.nest, &reader)?;
        if store.combine.is_none() {
            let is_own = blocks.nest.buffer(store.buffer).owner == Owner::Intermediate;
            (is_own && blocks.step(&reader, Inline)).then_some(())?;
        }
    }
    let mut has_product = false;
    for reader in reader_names(&blocks.nest, scale) {
        has_product |= factored(&mut blocks, &reader, scale, (extent, by))?;
    }
    has_product.then_some(blocks)
}

/// Takes the scale out of the sums over blocks; returns whether a product has a sum for every
/// column.
fn factored(
    draft: &mut ScheduleState,
    stage: &str,
    scale: BufferId,
    (extent, by): (i64, i64),
) -> Option<bool> {
    let store = store_of(&draft.nest, stage)?;
    if store.combine != Some(ReductionOp::Sum) {
        return None;
    }
    let reads = store.reads();
    let rows = reads.iter().filter(|(_, read)| read.tensor == scale);
    let rows: Vec<_> = rows.flat_map(|(_, read)| read.subscripts.clone()).collect();
    let in_rows = |var: Var| rows.iter().any(|at| at.mentions(&|other| other == var));
    let loops = loops_of(&draft.nest, stage);
    let name = |l: &&&Loop| draft.nest.var_name(l.var).to_owned();
    let along =
        loops.iter().find(|l| l.role == Role::Reduce && in_rows(l.var) && l.extent == extent)?;
    let target = name(&along);
    let others = || loops.iter().filter(|l| l.var != along.var);
    let is_row = |l: &&&Loop| l.role == Role::Spatial && in_rows(l.var);
    let (blocks, terms) = (format!("{target}.0"), format!("{target}.1"));
    let mut order: Vec<String> = others().filter(is_row).map(|l| name(&l)).collect();
    order.push(blocks);
    let columns: Vec<String> = others().filter(|l| !is_row(l)).map(|l| name(&l)).collect();
    let has_columns = others().any(|l| l.role == Role::Spatial && !in_rows(l.var));
    order.extend(columns);
    order.push(terms.clone());
    let done = draft.step(stage, Split::new(&target, &[by]))
        && draft.step(stage, Reorder { order })
        && draft.step(stage, Factor { loops: vec![terms] });
    done.then_some(has_columns)
}
