//! The canonical loops of a scatter: initialization, then terms.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{AxisId, AxisKind, Combine, Expr, Index, Program, Stage};

use super::{Axes, convert, copy_base, covers, element, neutral, wide_sum, widen};
use crate::lower::all_hold;
use crate::nest::{BufferId, LoopNest, Role, Scatter, StageId, Store};

pub(super) fn add_stage(nest: &mut LoopNest, program: &Program, stage: &Stage) {
    // Binding refuses scatters that do not reduce.
    let Some(op) = stage.combine.reduction() else { return };
    let narrow = program.tensor(stage.output).dtype;
    let dtype = narrow.computed_in();
    let is_wide = dtype != narrow;
    if let Some(base) = stage.base.filter(|_| is_wide && !covers(program, stage)) {
        copy_base(nest, stage.output, base);
    }
    let target = if is_wide { wide_sum(nest, stage, dtype) } else { stage.output };
    add_start(nest, program, stage, target, op);
    add_terms(nest, stage, target, op, (narrow, dtype));
    if is_wide {
        convert(nest, stage, target);
    }
}

/// Initializes all elements.
fn add_start(
    nest: &mut LoopNest,
    program: &Program,
    stage: &Stage,
    target: BufferId,
    op: ReductionOp,
) {
    let (narrow, dtype) = (program.tensor(stage.output).dtype, nest.dtype(target));
    let shape = nest.buffer(target).shape.clone();
    let mut axes = Axes { stage: StageId(target), loops: Vec::new(), values: Vec::new() };
    let mut inside = Vec::new();
    for (axis, extent) in stage.axes.iter().zip(&shape) {
        let var = nest.add_var(axis.name.clone());
        axes.loops.push((var, *extent, Role::Spatial));
        axes.values.push(Index::axis(var));
        let first = Index::axis(var).sub(&Index::constant(axis.lo));
        let last = Index::constant(axis.hi - 1).sub(&Index::axis(var));
        inside.extend(first.filter(|_| axis.lo > 0));
        inside.extend(last.filter(|_| axis.hi < *extent));
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
    stage: &Stage,
    target: BufferId,
    op: ReductionOp,
    (narrow, dtype): (DType, DType),
) {
    let mut axes = Axes { stage: StageId(target), loops: Vec::new(), values: Vec::new() };
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
        axes.loops.push((var, axis.extent(), role));
        let value = Index::axis(var).add(&Index::constant(axis.lo));
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
