//! Fusion of a reduction into the blocks of its epilogue.

use tensorwright_schedule::primitives::{ComputeAt, ThreadAxis};
use tensorwright_space::Rejection;

use super::Decoder;
use super::levels::Levels;
use crate::stages::steps::order_own;

impl Decoder<'_> {
    /// Computes a reduction and its epilogue in the same threads.
    pub(super) fn fused(&mut self, reduction: &str) -> Result<(), Rejection> {
        let root = self.group.root.clone();
        let mut levels = self.cut_results(&root, &self.group.root_loops.clone())?;
        self.reorder(&root, levels.order())?;
        self.bind_blocks(&root, &mut levels)?;
        self.bind(&root, &levels.threads, ThreadAxis::Thread)?;
        let at = levels.blocks.last().cloned().unwrap_or_default();
        self.apply(reduction, ComputeAt { consumer: root.clone(), at })?;
        let mut inside = self.cut_block(reduction)?;
        self.cut_terms(reduction, &mut inside)?;
        order_own(self.draft, reduction, inside.order())?;
        self.bind(reduction, &inside.threads, ThreadAxis::Thread)?;
        self.stage(reduction, &inside)?;
        self.write_out(reduction, &inside)?;
        self.write_out(&root, &levels)
    }

    /// Maps the spatial loops of a block to threads and unrolled loops.
    fn cut_block(&mut self, stage: &str) -> Result<Levels, Rejection> {
        let mut levels = Levels::default();
        let x = self.tiling.x;
        let others = (0..self.group.spatial.len()).filter(|axis| *axis != x);
        for axis in others.chain([x]) {
            let split = &self.group.spatial[axis];
            let (threads, inner) = (self.tiling.threads(axis), self.tiling.inner(axis));
            let name = split.axis.name.clone();
            let tile = self.tiling.tile(axis).min(split.extent());
            if tile <= 1 {
                // A single result.
                levels.written.extend(self.own_loop(stage, &name));
                continue;
            }
            let of_threads = threads.saturating_mul(inner).max(1);
            let apart = (tile + of_threads - 1) / of_threads;
            let cut = self.cut(stage, (&name, tile), &[apart, threads, inner], false)?;
            let mut cut = cut.into_iter();
            let apart = cut.next().flatten();
            levels.threads.extend(cut.next().flatten());
            levels.written.extend(apart.into_iter().chain(cut.next().flatten()));
        }
        Ok(levels)
    }

    /// The loop of a stage with a name, if it exists.
    fn own_loop(&self, stage: &str, name: &str) -> Option<String> {
        self.draft.loop_names(stage).into_iter().find(|found| found == name)
    }
}
