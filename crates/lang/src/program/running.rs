//! Running (prefix) sums, products, minima and maxima.
//!
//! These are recurrences whose terms may be combined in any order.

use super::{Expr, Index, Read, Stage, TensorId};
use crate::builtin::Builtin;
use crate::dtype::DType;
use crate::ops::{ArithOp, ReductionOp};

/// A value that combines the previous element with a term, as `y(t-1) + x(t)` does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Running<'e> {
    /// The operator.
    pub op: ReductionOp,
    /// The previous element: `t - 1 >= lo ? y(t - 1) : start`, or the bare read where it is known
    /// to exist.
    pub before: &'e Expr,
    /// The read of the previous element.
    pub read: &'e Read,
    /// The term, which does not read the output.
    pub term: Expr,
}

impl<'e> Running<'e> {
    /// Matches a value of this form; `None` for any other. The caller checks which element is read.
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

    /// Combines two values.
    #[must_use]
    pub fn combined(op: ReductionOp, a: Expr, b: Expr) -> Expr {
        match op {
            ReductionOp::Sum => Expr::Arith(ArithOp::Add, Box::new(a), Box::new(b)),
            ReductionOp::Product => Expr::Arith(ArithOp::Mul, Box::new(a), Box::new(b)),
            ReductionOp::Min => Expr::Call(Builtin::Min, vec![a, b]),
            ReductionOp::Max => Expr::Call(Builtin::Max, vec![a, b]),
        }
    }

    /// Whether elements of a type may be combined in any order. Storage-only types are rounded at
    /// every step, so the order of their sums matters.
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
    /// The body of a recurrence that combines the element one step before with a term, in any
    /// order; `None` for other stages.
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

/// The operands of a reduction operator.
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

/// The previous element in a combination of values, and all others combined.
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

/// The read of the previous element.
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
