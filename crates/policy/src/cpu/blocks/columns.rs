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
use tensorwright_plan::levels::cpu::{AROUND, BLOCK, ROW, TERM_BLOCKS};
use tensorwright_plan::{AxisId, LoopRef, Placement, PlannedLoop, Stage};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{Owner, Role};
use tensorwright_schedule::placement::{epilogue_of, reader_names, store_of};
use tensorwright_schedule::primitives::{Primitive, stages};

use super::steps::BlockFusion;
use super::{Block, SIZES, Shape};
use crate::cpu::fusion::{Body, Member};
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

    /// The stages of a block of rows in blocks of columns.
    pub(super) fn members(&self, fusion: &BlockFusion<'_>, outer: Vec<PlannedLoop>) -> Vec<Member> {
        let stages = fusion.stages;
        let place = outer.iter().filter(|l| l.level == AROUND).count();
        let root = fusion.at(ROW).stage;
        let by_rows = |stage, placement, outer| {
            let body = fusion.row(LoopRef { stage, level: ROW });
            Member { stage, placement, outer, body }
        };
        let inside = Placement::At(fusion.at(BLOCK));
        let mut members = vec![by_rows(root, Placement::Root, outer)];
        let named = |name: &String| stages.named(name);
        for (stage, _) in self.finals.iter().rev().filter_map(named) {
            let (placement, outer, body) = (inside, Vec::new(), Body::Plain);
            members.push(Member { stage, placement, outer, body });
        }
        // The first sum encloses the others, and the stages of a block of columns.
        let mut columns = None;
        for (stage, found) in self.sums.iter().filter_map(named) {
            let placement = columns.map_or(inside, Placement::With);
            members.push(by_rows(stage, placement, in_columns(found, place, true)));
            columns.get_or_insert(LoopRef { stage, level: TERM_BLOCKS });
        }
        let Some(columns) = columns else { return Vec::new() };
        let (with, at) = (Placement::With(columns), Placement::At(columns));
        let own = named(&self.product).map(|(_, found)| in_columns(found, place, false));
        let product = (with, own.unwrap_or_default());
        members.extend(fusion.member(&self.product, product, fusion.product(None)));
        members.extend(
            named(&self.weights).map(|(stage, found)| by_rows(stage, at, by_row(found, place))),
        );
        members.extend(
            named(&self.maxima)
                .map(|(stage, found)| by_rows(stage, with, in_columns(found, place, true))),
        );
        if let Some((root, reduction)) = &self.scores {
            let body = fusion.product(reduction.as_ref());
            members.extend(fusion.member(root, (at, Vec::new()), body));
        }
        members
    }
}

/// The loops of a stage up to that over blocks of columns, which is outside of the row loop.
fn in_columns(stage: &Stage, row: usize, has_rows: bool) -> Vec<PlannedLoop> {
    let mut loops = by_row(stage, row);
    let last = loops.pop().filter(|_| has_rows);
    loops.push(PlannedLoop::new(AxisId(row as u16 + 1), 1, TERM_BLOCKS));
    loops.extend(last);
    loops
}

/// The loops of a stage up to the row loop.
fn by_row(stage: &Stage, row: usize) -> Vec<PlannedLoop> {
    let around =
        (0..row.min(stage.axes.len())).map(|at| PlannedLoop::new(AxisId(at as u16), 1, AROUND));
    around.chain([PlannedLoop::new(AxisId(row as u16), 1, ROW)]).collect()
}
