//! A launch of one stage: blocks, threads, register tiles.

use tensorwright_schedule::primitives::{CacheWrite, ThreadAxis, Unroll};
use tensorwright_space::Rejection;

use super::Decoder;
use super::levels::Levels;

impl Decoder<'_> {
    /// Schedules a stage as a launch of its own.
    pub(super) fn alone(&mut self) -> Result<(), Rejection> {
        let levels = self.open()?;
        self.close(&levels)
    }

    /// Creates the blocks and threads of a stage; other stages may be computed inside before it is
    /// closed.
    pub(super) fn open(&mut self) -> Result<Levels, Rejection> {
        let stage = self.group.root.clone();
        let mut levels = self.cut_results(&stage, &self.group.root_loops.clone())?;
        self.cut_terms(&stage, &mut levels)?;
        self.reorder(&stage, levels.order())?;
        self.bind_blocks(&stage, &mut levels)?;
        self.bind(&stage, &levels.threads, ThreadAxis::Thread)?;
        Ok(levels)
    }

    /// Schedules the body of a thread: operands in shared memory, sums in registers, an unrolled
    /// reduction loop.
    pub(super) fn close(&mut self, levels: &Levels) -> Result<(), Rejection> {
        let stage = self.group.root.clone();
        self.stage(&stage, levels)?;
        let mut tile = stage.clone();
        if self.group.is_reduction()
            && let Some(at) = levels.blocks.last()
        {
            self.apply(&stage, CacheWrite { at: at.clone() })?;
            tile.push_str(".tile");
        }
        self.write_out(&tile, levels)?;
        if tile != stage {
            // The results of a thread are stored in separate loops.
            let results = levels.written.iter().filter(|name| self.has(&stage, name));
            let results = Levels { written: results.cloned().collect(), ..Levels::default() };
            self.write_out(&stage, &results)?;
        }
        Ok(())
    }

    /// Whether a stage has a loop.
    fn has(&self, stage: &str, name: &str) -> bool {
        self.draft.loop_names(stage).iter().any(|found| found == name)
    }

    /// Unrolls the work of a thread per term.
    pub(super) fn write_out(&mut self, stage: &str, levels: &Levels) -> Result<(), Rejection> {
        for name in &levels.written {
            self.apply(stage, Unroll { target: name.clone() })?;
        }
        Ok(())
    }
}
