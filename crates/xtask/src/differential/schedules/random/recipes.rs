//! Sequences of related primitives, with random arguments and omissions.

use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::precision::Precision;
use tensorwright_policy::rewritings;
use tensorwright_schedule::nest::{Role, Store};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{
    CacheWrite, ComputeWith, Factor, Fuse, Inline, Parallel, Privatize, Rebase, Reorder, Rfactor,
    Segment, SetLayout, Split, Tail, Unroll, Vectorize, winograd_choices,
};

use super::propose::{
    self, cache_read, factor, layout_of, placed, split_of, tail, tiles_of_products,
};
use super::{Draft, EnclosingLoop};

/// A recipe; rejected primitives are left out.
pub(super) type Recipe = fn(&mut Draft<'_>);

/// All recipes.
pub(super) const RECIPES: &[Recipe] =
    &[tile, tile, factored_reduction, computed_inside, computed_together, laid_out, flattened];

/// Rewrites before scheduling: profitable ones, or any accepted ones.
pub(super) fn rewritten(d: &mut Draft<'_>) {
    if d.rng.percent(60) {
        let mut all = rewritings(&d.nest, Precision::Fast);
        // The last one does nothing.
        all.truncate(all.len().max(2) - 1);
        let steps = d.rng.pick(&all).schedule.steps.clone();
        for step in steps {
            d.accept(&step.stage, step.primitive);
        }
    }
    for stage in d.stages() {
        let choices = winograd_choices(&d.nest, &stage);
        if !choices.is_empty() && d.rng.percent(60) {
            let (choice, _) = d.rng.pick(&choices).clone();
            let _ = d.accept(&stage, choice);
        }
        if d.rng.percent(25) {
            let _ = d.accept(&stage, Inline);
        }
        for propose in
            [propose::winograd, propose::expand, propose::phases, propose::factor_out, propose::pad]
        {
            if d.rng.percent(25) {
                let _ = propose(d, &stage);
            }
        }
    }
}

/// Matrix products in tiles, some with separate accumulators.
pub(super) fn multiplied(d: &mut Draft<'_>) {
    for stage in d.stages() {
        if d.rng.percent(30)
            && let Some([rows, columns, _]) = tiles_of_products(d, &stage)
            && d.rng.percent(60)
        {
            let at = if d.rng.percent(50) { rows } else { columns };
            d.accept(&stage, CacheWrite { at });
        }
    }
}

/// Blocked softmax: sums over blocks, each relative to its own maximum.
pub(super) fn rebased(d: &mut Draft<'_>) {
    for stage in d.stages() {
        let is_maximum = |store: &Store| store.combine == Some(ReductionOp::Max);
        let terms = d.own_loops(&stage).into_iter().find(|l| l.role == Role::Reduce);
        let Some(l) = terms.filter(|_| store_of(&d.nest, &stage).is_some_and(is_maximum)) else {
            continue;
        };
        let sizes: Vec<i64> = (1..=l.extent).filter(|by| l.extent % by == 0).collect();
        let by = *d.rng.pick(&sizes);
        if !d.rng.percent(70) || !d.accept(&stage, Rebase { target: l.name, by }) {
            continue;
        }
        for reader in d.stages() {
            let reads = d.reads(&reader).iter().any(|read| read.ends_with(".scale"));
            if reads && d.rng.percent(80) && !d.accept(&reader, Inline) {
                over_blocks(d, &reader, by);
            }
        }
        // Readers of an inlined quotient now have the scale.
        for reader in d.stages() {
            let reads = d.reads(&reader).iter().any(|read| read.ends_with(".scale"));
            if reads && d.rng.percent(80) {
                over_blocks(d, &reader, by);
            }
        }
    }
}

/// Hoists factors that are constant over a block out of its sum.
fn over_blocks(d: &mut Draft<'_>, stage: &str, by: i64) {
    let terms = d.own_loops(stage).into_iter().find(|l| l.role == Role::Reduce);
    let Some(name) = terms.map(|l| l.name) else { return };
    if d.accept(stage, Split::new(&name, &[by])) {
        d.accept(stage, Factor { loops: vec![format!("{name}.1")] });
    }
}

/// Privatized copies for scatters, and sometimes for other sums, often shared by workers.
pub(super) fn privatized(d: &mut Draft<'_>) {
    for stage in d.stages() {
        let Some(store) = store_of(&d.nest, &stage) else { continue };
        let share = if store.is_scatter() { 50 } else { 8 };
        if store.combine.is_none() || !d.rng.percent(share) {
            continue;
        }
        let terms: Vec<EnclosingLoop> =
            d.own_loops(&stage).into_iter().filter(|l| l.role == Role::Reduce).collect();
        let Some(mut target) = terms.get(d.rng.index(terms.len().max(1))).map(|l| l.name.clone())
        else {
            continue;
        };
        let split = Split::new(&target, &[factor(d.rng)]);
        if d.rng.percent(60) && d.accept(&stage, split) {
            target = format!("{target}.{}", d.rng.index(2));
        }
        if d.accept(&stage, Privatize { target: target.clone() }) && d.rng.percent(60) {
            let _ = d.accept(&format!("{stage}.part"), Parallel { target });
        }
    }
}

/// Segmented recurrences, often shared by workers.
pub(super) fn segmented(d: &mut Draft<'_>) {
    for stage in d.stages() {
        let steps = d.own_loops(&stage).into_iter().find(|l| l.role == Role::Scan);
        let Some(along) = steps.filter(|_| d.rng.percent(30)) else { continue };
        let target = format!("{}.0", along.name);
        let split = Split::new(&along.name, &[factor(d.rng)]);
        if d.accept(&stage, split) && d.accept(&stage, Segment { target: target.clone() }) {
            for stage in [stage.clone(), format!("{stage}.total")] {
                if d.rng.percent(60) {
                    let _ = d.accept(&stage, Parallel { target: target.clone() });
                }
            }
        }
    }
}

/// Recurrence steps as vector lanes, often unrolled, often with interleaved lines.
pub(super) fn stepped(d: &mut Draft<'_>) {
    for stage in d.stages() {
        let steps = d.own_loops(&stage).into_iter().rfind(|l| l.role == Role::Scan);
        let Some(along) = steps.filter(|_| d.rng.percent(50)) else { continue };
        let (vectors, lanes) = (1 + d.rng.index(4) as i64, factor(d.rng));
        let ending = if d.rng.percent(50) { Tail::Guard } else { Tail::Peel };
        if !d.accept(&stage, Split::new(&along.name, &[vectors, lanes]).tail(ending)) {
            continue;
        }
        let part = |number: usize| format!("{}.{number}", along.name);
        let lines = d.own_loops(&stage).into_iter().rfind(|l| l.role == Role::Spatial);
        if let Some(lines) = lines.filter(|l| l.extent <= 8 && d.rng.percent(40)) {
            let mut order: Vec<String> = d.own_loops(&stage).into_iter().map(|l| l.name).collect();
            order.retain(|name| *name != lines.name);
            order.insert(order.len() - d.rng.index(2), lines.name.clone());
            d.accept(&stage, Reorder::new(order));
            d.accept(&stage, Unroll { target: lines.name });
        }
        d.accept(&stage, Vectorize { target: part(2) });
        if d.rng.percent(60) {
            d.accept(&stage, Unroll { target: part(1) });
        }
    }
}

/// Tiles a stage: `split`, `reorder`, and often an accumulator, packed inputs and vectors.
fn tile(d: &mut Draft<'_>) {
    if let Some(stage) = d.stage() {
        tile_stage(d, &stage);
    }
}

fn tile_stage(d: &mut Draft<'_>, stage: &str) {
    for l in d.own_loops(stage) {
        if d.rng.percent(60) {
            let split = split_of(d, &l.name);
            d.accept(stage, split);
        }
    }
    if d.rng.percent(75) {
        blocks_outside(d, stage);
    }
    if d.rng.percent(35) {
        let _ = cache_read(d, stage);
    }
    let tiled = d.rng.percent(45) && accumulate(d, stage);
    if d.rng.percent(70) {
        let inner = if tiled { format!("{stage}.tile") } else { stage.to_owned() };
        registers(d, &inner);
    }
    if tiled && d.rng.percent(50) {
        registers(d, stage);
    }
}

/// Block loops outside, then most reduction loops, then the loops inside a block.
fn blocks_outside(d: &mut Draft<'_>, stage: &str) {
    let mut ranked: Vec<(usize, String)> = Vec::new();
    for l in d.own_loops(stage) {
        let rank = match (l.role, l.name.ends_with(".0")) {
            (Role::Spatial, true) => 0,
            (Role::Reduce | Role::Scan, true) => 1,
            (Role::Reduce | Role::Scan, false) => 2,
            (Role::Spatial, false) => 3,
        };
        ranked.push((if d.rng.percent(15) { d.rng.index(4) } else { rank }, l.name));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    if ranked.len() > 1 {
        d.accept(stage, Reorder::new(ranked.into_iter().map(|(_, name)| name)));
    }
}

fn accumulate(d: &mut Draft<'_>, stage: &str) -> bool {
    let loops = d.own_loops(stage);
    if loops.is_empty() {
        return false;
    }
    let at = d.rng.pick(&loops).name.clone();
    d.accept(stage, CacheWrite { at })
}

/// Vectorizes the innermost loop, or another loop moved there, and unrolls around it.
fn registers(d: &mut Draft<'_>, stage: &str) {
    let loops = d.own_loops(stage);
    let spatial: Vec<&EnclosingLoop> = loops.iter().filter(|l| l.role == Role::Spatial).collect();
    let Some(lanes) = spatial.get(spatial.len().wrapping_sub(1 + d.rng.index(2))) else { return };
    let mut order: Vec<String> = loops.iter().map(|l| l.name.clone()).collect();
    order.retain(|name| *name != lanes.name);
    order.push(lanes.name.clone());
    if loops.last().is_some_and(|last| last.name != lanes.name) {
        d.accept(stage, Reorder::new(order));
    }
    d.accept(stage, Vectorize { target: lanes.name.clone() });
    for l in loops.iter().rev().filter(|l| l.name != lanes.name && l.extent <= 8) {
        if d.rng.percent(45) {
            d.accept(stage, Unroll { target: l.name.clone() });
        }
    }
}

/// Splits a reduction into separate partial results and vectorizes over them.
fn factored_reduction(d: &mut Draft<'_>) {
    let reduces =
        |d: &Draft<'_>, stage: &str| d.loops(stage).iter().any(|l| l.role == Role::Reduce);
    let stages: Vec<String> = d.stages().into_iter().filter(|stage| reduces(d, stage)).collect();
    if stages.is_empty() {
        return tile(d);
    }
    let stage = d.rng.pick(&stages).clone();
    let reduced: Vec<EnclosingLoop> =
        d.own_loops(&stage).into_iter().filter(|l| l.role == Role::Reduce).collect();
    if reduced.is_empty() {
        return;
    }
    let k = d.rng.pick(&reduced).name.clone();
    let ending = if d.rng.percent(50) { Tail::Guard } else { Tail::Peel };
    let split = Split::new(&k, &[factor(d.rng)]).tail(ending);
    let was_split = d.accept(&stage, split);
    let target = if was_split { format!("{k}.1") } else { k.clone() };
    let loops = d.own_loops(&stage);
    let at = d.rng.pick(&loops).name.clone();
    if d.accept(&stage, Rfactor { target: target.clone(), at }) {
        let partial = format!("{stage}.rf");
        if d.rng.percent(80) {
            registers(d, &partial);
            d.accept(&partial, Vectorize { target });
        }
        if d.rng.percent(30) {
            tile_stage(d, &stage);
        }
    }
}

/// Moves a stage into a loop of its consumer, and schedules it there.
fn computed_inside(d: &mut Draft<'_>) {
    let Some(consumer) = d.stage() else { return };
    let stages = d.stages();
    let producers: Vec<String> =
        d.reads(&consumer).into_iter().filter(|name| stages.contains(name)).collect();
    if producers.is_empty() {
        return tile(d);
    }
    let producer = d.rng.pick(&producers).clone();
    if d.rng.percent(60) {
        tile_stage(d, &consumer);
    }
    let loops = d.loops(&consumer);
    if loops.is_empty() {
        return;
    }
    let at = d.rng.pick(&loops).name.clone();
    if placed(d, &producer, consumer, at) && d.rng.percent(70) {
        tile_stage(d, &producer);
    }
}

/// Fuses the outer loops of two stages, and moves their producers inside.
fn computed_together(d: &mut Draft<'_>) {
    let Some(stage) = d.stage() else { return };
    let outermost = |d: &Draft<'_>, stage: &str| d.own_loops(stage).first().cloned();
    let extent = |d: &Draft<'_>, stage: &str| outermost(d, stage).map(|l| l.extent);
    let mut others = d.stages();
    others.retain(|other| *other != stage && extent(d, other) == extent(d, &stage));
    if others.is_empty() {
        return computed_inside(d);
    }
    let other = d.rng.pick(&others).clone();
    if d.rng.percent(50) {
        let (by, ending) = (factor(d.rng), tail(d.rng));
        for stage in [&stage, &other] {
            if let Some(l) = outermost(d, stage) {
                d.accept(stage, Split::new(&l.name, &[by]).tail(ending));
            }
        }
    }
    let Some(at) = d.any_loop(&other).map(|l| l.name) else { return };
    let with = ComputeWith { other: other.clone(), at: at.clone() };
    if !d.accept(&stage, with) {
        return computed_inside(d);
    }
    let stages = d.stages();
    for producer in d.reads(&stage).into_iter().filter(|name| stages.contains(name)) {
        if d.rng.percent(60) {
            placed(d, &producer, other.clone(), at.clone());
        }
    }
    for stage in [stage, other] {
        if d.rng.percent(50) {
            tile_stage(d, &stage);
        }
    }
}

/// Changes the layout of a tensor and splits the loops of its readers to match.
fn laid_out(d: &mut Draft<'_>) {
    let constants: Vec<String> =
        d.nest.constants.iter().map(|id| d.nest.buffer(*id).name.clone()).collect();
    let mut names = d.stages();
    names.extend(constants.iter().cloned());
    names.extend(constants);
    if names.is_empty() {
        return;
    }
    let name = d.rng.pick(&names).clone();
    let Some(rank) = d.nest.buffers.iter().find(|b| b.name == name).map(|b| b.shape.len()) else {
        return;
    };
    let layout = layout_of(d.rng, rank);
    if rank == 0 || !d.accept(&name, SetLayout { layout }) {
        return;
    }
    let readers: Vec<String> = d
        .stages()
        .into_iter()
        .filter(|stage| *stage == name || d.reads(stage).iter().any(|read| read.starts_with(&name)))
        .collect();
    for stage in readers {
        for l in d.own_loops(&stage).into_iter().filter(|l| l.role == Role::Spatial) {
            if d.rng.percent(50) {
                let by = *d.rng.pick(&[2, 3, 4, 8, 16]);
                let ending = if d.rng.percent(60) { Tail::RoundUp } else { tail(d.rng) };
                d.accept(&stage, Split::new(&l.name, &[by]).tail(ending));
            }
        }
        if d.rng.percent(60) {
            registers(d, &stage);
        }
    }
}

/// Fuses loops and splits the result.
fn flattened(d: &mut Draft<'_>) {
    let Some(stage) = d.stage() else { return };
    let loops = d.own_loops(&stage);
    let [outer, inner, ..] = loops.as_slice() else { return tile(d) };
    let name = Some("flat".to_owned());
    if d.accept(&stage, Fuse { outer: outer.name.clone(), inner: inner.name.clone(), name }) {
        let split = split_of(d, "flat");
        d.accept(&stage, split);
        registers(d, &stage);
    } else {
        propose::single(d);
    }
}

/// Parallelizes outer loops, and vectorizes or unrolls inner ones.
pub(super) fn finish(d: &mut Draft<'_>) {
    for stage in d.stages() {
        let loops = d.own_loops(&stage);
        let (Some(first), Some(last)) = (loops.first(), loops.last()) else { continue };
        if first.is_serial && d.rng.percent(30) {
            d.accept(&stage, Parallel { target: first.name.clone() });
        }
        if !last.is_serial {
            continue;
        }
        match d.rng.index(10) {
            0..=4 => d.accept(&stage, Vectorize { target: last.name.clone() }),
            5 => d.accept(&stage, Unroll { target: last.name.clone() }),
            _ => false,
        };
    }
}
