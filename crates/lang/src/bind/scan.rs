//! Lowers recurrences: inserts the start before the first element.

use super::lower::Lowering;
use crate::diagnostic::Diagnostic;
use crate::hir::Comprehension;
use crate::ops::CompareOp;
use crate::program::{AxisId, Expr, Index, Read, Rewrite, Scan, TensorId};

/// The recurrence of a statement; `None` if folding removed its self-reads.
#[allow(clippy::result_large_err, reason = "as everywhere in binding")]
pub(super) fn lowered(
    lowering: &Lowering<'_>,
    stmt: &Comprehension,
    body: &Expr,
) -> Result<Option<Scan>, Diagnostic> {
    let Some(scan) = &stmt.scan else { return Ok(None) };
    let target = TensorId(stmt.target.0);
    let mut reads_itself = false;
    body.walk_reads(&mut |read| reads_itself |= read.tensor == target);
    if !reads_itself {
        return Ok(None);
    }
    let start = lowering.expr(&scan.start)?;
    Ok(Some(Scan { axis: AxisId(scan.var.0), backwards: scan.backwards, start }))
}

/// The body with the start where there is no earlier element, for the first value of the axis and
/// one past the last; `None` if index arithmetic overflows.
pub(super) fn with_start(
    body: &Expr,
    target: TensorId,
    scan: &Scan,
    ends: (Index, Index),
) -> Option<Expr> {
    body.rewrite(&mut Guard { target, scan, ends })
}

struct Guard<'a> {
    target: TensorId,
    scan: &'a Scan,
    ends: (Index, Index),
}

impl Rewrite for Guard<'_> {
    fn read(&mut self, read: Read) -> Option<Expr> {
        if read.tensor != self.target {
            return Some(Expr::Read(read));
        }
        let position = read.subscripts.get(self.scan.axis.0 as usize)?.clone();
        let exists = match self.scan.backwards {
            false => Expr::CompareIndex(CompareOp::Ge, position, self.ends.0.clone()),
            true => Expr::CompareIndex(CompareOp::Lt, position, self.ends.1.clone()),
        };
        let start = Box::new(self.scan.start.clone());
        Some(Expr::Select(Box::new(exists), Box::new(Expr::Read(read)), start))
    }
}
