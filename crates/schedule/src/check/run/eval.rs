//! Evaluates expressions whose data are unknown.

use tensorwright_lang::ops::{ArithOp, CompareOp, LogicOp, UnaryOp};
use tensorwright_lang::program::{Atom, Expr, Index, Read, wrap_integer};

use super::Run;
use super::value::Value::{self, Data, Known, Undefined};
use crate::check::Flaw;
use crate::nest::BufferId;

impl Run<'_> {
    /// The value of an expression.
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<Value, Box<Flaw>> {
        Ok(match expr {
            Expr::Const(scalar) if scalar.dtype().is_float() => Data,
            Expr::Const(scalar) => Known(scalar.as_integer()),
            Expr::Index(index, dtype) => match self.index(index)? {
                Known(value) if !dtype.is_float() => Known(wrap_integer(*dtype, value)),
                other => Data.with(other),
            },
            Expr::Read(read) => self.read(read)?,
            Expr::Unary(op, operand) => match (op, self.expr(operand)?) {
                (UnaryOp::Not, Known(value)) => Value::truth(value == 0),
                (_, value) => value.with(Data),
            },
            Expr::Arith(op, a, b) => match arith(*op, self.expr(a)?, self.expr(b)?) {
                Known(value) => Known(wrap_integer(self.dtype(a), value)),
                other => other,
            },
            Expr::Compare(op, a, b) => compare(*op, self.expr(a)?, self.expr(b)?),
            Expr::CompareIndex(op, a, b) => compare(*op, self.index(a)?, self.index(b)?),
            Expr::Logic(op, a, b) => self.logic(*op, a, b)?,
            Expr::Select(condition, then, otherwise) => match self.expr(condition)? {
                Known(0) => self.expr(otherwise)?,
                Known(_) => self.expr(then)?,
                Data => self.guessed(|run| {
                    let then = run.expr(then)?;
                    Ok(then.or(run.expr(otherwise)?))
                })?,
                Undefined => Undefined,
            },
            Expr::Call(_, arguments) => {
                let mut value = Data;
                for argument in arguments {
                    value = value.with(self.expr(argument)?);
                }
                value
            }
            Expr::Cast(dtype, operand) => match self.expr(operand)? {
                Known(value) if !dtype.is_float() => Known(wrap_integer(*dtype, value)),
                value => value.with(Data),
            },
        })
    }

    fn logic(&mut self, op: LogicOp, a: &Expr, b: &Expr) -> Result<Value, Box<Flaw>> {
        let settled = match op {
            LogicOp::And => 0,
            LogicOp::Or => 1,
        };
        Ok(match self.expr(a)? {
            Known(value) if value == settled => Known(value),
            Known(_) => self.expr(b)?,
            // The right operand may decide the result even if the left one is unknown.
            Data => match self.guessed(|run| run.expr(b))? {
                Known(value) if value == settled => Known(value),
                other => other.with(Data),
            },
            Undefined => Undefined,
        })
    }

    /// Evaluates an expression that may not be evaluated at run time, depending on data.
    fn guessed(
        &mut self,
        eval: impl FnOnce(&mut Self) -> Result<Value, Box<Flaw>>,
    ) -> Result<Value, Box<Flaw>> {
        self.guesses += 1;
        let value = eval(self);
        self.guesses -= 1;
        value
    }

    /// The value of an index. Most are sums of loop variables that fit 64 bits.
    #[inline]
    pub(super) fn index(&mut self, index: &Index) -> Result<Value, Box<Flaw>> {
        let mut sum = Some(index.constant_term());
        for term in index.terms() {
            let Atom::Axis(var) = term.atom else { return self.any_index(index) };
            let product = term.coefficient.checked_mul(self.var(var));
            sum = sum.zip(product).and_then(|(sum, product)| sum.checked_add(product));
        }
        match sum {
            Some(sum) => Ok(Known(sum.into())),
            None => self.any_index(index),
        }
    }

    fn any_index(&mut self, index: &Index) -> Result<Value, Box<Flaw>> {
        let mut sum = Known(i128::from(index.constant_term()));
        for term in index.terms() {
            let atom = match &term.atom {
                Atom::Axis(var) => Known(i128::from(self.var(*var))),
                Atom::Div(inner, by) => match self.index(inner)? {
                    Known(value) => Known(value.div_euclid(i128::from(*by))),
                    other => other,
                },
                Atom::Mod(inner, by) => match self.index(inner)? {
                    Known(value) => Known(value.rem_euclid(i128::from(*by))),
                    other => other,
                },
                Atom::Min(a, b) => match (self.index(a)?, self.index(b)?) {
                    (Known(a), Known(b)) => Known(a.min(b)),
                    (a, b) => a.with(b),
                },
                Atom::Max(a, b) => match (self.index(a)?, self.index(b)?) {
                    (Known(a), Known(b)) => Known(a.max(b)),
                    (a, b) => a.with(b),
                },
                Atom::Product(inner, factor) => match self.index(inner)? {
                    Known(value) => Known(value.wrapping_mul(i128::from(self.var(*factor)))),
                    other => other,
                },
                Atom::Value(expr) => self.expr(expr)?,
            };
            sum = match (sum, atom) {
                (Known(sum), Known(atom)) => {
                    Known(sum.wrapping_add(atom.wrapping_mul(i128::from(term.coefficient))))
                }
                (sum, atom) => sum.with(atom),
            };
        }
        Ok(sum)
    }

    /// The subscripts of an access; `None` for a subscript that depends on data.
    pub(super) fn subscripts(&mut self, indices: &[Index]) -> Result<Vec<Option<i128>>, Box<Flaw>> {
        let mut all = Vec::with_capacity(indices.len());
        for index in indices {
            all.push(match self.index(index)? {
                Known(value) => Some(value),
                Data => None,
                // The position is unknown.
                Undefined => return Err(self.blamed()),
            });
        }
        Ok(all)
    }

    /// The linear position of an access whose subscripts are all known and in bounds, which is the
    /// common case and allocates no memory. `None` for all others; [`Run::subscripts`] tells them
    /// apart.
    pub(super) fn place(
        &mut self,
        id: BufferId,
        indices: &[Index],
    ) -> Result<Option<usize>, Box<Flaw>> {
        let mut place = 0usize;
        for (dimension, index) in indices.iter().enumerate() {
            let Known(value) = self.index(index)? else { return Ok(None) };
            let Some(next) = self.memory_of(id).step(place, dimension, value) else {
                return Ok(None);
            };
            place = next;
        }
        Ok(Some(place))
    }

    fn read(&mut self, read: &Read) -> Result<Value, Box<Flaw>> {
        if let Some(place) = self.place(read.tensor, &read.subscripts)? {
            return self.read_place(read.tensor, place);
        }
        let subscripts = self.subscripts(&read.subscripts)?;
        match subscripts.iter().copied().collect::<Option<Vec<i128>>>() {
            // The kernel checks this read at run time and reports it.
            Some(known) if self.leaves_at(read, &known) => Ok(Value::Data),
            Some(known) => self.read_at(read.tensor, &known),
            None => self.read_some(read.tensor, &subscripts),
        }
    }

    /// Whether a checked subscript is out of bounds.
    fn leaves_at(&self, read: &Read, subscripts: &[i128]) -> bool {
        let extents = self.memory_of(read.tensor).extents();
        read.checked.iter().any(|dimension| {
            let dimension = *dimension as usize;
            let extent = extents.get(dimension).map_or(0, |extent| i128::from(*extent));
            subscripts.get(dimension).is_some_and(|at| !(0..extent).contains(at))
        })
    }
}

fn arith(op: ArithOp, a: Value, b: Value) -> Value {
    let (Known(left), Known(right)) = (a, b) else { return a.with(b) };
    let value = match op {
        ArithOp::Add => left.checked_add(right),
        ArithOp::Sub => left.checked_sub(right),
        ArithOp::Mul => left.checked_mul(right),
        // The sign and zero do not matter here: subscripts are positive.
        ArithOp::Div | ArithOp::Rem if left < 0 || right <= 0 => None,
        ArithOp::Div => Some(left / right),
        ArithOp::Rem => Some(left % right),
    };
    value.map_or(Data, Known)
}

fn compare(op: CompareOp, a: Value, b: Value) -> Value {
    let (Known(a), Known(b)) = (a, b) else { return a.with(b) };
    Value::truth(match op {
        CompareOp::Eq => a == b,
        CompareOp::Ne => a != b,
        CompareOp::Lt => a < b,
        CompareOp::Le => a <= b,
        CompareOp::Gt => a > b,
        CompareOp::Ge => a >= b,
    })
}
