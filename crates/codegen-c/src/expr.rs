//! Emits typed expressions.
//!
//! `?:`, `&&` and `||` have the lazy evaluation that the source language requires.

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp, LogicOp, UnaryOp};
use tensorwright_lang::program::{Expr, Index, Read, Scalar};

use crate::emitter::Emitter;
use crate::error::EmitError;
use crate::helpers::Helper;
use crate::index::{Summand, sum};
use crate::text::{Binding, Text};
use crate::types::{is_single, literal, memory_type};

/// An expression as text, in the C type that [`crate::types`] defines.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) text: Text,
    pub(crate) dtype: DType,
}

impl Value {
    pub(crate) fn new(text: Text, dtype: DType) -> Self {
        Self { text, dtype }
    }

    fn boolean(text: Text) -> Self {
        Self::new(text, DType::Bool)
    }

    fn zero(dtype: DType) -> Self {
        let zero = match dtype.is_float() {
            true => Scalar::float(dtype, 0.0),
            false => Scalar::integer(dtype, 0),
        };
        Self::new(Text::primary(literal(zero)), dtype)
    }
}

impl Emitter<'_> {
    /// An expression.
    pub(crate) fn expr(&mut self, expr: &Expr) -> Result<Value, EmitError> {
        Ok(match expr {
            Expr::Const(scalar) => Value::new(Text::primary(literal(*scalar)), scalar.dtype()),
            Expr::Index(index, dtype) => {
                let index = Value::new(self.index(index)?, DType::Int64);
                self.cast(*dtype, index)
            }
            Expr::Read(read) => self.read(read)?,
            Expr::Unary(UnaryOp::Not, operand) => {
                let operand = self.expr(operand)?.text.at(Binding::Unary);
                Value::boolean(Text::new(format!("!{operand}"), Binding::Comparison))
            }
            Expr::Unary(UnaryOp::Neg, operand) => {
                let operand = self.expr(operand)?;
                self.negate(operand)
            }
            Expr::Arith(op, lhs, rhs) => {
                let (lhs, rhs) = (self.expr(lhs)?, self.expr(rhs)?);
                self.arith(*op, lhs, rhs)
            }
            Expr::Compare(op, lhs, rhs) => self.compare(*op, lhs, rhs)?,
            Expr::CompareIndex(op, lhs, rhs) => Value::boolean(self.compare_index(*op, lhs, rhs)?),
            Expr::Logic(op, lhs, rhs) => {
                let binding = match op {
                    LogicOp::And => Binding::And,
                    LogicOp::Or => Binding::Or,
                };
                let (lhs, rhs) = (self.expr(lhs)?.text, self.expr(rhs)?.text);
                Value::boolean(Text::binary(lhs, op.symbol(), rhs, binding))
            }
            Expr::Select(condition, then, otherwise) => {
                let condition = self.expr(condition)?.text.at(Binding::Or);
                let (then, otherwise) = (self.expr(then)?, self.expr(otherwise)?);
                let dtype = then.dtype;
                let (then, otherwise) = (then.text.at(Binding::Or), otherwise.text.at(Binding::Or));
                let text = format!("{condition} ? {then} : {otherwise}");
                Value::new(Text::new(text, Binding::Conditional), dtype)
            }
            Expr::Call(builtin, args) => {
                let args: Vec<Value> =
                    args.iter().map(|arg| self.expr(arg)).collect::<Result<_, _>>()?;
                self.call(*builtin, args)?
            }
            Expr::Cast(dtype, operand) => {
                let operand = self.expr(operand)?;
                self.cast(*dtype, operand)
            }
        })
    }

    fn read(&mut self, read: &Read) -> Result<Value, EmitError> {
        let element = self.element(read)?;
        let dtype = self.buffer(read.tensor)?.dtype;
        Ok(self.load(Text::primary(element), dtype))
    }

    /// Loads an element from memory.
    pub(crate) fn load(&mut self, element: Text, dtype: DType) -> Value {
        let text = match dtype {
            DType::Bool => Text::binary(element, "!=", Text::primary("0"), Binding::Comparison),
            dtype if dtype.is_storage_only() => {
                Text::call(&self.helper(Helper::Load(dtype)), [element])
            }
            _ => element,
        };
        Value::new(text, dtype)
    }

    /// An element that is read, as a C lvalue.
    pub(crate) fn element(&mut self, read: &Read) -> Result<String, EmitError> {
        let name = self.names.buffer(read.tensor).to_owned();
        if read.checked.is_empty() {
            let offset = self.offset(read.tensor, &read.subscripts)?;
            return Ok(format!("{name}[{}]", offset.into_code()));
        }
        let code = self.error_code(read)?;
        let buffer = self.buffer(read.tensor)?;
        let mut proven = read.subscripts.clone();
        let mut summands = Vec::new();
        for dimension in (0..buffer.shape.len()).rev() {
            if read.checked.contains(&(dimension as u32))
                && let Some(subscript) = proven.get_mut(dimension)
            {
                let subscript = std::mem::replace(subscript, Index::constant(0));
                let subscript = self.index(&subscript)?.into_code();
                let extent = self.index(&buffer.extent(dimension))?.into_code();
                let stride = self.index(&buffer.stride(dimension))?.into_code();
                let check = self.helper(Helper::Check);
                let call = format!("{check}({subscript}, {extent}, {code}, &error)");
                let text = match stride.as_str() {
                    "1" => Text::primary(call),
                    _ => Text::new(format!("{stride} * {call}"), Binding::Product),
                };
                summands.insert(0, Summand { negative: false, text });
            }
        }
        let rest = self.offset(read.tensor, &proven)?;
        if rest.code() != "0" {
            summands.insert(0, Summand { negative: false, text: rest });
        }
        Ok(format!("{name}[{}]", sum(summands).into_code()))
    }

    fn negate(&mut self, operand: Value) -> Value {
        let dtype = operand.dtype;
        if dtype.is_float() {
            let text = format!("-{}", operand.text.at(Binding::Primary));
            return Value::new(Text::new(text, Binding::Unary), dtype);
        }
        self.arith(ArithOp::Sub, Value::zero(dtype), operand)
    }

    /// Arithmetic on two values of one type.
    pub(crate) fn arith(&mut self, op: ArithOp, lhs: Value, rhs: Value) -> Value {
        let dtype = lhs.dtype;
        let plain = match op {
            ArithOp::Add | ArithOp::Sub => Some(Binding::Sum),
            ArithOp::Mul => Some(Binding::Product),
            ArithOp::Div if dtype.is_float() => Some(Binding::Product),
            ArithOp::Div | ArithOp::Rem => None,
        };
        let text = match (dtype, plain) {
            // Unsigned types that are not promoted wrap around without help.
            (DType::UInt32 | DType::UInt64, Some(binding)) => {
                Text::binary(lhs.text, op.symbol(), rhs.text, binding)
            }
            (DType::Bool, _) => {
                let function = self.helper(Helper::Arith(op.into(), DType::Int32));
                let integer = Value::new(Text::call(&function, [lhs.text, rhs.text]), DType::Int32);
                self.cast(DType::Bool, integer).text
            }
            (_, Some(binding)) if dtype.is_float() => {
                Text::binary(lhs.text, op.symbol(), rhs.text, binding)
            }
            _ if dtype.is_float() => Text::call(&self.math("fmod", dtype), [lhs.text, rhs.text]),
            _ => Text::call(&self.helper(Helper::Arith(op.into(), dtype)), [lhs.text, rhs.text]),
        };
        Value::new(text, dtype)
    }

    fn compare(&mut self, op: CompareOp, lhs: &Expr, rhs: &Expr) -> Result<Value, EmitError> {
        let (left, mut right) = (self.expr(lhs)?, self.expr(rhs)?);
        // Compilers warn about comparisons that their operands decide.
        let at_the_end = |expr: &Expr| match expr {
            Expr::Const(scalar) => scalar.dtype().integer_range().is_some_and(|(least, most)| {
                let value = scalar.as_integer();
                value == least || value == most
            }),
            _ => false,
        };
        let is_constant = |expr: &Expr| matches!(expr, Expr::Const(_));
        if !left.dtype.is_float()
            && (lhs == rhs
                || at_the_end(lhs)
                || at_the_end(rhs)
                || (is_constant(lhs) && is_constant(rhs)))
        {
            right.text = Text::call(&self.helper(Helper::Same(right.dtype)), [right.text]);
            let dtype = left.dtype;
            let text = Text::call(&self.helper(Helper::Same(dtype)), [left.text]);
            let text = Text::binary(text, op.symbol(), right.text, Binding::Comparison);
            return Ok(Value::boolean(text));
        }
        Ok(Value::boolean(Text::binary(left.text, op.symbol(), right.text, Binding::Comparison)))
    }

    /// The minimum or maximum of two values of one type.
    pub(crate) fn extreme(&mut self, greater: bool, lhs: Value, rhs: Value) -> Value {
        let dtype = lhs.dtype;
        let computed = as_computed(dtype);
        let helper = if greater { Helper::Max(computed) } else { Helper::Min(computed) };
        let function = self.helper(helper);
        Value::new(Text::call(&function, [lhs.text, rhs.text]), dtype)
    }

    fn call(&mut self, builtin: Builtin, args: Vec<Value>) -> Result<Value, EmitError> {
        let missing = || EmitError::malformed(format!("`{}` lacks arguments", builtin.name()));
        let dtype = args.first().ok_or_else(missing)?.dtype;
        let mut rest = args.into_iter();
        let mut next = || rest.next().ok_or_else(missing);
        let text = match builtin {
            Builtin::Min => return Ok(self.extreme(false, next()?, next()?)),
            Builtin::Max => return Ok(self.extreme(true, next()?, next()?)),
            Builtin::Clamp => {
                let at_least = self.extreme(true, next()?, next()?);
                return Ok(self.extreme(false, at_least, next()?));
            }
            Builtin::Abs if dtype.is_float() => {
                Text::call(&self.math("fabs", dtype), [next()?.text])
            }
            Builtin::Abs if dtype.is_signed() => {
                Text::call(&self.helper(Helper::Abs(dtype)), [next()?.text])
            }
            Builtin::Abs => next()?.text,
            _ if builtin.operator().is_some() => {
                Text::call(&self.helper(Helper::Bits(builtin, dtype)), rest.map(|value| value.text))
            }
            Builtin::IsNan | Builtin::IsInf | Builtin::IsFinite => {
                // The macros return any non-zero number.
                let test = Text::call(builtin.name(), [next()?.text]);
                let zero = Text::primary("0");
                return Ok(Value::boolean(Text::binary(test, "!=", zero, Binding::Comparison)));
            }
            Builtin::Rsqrt => {
                let root = Text::call(&self.math("sqrt", dtype), [next()?.text]);
                let one = literal(Scalar::float(dtype, 1.0));
                Text::binary(Text::primary(one), "/", root, Binding::Product)
            }
            Builtin::Sigmoid => {
                let computed = if is_single(dtype) { DType::Float } else { DType::Double };
                Text::call(&self.helper(Helper::Sigmoid(computed)), [next()?.text])
            }
            _ => {
                let function = self.math(builtin.name(), dtype);
                Text::call(&function, rest.map(|value| value.text))
            }
        };
        Ok(Value::new(text, dtype))
    }

    /// A function of `math.h` for a type.
    fn math(&self, name: &str, dtype: DType) -> String {
        self.dialect.math(name, is_single(dtype))
    }

    /// A conversion.
    pub(crate) fn cast(&mut self, to: DType, value: Value) -> Value {
        let from = value.dtype;
        if from == to && !to.is_storage_only() {
            return value;
        }
        let text = match to {
            DType::Bool => {
                let zero = Value::zero(from).text;
                Text::binary(value.text, "!=", zero, Binding::Comparison)
            }
            _ if to.is_storage_only() && is_wide(from) => {
                Text::call(&self.helper(Helper::RoundDouble(to)), [value.text])
            }
            _ if to.is_storage_only() => Text::call(&self.helper(Helper::Round(to)), [value.text]),
            DType::Float if from.is_storage_only() => value.text,
            _ if to.is_float() => Text::cast(memory_type(to), value.text),
            _ if from.is_float() => Text::call(&self.helper(Helper::Truncate(to)), [value.text]),
            _ => Text::cast(memory_type(to), value.text),
        };
        Value::new(text, to)
    }

    /// A value in the memory representation of a type.
    pub(crate) fn pack(&mut self, dtype: DType, expr: &Expr) -> Result<Text, EmitError> {
        match expr {
            // A copy needs no conversion there and back, and a store rounds by itself.
            Expr::Read(read)
                if dtype.is_storage_only() && self.buffer(read.tensor)?.dtype == dtype =>
            {
                Ok(Text::primary(self.element(read)?))
            }
            Expr::Cast(to, inner) if dtype.is_storage_only() && *to == dtype => {
                self.pack(dtype, inner)
            }
            _ => {
                let value = self.expr(expr)?;
                Ok(self.pack_value(dtype, value))
            }
        }
    }

    /// A value in the memory representation of a type.
    pub(crate) fn pack_value(&mut self, dtype: DType, value: Value) -> Text {
        match dtype.is_storage_only() {
            true if is_wide(value.dtype) => {
                Text::call(&self.helper(Helper::PackDouble(dtype)), [value.text])
            }
            true => Text::call(&self.helper(Helper::Pack(dtype)), [value.text]),
            false => self.cast(dtype, value).text,
        }
    }
}

/// Whether `float` cannot represent all values of the type.
fn is_wide(dtype: DType) -> bool {
    dtype == DType::Double || (dtype.is_integer() && dtype.bytes() >= 4)
}

/// The type for computing with values of a type: `int` for `bool`.
fn as_computed(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::Int32 } else { dtype.computed_in() }
}
