//! Single primitives with random arguments.

use tensorwright_schedule::nest::{Dim, Role, TILE};
use tensorwright_schedule::primitives::{
    Bind, CacheRead, CacheWrite, ComputeAt, ComputeWith, Expand, Factor, Fuse, Inline, LayoutText,
    Pad, Parallel, Part, Phases, Primitive, Reorder, Rfactor, SetLayout, SetPrefetch, Slide, Split,
    Tail, Tensorize, ThreadAxis, Unroll, Vectorize, Winograd,
};
use tensorwright_schedule::schedule::Step;
use tensorwright_testkit::Rng;

use super::Draft;

/// Proposes one random primitive; false if it was rejected or nothing applies.
pub(super) fn single(d: &mut Draft<'_>) -> bool {
    const PROPOSALS: &[fn(&mut Draft<'_>, &str) -> Option<bool>] = &[
        split,
        split,
        fuse,
        reorder,
        unroll,
        vectorize,
        parallel,
        bind,
        tensorize,
        inline,
        compute_at,
        compute_with,
        cache_read,
        cache_write,
        layout,
        rfactor,
        prefetch,
        pad,
        phases,
        factor_out,
        winograd,
        expand,
    ];
    let Some(stage) = d.stage() else { return false };
    let propose = *d.rng.pick(PROPOSALS);
    propose(d, &stage).unwrap_or(false)
}

/// The extent of an inner loop: small, a vector width, or a non-divisor.
pub(super) fn factor(rng: &mut Rng) -> i64 {
    *rng.pick(&[1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 8, 16, 17])
}

pub(super) fn tail(rng: &mut Rng) -> Tail {
    rng.pick(&Tail::ALL).1
}

/// A split of a loop into two to four, sometimes with names.
pub(super) fn split_of(d: &mut Draft<'_>, target: &str) -> Split {
    let count = *d.rng.pick(&[1, 1, 1, 2, 2, 3]);
    let factors: Vec<i64> = (0..count).map(|_| factor(d.rng)).collect();
    let mut split = Split::new(target, &factors).tail(tail(d.rng));
    if d.rng.percent(10) {
        split.names = (0..=count).map(|n| format!("{}{n}", target.replace('.', "_"))).collect();
    }
    split
}

/// A layout of a tensor: some dimensions split, often with the remainders last.
pub(super) fn layout_of(rng: &mut Rng, rank: usize) -> LayoutText {
    let (mut outer, mut inner) = (Vec::new(), Vec::new());
    for dimension in 0..rank as u32 {
        if rng.percent(45) {
            let by = *rng.pick(&[1, 2, 3, 4, 5, 8, 16]);
            outer.push(Part::Quotient(dimension, by));
            inner.push(Part::Remainder(dimension, by));
        } else {
            outer.push(Part::Whole(dimension));
        }
    }
    rng.shuffle(&mut outer);
    outer.extend(inner);
    if rng.percent(20) {
        rng.shuffle(&mut outer);
    }
    LayoutText { parts: outer }
}

fn split(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let target = d.any_loop(stage)?.name;
    let split = split_of(d, &target);
    Some(d.accept(stage, split))
}

fn fuse(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let loops = d.loops(stage);
    let pairs: Vec<_> = loops.windows(2).collect();
    let [outer, inner] = pairs.get(d.rng.index(pairs.len()))? else { return None };
    let name = d.rng.percent(30).then(|| format!("{}{}", outer.name, inner.name).replace('.', ""));
    Some(d.accept(stage, Fuse { outer: outer.name.clone(), inner: inner.name.clone(), name }))
}

fn reorder(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let mut names: Vec<String> = d.own_loops(stage).into_iter().map(|l| l.name).collect();
    d.rng.shuffle(&mut names);
    let kept = 2 + d.rng.index(3);
    names.truncate(kept);
    (names.len() > 1).then(|| d.accept(stage, Reorder::new(names)))
}

fn unroll(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let target = d.any_loop(stage)?.name;
    Some(d.accept(stage, Unroll { target }))
}

fn vectorize(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let target = d.loops(stage).last()?.name.clone();
    Some(d.accept(stage, Vectorize { target }))
}

fn parallel(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let target = d.any_loop(stage)?.name;
    Some(d.accept(stage, Parallel { target }))
}

fn bind(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let target = d.any_loop(stage)?.name;
    let dim = d.rng.pick(&Dim::ALL).1;
    let to = if d.rng.percent(50) { ThreadAxis::Block(dim) } else { ThreadAxis::Thread(dim) };
    Some(d.accept(stage, Bind { target, to }))
}

/// The innermost loops of a stage.
fn tensorize(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let names: Vec<String> = d.own_loops(stage).into_iter().map(|l| l.name).collect();
    let count = if d.rng.percent(75) { 3 } else { 2 };
    let loops = names.get(names.len().checked_sub(count)?..)?.to_vec();
    let is_tf32 = count == 3 && d.rng.percent(30);
    Some(d.accept(stage, Tensorize { loops, is_tf32 }))
}

/// Converts a matrix product to tiles and returns its tile loops; `None`, without changes, if the
/// stage is not one.
pub(super) fn tiles_of_products(d: &mut Draft<'_>, stage: &str) -> Option<[String; 3]> {
    let own = d.own_loops(stage);
    let [m, n, k] = own.as_slice() else { return None };
    let roles = [m, n, k].map(|l| l.role);
    let is_plain = [m, n, k].iter().all(|l| l.is_serial && l.extent % TILE == 0);
    if roles != [Role::Spatial, Role::Spatial, Role::Reduce] || !is_plain {
        return None;
    }
    let [outer, inner] = [0, 1].map(|part| [m, n, k].map(|l| format!("{}.{part}", l.name)));
    let splits: [Primitive; 3] = [m, n, k].map(|l| Split::new(&l.name, &[TILE]).into());
    let order = Reorder::new(outer.iter().chain(&inner).cloned());
    let step = |primitive: &Primitive| Step {
        stage: stage.to_owned(),
        primitive: primitive.clone(),
        span: Default::default(),
    };
    // The variants that the operand types allow.
    let steps = [false, true].into_iter().find_map(|is_tf32| {
        let tile = Tensorize { loops: inner.to_vec(), is_tf32 };
        let steps = splits.iter().cloned().chain([order.clone().into(), tile.into()]);
        let steps: Vec<Primitive> = steps.collect();
        let mut trial = d.nest.clone();
        let fits = steps.iter().all(|primitive| step(primitive).apply(&mut trial).is_ok());
        fits.then_some(steps)
    })?;
    steps.into_iter().all(|primitive| d.accept(stage, primitive)).then_some(outer)
}

fn inline(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    Some(d.accept(stage, Inline))
}

fn compute_at(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let readers: Vec<String> = d
        .stages()
        .into_iter()
        .filter(|reader| d.reads(reader).iter().any(|r| r == stage))
        .collect();
    let consumer = readers.get(d.rng.index(readers.len()))?.clone();
    let at = d.any_loop(&consumer)?.name;
    Some(placed(d, stage, consumer, at))
}

fn compute_with(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let other = d.stage()?;
    let at = d.any_loop(&other)?.name;
    Some(d.accept(stage, ComputeWith { other, at }))
}

/// Computes a stage inside a loop of its consumer, often in a sliding window.
pub(super) fn placed(d: &mut Draft<'_>, stage: &str, consumer: String, at: String) -> bool {
    let slide = Slide { consumer: consumer.clone(), at: at.clone() };
    (d.rng.percent(60) && d.accept(stage, slide)) || d.accept(stage, ComputeAt { consumer, at })
}

pub(super) fn cache_read(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let reads = d.reads(stage);
    let tensor = reads.get(d.rng.index(reads.len()))?.clone();
    let at = d.any_loop(stage)?.name;
    let rank = d.nest.buffers.iter().find(|buffer| buffer.name == tensor)?.shape.len();
    let layout = (rank > 0 && d.rng.percent(50)).then(|| layout_of(d.rng, rank));
    let is_alone = d.rng.percent(25);
    Some(d.accept(stage, CacheRead { is_alone, layout, ..CacheRead::new(tensor, at) }))
}

fn cache_write(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let at = d.any_loop(stage)?.name;
    Some(d.accept(stage, CacheWrite { at }))
}

fn layout(d: &mut Draft<'_>, _: &str) -> Option<bool> {
    let buffer = d.rng.index(d.nest.buffers.len());
    let (name, rank) = d.nest.buffers.get(buffer).map(|b| (b.name.clone(), b.shape.len()))?;
    let layout = layout_of(d.rng, rank);
    (rank > 0).then(|| d.accept(&name, SetLayout { layout }))
}

fn rfactor(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let (target, at) = (d.any_loop(stage)?.name, d.any_loop(stage)?.name);
    Some(d.accept(stage, Rfactor { target, at }))
}

fn prefetch(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let reads = d.reads(stage);
    let tensor = reads.get(d.rng.index(reads.len()))?.clone();
    let at = d.any_loop(stage)?.name;
    let distance = d.rng.range(1, 9);
    Some(d.accept(stage, SetPrefetch { tensor, at, distance }))
}

pub(super) fn pad(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let reads = d.reads(stage);
    let tensor = reads.get(d.rng.index(reads.len()))?.clone();
    Some(d.accept(stage, Pad { tensor }))
}

pub(super) fn phases(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let target = d.any_loop(stage)?.name;
    let by = *d.rng.pick(&[2, 2, 2, 3, 4]);
    Some(d.accept(stage, Phases { target, by }))
}

pub(super) fn expand(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let reads = d.reads(stage);
    let tensor = reads.get(d.rng.index(reads.len()))?.clone();
    Some(d.accept(stage, Expand { tensor }))
}

pub(super) fn winograd(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let own = d.own_loops(stage).into_iter().filter(|l| l.role == Role::Spatial);
    let mut targets: Vec<String> = own.map(|l| l.name).collect();
    let kept = 1 + d.rng.index(2);
    targets.drain(..targets.len().saturating_sub(kept));
    let results = *d.rng.pick(&[2, 2, 3, 4]);
    (!targets.is_empty()).then(|| d.accept(stage, Winograd { targets, results }))
}

pub(super) fn factor_out(d: &mut Draft<'_>, stage: &str) -> Option<bool> {
    let own = d.own_loops(stage).into_iter().filter(|l| l.role == Role::Reduce);
    let mut loops: Vec<String> = own.map(|l| l.name).collect();
    d.rng.shuffle(&mut loops);
    let kept = 1 + d.rng.index(2);
    loops.truncate(kept);
    (!loops.is_empty()).then(|| d.accept(stage, Factor { loops }))
}
