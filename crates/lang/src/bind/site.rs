//! The origin of an inlined statement.
//!
//! Inlining rewrites a callee's statement in terms of its caller; errors use the names at the span
//! they point to, and list the calls that led there.

use crate::hir::{self, Comprehension, Def, Dim, Expr, Int, Symbol};
use crate::infer::Access;
use crate::source::Span;

/// The origin of a statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    /// The definition that contains it.
    pub(super) def: &'a Def,
    /// The statement before inlining.
    pub(super) written: &'a Comprehension,
    /// The call that was inlined, in the list of all calls.
    pub(super) call: Option<CallId>,
}

/// The number of a call in the list of all calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallId(pub(super) usize);

/// A call on the path from the outermost definition to a statement.
#[derive(Debug)]
pub(super) struct CallSite {
    pub(super) span: Span,
    /// The call that led to the definition containing this call.
    pub(super) outer: Option<CallId>,
}

impl Site<'_> {
    /// The tensor of an access in the original statement.
    pub(super) fn tensor(&self, access: &Access<'_>) -> Option<&hir::Tensor> {
        self.tensor_of(access.span, access.is_target)
    }

    /// As [`Site::tensor`], by the place of the access.
    pub(super) fn tensor_of(&self, span: Span, is_target: bool) -> Option<&hir::Tensor> {
        let symbol = match find_read(&self.written.rhs, span) {
            _ if is_target => self.written.target,
            read => read?.0,
        };
        self.def.tensors.get(symbol.0 as usize)
    }

    /// The extent of an access's dimension as in the source text: `N`, `3` or `A.0`.
    pub(super) fn extent(&self, access: &Access<'_>) -> Option<String> {
        let tensor = self.tensor(access)?;
        Some(match tensor.dims.get(access.dimension) {
            Some(Dim::Size(size)) => self.def.sizes[size.0 as usize].name.clone(),
            Some(Dim::Literal(extent)) => extent.to_string(),
            None => format!("{}.{}", tensor.name, access.dimension),
        })
    }

    /// Whether the subscript of an access consists of index variables and numbers alone, so that
    /// its text does not depend on sizes.
    pub(super) fn is_free_of_sizes(&self, access: &Access<'_>) -> bool {
        let subscript =
            self.read(access).and_then(|(_, subscripts)| subscripts.get(access.dimension));
        access.is_target || subscript.is_some_and(is_free_of_sizes)
    }

    fn read(&self, access: &Access<'_>) -> Option<(Symbol, &[Int])> {
        find_read(&self.written.rhs, access.span)
    }
}

/// The read with a span.
fn find_read(expr: &Expr, span: Span) -> Option<(Symbol, &[Int])> {
    match expr {
        Expr::Float(..) | Expr::Bool(_) => None,
        Expr::Int(int, ..) => find_in_int(int, span),
        Expr::Read(symbol, subscripts, here) if *here == span => Some((*symbol, subscripts)),
        Expr::Read(_, subscripts, _) => subscripts.iter().find_map(|s| find_in_int(s, span)),
        Expr::Unary(_, operand) | Expr::Cast(_, operand) => find_read(operand, span),
        Expr::Arith(_, lhs, rhs) | Expr::Compare(_, lhs, rhs) | Expr::Logic(_, lhs, rhs) => {
            find_read(lhs, span).or_else(|| find_read(rhs, span))
        }
        Expr::CompareInt(_, lhs, rhs) => find_in_int(lhs, span).or_else(|| find_in_int(rhs, span)),
        Expr::Select(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().find_map(|expr| find_read(expr, span))
        }
        Expr::Call(_, args) => args.iter().find_map(|arg| find_read(arg, span)),
    }
}

fn find_in_int(int: &Int, span: Span) -> Option<(Symbol, &[Int])> {
    match int {
        Int::Arith(_, lhs, rhs, _) | Int::Min(lhs, rhs) | Int::Max(lhs, rhs) => {
            find_in_int(lhs, span).or_else(|| find_in_int(rhs, span))
        }
        Int::Value(value) => find_read(value, span),
        _ => None,
    }
}

fn is_free_of_sizes(int: &Int) -> bool {
    match int {
        Int::Literal(_) | Int::Var(_) => true,
        Int::Size(_) | Int::DimOf(..) | Int::Scalar(..) | Int::Value(_) => false,
        Int::Arith(_, lhs, rhs, _) | Int::Min(lhs, rhs) | Int::Max(lhs, rhs) => {
            is_free_of_sizes(lhs) && is_free_of_sizes(rhs)
        }
    }
}
