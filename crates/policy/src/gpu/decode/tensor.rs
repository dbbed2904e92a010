//! Matrix products on tensor cores.

use tensorwright_schedule::nest::{Dim, TILE};
use tensorwright_schedule::primitives::{
    Bind, CacheWrite, ComputeAt, Split, Tensorize, ThreadAxis, Unroll,
};
use tensorwright_space::Rejection;

use super::Decoder;
use super::levels::Levels;
use crate::gpu::tensor::{Product, Shape};
use crate::stages::steps::{fuse_first, order_own};

/// The parts of a row, column or reduction loop, by name.
#[derive(Debug, Default)]
struct Cut {
    /// The loop over blocks or steps.
    outer: Option<String>,
    /// The loop over warps.
    warps: Option<String>,
    /// The loop over tiles of a warp, or over groups of terms of a step.
    tiles: Option<String>,
    /// The loop over the elements of a tile.
    tile: String,
}

impl Decoder<'_> {
    /// Schedules a product, and optionally its epilogue, in the same blocks.
    pub(super) fn tensor(&mut self, product: &Product, shape: &Shape) -> Result<(), Rejection> {
        match self.group.epilogue_of.clone() {
            Some(stage) => self.tensor_with_reader(&stage, product, shape),
            None => self.tensor_alone(product, shape),
        }
    }

    fn tensor_alone(&mut self, product: &Product, shape: &Shape) -> Result<(), Rejection> {
        let stage = self.group.root.clone();
        let loops = self.group.root_loops.clone();
        let [m, n] = product.results;
        let rows = self.tiles_of(&stage, &loops[m], shape, 0, true)?;
        let columns = self.tiles_of(&stage, &loops[n], shape, 1, true)?;
        let others = loops.iter().enumerate().filter(|(at, _)| !product.results.contains(at));
        let mut levels = Levels::default();
        levels.blocks.extend(others.map(|(_, name)| name.clone()));
        levels.blocks.extend(rows.outer.iter().chain(&columns.outer).cloned());
        let inner = self.tensor_terms(&stage, product, shape, &rows, &columns)?;
        self.reorder(&stage, levels.blocks.iter().chain(&inner.order).cloned().collect())?;
        self.bind_blocks(&stage, &mut levels)?;
        self.in_warps(&stage, product, shape, &inner)?;
        let Some(at) = levels.blocks.last().cloned() else { return Ok(()) };
        self.apply(&stage, CacheWrite { at })?;
        self.write_out_tiles(&stage, &rows, &columns)
    }

    fn tensor_with_reader(
        &mut self,
        stage: &str,
        product: &Product,
        shape: &Shape,
    ) -> Result<(), Rejection> {
        let root = self.group.root.clone();
        let loops = self.group.root_loops.clone();
        let others = loops.iter().enumerate().filter(|(at, _)| !product.results.contains(at));
        let mut levels = Levels::default();
        levels.blocks.extend(others.map(|(_, name)| name.clone()));
        let mut inside = Vec::new();
        for (at, place) in product.results.into_iter().enumerate() {
            let name = &loops[place];
            self.apply(&root, Split::new(name, &[shape.block()[at]]))?;
            levels.blocks.push(format!("{name}.0"));
            inside.push(format!("{name}.1"));
        }
        self.reorder(&root, levels.blocks.iter().chain(&inside).cloned().collect())?;
        // A single loop, with a name different from the sum's.
        while levels.blocks.len() > 1 {
            fuse_first(self.draft, &root, &mut levels.blocks)?;
        }
        self.bind_blocks(&root, &mut levels)?;
        let Some(at) = levels.blocks.last().cloned() else { return Ok(()) };
        self.apply(stage, ComputeAt { consumer: root.clone(), at: at.clone() })?;
        let names = product.results.map(|place| self.group.spatial[place].axis.name.clone());
        let rows = self.tiles_of(stage, &names[0], shape, 0, false)?;
        let columns = self.tiles_of(stage, &names[1], shape, 1, false)?;
        let inner = self.tensor_terms(stage, product, shape, &rows, &columns)?;
        order_own(self.draft, stage, inner.order.clone())?;
        self.in_warps(stage, product, shape, &inner)?;
        self.apply(stage, CacheWrite { at })?;
        self.write_out_tiles(stage, &rows, &columns)?;
        self.share(&root, inside, &shape.directions())
    }

    /// Splits a spatial loop into blocks, warps, tiles of a warp and elements of a tile.
    fn tiles_of(
        &mut self,
        stage: &str,
        name: &str,
        shape: &Shape,
        at: usize,
        has_blocks: bool,
    ) -> Result<Cut, Rejection> {
        let parts = [1, shape.warps[at], shape.tiles[at], TILE];
        if has_blocks {
            let cut = self.cut(stage, (name, shape.block()[at]), &parts, true)?;
            return Ok(named(cut, name));
        }
        // The loop is already a block's: its outermost part is the first that exists.
        let levels: Vec<usize> = (1..parts.len()).filter(|level| parts[*level] > 1).collect();
        let mut cut = vec![None; parts.len()];
        if let [first, inner @ ..] = levels.as_slice() {
            let factors: Vec<i64> = inner.iter().map(|level| parts[*level]).collect();
            if factors.is_empty() {
                cut[*first] = Some(name.to_owned());
            } else {
                self.apply(stage, Split::new(name, &factors))?;
                let numbered = levels.iter().enumerate();
                numbered.for_each(|(number, level)| cut[*level] = Some(format!("{name}.{number}")));
            }
        }
        Ok(named(cut, name))
    }

    /// Splits the reduction loop, and returns the order of all loops inside a block.
    fn tensor_terms(
        &mut self,
        stage: &str,
        product: &Product,
        shape: &Shape,
        rows: &Cut,
        columns: &Cut,
    ) -> Result<Inner, Rejection> {
        let reduce: Vec<String> =
            self.group.reduce.iter().map(|split| split.axis.name.clone()).collect();
        let name = &reduce[product.terms];
        let extent = self.group.reduce[product.terms].extent();
        let parts = [1, 1, shape.terms / TILE, TILE];
        let terms = named(self.cut(stage, (name, extent), &parts, true)?, name);
        let others = reduce.iter().enumerate().filter(|(at, _)| *at != product.terms);
        let mut order: Vec<String> = others.map(|(_, name)| name.clone()).collect();
        let step = terms.outer.clone().unwrap_or_else(|| name.clone());
        order.push(step.clone());
        let warps: Vec<String> = rows.warps.iter().chain(&columns.warps).cloned().collect();
        order.extend(warps.iter().cloned());
        order.extend(terms.tiles.iter().chain(&rows.tiles).chain(&columns.tiles).cloned());
        let tile = vec![rows.tile.clone(), columns.tile.clone(), terms.tile];
        order.extend(tile.iter().cloned());
        Ok(Inner { order, warps, step, tile })
    }

    /// Distributes tiles to warps; all threads of a block load the operands.
    fn in_warps(
        &mut self,
        stage: &str,
        product: &Product,
        shape: &Shape,
        inner: &Inner,
    ) -> Result<(), Rejection> {
        // Dimension x is the lane: the others number the warps.
        for (name, dim) in inner.warps.iter().rev().zip([Dim::Y, Dim::Z]) {
            self.apply(stage, Bind { target: name.clone(), to: ThreadAxis::Thread(dim) })?;
        }
        let tensorize = Tensorize { loops: inner.tile.clone(), is_tf32: product.is_tf32 };
        self.apply(stage, tensorize)?;
        for tensor in &product.factors {
            self.stage_tensor(stage, tensor, &inner.step, &shape.directions())?;
        }
        Ok(())
    }

    /// Unrolls the tiles of a warp, for the sum and its copy to memory.
    fn write_out_tiles(&mut self, stage: &str, rows: &Cut, columns: &Cut) -> Result<(), Rejection> {
        for of in [format!("{stage}.tile"), stage.to_owned()] {
            let loops = self.draft.loop_names(&of);
            for name in rows.tiles.iter().chain(&columns.tiles).filter(|name| loops.contains(name))
            {
                self.apply(&of, Unroll { target: name.clone() })?;
            }
        }
        Ok(())
    }
}

/// The loops of a product inside a block.
struct Inner {
    /// All, outermost first.
    order: Vec<String>,
    /// The loops over warps.
    warps: Vec<String>,
    /// The loop over steps.
    step: String,
    /// The row, column and reduction loops of a tile.
    tile: Vec<String>,
}

/// Names the parts of a loop.
fn named(cut: super::levels::Cut, name: &str) -> Cut {
    let mut parts = cut.into_iter();
    let (outer, warps, tiles) =
        (parts.next().flatten(), parts.next().flatten(), parts.next().flatten());
    let tile = parts.next().flatten().unwrap_or_else(|| name.to_owned());
    Cut { outer, warps, tiles, tile }
}
