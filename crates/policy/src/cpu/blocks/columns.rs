//! Blocks of rows and columns for a rewritten softmax.
//!
//! [`rebase`](tensorwright_schedule::primitives::Rebase) rewrites the softmax between two products.
//!
//! ```text
//! for l.block {
//!   for b {                                                      // blocks of columns
//!     for l, s { x(l,s) = ..; }                                  // tiles
//!     for l { top.block(l,b) max= x(l,s); }
//!     for l { w(l,s) = exp(x(l,s) - top.block(l,b)); t.factor(l,b) += w(l,s); }
//!     for l, e { O.factor(l,b,e) += w(l,s) * V(s,e); }           // tiles
//!   }
//!   for l { top, top.scale, t, O of all blocks }
//! }
//! ```
//!
//! A block of scores and many rows stay in the L2 cache: the operands of the products are read once
//! for all of them.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{Owner, Role};
use tensorwright_schedule::placement::{epilogue_of, reader_names, store_of};
use tensorwright_schedule::primitives::{ComputeAt, ComputeWith, Primitive, Reorder, stages};
use tensorwright_schedule::{ScheduleError, ScheduleState};

use super::cut::{Cut, VECTORS, cut, share};
use super::product::{self, Product};
use super::{Block, SIZES, Shape};
use crate::cpu::rows::{self, Row};
use crate::stages::rows::is_product;

/// The stages of a rewritten softmax between products, by role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    /// The product of the scores, with its reduction if it is an epilogue.
    scores: Option<(String, Option<String>)>,
    /// The row maxima of each block.
    maxima: String,
    /// The exponentials of the scores minus their block maximum.
    weights: String,
    /// The sums of exponentials of each block.
    sums: Vec<String>,
    /// The product of each block.
    product: String,
    /// The stages that combine all blocks, in program order, without the root.
    finals: Vec<String>,
}

/// Finds the block of a program with a rewritten softmax.
pub(crate) fn find(draft: &ScheduleState, goal: &Goal<Cpu>) -> Option<Block> {
    let nest = &draft.nest;
    let steps = &draft.schedule.steps;
    let rebased = steps.iter().find(|step| matches!(step.primitive, Primitive::Rebase(_)))?;
    let top = &rebased.stage;
    let (maxima, scale) = (format!("{top}.block"), format!("{top}.scale"));
    let readers = |stage: &str| Some(reader_names(nest, store_of(nest, stage)?.buffer));
    let mut weights = readers(&maxima)?;
    weights.retain(|reader| reader != top && *reader != scale);
    let [weights] = <[String; 1]>::try_from(weights).ok()?;

    let mut finals = vec![top.clone(), scale];
    let (mut sums, mut products) = (Vec::new(), Vec::new());
    for step in steps.iter().filter(|step| matches!(step.primitive, Primitive::Factor(_))) {
        let part = format!("{}.factor", step.stage);
        match is_product(&Accesses::of(nest, &part)?) {
            true => products.push((step.stage.clone(), part)),
            false => {
                finals.push(step.stage.clone());
                sums.push(part);
            }
        }
    }
    let [(root, product)] = <[(String, String); 1]>::try_from(products).ok()?;
    let is_summed = |reader: &String| *reader == product || sums.contains(reader);
    if sums.is_empty() || !readers(&weights)?.iter().all(is_summed) {
        return None;
    }
    let scores = scores(draft, &maxima, &weights);
    let mut stages = vec![maxima.clone(), weights.clone(), product.clone(), root.clone()];
    stages.extend(sums.iter().chain(&finals).cloned());
    stages.extend(
        scores.iter().flat_map(|(root, reduction)| reduction.iter().chain([root])).cloned(),
    );
    let columns = Columns { scores, maxima, weights, sums, product, finals };

    let accesses = Accesses::of(nest, &root)?;
    let rows: Vec<&Axis> = accesses.axes.iter().take_while(|a| a.role == Role::Spatial).collect();
    let (row, outer) = rows.split_last()?;
    let around: i64 = outer.iter().map(|axis| axis.extent).product();
    let bytes = columns.bytes(draft) / (around * row.extent).max(1);
    let fits = |rows: &i64| {
        *rows <= row.extent
            && around * ((row.extent + rows - 1) / rows) >= goal.workers
            && rows * bytes <= goal.target.caches().l2 / 4 * 3
    };
    let sizes = SIZES.into_iter().rev().filter(fits);
    let shapes: Vec<Shape> = sizes.map(Shape::by_rows).collect();
    let row = row.name.clone();
    let (units, row_reductions, columns) = (Vec::new(), Vec::new(), Some(columns));
    (!shapes.is_empty()).then_some(Block {
        root,
        row,
        units,
        row_reductions,
        columns,
        stages,
        shapes,
        parameter: 0,
    })
}

/// The product whose softmax is computed, with its reduction if it is an epilogue.
fn scores(draft: &ScheduleState, maxima: &str, weights: &str) -> Option<(String, Option<String>)> {
    let nest = &draft.nest;
    stages(nest).into_iter().find_map(|stage| {
        let store = store_of(nest, &stage)?;
        let readers = reader_names(nest, store.buffer);
        let is_theirs = readers.iter().all(|reader| reader == maxima || reader == weights);
        let is_own = nest.buffer(store.buffer).owner == Owner::Intermediate;
        let reduction = epilogue_of(nest, &stage);
        let accesses = Accesses::of(nest, reduction.as_ref().unwrap_or(&stage))?;
        let is_it = is_own && is_theirs && readers.len() == 2 && is_product(&accesses);
        is_it.then_some((stage, reduction))
    })
}

impl Columns {
    /// The bytes of intermediates for all rows: a block of columns, and the products of all blocks.
    fn bytes(&self, draft: &ScheduleState) -> i64 {
        let of = |stage: &String| {
            store_of(&draft.nest, stage).map_or(0, |store| draft.nest.buffer(store.buffer).bytes())
        };
        let blocks = store_of(&draft.nest, &self.maxima)
            .and_then(|store| draft.nest.buffer(store.buffer).shape.last().copied());
        let whole = of(&self.weights) + self.scores.iter().map(|(root, _)| of(root)).sum::<i64>();
        whole / blocks.unwrap_or(1).max(1) + of(&self.product)
    }

    /// Computes blocks of `rows` rows by blocks of columns.
    ///
    /// # Errors
    /// If a step is refused.
    pub(super) fn compute(
        &self,
        draft: &mut ScheduleState,
        block: &Block,
        rows: i64,
        goal: &Goal<Cpu>,
    ) -> Result<(), ScheduleError> {
        let place = rows::depth(draft, &block.root, &block.row).saturating_sub(1);
        let cut = cut(draft, block, rows)?;
        let Cut { all, block: at, row } = &cut;

        // Compute locations of all stages come first, then loop transformations.
        let inside = || ComputeAt { consumer: block.root.clone(), at: at.clone() };
        for stage in self.finals.iter().rev() {
            draft.apply(stage, inside())?;
        }
        let mut sums = Vec::new();
        for stage in self.sums.iter().chain([&self.product]) {
            draft.apply(stage, inside())?;
            sums.push((stage, in_columns(draft, stage, place)?));
        }
        let Some((first, (along, _))) = sums.first() else { return Ok(()) };
        for (stage, _) in &sums[1..] {
            draft.apply(stage, ComputeWith { other: (*first).clone(), at: along.clone() })?;
        }
        draft.apply(&self.weights, ComputeAt { consumer: (*first).clone(), at: along.clone() })?;
        draft.apply(&self.maxima, inside())?;
        let (along, of_maxima) = in_columns(draft, &self.maxima, place)?;
        draft.apply(first, ComputeWith { other: self.maxima.clone(), at: along.clone() })?;

        if let Some((root, reduction)) = &self.scores {
            draft.apply(root, ComputeAt { consumer: self.maxima.clone(), at: along })?;
            let tiles =
                product::order(draft, Product { root, reduction, at: None, shared: &[] }, goal)?;
            tiles.map_or(Ok(()), |tiles| product::finish(draft, &tiles, all))?;
        }
        let (root, reduction) = (&self.product, &None);
        let tiles =
            product::order(draft, Product { root, reduction, at: None, shared: &[] }, goal)?;
        tiles.map_or(Ok(()), |tiles| product::finish(draft, &tiles, all))?;
        sums.pop();
        let of_weights = axis_name(draft, &self.weights, place);
        let by_rows = sums.iter().map(|(stage, (_, row))| (*stage, row));
        let by_rows = by_rows.chain([(&self.maxima, &of_maxima), (&self.weights, &of_weights)]);
        for (stage, at) in by_rows.chain([(&block.root, row)]) {
            let depth = rows::depth(draft, stage, at);
            Row { draft, stage, at, depth, vectors: VECTORS, is_short: false, goal }.schedule()?;
        }
        share(draft, block, cut, goal)
    }
}

/// Moves the loop over column blocks of a stage outside its row loop; returns both names.
fn in_columns(
    draft: &mut ScheduleState,
    stage: &str,
    row: usize,
) -> Result<(String, String), ScheduleError> {
    let (row, along) = (axis_name(draft, stage, row), axis_name(draft, stage, row + 1));
    draft.apply(stage, Reorder { order: vec![along.clone(), row.clone()] })?;
    Ok((along, row))
}

/// The name of a loop of a stage by index.
fn axis_name(draft: &ScheduleState, stage: &str, place: usize) -> String {
    let accesses = Accesses::of(&draft.nest, stage);
    let axis = accesses.as_ref().and_then(|found| found.axes.get(place));
    axis.map(|axis| axis.name.clone()).unwrap_or_default()
}
