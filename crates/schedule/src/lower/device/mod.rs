//! From a lowered nest to launches of a device: the last group of passes, only where [`LowerOptions`](super::LowerOptions)
//! has the limits of one.
//!
//! None of them changes what the nest computes if blocks and threads are read as plain loops: barriers do nothing then,
//! and a buffer that threads hold in parts is a whole one. So nests for devices are verified like all others.

pub(super) mod barriers;
mod converge;
pub(super) mod interior;
pub(super) mod launches;
pub(super) mod lives;
mod owners;
pub(super) mod registers;
pub(super) mod tensors;

use std::fmt;

use crate::nest::{Dim, Loop, LoopKind, Node, WARP, for_each_loop};

/// What a device has for a block of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceLimits {
    /// The most threads of a block.
    pub threads: i64,
    /// The most bytes that the threads of a block share.
    pub shared_bytes: i64,
    /// The most bytes of all buffers of one thread.
    pub private_bytes: i64,
}

impl Default for DeviceLimits {
    /// What every graphics processor of the last ten years has, and no more registers than a thread of full blocks may
    /// have with some room in its local memory.
    fn default() -> Self {
        Self { threads: 1024, shared_bytes: 48 << 10, private_bytes: 16 << 10 }
    }
}

/// The most blocks of a grid in each direction.
const MOST_BLOCKS: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];

/// Why a nest does not fit a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceError {
    /// A grid has more blocks in a direction than devices count.
    Blocks {
        /// The loop.
        name: String,
        /// Its extent.
        blocks: i64,
        /// The most there may be.
        most: i64,
    },
    /// A block has more threads than the device runs together.
    Threads {
        /// The extents of thread loops in the directions x, y and z.
        block: [i64; 3],
        /// The most there may be.
        most: i64,
    },
    /// The threads of a block share more bytes than the device has.
    Shared {
        /// The largest buffer among them.
        largest: String,
        /// The bytes.
        bytes: i64,
        /// The most there may be.
        most: i64,
    },
    /// A thread has more bytes than it may.
    Private {
        /// The largest buffer among them.
        largest: String,
        /// The bytes.
        bytes: i64,
        /// The most there may be.
        most: i64,
    },
    /// A tensor operation that a warp of threads cannot do.
    Tensor {
        /// The stage whose loops it is.
        stage: String,
        /// Why.
        why: String,
        /// What to do about it.
        help: &'static str,
    },
}

impl DeviceError {
    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            DeviceError::Blocks { .. } => "bind it to block.x or split it",
            DeviceError::Threads { .. } => "split thread loops further",
            DeviceError::Shared { .. } => "copy or compute less at a time, in loops further in",
            DeviceError::Private { .. } => {
                "compute less of it at a time, or share it by the threads of a block"
            }
            DeviceError::Tensor { help, .. } => help,
        }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Blocks { name, blocks, most } => write!(
                f,
                "loop `{name}` makes {blocks} blocks, and the device counts {most} in its direction"
            ),
            DeviceError::Threads { block: [x, y, z], most } => {
                write!(f, "a block has {x} x {y} x {z} threads, and the device runs {most}")
            }
            DeviceError::Shared { largest, bytes, most } => write!(
                f,
                "the threads of a block share {bytes} bytes, most of them in `{largest}`, and the device has {most}"
            ),
            DeviceError::Private { largest, bytes, most } => write!(
                f,
                "a thread has {bytes} bytes of its own, most of them in `{largest}`, and may have {most}"
            ),
            DeviceError::Tensor { stage, why, .. } => {
                write!(f, "a warp cannot do the tensor operation of `{stage}`: {why}")
            }
        }?;
        write!(f, "; {}", self.help())
    }
}

/// Whether nodes hold a loop over threads.
pub(super) fn has_threads(nodes: &[Node]) -> bool {
    let mut found = false;
    for_each_loop(nodes, &mut |l| found |= matches!(l.kind, LoopKind::Thread(_)));
    found
}

/// Whether nodes hold a loop that is bound.
pub(super) fn has_bound(nodes: &[Node]) -> bool {
    let mut found = false;
    for_each_loop(nodes, &mut |l| found |= l.kind.is_bound());
    found
}

/// Whether a loop is over threads.
fn is_thread(l: &Loop) -> bool {
    matches!(l.kind, LoopKind::Thread(_))
}

/// Whether nodes hold a tensor operation.
fn holds_tensors(nodes: &[Node]) -> bool {
    let mut found = false;
    for_each_loop(nodes, &mut |l| found |= l.kind == LoopKind::Tensor);
    found
}

/// The threads of a block in which nodes run: the largest extents of thread loops. Tensor operations take a warp in
/// direction x.
fn block_of(nodes: &[Node]) -> [i64; 3] {
    let mut block = [1; 3];
    for_each_loop(nodes, &mut |l| {
        let (dim, threads) = match l.kind {
            LoopKind::Thread(dim) => (dim, l.extent),
            LoopKind::Tensor => (Dim::X, WARP),
            _ => return,
        };
        let extent = &mut block[dim.place()];
        *extent = threads.max(*extent);
    });
    block
}
