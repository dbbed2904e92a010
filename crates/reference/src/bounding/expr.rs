//! Builds an expression's value in `double` and its error bound.
//!
//! The rules are those of [`tolerance`](crate::tolerance), with two differences. Every operand
//! error occurs once in the result (otherwise expressions would double in size with every
//! operation), which costs sharpness: `min` and `max` take the larger of both errors. And where a
//! rule would be long and is rarely needed, the error is infinite.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp, LogicOp, UnaryOp};
use tensorwright_lang::program::{Expr, Index, Interval, Program, Read, Rewrite, Stage, TensorId};

use super::build::{
    abs, abs_difference, add, both, compare, either, infinity, is_infinite, is_small, number,
    select, sub, unless,
};
use super::call::call;
use super::enclosure::{
    Enclosure, Term, arith, as_double, exact_integers, from_integer, near, rounded, rounded_or,
};
use crate::tolerance::Rounding;

/// The tensors of the analysis for each tensor of the program.
pub(super) struct Tensors<'a> {
    pub(super) program: &'a Program,
    /// The values by tensor id: `double` for a computed floating-point tensor.
    pub(super) values: Vec<TensorId>,
    /// The errors; `None` for an exact tensor.
    pub(super) errors: Vec<Option<TensorId>>,
}

impl Tensors<'_> {
    /// The type of an expression.
    fn dtype(&self, expr: &Expr) -> DType {
        expr.dtype(&|id| self.program.tensor(id).dtype)
    }

    /// The value and the error of an expression; `None` where index arithmetic overflows.
    pub(super) fn bound(&self, stage: &Stage, expr: &Expr) -> Option<Enclosure> {
        let dtype = self.dtype(expr);
        let (value, error) = match expr {
            Expr::Const(scalar) if dtype.is_float() => (number(scalar.as_f64()), None),
            Expr::Const(_) => (expr.clone(), None),
            Expr::Index(index, _) => self.index_value(stage, index, dtype)?,
            Expr::Read(read) => self.read(stage, read)?,
            Expr::Unary(op, operand) => {
                let operand = self.bound(stage, operand)?;
                let is_integer = *op == UnaryOp::Neg && !dtype.is_float();
                let error = operand.error.map(|e| if is_integer { infinity() } else { e });
                (Expr::Unary(*op, Box::new(operand.value)), error)
            }
            Expr::Arith(op, a, b) if dtype.is_float() => {
                let (a, b) = (self.bound(stage, a)?, self.bound(stage, b)?);
                // An infinity absorbs whatever is finite.
                let absorbs = either(is_infinite(abs(&a.value)), is_infinite(abs(&b.value)));
                let rounding = Rounding::operation(dtype);
                let Term { value, relative, error, .. } = arith(*op, a, b);
                let error = match op {
                    // Of exact numbers.
                    ArithOp::Rem => error,
                    ArithOp::Add | ArithOp::Sub => {
                        Some(rounded_or(&value, error, relative, rounding, unless(absorbs)))
                    }
                    _ => Some(rounded(&value, error, relative, rounding)),
                };
                (value, error)
            }
            Expr::Arith(op, a, b) => {
                let (a, b) = (self.bound(stage, a)?, self.bound(stage, b)?);
                let value = Expr::Arith(*op, Box::new(a.value), Box::new(b.value));
                let moves = matches!(op, ArithOp::Add | ArithOp::Sub);
                let error = both(a.error, b.error)
                    .map(|error| if moves { near(&value, error, dtype) } else { infinity() });
                (value, error)
            }
            Expr::Compare(op, a, b) => self.compare(stage, *op, a, b)?,
            Expr::CompareIndex(op, a, b) => {
                let ((a, error_a), (b, error_b)) = (self.index(stage, a)?, self.index(stage, b)?);
                (Expr::CompareIndex(*op, a, b), both(error_a, error_b))
            }
            Expr::Logic(op, a, b) => self.logic(stage, *op, a, b)?,
            Expr::Select(condition, a, b) => self.select(stage, condition, a, b)?,
            Expr::Call(builtin, args) => {
                let args: Option<Vec<Enclosure>> =
                    args.iter().map(|a| self.bound(stage, a)).collect();
                call(*builtin, args?)
            }
            Expr::Cast(_, operand) => return self.cast(stage, operand, dtype),
        };
        let error = error.map(|e| if is_small(&e) { e } else { infinity() });
        Some(Enclosure { dtype, value, error })
    }

    /// A term of a sum. The caller checks for overflow.
    pub(super) fn term(&self, stage: &Stage, expr: &Expr, dtype: DType) -> Option<Term> {
        if let Expr::Arith(op, a, b) = expr
            && self.dtype(expr) == dtype
            && *op != ArithOp::Rem
        {
            return Some(arith(*op, self.bound(stage, a)?, self.bound(stage, b)?));
        }
        let Enclosure { value, error, .. } = self.stored(stage, expr, dtype)?;
        Some(Term { value, relative: 0.0, absolute: 0.0, error })
    }

    /// An expression converted to a type.
    pub(super) fn stored(&self, stage: &Stage, expr: &Expr, dtype: DType) -> Option<Enclosure> {
        if self.dtype(expr) == dtype {
            return self.bound(stage, expr);
        }
        self.cast(stage, expr, dtype)
    }

    fn compare(
        &self,
        stage: &Stage,
        op: CompareOp,
        a: &Expr,
        b: &Expr,
    ) -> Option<(Expr, Option<Expr>)> {
        let (a, b) = (self.bound(stage, a)?, self.bound(stage, b)?);
        let value = Expr::Compare(op, Box::new(a.value.clone()), Box::new(b.value.clone()));
        let dtype = a.dtype;
        let error = both(a.error, b.error).map(|error| {
            let distance = abs_difference(as_double(a.value, dtype), as_double(b.value, dtype));
            select(compare(CompareOp::Gt, distance, error), number(0.0), number(1.0))
        });
        Some((value, error))
    }

    fn logic(
        &self,
        stage: &Stage,
        op: LogicOp,
        a: &Expr,
        b: &Expr,
    ) -> Option<(Expr, Option<Expr>)> {
        let (a, b) = (self.bound(stage, a)?, self.bound(stage, b)?);
        // The right side may be read only where the left one does not decide.
        let right = b.error.map(|error| match op {
            LogicOp::And => select(a.value.clone(), error, number(0.0)),
            LogicOp::Or => select(a.value.clone(), number(0.0), error),
        });
        let value = Expr::Logic(op, Box::new(a.value), Box::new(b.value));
        Some((value, both(a.error, right)))
    }

    fn select(
        &self,
        stage: &Stage,
        condition: &Expr,
        a: &Expr,
        b: &Expr,
    ) -> Option<(Expr, Option<Expr>)> {
        let may_read_both = self.is_always_inside(stage, a) && self.is_always_inside(stage, b);
        let condition = self.bound(stage, condition)?;
        let (a, b) = (self.bound(stage, a)?, self.bound(stage, b)?);
        let dtype = a.dtype;
        let value = select(condition.value.clone(), a.value.clone(), b.value.clone());
        let is_exact = a.error.is_none() && b.error.is_none();
        let error_a = a.error.unwrap_or_else(|| number(0.0));
        let error_b = b.error.unwrap_or_else(|| number(0.0));
        let Some(uncertain) = condition.error else {
            let chosen = select(condition.value, error_a, error_b);
            return Some((value, (!is_exact).then_some(chosen)));
        };
        let surely = compare(CompareOp::Eq, uncertain, number(0.0));
        let error = if may_read_both {
            // Either branch may be chosen; a sum, because each error may be NaN.
            let apart = abs_difference(as_double(a.value, dtype), as_double(b.value, dtype));
            let apart = add(apart, add(error_a.clone(), error_b.clone()));
            select(surely, select(condition.value, error_a, error_b), apart)
        } else {
            select(surely, select(condition.value, error_a, error_b), infinity())
        };
        Some((value, Some(error)))
    }

    /// Whether every read of an expression is in bounds without a guard.
    fn is_always_inside(&self, stage: &Stage, expr: &Expr) -> bool {
        let axis = |id| {
            let axis = stage.axis(id);
            Interval { lo: i128::from(axis.lo), hi: i128::from(axis.hi - 1) }
        };
        let mut inside = true;
        expr.walk_reads(&mut |read| {
            let shape = &self.program.tensor(read.tensor).shape;
            for (subscript, extent) in read.subscripts.iter().zip(shape) {
                inside &= !subscript.has_value()
                    && subscript
                        .interval(&axis, &|_| Interval::point(-1))
                        .within(0, i128::from(*extent) - 1);
            }
        });
        inside
    }

    fn cast(&self, stage: &Stage, operand: &Expr, dtype: DType) -> Option<Enclosure> {
        let Enclosure { dtype: from, value, error } = self.bound(stage, operand)?;
        let double = |value: Expr| Expr::Cast(DType::Double, Box::new(value));
        let converted = |value: Expr| Expr::Cast(dtype, Box::new(value));
        let rounding = Rounding::operation(dtype);
        let was_exact = error.is_none();
        let (value, error) = match (from.is_float(), dtype.is_float()) {
            (true, true) => {
                let widens = Rounding::operation(from).unit >= rounding.unit
                    && Rounding::operation(from).largest <= rounding.largest;
                let error = (!widens || error.is_some())
                    .then(|| rounded(&value, error, rounding.unit, rounding));
                (value, error)
            }
            (true, false) => {
                let result = converted(value.clone());
                // Truncation is monotone; far outside the type it saturates.
                let error = error.map(|e| {
                    let at =
                        |end: Expr| abs_difference(double(converted(end)), double(result.clone()));
                    let ends = add(at(sub(value.clone(), e.clone())), at(add(value, e.clone())));
                    add(ends, unless(compare(CompareOp::Lt, e, number(1e30))))
                });
                (result, error)
            }
            (false, true) => {
                let value = double(value);
                let (value, error) = from_integer(value, error, dtype);
                let most = exact_integers(dtype);
                let fits = from
                    .integer_range()
                    .is_some_and(|(lo, hi)| (lo as f64).abs() <= most && hi as f64 <= most);
                let is_exact = fits && was_exact;
                (value, error.filter(|_| !is_exact))
            }
            (false, false) => {
                let surely = |error| unless(compare(CompareOp::Eq, error, number(0.0)));
                (converted(value), error.map(surely))
            }
        };
        Some(Enclosure { dtype, value, error })
    }

    fn read(&self, stage: &Stage, read: &Read) -> Option<(Expr, Option<Expr>)> {
        let mut elsewhere = None;
        let mut subscripts = Vec::with_capacity(read.subscripts.len());
        for subscript in &read.subscripts {
            let (subscript, error) = self.index(stage, subscript)?;
            elsewhere = both(elsewhere, error);
            subscripts.push(subscript);
        }
        let at =
            |tensor| Expr::Read(Read { tensor, subscripts: subscripts.clone(), ..read.clone() });
        let place = read.tensor.0 as usize;
        let error = self.errors[place].map(at);
        let is_float = self.program.tensor(read.tensor).dtype.is_float();
        let value = at(self.values[place]);
        let value = if is_float && place < self.program.inputs {
            Expr::Cast(DType::Double, Box::new(value))
        } else {
            value
        };
        Some((value, both(error, elsewhere)))
    }

    /// An index converted to a type.
    fn index_value(
        &self,
        stage: &Stage,
        index: &Index,
        dtype: DType,
    ) -> Option<(Expr, Option<Expr>)> {
        let (index, error) = self.index(stage, index)?;
        if !dtype.is_float() {
            return Some((Expr::Index(index, dtype), error));
        }
        let value = Expr::Cast(DType::Double, Box::new(Expr::Index(index, DType::Int64)));
        Some(from_integer(value, error, dtype))
    }

    /// An index over the tensors of the analysis. The error is infinite where another evaluation
    /// may compute another index.
    pub(super) fn index(&self, stage: &Stage, index: &Index) -> Option<(Index, Option<Expr>)> {
        if !index.has_value() {
            return Some((index.clone(), None));
        }
        let mut error = None;
        for value in index.outermost_values() {
            error = both(error, self.bound(stage, value)?.error);
        }
        let error = error.map(|error| unless(compare(CompareOp::Eq, error, number(0.0))));
        Some((index.rewrite(&mut InIndex(self))?, error))
    }
}

/// Reads in index arithmetic keep their types.
struct InIndex<'a>(&'a Tensors<'a>);

impl Rewrite for InIndex<'_> {
    fn read(&mut self, read: Read) -> Option<Expr> {
        let place = read.tensor.0 as usize;
        let dtype = self.0.program.tensor(read.tensor).dtype;
        let tensor = self.0.values[place];
        let moved = Expr::Read(Read { tensor, ..read });
        let is_double = dtype.is_float() && place >= self.0.program.inputs;
        Some(if is_double { Expr::Cast(dtype, Box::new(moved)) } else { moved })
    }
}
