//! Launches: grid and block sizes of the trees of a nest.

/// The threads of a warp: consecutive threads that execute tensor operations together.
pub const WARP: i64 = 32;

/// The launches of a nest on a device: one per top-level node, in order on one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launches {
    /// The launches of the preparation, which runs once, ahead of all calls.
    pub prepare: Vec<Launch>,
    /// The launches of a call.
    pub body: Vec<Launch>,
}

/// The launch of a top-level node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launch {
    /// The number of blocks in directions x, y and z: the extents of the block loops.
    pub grid: [i64; 3],
    /// The number of threads of a block: the largest extents of thread loops. A smaller loop leaves
    /// the other threads idle, and the first thread runs the code outside of thread loops.
    pub block: [i64; 3],
    /// The bytes of shared memory of a block.
    pub shared_bytes: i64,
}

impl Launch {
    /// The number of threads of a block.
    #[must_use]
    pub fn threads(&self) -> i64 {
        self.block.iter().fold(1, |product: i64, extent| product.saturating_mul(*extent))
    }
}
