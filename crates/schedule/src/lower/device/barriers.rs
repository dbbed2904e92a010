//! Inserts barriers between dependent accesses of threads of a block.
//!
//! ```text
//! for k.0 {                                            for k.0 {
//!   thread.x for t { B.pack(t) = B(..); }                barrier;
//!   thread.x for n { C.tile(n) += .. B.pack(..); }       thread.x for t { B.pack(t) = B(..); }
//! }                                               ->     barrier;
//!                                                        thread.x for n { C.tile(n) += .. B.pack(..); }
//!                                                      }
//! ```
//!
//! All threads of a block execute the loops and guards outside of thread loops together. Barriers
//! are inserted where they are needed, also in guards, and then [moved out of
//! guards](super::converge): a barrier is at the top level of a launch or in loops around thread
//! loops. The pass records accesses since the last barrier per buffer, with the
//! [owners](super::owners) of elements, so threads do not wait for their own accesses.

use std::collections::BTreeMap;

use tensorwright_lang::program::Index;

use super::converge::{converge, exclude};
use super::owners::{EnclosingLoops, Owners};
use super::{block_of, has_threads, holds_tensors, is_thread};
use crate::lower::LowerError;
use crate::nest::{
    Body, BufferId, Guard, Loop, LoopKind, LoopNest, Memory, Node, Role, Store, for_each_store,
};

pub(in crate::lower) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    crate::lower::both(nest, |nest, nodes| {
        let tree = |node: Node| {
            let block = block_of(std::slice::from_ref(&node));
            let pass = Pass { nest, block };
            let mut nodes: Body = vec![node].into();
            if block != [1; 3] {
                pass.nodes(&mut nodes, &mut Touched::default(), &EnclosingLoops::default());
            }
            converge(nodes)
        };
        Ok(nodes.into_iter().flat_map(tree).collect())
    })
}

/// The accesses of threads since the last barrier, by buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Touched(BTreeMap<BufferId, Access>);

/// The accesses to a buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Access {
    reads: Option<Owners>,
    writes: Option<Owners>,
}

impl Touched {
    fn add(&mut self, id: BufferId, owners: &Owners, writes: bool) {
        let access = self.0.entry(id).or_default();
        let known = if writes { &mut access.writes } else { &mut access.reads };
        *known = Some(known.as_ref().map_or_else(|| owners.clone(), |known| known.join(owners)));
    }

    fn extend(&mut self, other: &Touched) {
        for (id, access) in &other.0 {
            access.reads.iter().for_each(|owners| self.add(*id, owners, false));
            access.writes.iter().for_each(|owners| self.add(*id, owners, true));
        }
    }

    /// Whether a thread may access an element that another thread accesses here, and one of them
    /// writes.
    fn meets(&self, other: &Touched, block: [i64; 3]) -> bool {
        let apart = |a: &Option<Owners>, b: &Option<Owners>| match (a, b) {
            (Some(a), Some(b)) => a.join(b).are_known(block),
            _ => true,
        };
        self.0.iter().any(|(id, a)| {
            other.0.get(id).is_some_and(|b| {
                !(apart(&a.writes, &b.writes)
                    && apart(&a.writes, &b.reads)
                    && apart(&a.reads, &b.writes))
            })
        })
    }
}

/// Consecutive guards of which at most one is taken.
struct ExclusiveGuards {
    conditions: Vec<Vec<Index>>,
    /// The accesses before all of them.
    before: Touched,
}

struct Pass<'a> {
    nest: &'a LoopNest,
    /// The threads of a block.
    block: [i64; 3],
}

impl Pass<'_> {
    /// Inserts barriers between nodes that all threads of a block execute. `since` holds the
    /// accesses since the last barrier, before and after.
    fn nodes(&self, nodes: &mut Body, since: &mut Touched, around: &EnclosingLoops) {
        let mut all = Vec::with_capacity(nodes.len());
        let mut ways: Option<ExclusiveGuards> = None;
        for mut node in std::mem::take(nodes) {
            let others = ways.take();
            // A warp executes a tensor operation, whether or not loops number warps.
            let tree = std::slice::from_ref(&node);
            let is_together = has_threads(tree) || holds_tensors(tree);
            match &mut node {
                Node::Barrier => *since = Touched::default(),
                Node::Loop(l) if is_together && !is_thread(l) && l.kind != LoopKind::Tensor => {
                    if self.a_loop(l, since, around) {
                        all.push(Node::Barrier);
                    }
                }
                Node::Guard(guard) if is_together => {
                    ways = Some(self.way(guard, others, since, around));
                }
                _ => {
                    let mut here = Touched::default();
                    self.touch(std::slice::from_ref(&node), around, &mut here);
                    if since.meets(&here, self.block) {
                        all.push(Node::Barrier);
                        *since = here;
                    } else {
                        since.extend(&here);
                    }
                }
            }
            all.push(node);
        }
        *nodes = all.into();
    }

    /// Inserts barriers into a guard, which may be one of several exclusive ones.
    fn way(
        &self,
        guard: &mut Guard,
        others: Option<ExclusiveGuards>,
        since: &mut Touched,
        around: &EnclosingLoops,
    ) -> ExclusiveGuards {
        let is_other = |ways: &ExclusiveGuards| {
            ways.conditions.iter().all(|others| exclude(others, &guard.conditions))
        };
        let mut ways = others
            .filter(is_other)
            .unwrap_or_else(|| ExclusiveGuards { conditions: Vec::new(), before: since.clone() });
        let after_others = std::mem::replace(since, ways.before.clone());
        self.guard(guard, since, around);
        since.extend(&after_others);
        ways.conditions.push(guard.conditions.clone());
        ways
    }

    fn guard(&self, guard: &mut Guard, since: &mut Touched, around: &EnclosingLoops) {
        // If the conditions do not hold, no barrier inside was executed.
        let before = since.clone();
        self.nodes(&mut guard.body, since, around);
        since.extend(&before);
    }

    /// Inserts barriers into a loop. Returns whether one is needed before it, which saves one per
    /// iteration.
    fn a_loop(&self, l: &mut Loop, since: &mut Touched, around: &EnclosingLoops) -> bool {
        let inner = around.inside(l);
        let mut here = Touched::default();
        self.touch(&l.body, &inner, &mut here);
        let waits = since.meets(&here, self.block);
        if waits {
            *since = Touched::default();
        }
        // Blocks are independent. Other iterations start with the accesses of earlier ones: at most
        // all.
        if !matches!(l.kind, LoopKind::Block(_)) {
            self.made_apart(l).iter().for_each(|id| drop(here.0.remove(id)));
            since.extend(&here);
        }
        self.nodes(&mut l.body, since, &inner);
        waits
    }

    /// The buffer of which different iterations of a loop write different elements and read no
    /// others.
    fn made_apart(&self, l: &Loop) -> Option<BufferId> {
        let stage = l.stage.filter(|_| l.role == Role::Spatial && !l.overlaps && !l.slides)?;
        let mut is_apart = true;
        for_each_store(&l.body, &mut |store| {
            is_apart &=
                !store.does_read(stage.0) && (store.buffer != stage.0 || !store.is_scatter());
        });
        is_apart.then_some(stage.0)
    }

    /// Records the accesses of nodes that may conflict with other threads.
    fn touch(&self, nodes: &[Node], around: &EnclosingLoops, touched: &mut Touched) {
        for node in nodes {
            match node {
                Node::Loop(l) => self.touch(&l.body, &around.inside(l), touched),
                Node::Guard(guard) => self.touch(&guard.body, around, touched),
                Node::Store(store) => self.touch_store(store, around, touched),
                Node::Prefetch(_) | Node::Barrier => {}
            }
        }
    }

    fn touch_store(&self, store: &Store, around: &EnclosingLoops, touched: &mut Touched) {
        let mut around = around.clone();
        if let Some(lanes) = store.lanes {
            around.ranges.insert(lanes.var, lanes.count);
        }
        let mut note = |id: BufferId, subscripts: &[Index], writes: bool| {
            let buffer = self.nest.buffer(id);
            if buffer.memory != Some(Memory::Stack) && buffer.owner != crate::nest::Owner::Input {
                touched.add(id, &Owners::of(buffer, subscripts, &around), writes);
            }
        };
        note(store.buffer, &store.subscripts, true);
        store.walk_reads(&mut |_, read| note(read.tensor, &read.subscripts, false));
    }
}
