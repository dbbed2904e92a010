//! Tests whether an expression is zero where its inputs are.

use tensorwright::DType;
use tensorwright::ir::{Expr, TensorId};
use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::ops::{ArithOp, UnaryOp};

/// The tensors that are zero at the position in question.
pub(super) struct Vanishing<'a> {
    /// By number of the tensor.
    pub(super) zero: &'a [bool],
    /// The types of tensors.
    pub(super) dtype: &'a dyn Fn(TensorId) -> DType,
}

impl Vanishing<'_> {
    /// Whether the expression is zero for all values of other tensors, including infinities: zero
    /// times a float is zero only if the float is known.
    pub(super) fn expr(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Const(value) => value.as_f64() == 0.0,
            Expr::Read(read) => self.zero.get(read.tensor.0 as usize).copied().unwrap_or(false),
            Expr::Unary(UnaryOp::Neg, operand) | Expr::Cast(_, operand) => self.expr(operand),
            Expr::Arith(ArithOp::Add | ArithOp::Sub, a, b) => self.expr(a) && self.expr(b),
            Expr::Arith(ArithOp::Mul, a, b) => match (self.expr(a), self.expr(b)) {
                (true, true) => true,
                (true, false) => self.is_finite(b),
                (false, true) => self.is_finite(a),
                (false, false) => false,
            },
            Expr::Call(
                Builtin::Abs | Builtin::Min | Builtin::Max | Builtin::Fmin | Builtin::Fmax,
                args,
            ) => args.iter().all(|arg| self.expr(arg)),
            _ => false,
        }
    }

    /// Whether the value is certainly finite, so that zero times it is zero.
    fn is_finite(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Const(value) => value.as_f64().is_finite(),
            expr => !expr.dtype(&|tensor| (self.dtype)(tensor)).is_float(),
        }
    }
}
