//! Collects the accesses of a statement: subscripts and their guards.

use std::borrow::Cow;

use super::facts::Guard;
use crate::ops::LogicOp;
use crate::program::{Expr, Index, Read, TensorId};
use crate::source::Span;

/// One subscript of one read, or of the left side. Extents are numbers, or functions of sizes.
#[derive(Debug, Clone)]
pub(crate) struct Access<'a, E = i64> {
    pub(crate) tensor: TensorId,
    pub(crate) dimension: usize,
    /// The extent of the dimension.
    pub(crate) extent: E,
    pub(crate) index: Cow<'a, Index>,
    /// The guards, outermost first.
    pub(crate) guards: Vec<Guard<'a>>,
    pub(crate) span: Span,
    /// Whether it is on the left side.
    pub(crate) is_target: bool,
}

/// Collects the accesses of an expression. `shape` returns the extents of a tensor, or `None` where
/// they are unknown and so give no limits.
pub(crate) fn accesses<'a, 's, E: Clone + 's>(
    body: &'a Expr,
    shape: &impl Fn(TensorId) -> Option<&'s [E]>,
) -> Vec<Access<'a, E>> {
    let mut collector = Collector { shape, guards: Vec::new(), found: Vec::new() };
    collector.expr(body);
    collector.found
}

/// Collects the accesses of reads inside an index expression.
pub(crate) fn accesses_inside<'a, 's, E: Clone + 's>(
    index: &'a Index,
    shape: &impl Fn(TensorId) -> Option<&'s [E]>,
) -> Vec<Access<'a, E>> {
    let mut collector = Collector { shape, guards: Vec::new(), found: Vec::new() };
    collector.values(index);
    collector.found
}

struct Collector<'a, 'f, F, E> {
    shape: &'f F,
    guards: Vec<Guard<'a>>,
    found: Vec<Access<'a, E>>,
}

impl<'a, 's, E: Clone + 's, F: Fn(TensorId) -> Option<&'s [E]>> Collector<'a, '_, F, E> {
    fn guarded(&mut self, condition: &'a Expr, holds: bool, inner: &'a Expr) {
        self.guards.push(Guard { condition, holds });
        self.expr(inner);
        self.guards.pop();
    }

    fn expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Const(_) => {}
            Expr::Index(index, _) => self.values(index),
            Expr::Read(read) => self.read(read),
            Expr::Unary(_, operand) | Expr::Cast(_, operand) => self.expr(operand),
            Expr::Arith(_, lhs, rhs) | Expr::Compare(_, lhs, rhs) => {
                self.expr(lhs);
                self.expr(rhs);
            }
            Expr::CompareIndex(_, lhs, rhs) => {
                self.values(lhs);
                self.values(rhs);
            }
            Expr::Logic(op, lhs, rhs) => {
                self.expr(lhs);
                self.guarded(lhs, *op == LogicOp::And, rhs);
            }
            Expr::Select(condition, then, otherwise) => {
                self.expr(condition);
                self.guarded(condition, true, then);
                self.guarded(condition, false, otherwise);
            }
            Expr::Call(_, args) => args.iter().for_each(|arg| self.expr(arg)),
        }
    }

    fn read(&mut self, read: &'a Read) {
        if let Some(shape) = (self.shape)(read.tensor) {
            for (dimension, (index, extent)) in read.subscripts.iter().zip(shape).enumerate() {
                self.found.push(Access {
                    tensor: read.tensor,
                    dimension,
                    extent: extent.clone(),
                    index: Cow::Borrowed(index),
                    guards: self.guards.clone(),
                    span: read.place.0,
                    is_target: false,
                });
            }
        }
        read.subscripts.iter().for_each(|index| self.values(index));
    }

    /// Reads inside an index expression.
    fn values(&mut self, index: &'a Index) {
        for value in index.outermost_values() {
            self.expr(value);
        }
    }
}
