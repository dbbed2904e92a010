//! Hierarchical sampling of similar states (sections 3.1 and 4.4).
//!
//! States are bucketed by structural hash; a bucket of B states has about log2(B) representatives.

use std::collections::BTreeMap;

use tensorwright_random::Rng;

use crate::state::State;

/// Samples representatives of states with the same hash.
pub(super) fn sample(
    states: Vec<State>,
    hash: impl Fn(&State) -> u64,
    rng: &mut Rng,
) -> Vec<State> {
    // Buckets are in order of first occurrence, since hash values have no meaningful order.
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    let mut buckets: Vec<Vec<State>> = Vec::new();
    for state in states {
        let place = *places.entry(hash(&state)).or_insert(buckets.len());
        if place == buckets.len() {
            buckets.push(Vec::new());
        }
        buckets[place].push(state);
    }
    let representatives = |mut bucket: Vec<State>| {
        let count = (bucket.len().max(1).ilog2() as usize).max(1);
        rng.choose_first(&mut bucket, count);
        bucket.truncate(count);
        bucket
    };
    buckets.into_iter().flat_map(representatives).collect()
}
