//! The part of a nest that computes some stages.

use std::collections::BTreeSet;

use tensorwright_schedule::nest::{BufferId, LoopNest, for_each_store};
use tensorwright_schedule::placement::store_of;

/// A nest with only the outermost loops that compute some stages: a program may have a thousand
/// others.
pub(crate) fn only<'a>(nest: &LoopNest, stages: impl IntoIterator<Item = &'a String>) -> LoopNest {
    let stores = stages.into_iter().filter_map(|stage| store_of(nest, stage));
    let buffers: BTreeSet<BufferId> = stores.map(|store| store.buffer).collect();
    let mut alone = nest.clone();
    alone.body.retain(|node| {
        let mut is_theirs = false;
        for_each_store(std::slice::from_ref(node), &mut |store| {
            is_theirs |= buffers.contains(&store.buffer);
        });
        is_theirs
    });
    alone
}
