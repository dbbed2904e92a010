//! [`Turn`]: happens-before order of parallel loops, blocks and threads.
//!
//! Turns are numbered in the order in which the interpreter runs them. A turn is one iteration of a
//! parallel loop, one thread's pass through a thread loop, or the part of a block outside of thread
//! loops. Later turns have greater numbers, so a race check compares against a few bounds.

use crate::nest::Dim;

/// A turn, and the turns that it may race with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turn {
    /// The first turn of the enclosing parallel loop or launch; earlier turns happen before it.
    launch: u32,
    /// The first turn of this worker or block; earlier turns of the loop run concurrently.
    block: u32,
    /// The first turn since the last barrier of the block; turns of other threads since then run
    /// concurrently.
    epoch: u32,
    /// The number of this turn; zero in sequential code.
    current: u32,
    /// The thread index in the block, in each direction.
    thread: u64,
    /// Whether a thread runs it.
    in_thread: bool,
}

/// The part of a turn that is stored in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) turn: u32,
    thread: u64,
}

/// The number of bits for a thread index in one direction.
const THREADS: u32 = 21;

impl Turn {
    /// The stamp of the turn.
    pub(super) fn stamp(self) -> Stamp {
        Stamp { turn: self.current, thread: self.thread }
    }

    /// Whether other turns run concurrently.
    pub(super) fn is_shared(self) -> bool {
        self.current != 0
    }

    /// Whether another turn runs concurrently.
    pub(super) fn meets(self, other: Stamp) -> bool {
        let Turn { launch, block, epoch, .. } = self;
        let is_others = other.turn < block || (other.turn >= epoch && other.thread != self.thread);
        self.is_shared() && other.turn >= launch && is_others
    }

    /// Whether another turn belongs to a different worker or block of the same loop or launch.
    pub(super) fn is_elsewhere(self, other: Stamp) -> bool {
        other.turn >= self.launch && other.turn < self.block
    }

    /// Ignores turns before another one.
    pub(super) fn since(self, other: u32) -> Self {
        Self { launch: self.launch.max(other), ..self }
    }

    /// The first turn that uses the current copy of a buffer whose lifetime begins now: that of the
    /// thread, or that of the block, which later lifetimes share.
    pub(super) fn copy(self) -> u32 {
        if self.in_thread { self.current } else { self.block }
    }

    /// The next turn of the same launch.
    pub(super) fn next(self, turn: u32) -> Self {
        Self { current: turn, thread: 0, in_thread: false, ..self }
    }

    /// The first turn of a launch.
    pub(super) fn launch(turn: u32) -> Self {
        let (launch, block, epoch, current) = (turn, turn, turn, turn);
        Self { launch, block, epoch, current, thread: 0, in_thread: false }
    }

    /// The first turn of a worker or block.
    pub(super) fn block(self, turn: u32) -> Self {
        Self { block: turn, epoch: turn, ..self.next(turn) }
    }

    /// The turn after a barrier.
    pub(super) fn epoch(self, turn: u32) -> Self {
        Self { epoch: turn, ..self }
    }

    /// The turn of a thread, given its index in one direction.
    pub(super) fn thread(self, turn: u32, dim: Dim, number: i64) -> Self {
        let shift = THREADS * dim.place() as u32;
        let others = self.thread & !(((1 << THREADS) - 1) << shift);
        Self { current: turn, thread: others | ((number as u64) << shift), in_thread: true, ..self }
    }

    /// The same inside a tensor operation, in which an unknown thread of the warp accesses an
    /// element. It is never the first thread, which runs code outside of thread loops.
    pub(super) fn warp(self) -> Self {
        Self { thread: self.thread | 1, ..self }
    }

    /// Whether a thread runs it.
    pub(super) fn in_thread(self) -> bool {
        self.in_thread
    }
}
