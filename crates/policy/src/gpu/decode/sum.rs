//! Cooperative reduction: threads compute partial sums, and one thread combines them.

use tensorwright_schedule::primitives::{Rfactor, Split, ThreadAxis};
use tensorwright_space::Rejection;

use super::Decoder;

impl Decoder<'_> {
    /// Schedules a cooperative reduction.
    pub(super) fn shared_sum(&mut self) -> Result<(), Rejection> {
        let stage = self.group.root.clone();
        let Some(shared) = self.group.shared_sum else { return self.alone() };
        let mut levels = self.cut_results(&stage, &self.group.root_loops.clone())?;
        let terms = self.group.reduce.iter().map(|split| split.axis.name.clone());
        let mut terms: Vec<String> = terms.collect();
        let name = terms.remove(shared);
        self.apply(&stage, Split::new(&name, &[self.tiling.sharers]))?;
        let (parts, threads) = (format!("{name}.0"), format!("{name}.1"));
        levels.terms = terms;
        levels.terms.push(parts);
        let mut order = levels.order();
        order.push(threads.clone());
        self.reorder(&stage, order)?;
        self.bind_blocks(&stage, &mut levels)?;
        let at = levels.blocks.last().cloned().unwrap_or_default();
        self.apply(&stage, Rfactor { target: threads.clone(), at })?;
        let partial = format!("{stage}.rf");
        let mut along = levels.threads.clone();
        along.push(threads);
        let order = along.iter().chain(&levels.terms).cloned().collect();
        self.reorder(&partial, order)?;
        self.bind(&partial, &along, ThreadAxis::Thread)?;
        self.bind(&stage, &levels.threads, ThreadAxis::Thread)
    }
}
