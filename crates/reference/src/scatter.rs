//! Runs scatters term by term.

use tensorwright_lang::program::{AxisId, AxisKind, Combine, Program, Scatter, Stage};

use crate::eval::{Contents, Failure, IndexValue, Scope, Tensors, defect};
use crate::reduce::Accumulator;
use crate::target::{Target, advance, too_large};

/// Computes the elements of a scatter. For each point of the other spatial axes there is one
/// partial reduction per target element.
pub(crate) fn run(
    program: &Program,
    stage: &Stage,
    tensors: &[Option<Contents<'_>>],
    base: Option<&Contents<'_>>,
    target: &mut Target<'_, '_>,
) -> Result<(), Failure> {
    let (Combine::Reduce(op) | Combine::Accumulate(op)) = stage.combine else {
        return Err(defect(stage, "a scatter does not reduce"));
    };
    let axes = Axes::of(stage);
    let start = Accumulator::neutral(op, program.tensor(stage.output).dtype);
    let mut point: Vec<i64> = stage.axes.iter().map(|axis| axis.lo).collect();
    let mut sums: Vec<Accumulator> = Vec::new();
    let memory = sums.try_reserve_exact(axes.elements(stage));
    memory.map_err(|_| too_large(target.tensor, "there is no memory for its sums"))?;
    loop {
        sums.clear();
        loop {
            let mut sum = start;
            if matches!(stage.combine, Combine::Accumulate(_)) {
                let held = base.zip(axes.position(target, &point));
                let held = held.and_then(|(base, position)| base.number(position));
                sum.push(held.ok_or_else(|| defect(stage, "a scatter accumulates onto nothing"))?);
            }
            sums.push(sum);
            if !advance(stage, axes.scattered.iter().copied(), &mut point) {
                break;
            }
        }
        loop {
            axes.term(program, stage, tensors, &mut point, &mut sums)?;
            if !advance(stage, axes.terms.iter().copied(), &mut point) {
                break;
            }
        }
        for sum in &sums {
            let Some(position) = axes.position(target, &point) else {
                return Err(defect(stage, "a stage writes outside of its tensor"));
            };
            target.store(position, sum.finish().store(target.tensor.dtype))?;
            advance(stage, axes.scattered.iter().copied(), &mut point);
        }
        if !advance(stage, axes.plain.iter().copied(), &mut point) {
            return Ok(());
        }
    }
}

/// The axes of a scatter, by role.
struct Axes {
    rank: usize,
    /// Spatial axes that are not scattered.
    plain: Vec<usize>,
    /// Scattered axes.
    scattered: Vec<usize>,
    /// Axes that enumerate terms.
    terms: Vec<usize>,
}

impl Axes {
    fn of(stage: &Stage) -> Self {
        let mut axes = Self {
            rank: stage.spatial(),
            plain: Vec::new(),
            scattered: Vec::new(),
            terms: Vec::new(),
        };
        for (number, axis) in stage.axes.iter().enumerate() {
            match axis.kind {
                AxisKind::Reduce => axes.terms.push(number),
                AxisKind::Spatial if stage.is_scattered(AxisId(number as u32)) => {}
                AxisKind::Spatial => axes.plain.push(number),
            }
        }
        axes.scattered = stage.scatter.iter().map(|scatter| scatter.axis.0 as usize).collect();
        axes
    }

    /// The number of elements that a term may go to.
    fn elements(&self, stage: &Stage) -> usize {
        let extents = self.scattered.iter().filter_map(|number| stage.axes.get(*number));
        let extents = extents.map(|axis| usize::try_from(axis.extent()).unwrap_or(usize::MAX));
        extents.fold(1, usize::saturating_mul)
    }

    fn position(&self, target: &Target<'_, '_>, point: &[i64]) -> Option<usize> {
        target.contents.buffer.position(point.get(..self.rank)?)
    }

    /// Computes a term, and adds it to its element. If its position is uncertain it may belong to
    /// any element.
    fn term(
        &self,
        program: &Program,
        stage: &Stage,
        tensors: &[Option<Contents<'_>>],
        point: &mut [i64],
        sums: &mut [Accumulator],
    ) -> Result<(), Failure> {
        let scope = Scope { program, stage, tensors, point };
        let positions = positions(&scope)?;
        let is_certain = positions.iter().all(|at| !at.uncertain);
        if is_certain {
            let value = scope.eval(stage.term())?;
            let axes = stage.scatter.iter().map(|scatter| stage.axis(scatter.axis));
            let number = axes.zip(&positions).fold(0, |number, (axis, at)| {
                number * axis.extent() as usize + (at.value - i128::from(axis.lo)) as usize
            });
            let sum = sums.get_mut(number);
            sum.ok_or_else(|| defect(stage, "a term goes nowhere"))?.push(value);
            return Ok(());
        }
        for sum in sums {
            sum.push(Scope { program, stage, tensors, point }.eval(&stage.body)?);
            advance(stage, self.scattered.iter().copied(), point);
        }
        Ok(())
    }
}

/// The positions of the term at a point, each checked.
fn positions<T: Tensors + ?Sized>(scope: &Scope<'_, T>) -> Result<Vec<IndexValue>, Failure> {
    let position = |scatter: &Scatter| {
        let axis = scope.stage.axis(scatter.axis);
        let at = scope.index(&scatter.at)?;
        if at.value < i128::from(axis.lo) || at.value >= i128::from(axis.hi) {
            let dimension = scatter.axis.0 as usize;
            return Err(scope.out_of_bounds(&scope.stage.element(), dimension, at.value, axis.hi));
        }
        Ok(at)
    };
    scope.stage.scatter.iter().map(position).collect()
}

/// Whether the term at a point may contribute to the element there.
pub(crate) fn may_contribute<T: Tensors + ?Sized>(scope: &Scope<'_, T>) -> Result<bool, Failure> {
    let mut may_contribute = true;
    for (scatter, at) in scope.stage.scatter.iter().zip(positions(scope)?) {
        let here = scope.point.get(scatter.axis.0 as usize).copied().unwrap_or(0);
        may_contribute &= at.uncertain || at.value == i128::from(here);
    }
    Ok(may_contribute)
}
