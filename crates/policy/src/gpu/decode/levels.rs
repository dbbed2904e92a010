//! [`Levels`]: the block, thread and serial loops of a stage.

use tensorwright_schedule::nest::Dim;
use tensorwright_schedule::primitives::{Bind, Split, ThreadAxis};
use tensorwright_space::Rejection;

use super::Decoder;
use crate::stages::steps::fuse_first;

/// The loops of a stage by name and level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Levels {
    /// Loops over blocks; that of adjacent blocks comes last.
    pub(crate) blocks: Vec<String>,
    /// Loops over steps; operands are staged once per step.
    pub(super) steps: Vec<String>,
    /// Loops over threads; that of adjacent threads comes last.
    pub(crate) threads: Vec<String>,
    /// Reduction loops of a thread.
    pub(super) terms: Vec<String>,
    /// Unrolled loops: terms, then the results of a thread.
    pub(super) written: Vec<String>,
}

impl Levels {
    /// All loops, outermost first.
    pub(super) fn order(&self) -> Vec<String> {
        let parts = [&self.blocks, &self.steps, &self.threads, &self.terms, &self.written];
        parts.into_iter().flatten().cloned().collect()
    }
}

/// The loops that a loop is split into, by level, outermost first; `None` for levels with one
/// iteration.
pub(super) type Cut = Vec<Option<String>>;

impl Decoder<'_> {
    /// Splits a loop into parts of given sizes, outermost first; the outermost takes the rest. If
    /// that is one iteration, its loop exists only if `keeps_outermost` is set.
    pub(super) fn cut(
        &mut self,
        stage: &str,
        (name, extent): (&str, i64),
        parts: &[i64],
        keeps_outermost: bool,
    ) -> Result<Cut, Rejection> {
        let mut cut: Cut = vec![None; parts.len().max(1)];
        let inner: Vec<usize> = (1..parts.len()).filter(|level| parts[*level] > 1).collect();
        let factors: Vec<i64> = inner.iter().map(|level| parts[*level]).collect();
        match inner.as_slice() {
            [] => cut[0] = Some(name.to_owned()),
            [level] if parts[*level] == extent && !keeps_outermost => {
                cut[*level] = Some(name.to_owned());
            }
            levels => {
                self.apply(stage, Split::new(name, &factors))?;
                cut[0] = Some(format!("{name}.0"));
                for (number, level) in levels.iter().enumerate() {
                    cut[*level] = Some(format!("{name}.{}", number + 1));
                }
            }
        }
        Ok(cut)
    }

    /// Maps the spatial loops of a stage to blocks, threads and unrolled loops.
    pub(super) fn cut_results(
        &mut self,
        stage: &str,
        names: &[String],
    ) -> Result<Levels, Rejection> {
        let mut levels = Levels::default();
        let x = self.tiling.x;
        let others = (0..names.len()).filter(|axis| *axis != x);
        let order: Vec<usize> = others.chain([x]).filter(|axis| *axis < names.len()).collect();
        for axis in order {
            let extent = self.group.spatial[axis].extent();
            let parts =
                [1, self.tiling.apart(axis), self.tiling.threads(axis), self.tiling.inner(axis)];
            // A single block needs a loop too.
            let is_first = axis == x && levels.blocks.is_empty();
            let cut = self.cut(stage, (&names[axis], extent), &parts, is_first)?;
            let mut cut = cut.into_iter();
            levels.blocks.extend(cut.next().flatten());
            let apart = cut.next().flatten();
            levels.threads.extend(cut.next().flatten());
            levels.written.extend(apart.into_iter().chain(cut.next().flatten()));
        }
        Ok(levels)
    }

    /// Fuses block loops until they fit the grid dimensions, and binds them.
    pub(super) fn bind_blocks(
        &mut self,
        stage: &str,
        levels: &mut Levels,
    ) -> Result<(), Rejection> {
        while levels.blocks.len() > 3 || levels.blocks.len() > 1 && self.has_many(stage, levels) {
            fuse_first(self.draft, stage, &mut levels.blocks)?;
        }
        self.bind(stage, &levels.blocks, ThreadAxis::Block)
    }

    /// Whether a grid dimension other than x has more blocks than devices allow.
    fn has_many(&self, stage: &str, levels: &Levels) -> bool {
        const MOST: i64 = 65_535;
        let loops = tensorwright_schedule::primitives::loops_of(&self.draft.nest, stage);
        let name = |l: &tensorwright_schedule::nest::Loop| self.draft.nest.var_name(l.var);
        let others = &levels.blocks[..levels.blocks.len().saturating_sub(1)];
        loops.iter().any(|l| l.extent > MOST && others.iter().any(|other| other == name(l)))
    }

    /// Binds loops, outermost first; the last one gets dimension x.
    pub(super) fn bind(
        &mut self,
        stage: &str,
        names: &[String],
        place: fn(Dim) -> ThreadAxis,
    ) -> Result<(), Rejection> {
        const DIRECTIONS: [Dim; 3] = [Dim::Z, Dim::Y, Dim::X];
        let directions = &DIRECTIONS[DIRECTIONS.len().saturating_sub(names.len())..];
        for (name, dim) in names.iter().zip(directions) {
            self.apply(stage, Bind { target: name.clone(), to: place(*dim) })?;
        }
        Ok(())
    }

    /// Splits the reduction loops into steps, terms and unrolled terms.
    pub(super) fn cut_terms(&mut self, stage: &str, levels: &mut Levels) -> Result<(), Rejection> {
        let is_staged = self.tiling.staged.contains(&true);
        let is_whole = |axis: usize| self.tiling.step(axis) >= self.group.reduce[axis].extent();
        // A single step needs a loop too.
        let is_one = is_staged && (0..self.group.reduce.len()).all(is_whole);
        let last = self.group.reduce.len().saturating_sub(1);
        let mut written = None;
        for (axis, split) in self.group.reduce.iter().enumerate() {
            let (name, extent) = (&split.axis.name, split.extent());
            let step = if is_staged { self.tiling.step(axis).min(extent) } else { extent };
            let unroll = if axis == last { self.tiling.unroll.min(step) } else { 1 };
            let is_cut = step < extent || is_one && axis == 0;
            let parts = match is_cut {
                true => vec![1, (step + unroll - 1) / unroll, unroll],
                false => vec![1, unroll],
            };
            let cut = self.cut(stage, (name, extent), &parts, is_cut)?;
            match cut.as_slice() {
                [outer, terms, inner] => {
                    levels.steps.extend(outer.clone());
                    levels.terms.extend(terms.clone());
                    written.clone_from(inner);
                }
                [terms, inner] => {
                    levels.terms.extend(terms.clone());
                    written.clone_from(inner);
                }
                _ => {}
            }
        }
        levels.written.splice(..0, written);
        Ok(())
    }
}
