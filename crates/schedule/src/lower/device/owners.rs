//! Owners: which thread of a block accesses an element.
//!
//! ```text
//! thread.x for n.1 { for n.2 in 0..4 { C(m, 64*n.0 + 4*n.1 + n.2) += ..; } }
//! ->  the thread of direction x that owns C(m, n) is (n - 64*n.0) / 4
//! for d.0 { thread.x for d.1 in 0..8 { e(8*d.0 + d.1) = ..; } }
//! ->  the one that owns e(d) is d % 8
//! ```
//!
//! Two accesses in one block with the same owner for each element are by one thread, and need no
//! barrier.

use std::collections::BTreeMap;

use tensorwright_lang::program::{Atom, Index, Interval};

use crate::nest::{Buffer, Dim, Loop, LoopKind, Ranges, Var};

/// The part of an access that determines a thread index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum IndexSource {
    /// A subscript, by its dimension.
    Subscript(usize),
    /// The position in memory.
    Position,
    /// No loop uses the direction: the first thread runs it.
    First,
}

/// The index of a thread in an access: the value is `step` times the index, plus a part that varies
/// within bounds, plus a part that is uniform in the block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ThreadIndex {
    step: i64,
    uniform: Index,
    rest: Interval,
    /// The number of threads.
    threads: i64,
    /// Whether multiples of `step * threads` may be added too.
    is_cyclic: bool,
}

impl ThreadIndex {
    /// Whether different threads access different elements.
    fn is_apart(&self) -> bool {
        self.rest.hi - self.rest.lo < i128::from(self.step.unsigned_abs())
    }
}

/// The owners of elements: for each direction, how sources determine the thread index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Owners(BTreeMap<(usize, IndexSource), ThreadIndex>);

/// The loops around an access in a block.
#[derive(Clone, Default)]
pub(super) struct EnclosingLoops {
    /// The loops over threads, by direction.
    pub(super) threads: [Option<Var>; 3],
    /// The loops over blocks.
    pub(super) blocks: Vec<Var>,
    /// The ranges of the enclosing loops.
    pub(super) ranges: Ranges,
    /// Whether the access is part of a tensor operation, in which the thread of a warp is unknown.
    is_tensor: bool,
}

impl EnclosingLoops {
    /// The same inside a loop.
    pub(super) fn inside(&self, l: &Loop) -> Self {
        let mut inner = self.clone();
        inner.ranges.insert(l.var, l.extent);
        match l.kind {
            LoopKind::Thread(dim) => inner.threads[dim.place()] = Some(l.var),
            LoopKind::Block(_) => inner.blocks.push(l.var),
            LoopKind::Tensor => inner.is_tensor = true,
            _ => {}
        }
        inner
    }
}

impl Owners {
    /// The owners of the elements of one access.
    pub(super) fn of(buffer: &Buffer, subscripts: &[Index], around: &EnclosingLoops) -> Self {
        let mut owners = Self::default();
        let position = buffer.offset(subscripts);
        for (place, thread) in around.threads.iter().enumerate() {
            if around.is_tensor && place == Dim::X.place() {
                continue;
            }
            let Some(thread) = *thread else {
                let (uniform, rest) = (Index::constant(0), Interval { lo: 0, hi: 0 });
                let number = ThreadIndex { step: 1, uniform, rest, threads: 1, is_cyclic: false };
                owners.0.insert((place, IndexSource::First), number);
                continue;
            };
            let dimensions = subscripts.iter().enumerate();
            let sources =
                dimensions.map(|(dimension, index)| (IndexSource::Subscript(dimension), index));
            for (source, index) in
                sources.chain(position.iter().map(|at| (IndexSource::Position, at)))
            {
                if let Some(number) = number(index, thread, around).filter(ThreadIndex::is_apart) {
                    owners.0.insert((place, source), number);
                }
            }
        }
        owners
    }

    /// The owners that hold for both kinds of access.
    pub(super) fn join(&self, other: &Self) -> Self {
        let both = self.0.iter().filter_map(|(key, a)| {
            let b = other.0.get(key).filter(|b| (b.step, &b.uniform) == (a.step, &a.uniform))?;
            let is_cyclic = a.is_cyclic || b.is_cyclic;
            if is_cyclic && a.threads != b.threads {
                return None;
            }
            let joined = ThreadIndex { rest: a.rest.hull(b.rest), is_cyclic, ..a.clone() };
            joined.is_apart().then_some((*key, joined))
        });
        Self(both.collect())
    }

    /// Whether every element has one owner among the threads of a block.
    pub(super) fn are_known(&self, block: [i64; 3]) -> bool {
        let known = |place: usize| self.0.keys().any(|(known, _)| *known == place);
        block.iter().enumerate().all(|(place, extent)| *extent == 1 || known(place))
    }
}

/// The thread index in an index; `None` if the index is not linear in it.
fn number(index: &Index, thread: Var, around: &EnclosingLoops) -> Option<ThreadIndex> {
    let step = index.coefficient_of(thread).filter(|step| *step != 0)?;
    let threads = around.ranges.extent(thread)?;
    let cycle = step.checked_mul(threads)?;
    let (mut uniform, mut is_cyclic) = (Index::constant(0), false);
    let mut rest = Index::constant(index.constant_term());
    for term in index.terms().iter().filter(|term| term.atom != Atom::Axis(thread)) {
        let part = Index::atom(term.atom.clone()).scale(term.coefficient)?;
        let is_uniform = part.outermost_values().is_empty()
            && !part.mentions(&|var| !around.blocks.contains(&var));
        if !is_uniform && term.coefficient % cycle == 0 {
            is_cyclic = true;
            continue;
        }
        let side = if is_uniform { &mut uniform } else { &mut rest };
        *side = side.add(&part)?;
    }
    let rest = around.ranges.interval(&rest);
    Some(ThreadIndex { step, uniform, rest, threads, is_cyclic })
}
