//! Launches: how the trees of a nest run on a device.

/// The threads of a warp: those that follow each other, and do tensor operations together.
pub const WARP: i64 = 32;

/// How a nest runs on a device: each node outside of all loops is a launch, one after the other on one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launches {
    /// Those of the nodes that run once, ahead of all calls.
    pub prepare: Vec<Launch>,
    /// Those of the nodes that run at every call.
    pub body: Vec<Launch>,
}

/// How a node runs on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launch {
    /// The blocks of the grid in the directions x, y and z: the extents of the block loops.
    pub grid: [i64; 3],
    /// The threads of a block: the largest extents of thread loops. A loop of fewer keeps the others idle, and what is
    /// outside of thread loops is done by the first.
    pub block: [i64; 3],
    /// The bytes of the buffers that the threads of a block share.
    pub shared_bytes: i64,
}

impl Launch {
    /// The threads of a block.
    #[must_use]
    pub fn threads(&self) -> i64 {
        self.block.iter().fold(1, |product: i64, extent| product.saturating_mul(*extent))
    }
}
