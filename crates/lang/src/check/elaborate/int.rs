//! Elaborates index arithmetic: subscripts, `where` clauses, index comparisons.

use super::{Elaborator, ResolvedName};
use crate::builtin::Builtin;
use crate::check::coerce;
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::hir::{Expr, Int, Symbol, Ty};
use crate::ops::{ArithOp, UnaryOp};
use crate::source::Span;
use crate::syntax::ast::{self, ExprKind, Ident};

impl<'a> Elaborator<'_, 'a> {
    pub(super) fn dim_of(&mut self, tensor: &Ident, dim: u32, span: Span) -> Option<Int> {
        let Some(symbol) = self.scope.tensor_named(&tensor.name) else {
            let message = format!("there is no tensor `{}`", tensor.name);
            let names = self.scope.tensors.iter().map(|t| t.name.as_str());
            let near = self.scope.suggest(&tensor.name, names);
            let mut diagnostic =
                Diagnostic::new(Code::UnknownName, tensor.span, message).here("not known");
            if let Some(near) = near {
                diagnostic =
                    diagnostic.help(format!("did you mean `{near}`?")).fix(tensor.span, near);
            }
            self.report(diagnostic);
            return None;
        };
        let rank = self.scope.tensor(symbol).rank;
        if dim as usize >= rank {
            let message = format!("`{}` has no dimension {dim}", tensor.name);
            let range = match rank {
                0 => "it is a scalar and has none".to_owned(),
                1 => "its only dimension is 0".to_owned(),
                _ => format!("its dimensions are 0 to {}", rank - 1),
            };
            self.report(Diagnostic::new(Code::NoSuchDimension, span, message).here(range));
            return None;
        }
        self.read_has_value(symbol, tensor.span)?;
        self.scope.used[symbol.0 as usize] = true;
        Some(Int::DimOf(symbol, dim))
    }

    /// Index arithmetic.
    pub(in crate::check) fn int(&mut self, expr: &'a ast::Expr) -> Option<Int> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int(value) => Some(Int::Literal(self.literal(*value, span)?)),
            ExprKind::DimOf(tensor, dim) => self.dim_of(tensor, *dim, span),
            ExprKind::Name(name) => match self.named(name, span) {
                ResolvedName::Int(int) => Some(int),
                ResolvedName::Tensor(symbol) if self.is_scalar_param(symbol) => {
                    self.scope.used[symbol.0 as usize] = true;
                    Some(Int::Scalar(symbol, span))
                }
                ResolvedName::Tensor(_) | ResolvedName::Constant(_) => self.int_value(expr),
            },
            ExprKind::Unary(UnaryOp::Neg, operand) => Some(negate(self.int(operand)?, span)),
            ExprKind::Arith(op, lhs, rhs) => {
                let sides = (self.int(lhs), self.int(rhs));
                let (left, right) = (sides.0?, sides.1?);
                if matches!(op, ArithOp::Div | ArithOp::Rem) && matches!(right, Int::Literal(0)) {
                    self.report(
                        Diagnostic::new(Code::DivisionByZero, rhs.span, "division by zero")
                            .here("this is zero"),
                    );
                    return None;
                }
                Some(Int::arith(*op, left, right, span))
            }
            ExprKind::Apply(callee, args) => {
                if self.scope.names.contains_key(callee.name.as_str()) {
                    return self.int_value(expr);
                }
                if DType::from_name(&callee.name) == Some(DType::Int64)
                    && let [operand] = args.as_slice()
                    && self.scope.settled_type(operand) == Ty::AnyInt
                {
                    return self.int(operand);
                }
                match Builtin::from_name(&callee.name) {
                    Some(builtin) if is_index_builtin(builtin) && args.len() == builtin.arity() => {
                        let ints: Vec<_> = args.iter().map(|arg| self.int(arg)).collect();
                        index_builtin(builtin, ints.into_iter().collect::<Option<_>>()?)
                    }
                    _ => self.int_value(expr),
                }
            }
            _ => self.int_value(expr),
        }
    }

    fn is_scalar_param(&self, symbol: Symbol) -> bool {
        let tensor = self.scope.tensor(symbol);
        let is_param = (symbol.0 as usize) < self.scope.params;
        is_param && tensor.rank == 0 && tensor.dtype.is_integer() && !tensor.updated
    }

    /// An integer value that is not syntactically index arithmetic.
    fn int_value(&mut self, expr: &'a ast::Expr) -> Option<Int> {
        let (value, ty) = self.value(expr)?;
        match (value, ty) {
            (Expr::Int(int, ..), Ty::AnyInt) => Some(int),
            (value, Ty::AnyInt) => {
                let value = coerce::settle(self.scope, value, DType::Int64, expr.span)?;
                Some(Int::Value(Box::new(value)))
            }
            (value, Ty::Typed(dtype)) if dtype.is_integer() => Some(Int::Value(Box::new(value))),
            (_, ty) => {
                let message = match self.subscript_depth {
                    0 => "index arithmetic is done on integers",
                    _ => "a subscript must be an integer",
                };
                self.report(
                    Diagnostic::new(Code::SubscriptNotInteger, expr.span, message)
                        .here(format!("this is {}", coerce::describe(ty)))
                        .help(
                            "convert it: `int32(...)`; a division of integers, as in `i / 2`, \
                             rounds down by itself",
                        ),
                );
                None
            }
        }
    }
}

pub(super) fn negate(int: Int, span: Span) -> Int {
    match int {
        Int::Literal(value) => Int::Literal(-value),
        int => Int::arith(ArithOp::Sub, Int::Literal(0), int, span),
    }
}

pub(super) fn is_index_builtin(builtin: Builtin) -> bool {
    matches!(builtin, Builtin::Min | Builtin::Max | Builtin::Clamp)
}

/// `min`, `max` and `clamp` of index arithmetic.
pub(super) fn index_builtin(builtin: Builtin, args: Vec<Int>) -> Option<Int> {
    let mut args = args.into_iter();
    let mut next = || args.next().map(Box::new);
    Some(match builtin {
        Builtin::Min => Int::Min(next()?, next()?),
        Builtin::Max => Int::Max(next()?, next()?),
        Builtin::Clamp => {
            let (value, lo, hi) = (next()?, next()?, next()?);
            Int::Min(Box::new(Int::Max(value, lo)), hi)
        }
        _ => return None,
    })
}
