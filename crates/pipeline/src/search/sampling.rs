//! Hierarchical sampling (sections 3.1 and 4.4): states in buckets by the hash of their structure, and about log2(B)
//! representatives of a bucket of B.

use std::collections::BTreeMap;

use tensorwright_random::Rng;

use crate::state::State;

/// Representatives of states that are alike by a hash.
pub(super) fn sample(
    states: Vec<State>,
    hash: impl Fn(&State) -> u64,
    rng: &mut Rng,
) -> Vec<State> {
    // In the order in which hashes are seen first: the numbers of a hash say nothing.
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
