//! Operands in shared memory: the threads of a block load them together.

use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::primitives::{CacheRead, Place, Split, stages};
use tensorwright_space::Rejection;

use super::Decoder;
use super::levels::Levels;
use crate::stages::steps::fuse_first;

impl Decoder<'_> {
    /// Stages the operands of a stage that the tiling says, before every step.
    pub(super) fn stage(&mut self, stage: &str, levels: &Levels) -> Result<(), Rejection> {
        let Some(at) = levels.steps.last().or(levels.blocks.last()).cloned() else {
            return Ok(());
        };
        for (tensor, is_staged) in self.group.staged.iter().zip(&self.tiling.staged) {
            if *is_staged {
                let before = stages(&self.draft.nest);
                let copy = CacheRead { is_shared: true, ..CacheRead::new(tensor, &at) };
                self.apply(stage, copy)?;
                let made = stages(&self.draft.nest).into_iter().find(|one| !before.contains(one));
                if let Some(copy) = made {
                    self.load(&copy)?;
                }
            }
        }
        Ok(())
    }

    /// Lets the threads of a block share a copy: neighbours copy neighbours.
    fn load(&mut self, copy: &str) -> Result<(), Rejection> {
        let Some(accesses) = Accesses::of(&self.draft.nest, copy) else { return Ok(()) };
        let mut names: Vec<String> = accesses.axes.into_iter().map(|axis| axis.name).collect();
        while names.len() > 1 {
            fuse_first(self.draft, copy, &mut names)?;
        }
        let Some(all) = names.first() else { return Ok(()) };
        let axes = self.tiling.thread_axes();
        let threads: Vec<i64> = axes.iter().map(|axis| self.tiling.threads(*axis)).collect();
        if threads.is_empty() {
            return Ok(());
        }
        self.apply(copy, Split::new(all, &threads))?;
        let parts: Vec<String> =
            (1..=threads.len()).map(|number| format!("{all}.{number}")).collect();
        self.bind(copy, &parts, Place::Thread)
    }
}
