//! Structural hashes (section 3.1): states that are alike up to a depth hash alike.
//!
//! | depth | what counts |
//! | --- | --- |
//! | 0 | which stages are computed on their own, and which wherever they are read |
//! | n | in which loops of the first n levels the others are computed |
//! | levels + n | the tiles of the first n levels, too |

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::{Decision, State};

pub(super) fn of_decision(stage: usize, decision: &Decision) -> u64 {
    let mut hasher = DefaultHasher::new();
    (stage, decision).hash(&mut hasher);
    hasher.finish()
}

impl State {
    /// The hash of the structure up to a depth, of a program with so many stages and a target with so many levels.
    #[must_use]
    pub fn structural_hash(&self, stages: usize, levels: usize, depth: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        // A loop of at most so many levels counts.
        for (stage, found) in self.decisions(stages).into_iter().enumerate() {
            let Some((decision, _)) = found else { continue };
            let tiling = match decision {
                Decision::Inline => {
                    (stage, 0).hash(&mut hasher);
                    continue;
                }
                Decision::Root(tiling) => {
                    (stage, 1).hash(&mut hasher);
                    tiling.as_ref()
                }
                Decision::At { consumer, level, tiling } => {
                    (stage, 2).hash(&mut hasher);
                    if *level < depth {
                        (consumer, level).hash(&mut hasher);
                    }
                    Some(tiling)
                }
            };
            for level in 0..depth.saturating_sub(levels) {
                tiling.and_then(|tiling| tiling.tile(level)).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}
