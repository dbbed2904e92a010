//! Structural hashes of states, equal for similar states (section 3.1).
//!
//! | depth | what counts |
//! | --- | --- |
//! | 0 | which stages are at the root level, and which are inlined |
//! | n | in which loops of the first n levels the others are computed |
//! | levels + n | also the tiles of the first n levels |
//!
//! The hash of a state is the sum of the hashes of its decisions, so adding a decision takes
//! constant time.

use super::{Decision, State};

/// The maximum number of levels that hashes distinguish.
const LEVELS: usize = 4;

/// The hashes of a decision or of a whole state: locations by depth, then tiles by depth, then the
/// full hash.
pub(super) type Hashes = [u64; 2 * LEVELS + 1];

/// The hashes of a decision.
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
        // The full hash includes the level of the first tile.
        hashes[2 * LEVELS] = mix(hashes[2 * LEVELS], tiling.first as u64 + 1);
    }
    hashes
}

/// Mixes in a number (the finalizer of splitmix64).
fn mix(hash: u64, with: u64) -> u64 {
    let mut z = hash.rotate_left(5) ^ with.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl State {
    /// The structural hash up to a depth, for a target with a number of levels.
    #[must_use]
    pub fn structural_hash(&self, levels: usize, depth: usize) -> u64 {
        let at = match depth.checked_sub(levels) {
            None | Some(0) => depth.min(LEVELS),
            Some(tiles) if tiles >= levels => 2 * LEVELS,
            Some(tiles) => LEVELS + tiles.min(LEVELS),
        };
        self.last.as_ref().map_or(0, |node| node.hashes[at])
    }

    /// The hash of all decisions: equal only for equal states.
    #[must_use]
    pub fn full_hash(&self) -> u64 {
        self.last.as_ref().map_or(0, |node| node.hashes[2 * LEVELS])
    }
}
