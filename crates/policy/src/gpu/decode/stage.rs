//! Operand staging: the threads of a block load shared memory together.

use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::primitives::{CacheRead, Split, ThreadAxis, stages};
use tensorwright_space::Rejection;

use super::Decoder;
use super::levels::Levels;
use crate::stages::steps::fuse_first;

impl Decoder<'_> {
    /// Stages the operands that the tiling selects, before every step.
    pub(super) fn stage(&mut self, stage: &str, levels: &Levels) -> Result<(), Rejection> {
        let Some(at) = levels.steps.last().or(levels.blocks.last()).cloned() else {
            return Ok(());
        };
        let axes = self.tiling.thread_axes();
        let threads: Vec<i64> = axes.iter().map(|axis| self.tiling.threads(*axis)).collect();
        for (tensor, is_staged) in self.group.staged.iter().zip(&self.tiling.staged) {
            if *is_staged {
                self.stage_tensor(stage, tensor, &at, &threads)?;
            }
        }
        Ok(())
    }

    /// Stages a tensor at a loop of a stage.
    pub(super) fn stage_tensor(
        &mut self,
        stage: &str,
        tensor: &str,
        at: &str,
        threads: &[i64],
    ) -> Result<(), Rejection> {
        let before = stages(&self.draft.nest);
        let copy = CacheRead { is_shared: true, ..CacheRead::new(tensor, at) };
        self.apply(stage, copy)?;
        let made = stages(&self.draft.nest).into_iter().find(|one| !before.contains(one));
        made.map_or(Ok(()), |copy| self.load(&copy, threads))
    }

    /// Distributes a copy over the threads of a block.
    pub(super) fn load(&mut self, copy: &str, threads: &[i64]) -> Result<(), Rejection> {
        let Some(accesses) = Accesses::of(&self.draft.nest, copy) else { return Ok(()) };
        let names = accesses.axes.into_iter().map(|axis| axis.name).collect();
        self.share(copy, names, threads)
    }

    /// Distributes the loop iterations of a stage over threads in each dimension: adjacent threads
    /// get adjacent iterations.
    pub(super) fn share(
        &mut self,
        stage: &str,
        mut loops: Vec<String>,
        threads: &[i64],
    ) -> Result<(), Rejection> {
        while loops.len() > 1 {
            fuse_first(self.draft, stage, &mut loops)?;
        }
        let Some(all) = loops.first().filter(|_| !threads.is_empty()) else { return Ok(()) };
        self.apply(stage, Split::new(all, threads))?;
        let parts: Vec<String> =
            (1..=threads.len()).map(|number| format!("{all}.{number}")).collect();
        self.bind(stage, &parts, ThreadAxis::Thread)
    }
}
