//! Random device schedules, with loops bound to blocks and threads.
//!
//! Each unplaced stage becomes a launch: its loops are split into blocks, threads and per-thread
//! work, often with cooperatively staged operands, partial results, accumulators, and stages
//! computed in the block.

use tensorwright_schedule::nest::{Dim, Role};
use tensorwright_schedule::primitives::{
    Bind, CacheRead, CacheWrite, ComputeAt, Fuse, Reorder, Rfactor, Split, Tail, ThreadAxis,
    Unroll, Vectorize,
};

use super::propose::{self, factor, tiles_of_products};
use super::{Draft, EnclosingLoop};

/// Binds the loops of most stages, last ones first: others are computed inside them.
pub(super) fn bound(d: &mut Draft<'_>) {
    let mut stages = d.stages();
    stages.reverse();
    for stage in stages {
        let loops = d.loops(&stage);
        let is_free = loops.iter().all(|l| l.is_own && l.is_serial);
        if is_free && !loops.is_empty() && d.rng.percent(85) {
            // Other stages stay unchanged.
            if d.rng.percent(70) && tensors(d, &stage) {
                continue;
            }
            launch(d, &stage);
        }
    }
}

/// The split loops of a stage.
#[derive(Default)]
struct Parts {
    blocks: Vec<String>,
    outer_terms: Vec<String>,
    threads: Vec<String>,
    rest: Vec<String>,
}

fn launch(d: &mut Draft<'_>, stage: &str) {
    let parts = cut(d, stage);
    let Parts { blocks, outer_terms, threads, rest } = &parts;
    let order: Vec<&String> = blocks.iter().chain(outer_terms).chain(threads).chain(rest).collect();
    if order.len() > 1 {
        d.accept(stage, Reorder::new(order.into_iter().cloned()));
    }
    let between = outer_terms.last().or(blocks.last()).cloned();
    if d.rng.percent(25) {
        partial_sums(d, stage, &parts);
    }
    // Bound loops can be targets of placement and staging, before or after binding.
    let early = d.rng.percent(60);
    if early {
        bind_all(d, stage, &parts);
    }
    if let Some(at) = between {
        producers(d, stage, &at);
        operands(d, stage, &at);
    }
    let hosts: Vec<&String> = blocks.last().into_iter().chain(threads.last()).collect();
    if !hosts.is_empty() && d.rng.percent(60) {
        let at = (*d.rng.pick(&hosts)).clone();
        d.accept(stage, CacheWrite { at });
    }
    if !early {
        bind_all(d, stage, &parts);
    }
    for name in [stage.to_owned(), format!("{stage}.tile"), format!("{stage}.rf")] {
        finish(d, &name);
    }
}

/// Schedules a matrix product in warp tiles; false, without changes, if the stage is not one.
fn tensors(d: &mut Draft<'_>, stage: &str) -> bool {
    let Some([rows, columns, terms]) = tiles_of_products(d, stage) else { return false };
    // Rows and columns of tiles become blocks, warps, or sequential work of a warp.
    let mut host = rows.clone();
    match d.rng.index(4) {
        0 => bind_one(d, stage, &rows, ThreadAxis::Block(Dim::X)),
        1 => {
            bind_one(d, stage, &rows, ThreadAxis::Block(Dim::X));
            bind_one(d, stage, &columns, ThreadAxis::Thread(Dim::Y));
            if d.rng.percent(50) {
                // All warps iterate over the reduction together and copy operands for each other.
                d.accept(stage, Reorder::new([terms.clone(), columns.clone()]));
                operands(d, stage, &terms);
            } else if d.rng.percent(50) {
                host = columns;
            }
        }
        2 => {
            bind_one(d, stage, &rows, ThreadAxis::Thread(Dim::Z));
            bind_one(d, stage, &columns, ThreadAxis::Thread(Dim::Y));
            host = columns;
        }
        _ => {
            bind_one(d, stage, &rows, ThreadAxis::Block(Dim::Y));
            bind_one(d, stage, &columns, ThreadAxis::Block(Dim::X));
            if d.rng.percent(40) {
                operands(d, stage, &terms);
            }
            host = columns;
        }
    }
    if d.rng.percent(95) {
        d.accept(stage, CacheWrite { at: host });
    }
    finish(d, &format!("{stage}.tile"));
    true
}

fn bind_one(d: &mut Draft<'_>, stage: &str, target: &str, to: ThreadAxis) {
    d.accept(stage, Bind { target: target.to_owned(), to });
}

/// Splits the loops of a stage into blocks, threads and per-thread work.
fn cut(d: &mut Draft<'_>, stage: &str) -> Parts {
    let mut parts = Parts::default();
    for l in d.own_loops(stage) {
        let part = |number: usize| format!("{}.{number}", l.name);
        if l.role != Role::Spatial {
            let split = Split::new(&l.name, &[factor(d.rng)]).tail(ending(d));
            if l.role == Role::Reduce && d.rng.percent(60) && d.accept(stage, split) {
                let side = if d.rng.percent(75) { &mut parts.outer_terms } else { &mut parts.rest };
                side.push(part(0));
                parts.rest.push(part(1));
            } else {
                parts.rest.push(l.name);
            }
            continue;
        }
        let is_full = parts.threads.len() >= 3 || parts.blocks.len() >= 3;
        match d.rng.index(if is_full { 1 } else { 6 }) {
            0 => parts.rest.push(l.name),
            1 => parts.threads.push(l.name),
            2 => parts.blocks.push(l.name),
            kind => {
                let threads = factor(d.rng);
                let factors = match kind {
                    3 => vec![threads],
                    4 => vec![threads, *d.rng.pick(&[1, 2, 3, 4])],
                    _ => vec![*d.rng.pick(&[2, 3]), threads],
                };
                let split = Split::new(&l.name, &factors).tail(ending(d));
                if !d.accept(stage, split) {
                    parts.rest.push(l.name);
                    continue;
                }
                parts.blocks.push(part(0));
                match kind {
                    3 => parts.threads.push(part(1)),
                    4 => {
                        parts.threads.push(part(1));
                        parts.rest.push(part(2));
                    }
                    // Virtual threads: the elements of a thread are a thread count apart.
                    _ => {
                        let side = if d.rng.percent(50) {
                            &mut parts.outer_terms
                        } else {
                            &mut parts.rest
                        };
                        side.push(part(1));
                        parts.threads.push(part(2));
                    }
                }
            }
        }
    }
    parts
}

/// Mostly a tail that bound loops allow.
fn ending(d: &mut Draft<'_>) -> Tail {
    *d.rng.pick(&[Tail::Guard, Tail::Guard, Tail::Guard, Tail::RoundUp, Tail::Peel])
}

fn bind_all(d: &mut Draft<'_>, stage: &str, parts: &Parts) {
    for (names, place) in [
        (&parts.blocks, ThreadAxis::Block as fn(Dim) -> ThreadAxis),
        (&parts.threads, ThreadAxis::Thread as fn(Dim) -> ThreadAxis),
    ] {
        bind(d, stage, names, place);
    }
}

/// Binds loops, the last one mostly in direction x.
fn bind(d: &mut Draft<'_>, stage: &str, names: &[String], place: fn(Dim) -> ThreadAxis) {
    let mut dims = [Dim::Z, Dim::Y, Dim::X];
    if d.rng.percent(20) {
        d.rng.shuffle(&mut dims);
    }
    let dims = &dims[dims.len().saturating_sub(names.len())..];
    for (name, dim) in names.iter().zip(dims) {
        if d.rng.percent(95) {
            d.accept(stage, Bind { target: name.clone(), to: place(*dim) });
        }
    }
}

/// Partial sums over a reduction loop, often by threads.
fn partial_sums(d: &mut Draft<'_>, stage: &str, parts: &Parts) {
    let (Some(at), Some(target)) = (parts.blocks.last(), parts.rest.last()) else { return };
    let (at, target) = (at.clone(), target.clone());
    if d.accept(stage, Rfactor { target: target.clone(), at }) {
        cooperative(d, &format!("{stage}.rf"));
    }
}

/// Computes producers inside a loop of a stage.
fn producers(d: &mut Draft<'_>, stage: &str, at: &str) {
    let stages = d.stages();
    for producer in d.reads(stage).into_iter().filter(|name| stages.contains(name)) {
        let (consumer, at) = (stage.to_owned(), at.to_owned());
        if d.rng.percent(60) && d.accept(&producer, ComputeAt { consumer, at }) {
            cooperative(d, &producer);
        }
    }
}

/// Stages operands, mostly for all threads of a block.
fn operands(d: &mut Draft<'_>, stage: &str, at: &str) {
    for tensor in d.reads(stage) {
        if !d.rng.percent(50) {
            continue;
        }
        let at = match d.rng.percent(80) {
            true => at.to_owned(),
            false => match d.any_loop(stage) {
                Some(l) => l.name,
                None => continue,
            },
        };
        let copies = d.stages();
        let is_shared = d.rng.percent(70);
        if d.accept(stage, CacheRead { is_shared, ..CacheRead::new(&tensor, at) }) {
            let made = d.stages().into_iter().find(|name| !copies.contains(name));
            made.iter().for_each(|copy| cooperative(d, copy));
        }
    }
}

/// Shares a stage computed in a block among its threads.
fn cooperative(d: &mut Draft<'_>, stage: &str) {
    if d.rng.percent(15) {
        return;
    }
    let spatial = |d: &Draft<'_>| -> Vec<EnclosingLoop> {
        d.own_loops(stage).into_iter().filter(|l| l.role == Role::Spatial && l.is_serial).collect()
    };
    let loops = spatial(d);
    if let [outer, inner, ..] = loops.as_slice()
        && d.rng.percent(50)
    {
        let name = Some("t".to_owned());
        d.accept(stage, Fuse { outer: outer.name.clone(), inner: inner.name.clone(), name });
    }
    let loops = spatial(d);
    if loops.is_empty() {
        return;
    }
    let mut names: Vec<String> = loops.iter().map(|l| l.name.clone()).collect();
    let target = d.rng.pick(&loops).name.clone();
    let factors = match d.rng.percent(50) {
        true => vec![factor(d.rng)],
        false => vec![factor(d.rng), factor(d.rng)],
    };
    if d.rng.percent(60) && d.accept(stage, Split::new(&target, &factors)) {
        names = (1..=factors.len()).map(|number| format!("{target}.{number}")).collect();
    }
    names.truncate(3);
    bind(d, stage, &names, ThreadAxis::Thread);
}

/// Unrolls or vectorizes the per-thread work.
fn finish(d: &mut Draft<'_>, stage: &str) {
    if !d.stages().contains(&stage.to_owned()) {
        return;
    }
    let loops = d.own_loops(stage);
    for l in loops.iter().rev().filter(|l| l.is_serial && l.extent <= 4) {
        if d.rng.percent(35) {
            d.accept(stage, Unroll { target: l.name.clone() });
        }
    }
    if let Some(last) = loops.last().filter(|_| d.rng.percent(20)) {
        d.accept(stage, Vectorize { target: last.name.clone() });
    }
    if d.rng.percent(10) {
        propose::single(d);
    }
}
