//! [`Traffic`]: the memory traffic and the work of a schedule.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use tensorwright_schedule::StageMap;
use tensorwright_schedule::nest::{
    BufferId, Loop, LoopKind, LoopNest, Node, for_each_loop, for_each_store,
};
use tensorwright_schedule::primitives::{loops_of, store_of};
use tensorwright_schedule::stage_map::MappedStage;

/// The numbers of stages of programs for which processors search. Other programs are left to rules:
/// in long chains of stencils many short rows cost more than bytes do, and
/// [`Traffic::moves_less`] counts only bytes.
pub(crate) const ON_PROCESSORS: RangeInclusive<usize> = 3..=24;

/// A schedule that fuses more may move at most this fraction of the bytes.
const LESS_MOVED: f64 = 0.75;

/// It may compute at most this many times the terms.
const MORE_WORK: f64 = 1.15;

/// The memory traffic and the work of a schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traffic {
    /// The bytes of whole tensors that root loops read and write, counted once per root loop.
    pub(crate) bytes: f64,
    /// The number of computed elements, or of terms for reductions.
    pub(crate) terms: f64,
    /// The instructions for these.
    pub(crate) instructions: f64,
    /// The number of launches on a device, before lowering.
    pub(crate) launches: usize,
}

impl Traffic {
    /// The traffic and the work of a nest.
    pub(super) fn of(canonical: &LoopNest, nest: &LoopNest) -> Self {
        let mut locals: BTreeSet<BufferId> = BTreeSet::new();
        for_each_loop(&nest.body, &mut |l| locals.extend(&l.locals));
        let elements = |id: BufferId| -> f64 {
            nest.buffer(id).shape.iter().map(|extent| *extent as f64).product()
        };
        let mut bytes = 0.0;
        for node in &nest.body {
            let mut touched = BTreeSet::new();
            for_each_store(std::slice::from_ref(node), &mut |store| {
                touched.insert(store.buffer);
                touched.extend(store.reads().into_iter().map(|(_, read)| read.tensor));
            });
            let whole = touched.difference(&locals);
            bytes += whole.map(|id| elements(*id) * nest.dtype(*id).bytes() as f64).sum::<f64>();
        }
        let (mut terms, mut instructions) = (0.0, 0.0);
        for MappedStage { name, times, .. } in StageMap::of(canonical, nest).stages {
            let loops = loops_of(canonical, &name);
            let computed = times * loops.iter().map(|l| l.extent as f64).product::<f64>();
            let store = store_of(canonical, &name);
            let each = store.map_or(1, |store| canonical.instructions(store));
            terms += computed;
            instructions += computed * each as f64;
        }
        Self { bytes, terms, instructions, launches: launches(&nest.body) }
    }

    /// Whether a processor may gain from a schedule that fuses more. Compulsory traffic is not worth
    /// a search.
    pub(crate) fn may_move_less(&self, results: f64, cache: i64) -> bool {
        self.bytes >= results + 4.0 * cache as f64
    }

    /// Whether far fewer bytes move than before, with little more computation.
    pub(crate) fn moves_less(&self, before: &Self, cache: i64) -> bool {
        self.bytes <= LESS_MOVED * before.bytes
            && before.bytes - self.bytes >= 2.0 * cache as f64
            && self.terms <= MORE_WORK * before.terms
    }
}

/// The launches of some nodes: each outermost loop over blocks is one, and so is each loop without
/// any.
fn launches<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> usize {
    let is_block = |l: &Loop| matches!(l.kind, LoopKind::Block(_));
    let of = |node: &Node| match node {
        Node::Loop(l) if !is_block(l) => {
            let mut has_blocks = false;
            for_each_loop(&l.body, &mut |inner| has_blocks |= is_block(inner));
            if has_blocks { launches(&l.body) } else { 1 }
        }
        _ => 1,
    };
    nodes.into_iter().map(of).sum()
}
