//! Removal of zero terms from sums by phases and padding.
//!
//! `phases` skips the terms, `pad` hoists the condition out of the loop.

use tensorwright_lang::ops::{CompareOp, ReductionOp};
use tensorwright_lang::program::{Atom, Expr, Index, Read};

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::nest::{LoopNest, Owner, Ranges, Role, Store, for_each_store};
use tensorwright_schedule::placement::{only_reader, store_of};
use tensorwright_schedule::primitives::{Inline, Pad, Phases, loops_of, stages};

/// Padding is profitable if each element of the padded copy is read at least this often: a copy
/// costs about as much as a few multiply-adds, and a condition in the loop prevents register
/// tiling.
const REUSE: i128 = 4;

/// Rewrites all reductions whose terms depend on conditions on positions.
pub(super) fn leave_out(draft: &mut ScheduleState) {
    for stage in reductions(&draft.nest) {
        if has_remainders(&draft.nest, &stage) {
            draft.steps(|draft| in_phases(draft, &stage));
        }
        pad(draft, &stage);
    }
}

/// The names of the reductions to consider.
fn reductions(nest: &LoopNest) -> Vec<String> {
    let mut stores = Vec::new();
    for_each_store(&nest.body, &mut |store| stores.push(store));
    let named = stages(nest).into_iter().zip(stores);
    named.filter(|(_, store)| store.combine.is_some()).map(|(name, _)| name).collect()
}

/// Whether a stage, or a stage that it reads, selects by a remainder of positions.
fn has_remainders(nest: &LoopNest, stage: &str) -> bool {
    let Some(store) = store_of(nest, stage) else { return false };
    store.combine == Some(ReductionOp::Sum)
        && (!divisors(&store.value).is_empty()
            || movements(nest, stage, store).iter().any(|made| has_remainders_in(nest, made)))
}

fn has_remainders_in(nest: &LoopNest, stage: &str) -> bool {
    let Some(store) = store_of(nest, stage) else { return false };
    !divisors(&store.value).is_empty()
        || movements(nest, stage, store).iter().any(|made| has_remainders_in(nest, made))
}

/// Splits a sum into phases; returns whether it succeeded.
fn in_phases(draft: &mut ScheduleState, stage: &str) -> bool {
    // Stages that dilate and pad the input are part of the condition.
    while let Some(made) = store_of(&draft.nest, stage)
        .and_then(|store| movements(&draft.nest, stage, store).into_iter().next())
    {
        if !draft.step(&made, Inline) {
            return false;
        }
    }
    let Some(store) = store_of(&draft.nest, stage) else { return false };
    let divisors = divisors(&store.value);
    let loops = loops_of(&draft.nest, stage).into_iter();
    let spatial: Vec<String> = loops
        .filter(|l| l.role == Role::Spatial)
        .map(|l| draft.nest.var_name(l.var).to_owned())
        .collect();
    let mut any = false;
    for target in spatial {
        for by in &divisors {
            any |= draft.step(stage, Phases { target: target.clone(), by: *by });
        }
    }
    any
}

/// Pads the conditional reads of a reduction where it is profitable.
fn pad(draft: &mut ScheduleState, stage: &str) {
    let selects = |store: &Store| {
        let mut found = false;
        store.value.walk(&mut |expr| found |= matches!(expr, Expr::Select(..)));
        found
    };
    let tensors = |nest: &LoopNest, store: &Store| {
        let mut names: Vec<String> = Vec::new();
        store.value.walk_reads(&mut |read| {
            let name = &nest.buffer(read.tensor).name;
            // A condition that is not a border check masks many terms: keeping it lets blocks of
            // them be skipped.
            if !names.contains(name) && has_border(nest, stage, read) {
                names.push(name.clone());
            }
        });
        names
    };
    // A second condition may become removable after the first.
    for _ in 0..2 {
        let Some(store) = store_of(&draft.nest, stage).filter(|store| selects(store)) else {
            return;
        };
        for tensor in tensors(&draft.nest, store) {
            draft.steps(|draft| draft.step(stage, Pad { tensor }) && pays(&draft.nest, stage));
        }
    }
}

/// Whether the newest copy is read often enough.
fn pays(nest: &LoopNest, stage: &str) -> bool {
    let loops = loops_of(nest, stage);
    let uses = loops.iter().fold(1i128, |uses, l| uses.saturating_mul(i128::from(l.extent)));
    let copied = nest.buffers.last().map_or(0, |copy| i128::from(copy.elements()));
    uses >= copied.saturating_mul(REUSE)
}

/// Whether a read could be out of bounds without its condition.
fn has_border(nest: &LoopNest, stage: &str, read: &Read) -> bool {
    let mut ranges = Ranges::default();
    loops_of(nest, stage).iter().for_each(|l| ranges.insert(l.var, l.extent));
    let inside = |(subscript, extent): (&Index, &i64)| {
        ranges.interval(subscript).within(0, i128::from(*extent))
    };
    !read.subscripts.iter().zip(&nest.buffer(read.tensor).shape).all(inside)
}

/// The stages read only by this stage that only move elements or insert constants.
fn movements(nest: &LoopNest, stage: &str, store: &Store) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    store.value.walk_reads(&mut |read| {
        let buffer = nest.buffer(read.tensor);
        if buffer.owner == Owner::Intermediate
            && !found.contains(&buffer.name)
            && store_of(nest, &buffer.name).is_some_and(is_movement)
            && only_reader(nest, read.tensor).as_deref() == Some(stage)
        {
            found.push(buffer.name.clone());
        }
    });
    found
}

fn is_movement(store: &Store) -> bool {
    fn moves(expr: &Expr) -> bool {
        match expr {
            Expr::Read(_) | Expr::Const(_) => true,
            Expr::Select(condition, then, otherwise) => {
                let mut reads = false;
                condition.walk_reads(&mut |_| reads = true);
                !reads && moves(then) && moves(otherwise)
            }
            _ => false,
        }
    }
    store.combine.is_none() && !store.is_recurrence() && moves(&store.value)
}

/// The divisors of remainders in the conditions of a value.
fn divisors(value: &Expr) -> Vec<i64> {
    let mut found = Vec::new();
    value.walk(&mut |expr| {
        let Expr::CompareIndex(CompareOp::Eq, left, right) = expr else { return };
        for term in left.terms().iter().chain(right.terms()) {
            if let Atom::Mod(_, divisor) = term.atom
                && !found.contains(&divisor)
            {
                found.push(divisor);
            }
        }
    });
    found
}
