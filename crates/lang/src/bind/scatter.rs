//! Lowers scatters and proves their positions in range.

use std::borrow::Cow;

use super::bounds::{self, Statement};
use super::lower::Lowering;
use crate::diagnostic::Diagnostic;
use crate::dtype::DType;
use crate::hir::Comprehension;
use crate::infer::{Access, Range};
use crate::ops::{AssignOp, ReductionOp};
use crate::program::{AxisId, Location, Scalar, Scatter, TensorId};

/// The positions of a statement.
#[allow(clippy::result_large_err, reason = "as everywhere in binding")]
pub(super) fn lowered(
    lowering: &Lowering<'_>,
    stmt: &Comprehension,
) -> Result<Vec<Scatter>, Diagnostic> {
    let position = |scatter: &crate::hir::Scatter| {
        let (axis, place) = (AxisId(scatter.var.0), Location(scatter.span));
        let at = lowering.index(&scatter.at, scatter.span)?;
        Ok(Scatter { axis, at, checked: false, place })
    };
    stmt.scatter.iter().map(position).collect()
}

/// Proves positions in range; data-dependent ones that are unproven are checked at run time.
pub(super) fn verify(
    statement: &Statement<'_>,
    scatter: &mut [Scatter],
    ranges: &[Option<Range>],
    dtype: &impl Fn(TensorId) -> DType,
) -> Result<(), Vec<Diagnostic>> {
    let target = TensorId(statement.stmt.target.0);
    let access = |it: &Scatter| {
        let dimension = it.axis.0 as usize;
        let extent = ranges.get(dimension).copied().flatten().map_or(0, |range| range.hi);
        let (index, guards, span) = (Cow::Owned(it.at.clone()), Vec::new(), it.place.0);
        Access { tensor: target, dimension, extent, index, guards, span, is_target: true }
    };
    let positions: Vec<Access<'_>> = scatter.iter().map(access).collect();
    let Statement { stmt, site, tensors, mode, .. } = *statement;
    let written = Statement { stmt, site, tensors, accesses: &positions, mode };
    let checked = bounds::verify(&written, ranges, dtype)?;
    for it in scatter {
        it.checked = checked.iter().any(|(.., dimension)| *dimension == it.axis.0);
    }
    Ok(())
}

/// The neutral value for absent terms of a scatter.
pub(super) fn nothing(stmt: &Comprehension, dtype: DType) -> Scalar {
    let op = match stmt.op {
        AssignOp::Reduce { op, .. } => op,
        AssignOp::Assign => ReductionOp::Sum,
    };
    Scalar::neutral(op, dtype)
}
