//! Running floating-point sums and products, evaluated as reductions.
//!
//! `y(t) = y(t-1) + x(t)` is the sum of all terms so far, which may be added in any order, so its
//! elements have the bounds of reductions.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{Program, Running, Scan, Stage};

use crate::eval::{Failure, Scope, Tensors};
use crate::number::Number;
use crate::reduce::Accumulator;
use crate::tolerance::Approx;

/// A stage that computes running sums or products.
pub(crate) struct RunningStage<'s> {
    stage: &'s Stage,
    scan: &'s Scan,
    running: Running<'s>,
    dtype: DType,
    /// The distance between consecutive elements.
    stride: usize,
}

impl<'s> RunningStage<'s> {
    /// Matches a running stage; minima, maxima and integers do not match, because they do not
    /// round.
    pub(crate) fn of(program: &'s Program, stage: &'s Stage) -> Option<Self> {
        let tensor = program.tensors.get(stage.output.0 as usize)?;
        let (scan, dtype) = (stage.scan.as_ref()?, tensor.dtype);
        let running = stage.running(dtype).filter(|running| rounds(running.op, dtype))?;
        let later = tensor.shape.iter().skip(scan.axis.0 as usize + 1);
        let stride = later.map(|extent| extent.unsigned_abs() as usize).product();
        Some(Self { stage, scan, running, dtype, stride })
    }

    /// The position of the element before a point; `None` for the first of a line.
    pub(crate) fn before(&self, point: &[i64], position: usize) -> Option<usize> {
        let number = self.scan.axis.0 as usize;
        let (axis, at) = (self.stage.axes.get(number)?, *point.get(number)?);
        match self.scan.backwards {
            true => (at + 1 < axis.hi).then_some(position + self.stride),
            false => (at > axis.lo).then(|| position - self.stride),
        }
    }

    /// The accumulator at a point, from that of the element before.
    pub(crate) fn next<T: Tensors + ?Sized>(
        &self,
        program: &Program,
        tensors: &T,
        point: &[i64],
        before: Option<Accumulator>,
    ) -> Result<Accumulator, Failure> {
        let scope = Scope { program, stage: self.stage, tensors, point };
        let mut sum = match before {
            Some(before) => before,
            None => accumulator(self.running.op, self.dtype, Some(scope.eval(&self.scan.start)?)),
        };
        sum.push(scope.eval(&self.running.term)?);
        Ok(sum)
    }
}

/// Whether the order of terms affects the result.
pub(crate) fn rounds(op: ReductionOp, dtype: DType) -> bool {
    dtype.is_float() && matches!(op, ReductionOp::Sum | ReductionOp::Product)
}

/// A reduction that starts from a number. Adding to zero and multiplying by one are exact, and not
/// counted as terms.
pub(crate) fn accumulator(op: ReductionOp, dtype: DType, held: Option<Number>) -> Accumulator {
    let mut sum = Accumulator::neutral(op, dtype);
    let nothing = match op {
        ReductionOp::Sum => Some(Approx::exact(0.0)),
        ReductionOp::Product => Some(Approx::exact(1.0)),
        ReductionOp::Min | ReductionOp::Max => None,
    };
    let is_nothing = |held: &Number| Some(held.approx()) == nothing;
    if let Some(held) = held.filter(|held| !is_nothing(held)) {
        sum.push(held);
    }
    sum
}
