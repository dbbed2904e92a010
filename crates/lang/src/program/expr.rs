//! Typed expressions: the value of a stage at one point.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::{Index, TensorId};
use crate::builtin::{Builtin, Signature};
use crate::dtype::{DType, Kind};
use crate::ops::{ArithOp, CompareOp, LogicOp, ReductionOp, UnaryOp};
use crate::source::Span;

/// An expression. Types are explicit: the operands of an operator have one type, and every
/// conversion is an [`Expr::Cast`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Expr {
    /// A constant.
    Const(Scalar),
    /// An index expression as a value of a type: the exact number, wrapped to 64 bits and
    /// converted.
    Index(Index, DType),
    /// An element of a tensor.
    Read(Read),
    /// Negation, arithmetic or logical.
    Unary(UnaryOp, Box<Expr>),
    /// Arithmetic; integers wrap around, `/` and `%` on integers round down.
    Arith(ArithOp, Box<Expr>, Box<Expr>),
    /// A comparison of two values of one type.
    Compare(CompareOp, Box<Expr>, Box<Expr>),
    /// A comparison of index expressions, which are exact.
    CompareIndex(CompareOp, Index, Index),
    /// `&&` or `||`; the right side is evaluated only if the left side leaves it open.
    Logic(LogicOp, Box<Expr>, Box<Expr>),
    /// `c ? a : b`; only the chosen branch is evaluated.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A builtin function.
    Call(Builtin, Vec<Expr>),
    /// A conversion: to an integer from a floating-point type it rounds to zero and saturates, from
    /// an integer type it wraps around; to `bool` it tests for non-zero.
    Cast(DType, Box<Expr>),
}

/// An element of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Read {
    /// The tensor.
    pub tensor: TensorId,
    /// One subscript per dimension.
    pub subscripts: Vec<Index>,
    /// The dimensions with a data-dependent subscript that is checked at run time. All others are
    /// proven to be in bounds.
    pub checked: Vec<u32>,
    /// Its place in the source text.
    pub place: Location,
}

/// A place in the source text. It is not part of the identity of an object: all places compare
/// equal and hash alike.
#[derive(Debug, Clone, Copy, Default)]
pub struct Location(pub Span);

impl PartialEq for Location {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Location {}

impl PartialOrd for Location {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Location {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl Hash for Location {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A constant of a type. Equal constants have equal bits, so `0.0` and `-0.0` differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scalar {
    dtype: DType,
    /// Floats: the bits of the value as `f64`, which holds every supported float exactly.
    /// Integers and `bool`: the value, sign-extended.
    bits: u64,
}

impl Scalar {
    /// A floating-point constant, rounded to the type.
    #[must_use]
    pub fn float(dtype: DType, value: f64) -> Self {
        debug_assert!(dtype.is_float());
        Self { dtype, bits: round_float(dtype, value).to_bits() }
    }

    /// An integer or `bool` constant, wrapped around to the type.
    #[must_use]
    pub fn integer(dtype: DType, value: i128) -> Self {
        debug_assert!(!dtype.is_float());
        Self { dtype, bits: wrap_integer(dtype, value) as u64 }
    }

    /// The neutral element of a reduction.
    #[must_use]
    pub fn neutral(op: ReductionOp, dtype: DType) -> Self {
        match (op, dtype.integer_range()) {
            (ReductionOp::Sum, None) => Scalar::float(dtype, 0.0),
            (ReductionOp::Product, None) => Scalar::float(dtype, 1.0),
            (ReductionOp::Min, None) => Scalar::float(dtype, f64::INFINITY),
            (ReductionOp::Max, None) => Scalar::float(dtype, f64::NEG_INFINITY),
            (ReductionOp::Sum, Some(_)) => Scalar::integer(dtype, 0),
            (ReductionOp::Product, Some(_)) => Scalar::integer(dtype, 1),
            (ReductionOp::Min, Some((_, largest))) => Scalar::integer(dtype, largest),
            (ReductionOp::Max, Some((smallest, _))) => Scalar::integer(dtype, smallest),
        }
    }

    /// The type.
    #[must_use]
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// The value of a floating-point constant; an integer one is converted.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        if self.dtype.is_float() { f64::from_bits(self.bits) } else { self.as_integer() as f64 }
    }

    /// The value of an integer or `bool` constant; a floating-point one is truncated.
    #[must_use]
    pub fn as_integer(self) -> i128 {
        match self.dtype {
            DType::UInt64 => i128::from(self.bits),
            dtype if dtype.is_float() => f64::from_bits(self.bits) as i128,
            _ => i128::from(self.bits as i64),
        }
    }
}

/// The nearest value of a floating-point type.
#[must_use]
pub fn round_float(dtype: DType, value: f64) -> f64 {
    match dtype.narrow_format() {
        Some(format) => f64::from(format.decode(format.encode_f64(value))),
        None if dtype == DType::Float => f64::from(value as f32),
        None => value,
    }
}

/// An integer wrapped around to a type; to `bool` it tests for non-zero.
#[must_use]
pub fn wrap_integer(dtype: DType, value: i128) -> i128 {
    match dtype.row().kind {
        Kind::Bool => i128::from(value != 0),
        Kind::Signed(bits) => value << (128 - bits) >> (128 - bits),
        Kind::Unsigned(bits) => value & ((1 << bits) - 1),
        Kind::Float(_) => value,
    }
}

impl Expr {
    /// The type of the value, given the types of tensors.
    #[must_use]
    pub fn dtype(&self, tensor_dtype: &impl Fn(TensorId) -> DType) -> DType {
        match self {
            Expr::Const(scalar) => scalar.dtype(),
            Expr::Index(_, dtype) | Expr::Cast(dtype, _) => *dtype,
            Expr::Read(read) => tensor_dtype(read.tensor),
            Expr::Unary(UnaryOp::Neg, operand) => operand.dtype(tensor_dtype),
            Expr::Unary(UnaryOp::Not, _)
            | Expr::Compare(..)
            | Expr::CompareIndex(..)
            | Expr::Logic(..) => DType::Bool,
            Expr::Arith(_, lhs, _) => lhs.dtype(tensor_dtype),
            Expr::Select(_, then, _) => then.dtype(tensor_dtype),
            Expr::Call(builtin, args) => match builtin.signature() {
                Signature::FloatTest => DType::Bool,
                Signature::Float | Signature::Numeric | Signature::Integer => {
                    args.first().map_or(DType::Float, |arg| arg.dtype(tensor_dtype))
                }
            },
        }
    }

    /// A bound on the nesting depth of the printed expression.
    pub(crate) fn height(&self) -> usize {
        let most = |list: &[Expr]| list.iter().map(Expr::height).max().unwrap_or(0);
        match self {
            Expr::Const(_) => 4,
            Expr::Index(index, _) => 1 + index.height(),
            Expr::Read(read) => 1 + read.subscripts.iter().map(Index::height).max().unwrap_or(0),
            Expr::CompareIndex(_, a, b) => 2 + a.height().max(b.height()),
            Expr::Unary(_, a) | Expr::Cast(_, a) => 2 + a.height(),
            Expr::Arith(_, a, b) | Expr::Compare(_, a, b) | Expr::Logic(_, a, b) => {
                2 + a.height().max(b.height())
            }
            Expr::Select(c, a, b) => 2 + c.height().max(a.height()).max(b.height()),
            Expr::Call(_, args) => 1 + most(args),
        }
    }

    /// Calls `visit` with this expression and all its subexpressions, outermost first, including
    /// those inside subscripts.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        visit(self);
        match self {
            Expr::Const(_) => {}
            Expr::Index(index, _) => index.walk_values(visit),
            Expr::Read(read) => read.subscripts.iter().for_each(|s| s.walk_values(visit)),
            Expr::CompareIndex(_, lhs, rhs) => {
                lhs.walk_values(visit);
                rhs.walk_values(visit);
            }
            Expr::Unary(_, operand) | Expr::Cast(_, operand) => operand.walk(visit),
            Expr::Arith(_, lhs, rhs) | Expr::Compare(_, lhs, rhs) | Expr::Logic(_, lhs, rhs) => {
                lhs.walk(visit);
                rhs.walk(visit);
            }
            Expr::Select(condition, then, otherwise) => {
                condition.walk(visit);
                then.walk(visit);
                otherwise.walk(visit);
            }
            Expr::Call(_, args) => args.iter().for_each(|arg| arg.walk(visit)),
        }
    }

    /// Calls `visit` with every element that the expression may read.
    pub fn walk_reads<'a>(&'a self, visit: &mut impl FnMut(&'a Read)) {
        self.walk(&mut |expr| {
            if let Expr::Read(read) = expr {
                visit(read);
            }
        });
    }

    /// Calls `change` with every read, including those inside subscripts. It may change places and
    /// tensors; subscripts stay in normal form because only the reads inside values change.
    pub(crate) fn for_each_read_mut(&mut self, change: &mut impl FnMut(&mut Read)) {
        match self {
            Expr::Const(_) => {}
            Expr::Index(index, _) => index.for_each_value_mut(&mut |v| v.for_each_read_mut(change)),
            Expr::Read(read) => {
                for subscript in &mut read.subscripts {
                    subscript.for_each_value_mut(&mut |value| value.for_each_read_mut(change));
                }
                change(read);
            }
            Expr::CompareIndex(_, lhs, rhs) => {
                lhs.for_each_value_mut(&mut |value| value.for_each_read_mut(change));
                rhs.for_each_value_mut(&mut |value| value.for_each_read_mut(change));
            }
            Expr::Unary(_, a) | Expr::Cast(_, a) => a.for_each_read_mut(change),
            Expr::Arith(_, a, b) | Expr::Compare(_, a, b) | Expr::Logic(_, a, b) => {
                a.for_each_read_mut(change);
                b.for_each_read_mut(change);
            }
            Expr::Select(c, a, b) => {
                c.for_each_read_mut(change);
                a.for_each_read_mut(change);
                b.for_each_read_mut(change);
            }
            Expr::Call(_, args) => args.iter_mut().for_each(|arg| arg.for_each_read_mut(change)),
        }
    }
}
