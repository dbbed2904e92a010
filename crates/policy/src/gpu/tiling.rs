//! [`Tiling`]: the scheduling decisions of a group.

use super::group::Group;
use crate::stages::operand::Extents;
use crate::stages::split::Split;

/// The scheduling decisions of a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tiling {
    /// The parts of the spatial loops: blocks, virtual threads, threads, results per thread. An
    /// unsplit loop consists of blocks only.
    pub(crate) spatial: Vec<Vec<i64>>,
    /// The parts of the reduction loops: steps, and the terms of a step.
    pub(crate) reduce: Vec<Vec<i64>>,
    /// The spatial loop of adjacent threads.
    pub(crate) x: usize,
    /// Whether each stageable tensor is staged in shared memory.
    pub(crate) staged: Vec<bool>,
    /// The unroll factor of the innermost reduction loop.
    pub(crate) unroll: i64,
    /// The threads per cooperative reduction; one disables it.
    pub(crate) sharers: i64,
}

impl Tiling {
    /// One thread per block does all the work. Decisions without a parameter stay so.
    pub(crate) fn plain(group: &Group) -> Self {
        Self {
            spatial: group.spatial.iter().map(Split::whole).collect(),
            reduce: group.reduce.iter().map(Split::whole).collect(),
            x: group.contiguous,
            staged: vec![false; group.staged.len()],
            unroll: 1,
            sharers: 1,
        }
    }

    /// Resets decisions that other decisions override: they have no effect on the schedule, so they
    /// have none on the model.
    pub(crate) fn settle(mut self, group: &Group) -> Self {
        if self.shares_sum() {
            self.reduce = group.reduce.iter().map(|split| vec![split.axis.extent]).collect();
            self.staged.fill(false);
            self.unroll = 1;
        }
        self
    }

    /// Whether threads share the sum of a result.
    pub(crate) fn shares_sum(&self) -> bool {
        self.sharers > 1
    }

    /// A part of a spatial loop, counted from the innermost; one if it does not exist.
    fn part(&self, axis: usize, from_last: usize) -> i64 {
        let parts = self.spatial.get(axis).map_or(&[][..], Vec::as_slice);
        let inner = parts.get(1..).unwrap_or_default();
        inner.len().checked_sub(from_last + 1).and_then(|at| inner.get(at)).copied().unwrap_or(1)
    }

    /// The virtual threads along a spatial loop: the stride between results of a thread.
    pub(crate) fn apart(&self, axis: usize) -> i64 {
        self.part(axis, 2)
    }

    /// The threads along a spatial loop.
    pub(crate) fn threads(&self, axis: usize) -> i64 {
        self.part(axis, 1)
    }

    /// The adjacent results of a thread along a spatial loop.
    pub(crate) fn inner(&self, axis: usize) -> i64 {
        self.part(axis, 0)
    }

    /// The results of a thread along a loop.
    pub(crate) fn per_thread(&self, axis: usize) -> i64 {
        self.apart(axis).saturating_mul(self.inner(axis))
    }

    /// The results of a block along a loop.
    pub(crate) fn tile(&self, axis: usize) -> i64 {
        self.per_thread(axis).saturating_mul(self.threads(axis))
    }

    /// The results of a thread.
    pub(crate) fn accumulators(&self) -> i64 {
        (0..self.spatial.len()).map(|axis| self.per_thread(axis)).fold(1, i64::saturating_mul)
    }

    /// The threads of a block.
    pub(crate) fn threads_of_block(&self) -> i64 {
        let results = (0..self.spatial.len()).map(|axis| self.threads(axis));
        results.fold(self.sharers, i64::saturating_mul)
    }

    /// The spatial loops along threads: that of adjacent threads last.
    pub(crate) fn thread_axes(&self) -> Vec<usize> {
        let others = (0..self.spatial.len()).filter(|axis| *axis != self.x);
        others.chain([self.x]).filter(|axis| self.threads(*axis) > 1).collect()
    }

    /// The number of blocks.
    pub(crate) fn blocks(&self, group: &Group) -> f64 {
        let along = |(axis, split): (usize, &Split)| {
            let tile = self.tile(axis).max(1);
            ((split.extent() + tile - 1) / tile) as f64
        };
        group.spatial.iter().enumerate().map(along).product()
    }

    /// The terms of a step along a reduction loop.
    pub(crate) fn step(&self, axis: usize) -> i64 {
        match self.reduce.get(axis).map(Vec::as_slice) {
            Some([_, inner @ ..]) if !inner.is_empty() => {
                inner.iter().fold(1, |step: i64, part| step.saturating_mul(*part))
            }
            Some([whole]) => *whole,
            _ => 1,
        }
    }

    /// The extents of a block per step.
    pub(crate) fn of_block(&self) -> Extents {
        Extents {
            spatial: (0..self.spatial.len()).map(|axis| self.tile(axis)).collect(),
            reduce: (0..self.reduce.len()).map(|axis| self.step(axis)).collect(),
        }
    }

    /// The extents of a thread per term.
    pub(crate) fn of_thread(&self) -> Extents {
        Extents {
            spatial: (0..self.spatial.len()).map(|axis| self.per_thread(axis)).collect(),
            reduce: vec![1; self.reduce.len()],
        }
    }

    /// The bytes of a tensor in shared memory.
    pub(crate) fn staged_bytes(&self, group: &Group, tensor: &str) -> f64 {
        let extents = self.of_block();
        let bytes =
            group.reads_of(tensor).map(|read| read.elements(&extents) * read.element_bytes as f64);
        bytes.fold(0.0, f64::max)
    }

    /// The shared bytes of a block.
    pub(crate) fn shared_bytes(&self, group: &Group) -> f64 {
        let staged = group.staged.iter().zip(&self.staged).filter(|(_, is_staged)| **is_staged);
        let staged: f64 = staged.map(|(tensor, _)| self.staged_bytes(group, tensor)).sum();
        let bytes = group.write.element_bytes as f64;
        let partial = if self.shares_sum() { self.threads_of_block() as f64 * bytes } else { 0.0 };
        staged + partial
    }
}
