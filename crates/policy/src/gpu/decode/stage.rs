//! Operands in shared memory: the threads of a block load them together.

use tensorwright_schedule::primitives::{CacheRead, Fuse, Place, Split, loops_of, stages};
use tensorwright_space::Rejection;

use super::Decoder;
use super::levels::Levels;

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
        let nest = &self.draft.nest;
        let Some(own) = tensorwright_schedule::placement::store_of(nest, copy) else {
            return Ok(());
        };
        let own = own.stage();
        let loops = loops_of(nest, copy).into_iter().filter(|l| l.stage == Some(own));
        let mut names: Vec<String> = loops.map(|l| nest.var_name(l.var).to_owned()).collect();
        while let [outer, inner, ..] = names.as_slice() {
            let name = format!("{outer}_{inner}");
            let fuse =
                Fuse { outer: outer.clone(), inner: inner.clone(), name: Some(name.clone()) };
            self.apply(copy, fuse)?;
            names.splice(..2, [name]);
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
