//! The passes that turn a lowered nest into launches of a device.
//!
//! They run last, and only if [`LowerOptions`](super::LowerOptions) has the limits of a device.
//!
//! No pass changes the result of the nest if blocks and threads are read as plain loops: barriers
//! do nothing then, and a buffer that is distributed over threads is a plain one. So nests for
//! devices are verified like all others.

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

/// The limits of a device for a block of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceLimits {
    /// The most threads of a block.
    pub threads: i64,
    /// The most bytes of shared memory of a block.
    pub shared_bytes: i64,
    /// The most bytes of all buffers of one thread.
    pub private_bytes: i64,
}

impl Default for DeviceLimits {
    /// The limits of every GPU of the last ten years. The bytes per thread are the registers of a
    /// thread of a full block and some local memory.
    fn default() -> Self {
        Self { threads: 1024, shared_bytes: 48 << 10, private_bytes: 16 << 10 }
    }
}

/// The most blocks of a grid in each direction.
const MOST_BLOCKS: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];

/// The reason why a nest does not fit a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceError {
    /// A grid has too many blocks in a direction.
    Blocks {
        /// The loop.
        name: String,
        /// Its extent.
        blocks: i64,
        /// The limit.
        most: i64,
    },
    /// A block has too many threads.
    Threads {
        /// The extents of thread loops in the directions x, y and z.
        block: [i64; 3],
        /// The limit.
        most: i64,
    },
    /// A block needs too much shared memory.
    Shared {
        /// The largest buffer among them.
        largest: String,
        /// The bytes.
        bytes: i64,
        /// The limit.
        most: i64,
    },
    /// A thread needs too much memory.
    Private {
        /// The largest buffer among them.
        largest: String,
        /// The bytes.
        bytes: i64,
        /// The limit.
        most: i64,
    },
    /// A warp cannot execute a tensor operation.
    Tensor {
        /// The stage of its loops.
        stage: String,
        /// The reason.
        why: String,
        /// How to fix it.
        help: &'static str,
    },
}

impl DeviceError {
    /// How to fix it.
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

/// The size of the block in which nodes run: the largest extents of thread loops. Tensor operations
/// need a warp in direction x.
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
