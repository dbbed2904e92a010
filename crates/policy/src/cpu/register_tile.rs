//! Register tile sizes: how many rows by how many vectors.
//!
//! A tile of `rows` iterations of one loop by `vectors` vectors along another keeps its
//! accumulators in registers, with a vector of each operand and a broadcast. All tile choices come
//! from here: rules take the best tile, searches start from it, and the ranking compares a few.

use tensorwright_machine::Cpu;

/// The maximum rows of a register tile.
const MOST_ROWS: i64 = 28;

/// The maximum vectors of a register tile along the vectorized loop.
const MOST_VECTORS: i64 = 4;

/// The number of accumulators that hides the latency of multiply-adds: four or five cycles on two
/// units, plus some for their operands.
const BUSY: i64 = 12;

/// The cost of a load relative to a multiply-add.
const LOAD: f64 = 0.25;

/// The extents of the tiled loops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Along {
    /// The iterations of the vectorized loop.
    pub(crate) vector: i64,
    /// The iterations of the row loop; one if there is none.
    pub(crate) rows: i64,
    /// The lanes of a vector.
    pub(crate) lanes: i64,
}

/// A register tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegisterTile {
    pub(crate) rows: i64,
    pub(crate) vectors: i64,
}

/// The tiles that fit the registers, most efficient first: busy units and little waste.
pub(crate) fn register_tiles(cpu: &Cpu, along: Along) -> Vec<RegisterTile> {
    let mut tiles: Vec<(f64, RegisterTile)> = Vec::new();
    for vectors in 1..=MOST_VECTORS {
        for rows in 1..=along.rows.clamp(1, MOST_ROWS) {
            // The accumulators, a vector of each operand, and a broadcast.
            if rows * vectors + vectors + 1 > cpu.vector_registers() {
                break;
            }
            let tile = RegisterTile { rows, vectors };
            tiles.push((cost(tile, along), tile));
        }
    }
    // The sort is stable: the narrower comes first among equals.
    tiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    tiles.into_iter().map(|(_, tile)| tile).collect()
}

/// The best tile.
pub(crate) fn register_tile(cpu: &Cpu, along: Along) -> RegisterTile {
    register_tiles(cpu, along).first().copied().unwrap_or(RegisterTile { rows: 1, vectors: 1 })
}

/// The time per element, relative to a tile without waste.
fn cost(RegisterTile { rows, vectors }: RegisterTile, along: Along) -> f64 {
    let waste = |extent: i64, block: i64| {
        let extent = extent.max(1);
        ((extent + block - 1) / block * block) as f64 / extent as f64
    };
    let busy = BUSY as f64 / (rows * vectors).min(BUSY) as f64;
    let loads = (rows + vectors) as f64 / (rows * vectors) as f64;
    waste(along.vector, vectors * along.lanes)
        * waste(along.rows, rows)
        * busy
        * (1.0 + LOAD * loads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_the_registers_and_the_loops() {
        let tile = |cpu: &Cpu, vector, rows, lanes| {
            let RegisterTile { rows, vectors } = register_tile(cpu, Along { vector, rows, lanes });
            (rows, vectors)
        };
        // A large product: as many accumulators as fit the registers.
        assert_eq!(tile(&Cpu::avx512(), 1024, 1024, 16), (6, 4));
        assert_eq!(tile(&Cpu::avx2(), 1024, 1024, 8), (4, 3));
        // Rows of 28 are a multiple of the tile.
        assert_eq!(tile(&Cpu::avx512(), 32, 28, 16), (14, 2));
        for cpu in [Cpu::sse(), Cpu::avx2(), Cpu::avx512(), Cpu::neon()] {
            for along in [(1, 1), (7, 3), (100, 100), (1 << 40, 1 << 40)] {
                let along = Along { vector: along.0, rows: along.1, lanes: cpu.lanes(4) };
                let tiles = register_tiles(&cpu, along);
                assert!(!tiles.is_empty());
                let needed = |tile: &RegisterTile| tile.rows * tile.vectors + tile.vectors + 1;
                assert!(tiles.iter().all(|tile| needed(tile) <= cpu.vector_registers()));
            }
        }
    }
}
