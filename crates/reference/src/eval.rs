//! Evaluates an expression at one point of a stage's axes.

use std::borrow::Cow;
use std::fmt::Write as _;

use tensorwright_lang::diagnostic::{Code, Diagnostic};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::LogicOp;
use tensorwright_lang::program::{AxisId, Expr, Index, Program, Read, Stage, TensorId};

use crate::buffer::{Buffer, position_in};
use crate::element::Value;
use crate::number::Number;

/// An evaluation error; boxed, so that values stay cheap to return.
pub(crate) type Failure = Box<Diagnostic>;

/// A computed or supplied tensor.
pub(crate) struct Contents<'a> {
    /// The elements.
    pub(crate) buffer: Cow<'a, Buffer>,
    /// The error bounds of the elements; `None` if all are exact.
    pub(crate) errors: Option<Vec<f64>>,
}

impl Contents<'_> {
    /// The element at a position.
    pub(crate) fn number(&self, position: usize) -> Option<Number> {
        let value = self.buffer.get(position)?;
        let error = self.errors.as_ref().and_then(|errors| errors.get(position).copied());
        let number = Number::from_value(self.buffer.dtype(), value);
        Some(number.with_error(error.unwrap_or(0.0)))
    }

    /// Sets an element.
    pub(crate) fn set(&mut self, position: usize, number: Number) {
        let buffer = self.buffer.to_mut();
        buffer.set(position, number.value());
        if number.error() > 0.0 && self.errors.is_none() {
            self.errors = Some(vec![0.0; buffer.len()]);
        }
        if let Some(slot) = self.errors.as_mut().and_then(|errors| errors.get_mut(position)) {
            *slot = number.error();
        }
    }
}

/// A source of tensor elements.
pub(crate) trait Tensors {
    /// The extents of a tensor; `None` if it is unavailable.
    fn shape(&self, id: TensorId) -> Option<&[i64]>;

    /// The element at a position; `None` past the end.
    fn number(&self, id: TensorId, position: usize) -> Result<Option<Number>, Failure>;
}

/// The tensors of a program, by id; `None` if not computed yet or already freed.
impl Tensors for [Option<Contents<'_>>] {
    fn shape(&self, id: TensorId) -> Option<&[i64]> {
        let contents = self.get(id.0 as usize)?.as_ref()?;
        Some(contents.buffer.shape())
    }

    fn number(&self, id: TensorId, position: usize) -> Result<Option<Number>, Failure> {
        let contents = self.get(id.0 as usize).and_then(Option::as_ref);
        Ok(contents.and_then(|contents| contents.number(position)))
    }
}

/// The environment of an expression.
pub(crate) struct Scope<'a, T: ?Sized> {
    pub(crate) program: &'a Program,
    pub(crate) stage: &'a Stage,
    pub(crate) tensors: &'a T,
    /// The values of the axes.
    pub(crate) point: &'a [i64],
}

/// The value of an index, and whether another evaluation may compute another one.
pub(crate) struct IndexValue {
    pub(crate) value: i128,
    pub(crate) uncertain: bool,
}

impl<T: Tensors + ?Sized> Scope<'_, T> {
    /// The value of an expression. Recursion is as deep as the expression, which parsing limits.
    pub(crate) fn eval(&self, expr: &Expr) -> Result<Number, Failure> {
        Ok(match expr {
            Expr::Const(scalar) => {
                let dtype = scalar.dtype();
                let value = if dtype.is_float() {
                    Value::Float(scalar.as_f64())
                } else {
                    Value::Integer(scalar.as_integer())
                };
                Number::from_value(dtype, value)
            }
            Expr::Index(index, dtype) => {
                let index = self.index(index)?;
                let number = Number::integer(DType::Int64, index.value).cast(*dtype);
                if index.uncertain { number.with_error(f64::INFINITY) } else { number }
            }
            Expr::Read(read) => self.read(read)?,
            Expr::Unary(op, operand) => self.eval(operand)?.unary(*op),
            Expr::Arith(op, lhs, rhs) => self.eval(lhs)?.arith(*op, self.eval(rhs)?),
            Expr::Compare(op, lhs, rhs) => self.eval(lhs)?.compare(*op, self.eval(rhs)?),
            Expr::CompareIndex(op, lhs, rhs) => {
                let (lhs, rhs) = (self.index(lhs)?, self.index(rhs)?);
                let holds = op.holds(Some(lhs.value.cmp(&rhs.value)));
                Number::boolean(holds).with_error(f64::from(lhs.uncertain || rhs.uncertain))
            }
            Expr::Logic(op, lhs, rhs) => self.logic(*op, lhs, rhs)?,
            Expr::Select(condition, then, otherwise) => self.select(condition, then, otherwise)?,
            Expr::Call(builtin, args) => {
                let mut numbers = [Number::boolean(false); 3];
                for (number, arg) in numbers.iter_mut().zip(args) {
                    *number = self.eval(arg)?;
                }
                Number::call(*builtin, numbers)
            }
            Expr::Cast(dtype, operand) => self.eval(operand)?.cast(*dtype),
        })
    }

    /// `&&` or `
    ///
    /// `. If the left side is uncertain, the right side is evaluated against the rules, and its
    /// errors are ignored.
    fn logic(&self, op: LogicOp, lhs: &Expr, rhs: &Expr) -> Result<Number, Failure> {
        let left = self.eval(lhs)?;
        let decided_by = op == LogicOp::Or;
        if left.is_true() != decided_by {
            let right = self.eval(rhs)?;
            let decided = right.is_true() == decided_by && !right.is_uncertain();
            let uncertain = right.is_uncertain() || (left.is_uncertain() && !decided);
            return Ok(Number::boolean(right.is_true()).with_error(f64::from(uncertain)));
        }
        if !left.is_uncertain() {
            return Ok(left);
        }
        let right = self.eval(rhs).ok();
        let decided = right.is_some_and(|r| r.is_true() == decided_by && !r.is_uncertain());
        Ok(Number::boolean(decided_by).with_error(f64::from(!decided)))
    }

    /// `c ? a : b`. Both branches are evaluated only where the condition is uncertain.
    fn select(&self, condition: &Expr, then: &Expr, other: &Expr) -> Result<Number, Failure> {
        let condition = self.eval(condition)?;
        let (chosen, rejected) = if condition.is_true() { (then, other) } else { (other, then) };
        let value = self.eval(chosen)?;
        if !condition.is_uncertain() {
            return Ok(value);
        }
        Ok(value.or_else(self.eval(rejected).ok()))
    }

    pub(crate) fn index(&self, index: &Index) -> Result<IndexValue, Failure> {
        // Fast path: most subscripts are a single axis.
        if let Some(axis) = index.as_axis() {
            return Ok(IndexValue { value: i128::from(self.axis(axis)), uncertain: false });
        }
        let mut uncertain = false;
        let axis = |axis: AxisId| self.axis(axis);
        let value = index.eval(&axis, &mut |expr: &Expr| -> Result<i128, Failure> {
            let number = self.eval(expr)?;
            uncertain |= number.is_uncertain();
            Ok(number.as_integer())
        })?;
        Ok(IndexValue { value, uncertain })
    }

    /// The value of an axis at this point.
    fn axis(&self, axis: AxisId) -> i64 {
        self.point.get(axis.0 as usize).copied().unwrap_or(0)
    }

    /// The value of an index.
    pub(crate) fn integer(&self, index: &Index) -> Result<i128, Failure> {
        Ok(self.index(index)?.value)
    }

    /// The position of an element of a tensor, with every subscript checked.
    pub(crate) fn position(&self, id: TensorId, subscripts: &[Index]) -> Result<usize, Failure> {
        let Some(shape) = self.tensors.shape(id) else {
            return Err(self.defect("a statement writes a tensor that is not there"));
        };
        let mut at = Vec::with_capacity(subscripts.len());
        for subscript in subscripts {
            at.push(i64::try_from(self.index(subscript)?.value).unwrap_or(-1));
        }
        let position = position_in(shape, &at);
        position.ok_or_else(|| self.defect("a statement writes outside of its tensor"))
    }

    /// Reads an element, with every subscript checked.
    fn read(&self, read: &Read) -> Result<Number, Failure> {
        let Some(shape) = self.tensors.shape(read.tensor) else {
            return Err(self.defect("a stage reads a tensor that is not there"));
        };
        if shape.len() != read.subscripts.len() {
            return Err(self.defect("a read has the wrong number of subscripts"));
        }
        let mut position = 0;
        let mut uncertain = false;
        for (dimension, (subscript, extent)) in read.subscripts.iter().zip(shape).enumerate() {
            let index = self.index(subscript)?;
            if index.value < 0 || index.value >= i128::from(*extent) {
                return Err(self.out_of_bounds(read, dimension, index.value, *extent));
            }
            uncertain |= index.uncertain;
            position = position * (*extent as usize) + index.value as usize;
        }
        let Some(number) = self.tensors.number(read.tensor, position)? else {
            return Err(self.defect("a tensor is smaller than its shape"));
        };
        Ok(if uncertain { number.with_error(f64::INFINITY) } else { number })
    }

    pub(crate) fn out_of_bounds(
        &self,
        read: &Read,
        dimension: usize,
        index: i128,
        extent: i64,
    ) -> Failure {
        let name = self.program.tensors.get(read.tensor.0 as usize).map_or("?", |t| &t.name);
        let what = format!(
            "index {index} is out of bounds for dimension {dimension} of `{name}` (extent {extent})"
        );
        let at = self.point_text();
        if !read.checked.contains(&(dimension as u32)) {
            return Box::new(
                Diagnostic::new(Code::OutOfBounds, read.place.0, format!("{what}{at}"))
                    .here("range inference said that this read is in bounds")
                    .note("the program is not at fault: the compiler's range inference is wrong")
                    .help("please report this with the program and its sizes"),
            );
        }
        let data = "the subscript is computed from data, so it is checked when the program runs";
        Box::new(
            Diagnostic::new(Code::IndexOutOfBounds, read.place.0, format!("{what}{at}"))
                .here(format!("dimension {dimension} allows 0 to {}", extent - 1))
                .note(data)
                .help(match read.tensor == self.stage.output {
                    true => {
                        "correct the data, or keep the position inside: `clamp(p(i), 0, N - 1)`"
                    }
                    false => {
                        "correct the data, or guard the read with a ternary, such as \
                         `(i >= 0 && i < N) ? A(i) : 0`"
                    }
                }),
        )
    }

    /// The point of the axes, as in ` at i = 3, j = 0`; empty without axes.
    fn point_text(&self) -> String {
        let mut text = String::new();
        let axes = (0..).map(AxisId).zip(self.stage.axes.iter().zip(self.point));
        // Scattered axes have no value.
        for (_, (axis, value)) in axes.filter(|(id, _)| !self.stage.is_scattered(*id)) {
            let lead = if text.is_empty() { " at" } else { "," };
            // Writing to a string does not fail.
            let _ = write!(text, "{lead} {} = {value}", axis.name);
        }
        text
    }

    /// Reports a compiler defect.
    pub(crate) fn defect(&self, what: &str) -> Failure {
        defect(self.stage, what)
    }
}

/// Reports a compiler defect; never panics.
pub(crate) fn defect(stage: &Stage, what: &str) -> Failure {
    let message = format!("the reference interpreter cannot run this program: {what}");
    Box::new(
        Diagnostic::new(Code::OutOfBounds, stage.span, message)
            .note("the program is not at fault: this is a defect of the compiler")
            .help("please report this with the program and its sizes"),
    )
}
