//! [`Memory`]: error analysis of rewritten statements.
//!
//! A rewrite such as Winograd's algorithm computes other intermediate values than the program, so
//! its error depends on those. Running the *rewritten* statements with the analysis of
//! [`tolerance`](crate::tolerance) bounds that error for any data; the caller runs the loops and
//! calls [`Memory::write`] for each statement.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tensorwright_lang::diagnostic::{Code, Diagnostic};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{Expr, Index, Program, Running, Stage, TensorId};

use crate::buffer::Buffer;
use crate::eval::{Contents, Failure, Scope};
use crate::interpret::check_inputs;
use crate::number::Number;
use crate::output::Output;
use crate::reduce::Accumulator;
use crate::running::{accumulator, rounds};

/// Tensors with an error bound for every element.
pub struct Memory<'a> {
    /// For its names.
    program: Program,
    /// The location for diagnostics.
    stage: Stage,
    tensors: Vec<Option<Contents<'a>>>,
    /// Partial sums of tensors that are accumulated.
    sums: Vec<Vec<Accumulator>>,
}

/// A write of one element.
#[derive(Debug, Clone, Copy)]
pub struct Write<'e> {
    /// The tensor, by its number in the memory.
    pub tensor: TensorId,
    /// One subscript per dimension.
    pub subscripts: &'e [Index],
    /// How the value is combined with the old one; `None` replaces it.
    pub combine: Option<ReductionOp>,
    /// The value.
    pub value: &'e Expr,
}

impl<'a> Memory<'a> {
    /// Creates the inputs of a program, and zeros in all other tensors: `all` lists the types and
    /// shapes of the tensors in use, the program's own first.
    ///
    /// # Errors
    /// If inputs do not match the program, or tensors are too large.
    #[allow(clippy::result_large_err)]
    pub fn new(
        program: &Program,
        inputs: &'a BTreeMap<String, Buffer>,
        all: &[(DType, Vec<i64>)],
    ) -> Result<Self, Diagnostic> {
        let given = check_inputs(program, inputs).map_err(|failure| *failure)?;
        let Some(stage) = program.stages.first().cloned() else {
            return Err(too_large("the program has no statements"));
        };
        let mut tensors = Vec::with_capacity(all.len());
        let given = given.into_iter().chain(std::iter::repeat_with(|| None));
        for ((dtype, shape), given) in all.iter().zip(given) {
            let contents = match given {
                Some(given) => given,
                None => {
                    let zeros =
                        Buffer::zeros(*dtype, shape).map_err(|e| too_large(&e.to_string()))?;
                    Contents { buffer: Cow::Owned(zeros), errors: None }
                }
            };
            tensors.push(Some(contents));
        }
        let sums = all.iter().map(|_| Vec::new()).collect();
        Ok(Self { program: program.clone(), stage, tensors, sums })
    }

    fn scope<'s>(&'s self, point: &'s [i64]) -> Scope<'s, [Option<Contents<'a>>]> {
        let tensors = self.tensors.as_slice();
        Scope { program: &self.program, stage: &self.stage, tensors, point }
    }

    /// Whether all conditions are non-negative at a point of the axes.
    ///
    /// # Errors
    /// Reads out of bounds.
    #[allow(clippy::result_large_err)]
    pub fn holds(&self, conditions: &[Index], point: &[i64]) -> Result<bool, Diagnostic> {
        let scope = self.scope(point);
        for condition in conditions {
            if scope.integer(condition).map_err(|failure| *failure)? < 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs a statement at a point of the axes.
    ///
    /// # Errors
    /// Reads and writes out of bounds.
    #[allow(clippy::result_large_err)]
    pub fn write(&mut self, write: Write<'_>, point: &[i64]) -> Result<(), Diagnostic> {
        self.write_boxed(write, point).map_err(|failure| *failure)
    }

    fn write_boxed(&mut self, write: Write<'_>, point: &[i64]) -> Result<(), Failure> {
        let scope = self.scope(point);
        let position = scope.position(write.tensor, write.subscripts)?;
        let place = write.tensor.0 as usize;
        let running = write.combine.is_none().then(|| self.running(write, point)).transpose()?;
        let value = match running.flatten() {
            None => scope.eval(write.value)?,
            Some(sum) => {
                if let Some(Some(contents)) = self.tensors.get(place)
                    && self.sums[place].is_empty()
                {
                    let none = Accumulator::neutral(ReductionOp::Sum, contents.buffer.dtype());
                    self.sums[place] = vec![none; contents.buffer.len()];
                }
                let value = sum.finish();
                if let Some(Some(contents)) = self.tensors.get_mut(place) {
                    contents.set(position, value.store(contents.buffer.dtype()));
                }
                self.sums[place][position] = sum;
                return Ok(());
            }
        };
        let Some(contents) = self.tensors.get_mut(place).and_then(Option::as_mut) else {
            return Ok(());
        };
        let dtype = contents.buffer.dtype();
        let sums = &mut self.sums[place];
        let is_sum = write.combine == Some(ReductionOp::Sum) && dtype.is_float();
        if sums.is_empty() && is_sum {
            let accumulator = |at| accumulator(ReductionOp::Sum, dtype, contents.number(at));
            *sums = (0..contents.buffer.len()).map(accumulator).collect();
        }
        let number = match (sums.get_mut(position), write.combine) {
            (Some(sum), Some(ReductionOp::Sum)) => {
                sum.push(value);
                sum.finish()
            }
            (sum, combine) => {
                let held = contents.number(position);
                let number = combine.zip(held).map_or(value, |(op, held)| folded(op, held, value));
                let number = number.store(dtype);
                if let Some(sum) = sum {
                    *sum = accumulator(ReductionOp::Sum, dtype, Some(number));
                }
                number
            }
        };
        contents.set(position, number.store(dtype));
        Ok(())
    }

    /// The accumulator of a running sum or product: its terms may be combined in any order.
    fn running(&self, write: Write<'_>, point: &[i64]) -> Result<Option<Accumulator>, Failure> {
        let place = write.tensor.0 as usize;
        let Some(Some(contents)) = self.tensors.get(place) else { return Ok(None) };
        let dtype = contents.buffer.dtype();
        let is_one =
            |running: &Running<'_>| running.is_associative(dtype) && rounds(running.op, dtype);
        let Some(running) = Running::of(write.value, write.tensor).filter(is_one) else {
            return Ok(None);
        };
        let scope = self.scope(point);
        let start = match running.before {
            Expr::Select(condition, _, start) if !scope.eval(condition)?.is_true() => Some(start),
            _ => None,
        };
        let mut sum = match start {
            Some(start) => accumulator(running.op, dtype, Some(scope.eval(start)?)),
            None => {
                let before = scope.position(write.tensor, &running.read.subscripts)?;
                let held = || accumulator(running.op, dtype, contents.number(before));
                self.sums[place].get(before).copied().unwrap_or_else(held)
            }
        };
        sum.push(scope.eval(&running.term)?);
        Ok(Some(sum))
    }

    /// The current contents of a tensor of the program.
    #[must_use]
    pub fn output(&self, id: TensorId) -> Option<Output> {
        let name = self.program.tensors.get(id.0 as usize)?.name.clone();
        let contents = self.tensors.get(id.0 as usize)?.as_ref()?;
        let buffer = contents.buffer.clone().into_owned();
        let tolerance = contents.errors.clone().unwrap_or_else(|| vec![0.0; buffer.len()]);
        Some(Output { name, buffer, tolerance })
    }
}

/// Any other reduction, step by step.
fn folded(op: ReductionOp, held: Number, value: Number) -> Number {
    let mut fold = Accumulator::Fold(op, held);
    fold.push(value);
    fold.finish()
}

fn too_large(why: &str) -> Diagnostic {
    Diagnostic::without_place(Code::TooLarge, format!("the statements cannot be run: {why}"))
}
