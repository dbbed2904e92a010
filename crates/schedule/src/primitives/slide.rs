//! `slide`: computes a stage in a sliding window inside its reader's loop.
//!
//! ```text
//! P: slide Q y
//! for y { P(y) = ...; }             float P[4];
//! for y in 0..N {                   for y in 0..N {
//!   Q(y) = P(y) + P(y+1)              for r in 0..3 {
//!          + P(y+2);            ->      if (r - 2*min(y, 1) >= 0) P((y + r) % 4) = ... at y + r ...;
//! }                                   }
//!                                     Q(y) = P(y % 4) + P((y + 1) % 4) + P((y + 2) % 4);
//!                                   }
//! ```
//!
//! Halide expresses this as `compute_at` with a `store_at` further out. The window moves along one
//! dimension. Its elements stay in place, in a circular buffer of the enclosing loop. So every
//! element is computed once per run of the loop, whose iterations depend on each other, in order.

use std::fmt;

use tensorwright_lang::program::{Index, Rewrite};

use super::compute_at::{inside, rebuild, shift_reads};
use super::find::{find_store, loop_at, loop_at_mut, ranges_on, remove};
use super::footprint::{Extent, Producer, before_reader};
use super::reduction_init::OpenReductions;
use super::{Reach, Rule};
use crate::nest::{
    Bound, Loop, LoopKind, LoopNest, Node, Owner, Ranges, Role, Var, for_each_store_mut,
};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Computes the new elements of a stage in each iteration of a loop of another stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slide {
    /// The stage that reads it.
    pub consumer: String,
    /// The loop of that stage.
    pub at: String,
}

impl fmt::Display for Slide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slide {} {}", self.consumer, self.at)
    }
}

impl Rule for Slide {
    fn reach(&self) -> Reach {
        Reach::Readers
    }

    fn other_stage(&self) -> Option<&str> {
        Some(&self.consumer)
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let consumer = words.name("the name of a stage")?;
        let at = words.name("the name of a loop")?;
        Ok(Slide { consumer, at })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_store(nest, stage)?;
        let producer = Producer::of(nest, stage, &path, "computed inside another stage")?;
        let (host, extents) =
            inside(stage, nest, &path, producer.buffer, (&self.consumer, &self.at))?;
        self.expect_in_order(loop_at(nest, &host)?)?;
        let window = Window::of(nest, &host, &extents).ok_or_else(|| self.nothing_kept(stage))?;

        let mut node = rebuild(nest, &producer, &path, &host, &extents)?;
        window.narrow(&mut node, &extents).ok_or_else(Refusal::overflow)?;
        let open = OpenReductions::at(nest, &host);
        let host_loop = loop_at_mut(nest, &host)?;
        host_loop.slides = true;
        let position = before_reader(&host_loop.body, producer.buffer);
        let buffer = producer.buffer;
        let place = |dimension: usize, at: &Index| window.place(dimension, at, &extents);
        shift_reads(&mut host_loop.body, buffer, buffer, &place, &open)?;
        host_loop.body.insert(position, node);
        let around = &host[..host.len() - 1];
        let owner = if around.is_empty() { Owner::Intermediate } else { Owner::Local };
        if owner == Owner::Local {
            loop_at_mut(nest, around)?.locals.push(buffer);
        }
        // The stage is before its reader, so removing it moves the reader.
        remove(&mut nest.body, &path);
        let buffer = &mut nest.buffers[buffer.0 as usize];
        buffer.reshape(extents.iter().map(|extent| extent.count).collect());
        buffer.shape[window.dimension] = window.kept;
        buffer.owner = owner;
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        let at = names.loop_of(&self.consumer, &self.at)?;
        Ok(Self { consumer: names.stage(&self.consumer)?, at })
    }
}

impl Slide {
    /// Refuses a loop that is not sequential.
    fn expect_in_order(&self, l: &Loop) -> Result<(), Refusal> {
        let in_order = matches!(l.kind, LoopKind::Serial | LoopKind::Unrolled);
        if in_order && l.role == Role::Spatial && !l.overlaps {
            return Ok(());
        }
        Err(Refusal::new(format!(
            "a window cannot move along loop `{}` of `{}`: its iterations must make different results, one after \
             the other",
            self.at, self.consumer
        ))
        .help("choose a serial loop over results, or use `compute_at`"))
    }

    fn nothing_kept(&self, stage: &str) -> Refusal {
        Refusal::new(format!(
            "an iteration of loop `{}` of `{}` reads nothing of `{stage}` that the iteration before read, or not in a \
             window that moves along one dimension",
            self.at, self.consumer
        ))
        .help(format!("compute it anew: `{stage}: compute_at {} {}`", self.consumer, self.at))
    }
}

/// The elements of a stage that an iteration reads, some of which earlier iterations computed.
struct Window {
    /// The loop that moves it.
    var: Var,
    /// The dimension along which it moves.
    dimension: usize,
    /// The largest movement in an iteration.
    step: i64,
    /// The number of elements along the dimension that are kept: a power of two, so that remainders
    /// are cheap.
    kept: i64,
}

impl Window {
    /// The window of a footprint in a loop; `None` if the loop moves it along no dimension, along
    /// several, or by its whole extent.
    fn of(nest: &LoopNest, host: &[usize], extents: &[Extent]) -> Option<Self> {
        let l = loop_at(nest, host).ok()?;
        let mut moved = (0..extents.len())
            .filter(|dimension| extents[*dimension].first.mentions(&|other| other == l.var));
        let (dimension, None) = (moved.next()?, moved.next()) else { return None };
        let extent = &extents[dimension];
        let step = step(&extent.first, l, ranges_on(nest, host))?;
        let kept = (extent.count as u64).next_power_of_two() as i64;
        (step < extent.count).then_some(Self { var: l.var, dimension, step, kept })
    }

    /// The position of an element in the buffer.
    fn place(&self, dimension: usize, at: &Index, extents: &[Extent]) -> Option<Index> {
        match dimension == self.dimension {
            true => Some(at.rem(self.kept)),
            false => at.sub(&extents[dimension].first),
        }
    }

    /// Restricts a stage that computes its whole footprint to the new elements; `None` on overflow.
    fn narrow(&self, node: &mut Node, extents: &[Extent]) -> Option<()> {
        let own = nth_loop(node, self.dimension)?;
        let extent = &extents[self.dimension];
        let at = extent.first.add(&Index::axis(own))?.rem(self.kept);
        // The whole window in the first iteration, then only its new elements.
        let old = Index::axis(self.var).min(Index::constant(1)).scale(extent.count - self.step)?;
        let index = Index::axis(own).sub(&old)?;
        for_each_store_mut(std::slice::from_mut(node), &mut |store| {
            store.subscripts[self.dimension] = at.clone();
            store.domain.push(Bound { index: index.clone(), padding: false, term: false });
        });
        Some(())
    }
}

/// The largest movement of an index between two iterations of a loop; `None` if it may move back or
/// stay.
fn step(first: &Index, l: &Loop, mut ranges: Ranges) -> Option<i64> {
    struct Next(Var);
    impl Rewrite for Next {
        fn axis(&mut self, axis: Var) -> Option<Index> {
            let next = i64::from(axis == self.0);
            Index::axis(axis).add(&Index::constant(next))
        }
    }
    ranges.insert(l.var, (l.extent - 1).max(1));
    let moved = first.rewrite(&mut Next(l.var))?.sub(first)?;
    let moved = ranges.tight_interval(&moved);
    (moved.lo >= 0 && moved.hi > 0).then(|| i64::try_from(moved.hi).ok())?
}

/// The variable of a loop of a chain.
fn nth_loop(node: &Node, number: usize) -> Option<Var> {
    let Node::Loop(l) = node else { return None };
    match number {
        0 => Some(l.var),
        _ => nth_loop(l.body.first()?, number - 1),
    }
}
