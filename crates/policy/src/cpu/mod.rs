//! Policy for processors: loops in tiles of registers and caches, vectors, packed panels, workers.

pub(crate) mod cost;
pub(crate) mod decode;
pub(crate) mod features;
pub(crate) mod generate;
pub(crate) mod group;
pub(crate) mod limits;
pub(crate) mod rank;
pub(crate) mod register_tile;
pub mod rules;
pub(crate) mod start;
pub(crate) mod tiling;
