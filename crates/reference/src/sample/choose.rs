//! Chooses the output elements to sample.

use std::collections::BTreeSet;

use tensorwright_lang::program::Program;
use tensorwright_random::SplitMix;

use super::OutputElement;
use crate::buffer::{index_in, position_in};

/// Common tile sizes: tails, masks and packed panels begin just before and after their multiples.
const TILES: [i64; 9] = [4, 6, 8, 14, 16, 24, 32, 64, 128];

/// The size of a group of elements that differ in one subscript: they often share operands.
const NEIGHBOURS: usize = 8;

/// Chooses output elements for [`sample`](super::sample()): the corners, then a mix of uniform
/// positions, edges of dimensions, tails of tiles, and neighbours of tile multiples. Depends only
/// on the seed. Any prefix of the list has some of all kinds, of all outputs.
#[must_use]
pub fn choose(program: &Program, count: usize, seed: u64) -> Vec<OutputElement> {
    let outputs: Vec<_> = program.outputs.iter().map(|id| program.tensor(*id)).collect();
    let shapes: Vec<&[i64]> = outputs.iter().map(|tensor| tensor.shape.as_slice()).collect();
    let share = count.div_ceil(shapes.len().max(1));
    let each: Vec<Vec<usize>> = shapes
        .iter()
        .zip(1_u64..)
        .map(|(shape, number)| of_shape(shape, share, SplitMix::nth(seed, number)))
        .collect();
    // Neighbours stay together, outputs alternate.
    let longest = each.iter().map(Vec::len).max().unwrap_or(0);
    let mut places = Vec::with_capacity(count);
    for start in (0..longest).step_by(NEIGHBOURS) {
        for (output, positions) in each.iter().enumerate() {
            let turn = positions.iter().skip(start).take(NEIGHBOURS);
            places.extend(turn.map(|position| OutputElement { output, position: *position }));
        }
    }
    places
}

/// Distinct positions in a tensor.
fn of_shape(shape: &[i64], count: usize, seed: u64) -> Vec<usize> {
    let elements =
        shape.iter().fold(1_u64, |all, extent| all.saturating_mul(extent.unsigned_abs()));
    let elements = usize::try_from(elements).unwrap_or(usize::MAX);
    if elements <= count {
        return (0..elements).collect();
    }
    let mut random = SplitMix::new(seed);
    let mut seen = BTreeSet::new();
    let mut positions = Vec::with_capacity(count);
    let mut add = |index: &[i64]| {
        let position = position_in(shape, index).filter(|position| seen.insert(*position));
        positions.extend(position);
        positions.len() < count
    };
    for corner in 0..1_usize << shape.len().min(6) {
        let end = |dimension: usize, extent: i64| {
            // The last corners first, where tails meet.
            if corner >> dimension.min(5) & 1 == 0 { extent - 1 } else { 0 }
        };
        let index: Vec<i64> = shape.iter().enumerate().map(|(d, extent)| end(d, *extent)).collect();
        if !add(&index) {
            return positions;
        }
    }
    // Far more rounds than needed, unless nearly all elements are requested.
    for round in 0..count {
        let mut index = index_in(shape, random.index(elements));
        for (i, extent) in index.iter_mut().zip(shape) {
            *i = coordinate(&mut random, *i, *extent, round % 4);
        }
        let varies = random.index(shape.len());
        for _ in 0..NEIGHBOURS {
            if !add(&index) {
                return positions;
            }
            if let (Some(i), Some(extent)) = (index.get_mut(varies), shape.get(varies)) {
                let anywhere = random.below(extent.unsigned_abs()) as i64;
                *i = coordinate(&mut random, anywhere, *extent, round % 4);
            }
        }
    }
    positions
}

/// A subscript of a kind: uniform, at an edge, in the tail of a tile, or beside a tile multiple.
/// Each special kind applies with even odds, so that all combinations occur.
fn coordinate(random: &mut SplitMix, anywhere: i64, extent: i64, kind: usize) -> i64 {
    if kind == 0 || random.next_u64() & 1 == 0 {
        return anywhere;
    }
    let tile = *random.pick(&TILES);
    let i = match kind {
        1 => *random.pick(&[0, 1, extent - 2, extent - 1]),
        2 => {
            let tail = extent % tile;
            let tail = if tail == 0 { tile } else { tail };
            extent - 1 - random.below(tail.unsigned_abs()) as i64
        }
        _ => anywhere / tile * tile - random.below(2) as i64,
    };
    i.clamp(0, extent - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_tensors_are_taken_as_a_whole() {
        assert_eq!(of_shape(&[2, 3], 10, 1), (0..6).collect::<Vec<_>>());
        assert_eq!(of_shape(&[], 10, 1), [0]);
        assert_eq!(of_shape(&[0, 5], 10, 1), Vec::<usize>::new());
    }

    #[test]
    fn corners_edges_and_tails_are_among_them_and_none_is_twice() {
        let shape = [1000, 1003];
        let positions = of_shape(&shape, 4096, 3);
        assert_eq!(positions.len(), 4096);
        let all: BTreeSet<usize> = positions.iter().copied().collect();
        assert_eq!(all.len(), 4096);
        let indices: Vec<Vec<i64>> = all.iter().map(|p| index_in(&shape, *p)).collect();
        for corner in [[0, 0], [0, 1002], [999, 0], [999, 1002]] {
            assert!(indices.contains(&corner.to_vec()));
        }
        let count = |is: &dyn Fn(&[i64]) -> bool| indices.iter().filter(|i| is(i)).count();
        assert!(count(&|i| i[1] == 1002) > 50, "last column");
        assert!(count(&|i| i[0] == 0) > 50, "first row");
        assert!(count(&|i| i[1] >= 992) > 200, "the tail of tiles of 16 and 32");
        assert!(count(&|i| i[0] % 32 == 31) > 100, "before a multiple");
        assert!(count(&|i| i[1] > 100 && i[1] < 900 && i[0] > 100 && i[0] < 900) > 1000, "inside");
        assert_ne!(positions, of_shape(&shape, 4096, 4));
        assert_eq!(positions, of_shape(&shape, 4096, 3));
    }
}
