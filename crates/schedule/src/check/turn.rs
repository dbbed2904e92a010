//! Who accesses memory, and who does so at the same time.
//!
//! Turns are numbered as the nest is run one after the other: an iteration of a parallel loop is a turn, a thread's way
//! through a thread loop is one, and so is what a block does outside of thread loops. A later turn has a greater number,
//! so that whom a turn meets is a matter of a few limits.

use crate::nest::Dim;

/// A turn, and what it may not meet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turn {
    /// The first turn of the parallel loop or launch around; no turn is before it.
    launch: u32,
    /// The first turn of this worker or block: those before it run at the same time.
    block: u32,
    /// The first turn since the threads of the block have waited for each other: those of other threads run at the
    /// same time.
    epoch: u32,
    /// The turn itself; zero where nothing runs at the same time.
    current: u32,
    /// The thread of the block, by its number in each direction.
    thread: u64,
    /// Whether it is that of a thread.
    in_thread: bool,
}

/// What remains of a turn in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) turn: u32,
    thread: u64,
}

/// How many threads a direction has room for, as a power of two.
const THREADS: u32 = 21;

impl Turn {
    /// The stamp of the turn.
    pub(super) fn stamp(self) -> Stamp {
        Stamp { turn: self.current, thread: self.thread }
    }

    /// Whether anything runs at the same time.
    pub(super) fn is_shared(self) -> bool {
        self.current != 0
    }

    /// Whether another turn runs at the same time.
    pub(super) fn meets(self, other: Stamp) -> bool {
        let Turn { launch, block, epoch, .. } = self;
        let is_others = other.turn < block || (other.turn >= epoch && other.thread != self.thread);
        self.is_shared() && other.turn >= launch && is_others
    }

    /// Whether a turn is one of another worker or block of the same loop or launch.
    pub(super) fn is_elsewhere(self, other: Stamp) -> bool {
        other.turn >= self.launch && other.turn < self.block
    }

    /// Leaves out turns before another one.
    pub(super) fn since(self, other: u32) -> Self {
        Self { launch: self.launch.max(other), ..self }
    }

    /// From when on turns use the same copy of a buffer whose life begins now: that of the thread, or that of the block,
    /// which later lives have too.
    pub(super) fn copy(self) -> u32 {
        if self.in_thread { self.current } else { self.block }
    }

    /// The same in another turn of the launch.
    pub(super) fn next(self, turn: u32) -> Self {
        Self { current: turn, thread: 0, in_thread: false, ..self }
    }

    /// A launch that begins with a turn.
    pub(super) fn launch(turn: u32) -> Self {
        let (launch, block, epoch, current) = (turn, turn, turn, turn);
        Self { launch, block, epoch, current, thread: 0, in_thread: false }
    }

    /// A worker or block whose first turn it is.
    pub(super) fn block(self, turn: u32) -> Self {
        Self { block: turn, epoch: turn, ..self.next(turn) }
    }

    /// From a turn on, threads have waited for each other.
    pub(super) fn epoch(self, turn: u32) -> Self {
        Self { epoch: turn, ..self }
    }

    /// The turn of a thread, whose number in a direction is given, below those that are known.
    pub(super) fn thread(self, turn: u32, dim: Dim, number: i64) -> Self {
        let shift = THREADS * dim.place() as u32;
        let others = self.thread & !(((1 << THREADS) - 1) << shift);
        Self { current: turn, thread: others | ((number as u64) << shift), in_thread: true, ..self }
    }

    /// The same in a tensor operation, in which some thread of a warp accesses an element: not the first one, which does
    /// what no loop numbers threads for.
    pub(super) fn warp(self) -> Self {
        Self { thread: self.thread | 1, ..self }
    }

    /// Whether it is that of a thread.
    pub(super) fn in_thread(self) -> bool {
        self.in_thread
    }
}
