//! Running sums, products, minima and maxima: recurrences whose terms may be combined in any order.

use super::{Expr, Index, Read, Stage, TensorId};
use crate::builtin::Builtin;
use crate::dtype::DType;
use crate::ops::{ArithOp, ReductionOp};

/// A value that combines the element before it with a term, as `y(t-1) + x(t)` does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Running<'e> {
    /// What they are combined with.
    pub op: ReductionOp,
    /// The element before: `t - 1 >= lo ? y(t - 1) : start`, or the read alone where it is known to be there.
    pub before: &'e Expr,
    /// The read in it.
    pub read: &'e Read,
    /// The term, which reads nothing of the tensor.
    pub term: Expr,
}

impl<'e> Running<'e> {
    /// The value of an element of a tensor as such a combination; `None` if it is another one. Which element is read is
    /// for the caller to look at.
    ///
    /// ```
    /// use tensorwright_lang::Module;
    /// use tensorwright_lang::ops::ReductionOp;
    /// use tensorwright_lang::program::Running;
    ///
    /// let text = "def f(float(N) x) -> (y, z) {
    ///   y(t) = max(y(t-1), 2 * x(t)) scan t from 0
    ///   z(t) = 0.5 * z(t-1) + x(t) scan t from 0
    /// }";
    /// let program = Module::parse("f.tc", text)?.bind("f", [("N", 9)])?;
    /// let of = |stage: usize| {
    ///     let stage = &program.stages[stage];
    ///     Running::of(&stage.body, stage.output).map(|running| running.op)
    /// };
    /// assert_eq!(of(0), Some(ReductionOp::Max));
    /// assert_eq!(of(1), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of(value: &'e Expr, own: TensorId) -> Option<Self> {
        let mut reads = 0;
        value.walk_reads(&mut |read| reads += usize::from(read.tensor == own));
        let (op, ..) = operands(value).filter(|_| reads == 1)?;
        let (before, read, term) = taken(value, op, own)?;
        Some(Self { op, before, read, term: term? })
    }

    /// Two values combined.
    #[must_use]
    pub fn combined(op: ReductionOp, a: Expr, b: Expr) -> Expr {
        match op {
            ReductionOp::Sum => Expr::Arith(ArithOp::Add, Box::new(a), Box::new(b)),
            ReductionOp::Product => Expr::Arith(ArithOp::Mul, Box::new(a), Box::new(b)),
            ReductionOp::Min => Expr::Call(Builtin::Min, vec![a, b]),
            ReductionOp::Max => Expr::Call(Builtin::Max, vec![a, b]),
        }
    }

    /// Whether elements of a type may be combined in any order. Those of types that numbers are only stored in are
    /// rounded at every step, so that their sums have an order.
    #[must_use]
    pub fn is_associative(&self, dtype: DType) -> bool {
        match self.op {
            ReductionOp::Min | ReductionOp::Max => true,
            ReductionOp::Sum | ReductionOp::Product => {
                dtype != DType::Bool && dtype.computed_in() == dtype
            }
        }
    }
}

impl Stage {
    /// The body of a recurrence that combines the element one step before with a term, in any order; `None` if the stage is
    /// none.
    #[must_use]
    pub fn running(&self, dtype: DType) -> Option<Running<'_>> {
        let scan = self.scan.as_ref()?;
        let running = Running::of(&self.body, self.output)?;
        let at = running.read.subscripts.get(scan.axis.0 as usize)?;
        let step = at.sub(&Index::axis(scan.axis))?.as_constant()?;
        let is_next = step == if scan.backwards { 1 } else { -1 };
        (is_next && running.is_associative(dtype)).then_some(running)
    }
}

/// The operands of what a reduction may do step by step.
fn operands(expr: &Expr) -> Option<(ReductionOp, &Expr, &Expr)> {
    match expr {
        Expr::Arith(ArithOp::Add, a, b) => Some((ReductionOp::Sum, a, b)),
        Expr::Arith(ArithOp::Mul, a, b) => Some((ReductionOp::Product, a, b)),
        Expr::Call(builtin, args) => match (builtin, args.as_slice()) {
            (Builtin::Min, [a, b]) => Some((ReductionOp::Min, a, b)),
            (Builtin::Max, [a, b]) => Some((ReductionOp::Max, a, b)),
            _ => None,
        },
        _ => None,
    }
}

/// The element before in a combination of values, and all others combined.
fn taken(expr: &Expr, op: ReductionOp, own: TensorId) -> Option<(&Expr, &Read, Option<Expr>)> {
    if let Some(read) = before(expr, own) {
        return Some((expr, read, None));
    }
    let (_, a, b) = operands(expr).filter(|(other, ..)| *other == op)?;
    if reads(a, own) {
        let (before, read, rest) = taken(a, op, own)?;
        let rest = rest.map_or_else(|| b.clone(), |rest| Running::combined(op, rest, b.clone()));
        return Some((before, read, Some(rest)));
    }
    let (before, read, rest) = taken(b, op, own)?;
    let rest = rest.map_or_else(|| a.clone(), |rest| Running::combined(op, a.clone(), rest));
    Some((before, read, Some(rest)))
}

/// The read of the element before.
fn before(expr: &Expr, own: TensorId) -> Option<&Read> {
    let read = match expr {
        Expr::Read(read) => read,
        Expr::Select(condition, then, _) => match (&**condition, &**then) {
            (Expr::CompareIndex(..), Expr::Read(read)) => read,
            _ => return None,
        },
        _ => return None,
    };
    (read.tensor == own).then_some(read)
}

fn reads(expr: &Expr, own: TensorId) -> bool {
    let mut found = false;
    expr.walk_reads(&mut |read| found |= read.tensor == own);
    found
}
