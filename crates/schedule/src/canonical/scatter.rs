//! The canonical loops of a scatter: initialization, then terms.

use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{AxisId, AxisKind, Combine, Expr, Index};

use super::source::Source;
use super::{Axes, AxisLoop, convert, copy_base, element, neutral, wide_sum, widen};
use crate::lower::all_hold;
use crate::nest::{BufferId, LoopNest, Role, Scatter, Store};

pub(super) fn add_stage(nest: &mut LoopNest, source: &Source<'_>, number: usize) {
    let (program, stage) = (source.program, &source.program.stages[number]);
    // Binding refuses scatters that do not reduce.
    let Some(op) = stage.combine.reduction() else { return };
    let narrow = program.tensor(stage.output).dtype;
    let dtype = narrow.computed_in();
    let is_wide = dtype != narrow;
    if let Some(base) = stage.base.filter(|_| is_wide && !source.covers(number)) {
        copy_base(nest, source, stage.output, base);
    }
    let target = if is_wide { wide_sum(nest, stage, dtype) } else { stage.output };
    add_start(nest, source, number, target, op);
    add_terms(nest, source, number, target, op);
    if is_wide {
        convert(nest, source, number, target);
    }
}

/// Initializes all elements.
fn add_start(
    nest: &mut LoopNest,
    source: &Source<'_>,
    number: usize,
    target: BufferId,
    op: ReductionOp,
) {
    let stage = &source.program.stages[number];
    let (narrow, dtype) = (source.program.tensor(stage.output).dtype, nest.dtype(target));
    let rank = nest.buffer(target).shape.len();
    let names: Vec<String> = stage.axes.iter().take(rank).map(|axis| axis.name.clone()).collect();
    let axes = Axes::over(nest, source, target, &names);
    let mut inside = Vec::new();
    for (dimension, l) in axes.loops.iter().enumerate() {
        let (lo, hi) = source.ends(number, AxisId(dimension as u32));
        let end = l.count.clone().unwrap_or(Index::constant(l.extent));
        let first = Index::axis(l.var).sub(&lo);
        let last = hi.sub(&Index::axis(l.var)).and_then(|last| last.add(&Index::constant(-1)));
        inside.extend(first.filter(|_| lo.as_constant() != Some(0)));
        inside.extend(last.filter(|_| hi != end));
    }
    let held = |base| widen(element(base, axes.values.clone()), narrow, dtype);
    let anew = neutral(op, dtype);
    let value = match (stage.combine, stage.base.map(held)) {
        (Combine::Accumulate(_), Some(held)) => held,
        (_, Some(held)) if dtype == narrow => match all_hold(&inside) {
            Some(inside) => select(inside, anew, held),
            None => anew,
        },
        _ => anew,
    };
    nest.body.push(axes.around(Store::new(target, axes.values.clone(), value)));
}

fn select(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    Expr::Select(Box::new(condition), Box::new(then), Box::new(otherwise))
}

/// Adds every term to its element.
fn add_terms(
    nest: &mut LoopNest,
    source: &Source<'_>,
    number: usize,
    target: BufferId,
    op: ReductionOp,
) {
    let stage = &source.program.stages[number];
    let (narrow, dtype) = (source.program.tensor(stage.output).dtype, nest.dtype(target));
    let mut axes = Axes::new(target, source);
    for (axis, id) in stage.axes.iter().zip((0..).map(AxisId)) {
        if stage.is_scattered(id) {
            // This variable is unused.
            axes.values.push(Index::constant(0));
            continue;
        }
        let role = match axis.kind {
            AxisKind::Spatial => Role::Spatial,
            AxisKind::Reduce => Role::Reduce,
        };
        let var = nest.add_var(axis.name.clone());
        let (extent, count) = source.extent(number, id);
        axes.loops.push(AxisLoop { var, extent, count, role });
        let value = Index::axis(var).add(&source.ends(number, id).0);
        axes.values.push(value.unwrap_or_else(|| Index::axis(var)));
    }
    // Binding refuses programs whose index arithmetic could overflow.
    let written = stage.element();
    let at = |index: &Index| index.rewrite(&mut &axes).unwrap_or_else(|| index.clone());
    let subscripts = written.subscripts.iter().map(at).collect();
    let value = stage.term().rewrite(&mut &axes).unwrap_or_else(|| stage.term().clone());
    let mut store = Store::new(target, subscripts, widen(value, narrow, dtype));
    store.combine = Some(op);
    let dimensions = stage.scatter.iter().map(|scatter| scatter.axis.0).collect();
    let (checked, place) = (written.checked, written.place);
    store.scatter = Some(Box::new(Scatter { dimensions, checked, place }));
    nest.body.push(axes.around(store));
}
