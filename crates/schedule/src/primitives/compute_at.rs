//! `compute_at`: computes a stage inside a loop of its reader.
//!
//! ```text
//! P: compute_at Q i.0
//! for i { P(i) = ...; }                    for i.0 in 0..N/8 {
//! for i.0 in 0..N/8 {                        float P[9];
//!   for i.1 in 0..8 {                   ->   for i in 0..9 { P(i) = ... at 8*i.0 + i ...; }
//!     Q(8*i.0 + i.1) =                       for i.1 in 0..8 {
//!       P(8*i.0 + i.1 + 1);                    Q(8*i.0 + i.1) = P(i.1 + 1);
//! ```
//!
//! Each iteration computes the part of the stage that it reads; overlaps between iterations are
//! recomputed. All readers must be in the loop; the initial value of a reduction is read before its
//! outermost loop. The stage gets new loops, so they are scheduled afterwards.
//!
//! A result of the program can be computed there too, if every element of it is computed in exactly
//! one iteration: it stays in the memory of the caller.

use std::fmt;

use tensorwright_lang::program::{Atom, Expr, Index, Read, Rewrite};

use super::find::{find_store, loop_at_mut, loops_on, ranges_on, remove, store_at, store_paths};
use super::footprint::{
    Extent, Producer, before_reader, clip, find_host, footprint, refuse_checked,
};
use super::reduction_init::{OpenReductions, refuse_late};
use super::{Reach, Rule};
use crate::nest::{
    Body, Bound, BufferId, Loop, LoopNest, Node, Owner, Role, StageId, Store, Use, Var,
    for_each_store_mut, rewrite_store, substitute,
};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Computes a stage inside a loop of another stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputeAt {
    /// The stage that reads it.
    pub consumer: String,
    /// The loop of that stage.
    pub at: String,
}

impl fmt::Display for ComputeAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compute_at {} {}", self.consumer, self.at)
    }
}

impl Rule for ComputeAt {
    fn reach(&self) -> Reach {
        Reach::Readers
    }

    fn other_stage(&self) -> Option<&str> {
        Some(&self.consumer)
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let consumer = words.name("the name of a stage")?;
        let at = words.name("the name of a loop")?;
        Ok(ComputeAt { consumer, at })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_store(nest, stage)?;
        let producer = Producer::of_any(nest, stage, &path, "computed inside another stage")?;
        let is_result = nest.buffer(producer.buffer).owner == Owner::Output;
        let (host, extents) =
            inside(stage, nest, &path, producer.buffer, (&self.consumer, &self.at))?;
        if is_result && !is_partition(nest, &host, producer.buffer, &extents) {
            return Err(Refusal::new(format!(
                "`{stage}` is a result of the program, and not every element of it is computed in exactly one \
                 iteration of the loops around"
            )));
        }
        let node = rebuild(nest, &producer, &path, &host, &extents)?;
        let shape = extents.iter().map(|extent| extent.count).collect();
        let open = OpenReductions::at(nest, &host);
        let host_loop = loop_at_mut(nest, &host)?;
        let position = before_reader(&host_loop.body, producer.buffer);
        if !is_result {
            let (buffer, place) = (producer.buffer, relative(&extents));
            shift_reads(&mut host_loop.body, buffer, buffer, &place, &open)?;
            host_loop.locals.push(producer.buffer);
        }
        host_loop.body.insert(position, node);
        // The stage is before its reader, so removing it moves the reader.
        remove(&mut nest.body, &path);
        if !is_result {
            let buffer = &mut nest.buffers[producer.buffer.0 as usize];
            buffer.reshape(shape);
            buffer.owner = Owner::Local;
        }
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        let at = names.loop_of(&self.consumer, &self.at)?;
        Ok(Self { consumer: names.stage(&self.consumer)?, at })
    }
}

/// The loop to compute a stage in, and the part of the stage that is read there.
pub(super) fn inside(
    stage: &str,
    nest: &LoopNest,
    path: &[usize],
    buffer: BufferId,
    (consumer, at): (&str, &str),
) -> Result<(Vec<usize>, Vec<Extent>), Refusal> {
    refuse_checked(nest, buffer)?;
    let host = find_host(nest, consumer, at)?;
    if host.first() == path.first() {
        return Err(Refusal::new(format!("`{stage}` cannot be computed inside itself")));
    }
    check_readers(stage, nest, (consumer, at), &host, buffer)?;
    let extents = footprint(nest, &host, buffer)?;
    Ok((host, extents))
}

/// Refuses a stage that is read outside of a loop of another stage, or before it.
fn check_readers(
    stage: &str,
    nest: &LoopNest,
    (consumer, at): (&str, &str),
    host: &[usize],
    buffer: BufferId,
) -> Result<(), Refusal> {
    for path in store_paths(&nest.body) {
        let store = store_at(nest, &path)?;
        if store.does_read(buffer) && !path.starts_with(host) {
            let reader = &nest.buffer(store.buffer).name;
            return Err(Refusal::new(format!(
                "`{stage}` is also read by `{reader}` outside of loop `{at}` of `{consumer}`"
            ))
            .help(format!(
                "compute all readers in one loop, with `{reader}: compute_at ...` or `{reader}: compute_with {consumer} {at}`"
            )));
        }
    }
    refuse_late(nest, host, buffer, &[Use::Start, Use::Place], "computed")
}

/// Whether the footprints of all iterations of the enclosing loops partition a tensor.
fn is_partition(nest: &LoopNest, host: &[usize], buffer: BufferId, extents: &[Extent]) -> bool {
    let loops = loops_on(nest, host);
    let mut used: Vec<Var> = Vec::new();
    let shape = &nest.buffer(buffer).shape;
    let is_cut = extents.iter().zip(shape).all(|(extent, size)| {
        let mut steps: Vec<(i64, Var)> = Vec::new();
        for term in extent.first.terms() {
            let Atom::Axis(var) = term.atom else { return false };
            steps.push((term.coefficient, var));
        }
        steps.sort_unstable();
        used.extend(steps.iter().map(|(_, var)| *var));
        // Each loop continues where the one inside it ends.
        let mut covered = extent.count;
        for (step, var) in steps {
            let trips = loops.iter().find(|l| l.var == var && !l.overlaps).map(|l| l.extent);
            let Some(trips) = trips.filter(|_| step == covered) else { return false };
            covered = covered.saturating_mul(trips);
        }
        extent.first.constant_term() == 0 && covered >= *size && (extent.count <= *size)
    });
    // A loop that does not move the footprint would recompute everything.
    is_cut && loops.iter().all(|l| l.extent == 1 || used.contains(&l.var))
}

/// New loops for a stage, over its footprint.
pub(super) fn rebuild(
    nest: &mut LoopNest,
    producer: &Producer,
    path: &[usize],
    host: &[usize],
    extents: &[Extent],
) -> Result<Node, Refusal> {
    let mut store = store_at(nest, path)?.clone();
    let chain: Vec<Loop> = loops_on(nest, path).into_iter().cloned().collect();
    let mut ranges = ranges_on(nest, host);
    let mut loops = Vec::new();
    let mut subscripts = Vec::new();
    for ((old, lo), extent) in producer.dims.iter().zip(extents) {
        let own = chain.iter().find(|l| l.var == *old);
        let made = own.map_or(1, |l| l.extent);
        let is_sized = own.is_some_and(|l| l.is_sized) && extent.count >= made;
        let var = nest.add_var(nest.var_name(*old).to_owned());
        ranges.insert(var, extent.count);
        let element = extent.first.add(&Index::axis(var)).ok_or_else(Refusal::overflow)?;
        let value = element.sub(&Index::constant(*lo)).ok_or_else(Refusal::overflow)?;
        replace(&mut store, *old, &value)?;
        let end = Index::constant(lo + made);
        let outside = clip(&element, *lo, &end, &ranges).ok_or_else(Refusal::overflow)?;
        store.domain.extend(outside.into_iter().map(|index| Bound {
            index,
            padding: false,
            term: false,
        }));
        let mut l =
            Loop::new(var, extent.count, Role::Spatial, Vec::new()).of(StageId(producer.buffer));
        l.is_sized = is_sized;
        loops.push(l);
        subscripts.push(Index::axis(var));
    }
    for l in chain.iter().filter(|l| l.role == Role::Reduce) {
        loops.push(Loop { body: Body::default(), ..l.clone() });
    }
    if nest.buffer(producer.buffer).owner != Owner::Output {
        store.subscripts = subscripts;
    }
    Ok(loops.into_iter().rev().fold(Node::Store(store), |node, mut l| {
        l.body = vec![node].into();
        Node::Loop(l)
    }))
}

fn replace(store: &mut Store, var: Var, value: &Index) -> Result<(), Refusal> {
    let mut node = [Node::Store(store.clone())];
    substitute(&mut node, var, value).ok_or_else(Refusal::overflow)?;
    if let [Node::Store(replaced)] = node {
        *store = replaced;
    }
    Ok(())
}

/// The position of an element in a footprint; `None` on overflow.
pub(super) type FootprintOffset<'a> = dyn Fn(usize, &Index) -> Option<Index> + 'a;

/// The position of an element relative to the first one of a footprint.
pub(super) fn relative(extents: &[Extent]) -> impl Fn(usize, &Index) -> Option<Index> + '_ {
    |dimension, at| at.sub(&extents[dimension].first)
}

/// Redirects reads of a buffer in a loop to its footprint, which may be in another buffer. The
/// initial values of open reductions were read before the loop and stay.
pub(super) fn shift_reads(
    nodes: &mut [Node],
    from: BufferId,
    to: BufferId,
    place: &FootprintOffset<'_>,
    open: &OpenReductions,
) -> Result<(), Refusal> {
    shift_reads_for(nodes, (from, to), place, open, None)
}

/// The same for the stores of one stage only, if given.
pub(super) fn shift_reads_for(
    nodes: &mut [Node],
    (from, to): (BufferId, BufferId),
    place: &FootprintOffset<'_>,
    open: &OpenReductions,
    only: Option<StageId>,
) -> Result<(), Refusal> {
    struct Shift<'a> {
        from: BufferId,
        to: BufferId,
        place: &'a FootprintOffset<'a>,
    }
    impl Rewrite for Shift<'_> {
        fn read(&mut self, mut read: Read) -> Option<Expr> {
            if read.tensor == self.from {
                read.tensor = self.to;
                for (dimension, subscript) in read.subscripts.iter_mut().enumerate() {
                    *subscript = (self.place)(dimension, subscript)?;
                }
            }
            Some(Expr::Read(read))
        }
    }
    let mut rules = Shift { from, to, place };
    let mut done = Some(());
    for_each_store_mut(nodes, &mut |store| {
        if only.is_some_and(|only| store.stage() != only) {
            return;
        }
        let start = if open.holds(store) { store.init.take() } else { None };
        done = done.and_then(|()| rewrite_store(store, &mut rules));
        store.init = start.or(store.init.take());
    });
    done.ok_or_else(Refusal::overflow)
}
