//! Decides where stages may be computed: inlined, fused or separate.
//!
//! Scheduling rules and schedule spaces share these decisions.

use tensorwright_lang::ops::{ArithOp, ReductionOp};
use tensorwright_lang::program::{Atom, Expr, Index};

use crate::nest::{BufferId, LoopNest, Owner, Store, Use, Var, for_each_store};
pub use crate::primitives::store_of;
use crate::primitives::{latest, stages};

/// Expressions with more parts than this are not recomputed.
const CHEAP: usize = 16;

/// The most parts of an expression that is inlined although that saves nothing: compilers take
/// long for larger ones.
const MOST_INLINED: usize = 128;

/// Whether schedules inline a stage by default: its readers benefit, and it is cheap or not
/// recomputed.
#[must_use]
pub fn is_inlined_by_default(nest: &LoopNest, store: &Store) -> bool {
    let parts = parts(store);
    let most = if is_read_in_place(nest, store) { MOST_INLINED } else { CHEAP };
    store.combine.is_none()
        && parts <= most
        && reader_wants_inlined(nest, store)
        && !(has_call(store) && is_read_again(nest, store))
}

/// Whether a value calls a function.
fn has_call(store: &Store) -> bool {
    let mut has = false;
    store.value.walk(&mut |expr| has |= matches!(expr, Expr::Call(..)));
    has
}

/// Whether several elements read the same element of a stage, like the norm of a row: compilers do
/// not always hoist the common value out of the loop.
fn is_read_again(nest: &LoopNest, stage: &Store) -> bool {
    let mut again = false;
    for_each_store(&nest.body, &mut |store| {
        let subscripts = store.subscripts.iter().zip(&nest.buffer(store.buffer).shape);
        let long = subscripts.filter(|(_, extent)| **extent > 1);
        let axes: Vec<Var> = long.filter_map(|(subscript, _)| subscript.as_axis()).collect();
        store.walk_reads(&mut |_, read| {
            let moves =
                |axis: &Var| read.subscripts.iter().any(|s| s.mentions(&|own| own == *axis));
            again |= read.tensor == stage.buffer && !axes.iter().all(moves);
        });
    });
    again
}

/// The parts of a value; an expensive function counts several times.
fn parts(store: &Store) -> usize {
    let mut parts = 0;
    store.value.walk(&mut |expr| parts += if matches!(expr, Expr::Call(..)) { 8 } else { 1 });
    parts
}

/// Whether all readers of a stage are element-wise and read the same position that they write.
fn is_read_in_place(nest: &LoopNest, stage: &Store) -> bool {
    let mut all = true;
    for_each_store(&nest.body, &mut |store| {
        store.walk_reads(&mut |what, read| {
            if read.tensor == stage.buffer {
                let in_place = read.subscripts == store.subscripts && same_elements(stage, store);
                all &= what == Use::Value && store.combine.is_none() && in_place;
            }
        });
    });
    all
}

/// Whether the readers of a stage read every element of it about once: an element-wise stage, or
/// the initial values of a reduction. A reduction would recompute the stage for every term. That is
/// free in a sum of products, where one instruction multiplies and adds.
fn reader_wants_inlined(nest: &LoopNest, stage: &Store) -> bool {
    let mut readers = 0;
    let mut wants = true;
    for_each_store(&nest.body, &mut |store| {
        store.walk_reads(&mut |what, read| {
            if read.tensor == stage.buffer {
                readers += 1;
                wants &=
                    what == Use::Start || store.combine.is_none() || adds_products(store, stage);
            }
        });
    });
    wants && (readers == 1 || is_border(stage))
}

/// Whether a stage only extends its input at the borders: every element is the nearest element of
/// the input.
fn is_border(stage: &Store) -> bool {
    let Expr::Read(read) = &stage.value else { return false };
    let mut dims = read.subscripts.iter().zip(&stage.subscripts);
    let is_there = dims.all(|(from, to)| to.as_axis().is_some_and(|axis| is_clamped(from, axis)));
    read.checked.is_empty() && read.subscripts.len() == stage.subscripts.len() && is_there
}

/// Whether an index is an axis plus an optional constant, possibly clamped.
fn is_clamped(index: &Index, axis: Var) -> bool {
    let limited = |a: &Index, b: &Index| match (a.as_constant(), b.as_constant()) {
        (Some(_), None) => is_clamped(b, axis),
        (None, Some(_)) => is_clamped(a, axis),
        _ => false,
    };
    match index.terms() {
        [term] if term.coefficient == 1 => match &term.atom {
            Atom::Axis(own) => *own == axis,
            Atom::Min(a, b) | Atom::Max(a, b) => limited(a, b),
            Atom::Div(..) | Atom::Mod(..) | Atom::Product(..) | Atom::Value(_) => false,
        },
        _ => false,
    }
}

/// Whether a sum adds up the elements of a stage, each of which is a product of two others.
fn adds_products(sum: &Store, stage: &Store) -> bool {
    let is_read = |value: &Expr| matches!(value, Expr::Read(read) if read.checked.is_empty());
    let is_product =
        matches!(&stage.value, Expr::Arith(ArithOp::Mul, a, b) if is_read(a) && is_read(b));
    sum.combine == Some(ReductionOp::Sum) && !sum.is_scatter() && is_product && is_read(&sum.value)
}

/// The reduction that an element-wise stage reads in place as its only reader (the stage is its
/// epilogue).
#[must_use]
pub fn epilogue_of(nest: &LoopNest, stage: &str) -> Option<String> {
    let root = store_of(nest, stage)?;
    if root.combine.is_some() || root.is_recurrence() {
        return None;
    }
    let mut in_place: Vec<BufferId> = Vec::new();
    root.value.walk_reads(&mut |read| {
        if read.subscripts == root.subscripts && !in_place.contains(&read.tensor) {
            in_place.push(read.tensor);
        }
    });
    in_place.into_iter().find_map(|buffer| {
        let name = &nest.buffer(buffer).name;
        let store = store_of(nest, name)?;
        let alone = nest.buffer(buffer).owner == Owner::Intermediate && readers(nest, buffer) == 1;
        (store.combine.is_some() && !store.is_scatter() && alone && same_elements(store, root))
            .then(|| name.clone())
    })
}

/// Every stage in program order, with the reduction that it is the epilogue of, if any. Such a
/// reduction is scheduled with its reader.
#[must_use]
pub fn with_epilogues(nest: &LoopNest) -> Vec<(String, Option<String>)> {
    let mut taken: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for root in stages(nest).into_iter().rev() {
        if !taken.contains(&root) {
            let reduction = epilogue_of(nest, &root);
            taken.extend(reduction.clone());
            found.push((root, reduction));
        }
    }
    found.reverse();
    found
}

/// The loop to compute a stage in, given the preferred loop of its reader. This is that loop or, if
/// a reduction is initialized from the stage before it, the next enclosing loop that is early
/// enough. `None` if there is none.
#[must_use]
pub fn latest_loop(nest: &LoopNest, stage: &str, reader: &str, at: &str) -> Option<String> {
    let buffer = store_of(nest, stage)?.buffer;
    latest(nest, buffer, reader, at)
}

/// The number of stores that read a buffer.
#[must_use]
pub fn readers(nest: &LoopNest, buffer: BufferId) -> usize {
    reading_stores(nest, buffer).len()
}

/// The only stage that reads a buffer; `None` if there are several.
#[must_use]
pub fn only_reader(nest: &LoopNest, buffer: BufferId) -> Option<String> {
    match reading_stores(nest, buffer).as_slice() {
        [number] => stages(nest).into_iter().nth(*number),
        _ => None,
    }
}

/// The stages that read a buffer.
#[must_use]
pub fn reader_names(nest: &LoopNest, buffer: BufferId) -> Vec<String> {
    let all = stages(nest);
    reading_stores(nest, buffer).into_iter().filter_map(|at| all.get(at).cloned()).collect()
}

/// The positions of the stores that read a buffer, in the order of [`stages`].
fn reading_stores(nest: &LoopNest, buffer: BufferId) -> Vec<usize> {
    let (mut found, mut number) = (Vec::new(), 0);
    for_each_store(&nest.body, &mut |store| {
        if store.does_read(buffer) {
            found.push(number);
        }
        number += 1;
    });
    found
}

/// Whether two stages write elements at plain subscripts of the same rank.
fn same_elements(a: &Store, b: &Store) -> bool {
    let plain = |index: &Index| match index.terms() {
        [term] => term.coefficient == 1 && matches!(term.atom, Atom::Axis(_)),
        _ => false,
    };
    a.subscripts.len() == b.subscripts.len() && a.subscripts.iter().chain(&b.subscripts).all(plain)
}
