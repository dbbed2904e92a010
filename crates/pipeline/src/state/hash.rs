//! Structural hashes (section 3.1): states that are alike up to a depth hash alike.
//!
//! | depth | what counts |
//! | --- | --- |
//! | 0 | which stages are computed on their own, and which wherever they are read |
//! | n | in which loops of the first n levels the others are computed |
//! | levels + n | the tiles of the first n levels, too |
//!
//! The hash of a state is the sum of those of its decisions, so one more decision costs the same however many there are.

use super::{Decision, State};

/// Loops of so many levels are told apart, one level at a time.
const LEVELS: usize = 4;

/// The hashes of one decision or of all of a state: places by depth, then tiles by depth, the last of everything.
pub(super) type Hashes = [u64; 2 * LEVELS + 1];

/// Those of a decision.
pub(super) fn of_decision(stage: usize, decision: &Decision) -> Hashes {
    let (kind, place, tiling) = match decision {
        Decision::Inline => (0, None, None),
        Decision::Root(tiling) => (1, None, tiling.as_deref()),
        Decision::At { consumer, level, tiling } => (2, Some((*consumer, *level)), Some(&**tiling)),
    };
    let own = mix(mix(0, stage as u64), kind);
    let placed =
        place.map_or(own, |(consumer, level)| mix(mix(own, consumer as u64), level as u64));
    let mut hashes = [own; 2 * LEVELS + 1];
    for (depth, hash) in hashes.iter_mut().enumerate().skip(1) {
        let is_placed = depth >= LEVELS || place.is_some_and(|(_, level)| level < depth);
        if is_placed {
            *hash = placed;
        }
    }
    if let Some(tiling) = tiling {
        for (tiles, hash) in hashes[LEVELS + 1..].iter_mut().enumerate() {
            let count = if tiles + 1 == LEVELS { usize::MAX } else { tiles + 1 };
            let counted = count.saturating_sub(tiling.first);
            for tile in tiling.tiles.iter().take(counted) {
                *hash = tile
                    .iter()
                    .fold(mix(*hash, tile.len() as u64), |hash, extent| mix(hash, *extent as u64));
            }
        }
        // Of which level the first tile is matters as well.
        hashes[2 * LEVELS] = mix(hashes[2 * LEVELS], tiling.first as u64 + 1);
    }
    hashes
}

/// One more number (the finalizer of splitmix64).
fn mix(hash: u64, with: u64) -> u64 {
    let mut z = hash.rotate_left(5) ^ with.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl State {
    /// The hash of the structure up to a depth, of a program for a target with so many levels.
    #[must_use]
    pub fn structural_hash(&self, levels: usize, depth: usize) -> u64 {
        let at = match depth.checked_sub(levels) {
            None | Some(0) => depth.min(LEVELS),
            Some(tiles) if tiles >= levels => 2 * LEVELS,
            Some(tiles) => LEVELS + tiles.min(LEVELS),
        };
        self.last.as_ref().map_or(0, |node| node.hashes[at])
    }

    /// The hash of all that is decided: only states that are the same in everything hash alike.
    #[must_use]
    pub fn full_hash(&self) -> u64 {
        self.last.as_ref().map_or(0, |node| node.hashes[2 * LEVELS])
    }
}
