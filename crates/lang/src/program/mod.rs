//! The program: a graph of stages over tensors of known shape.
//!
//! This is FlexTensor's mini-graph (section 4.1): every node is a loop nest with *spatial* axes and
//! *reduce* axes that computes one tensor. All sizes are numbers and all ranges are known.
//!
//! Source text may write to one name several times (`O(b,n) = B(n)`, then `O(b,n) += ...`, then
//! `O(b,n) = max(O(b,n), 0)`). Here each write makes a new *version* of the tensor, as in SSA form.
//! So the stages form an acyclic graph, and "read all of the right side before writing" (Tensor
//! Comprehensions, section 3) holds by construction. The schedule decides whether versions share
//! storage.

mod analysis;
mod empty_ranges;
mod exact;
mod expr;
mod guarded;
mod hash;
mod index;
mod names;
mod print;
mod rewrite;
mod running;
mod scatter;
mod sized;
mod strided;

pub use analysis::{Analysis, StageAnalysis};
pub use empty_ranges::EmptyRange;
pub use exact::Exact;
pub use expr::{Expr, Location, Read, Scalar, round_float, wrap_integer};
pub use guarded::ReductionGuard;
pub use hash::ProgramHash;
pub use index::{Atom, Index, Interval, Term};
pub use print::{expr_text, index_text};
pub use rewrite::Rewrite;
pub use running::Running;
pub use scatter::Scatter;
pub(crate) use sized::sized_text;
pub use sized::{Size, SizeCondition, SizeError, SizeRange, SizeValue, SizedProgram};

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::ops::ReductionOp;
use crate::source::{Source, Span};

/// The number of a tensor in [`Program::tensors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TensorId(pub u32);

/// The number of an axis in [`Stage::axes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct AxisId(pub u32);

/// A program with all sizes known.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Program {
    /// The name of the `def`.
    pub name: String,
    /// Inputs first, in the order in which a caller passes them, then one tensor per stage.
    pub tensors: Vec<Tensor>,
    /// The number of leading tensors that the caller supplies.
    pub inputs: usize,
    /// The tensors that the caller receives, in the order of the signature.
    pub outputs: Vec<TensorId>,
    /// The integer scalars that were bound with the sizes; they are no longer inputs.
    pub fixed: Vec<FixedScalar>,
    /// The stages in execution order.
    pub stages: Vec<Stage>,
    /// The source text.
    pub source: Source,
}

/// A scalar parameter that was bound with the sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FixedScalar {
    /// Its position among all parameters of the definition.
    pub place: usize,
    /// The name in the source text.
    pub name: String,
    /// The integer type.
    pub dtype: DType,
    /// The value.
    pub value: i64,
    /// Whether the caller promises that it does not change between calls.
    pub is_const: bool,
}

/// A tensor, or one version of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tensor {
    /// The name in the source text; versions share it.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The extents, outermost first; empty for a scalar.
    pub shape: Vec<i64>,
    /// Whether the caller promises that its values do not change between calls.
    pub is_const: bool,
    /// Where it is declared or first written.
    pub span: Span,
}

/// A loop nest that computes one tensor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stage {
    /// The tensor that it computes.
    pub output: TensorId,
    /// The earlier version that supplies the elements outside the ranges of the spatial axes and
    /// the initial values of an accumulating reduction.
    pub base: Option<TensorId>,
    /// The spatial axes, one per dimension of the output and in that order, then the reduce axes
    /// in the order in which the body first mentions them.
    pub axes: Vec<Axis>,
    /// How body values are combined into the output.
    pub combine: Combine,
    /// The value. In a recurrence it reads the output itself at earlier elements, guarded by their
    /// existence: `t - 1 >= lo ? y(t - 1) : start`.
    pub body: Expr,
    /// The scan, if the stage is a recurrence.
    pub scan: Option<Scan>,
    /// The scatter positions: the spatial axes whose values the terms decide. The body is then `at
    /// == b ? value : nothing`, the contribution of a term to an element; code that iterates over
    /// terms stores [`Stage::term`] at its position instead.
    pub scatter: Vec<Scatter>,
    /// The statement in the source text.
    pub span: Span,
}

/// A recurrence along one spatial axis: elements are computed from earlier ones on the same line,
/// where all other subscripts are equal.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Scan {
    /// The axis, whose points must be computed in order.
    pub axis: AxisId,
    /// Whether points are computed from last to first.
    pub backwards: bool,
    /// The value of elements before the first one. The body contains it wherever it reads the
    /// output.
    pub start: Expr,
}

/// How body values are combined into the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Combine {
    /// One value per element.
    Assign,
    /// A reduction that starts from the operator's neutral element.
    Reduce(ReductionOp),
    /// A reduction that starts from the values of the base.
    Accumulate(ReductionOp),
}

impl Combine {
    /// The reduction operator, if there is one.
    #[must_use]
    pub fn reduction(self) -> Option<ReductionOp> {
        match self {
            Combine::Assign => None,
            Combine::Reduce(op) | Combine::Accumulate(op) => Some(op),
        }
    }
}

/// The kind of an axis: over elements of the output or over terms of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisKind {
    /// One iteration per element of the output; iterations do not depend on each other, unless the
    /// axis is that of a [`Scan`].
    Spatial,
    /// One iteration per term of the reduction.
    Reduce,
}

/// One loop of a stage.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Axis {
    /// The name of the index variable.
    pub name: String,
    /// Spatial or reduce.
    pub kind: AxisKind,
    /// The first value.
    pub lo: i64,
    /// One past the last value; above `lo`.
    pub hi: i64,
    /// The reason for the range.
    pub reason: RangeReason,
}

impl Axis {
    /// The number of iterations.
    #[must_use]
    pub fn extent(&self) -> i64 {
        self.hi - self.lo
    }
}

/// The reason for a range, for messages.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum RangeReason {
    /// A `where` clause.
    Where {
        /// The constraint.
        span: Span,
    },
    /// The largest range that these accesses allow.
    Access {
        /// The round of inference that settled it, from 1.
        round: u32,
        /// The accesses that determine the upper bound.
        limits: Vec<AccessLimit>,
    },
}

/// An access that limits a range.
#[derive(Debug, Clone, Serialize)]
pub struct AccessLimit {
    /// The name of the tensor.
    pub tensor: String,
    /// The dimension, from 0.
    pub dimension: usize,
    /// The extent of that dimension.
    pub extent: i64,
    /// The name of the extent in the signature.
    pub size: Option<String>,
    /// The subscript as text.
    pub subscript: String,
    /// The access in the source text.
    pub span: Span,
    /// Whether the access is on the left side.
    pub is_target: bool,
}

impl Program {
    /// The tensor with an id.
    ///
    /// Ids come from this program; an id of another program may panic.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0 as usize]
    }

    /// The ids of the tensors that the caller supplies.
    pub fn input_ids(&self) -> impl Iterator<Item = TensorId> + use<> {
        (0..self.inputs as u32).map(TensorId)
    }

    /// The stage that computes a tensor; `None` for an input.
    #[must_use]
    pub fn stage_of(&self, id: TensorId) -> Option<&Stage> {
        self.stages.get((id.0 as usize).checked_sub(self.inputs)?)
    }
}

impl Tensor {
    /// The number of elements; binding rejects tensors for which this would overflow.
    #[must_use]
    pub fn elements(&self) -> i64 {
        self.shape.iter().product()
    }

    /// The number of bytes.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        self.elements() * self.dtype.bytes() as i64
    }

    /// The type as source text writes it, such as `float(16, 3)`.
    #[must_use]
    pub fn type_text(&self) -> String {
        if self.shape.is_empty() {
            return self.dtype.to_string();
        }
        let extents: Vec<String> = self.shape.iter().map(i64::to_string).collect();
        format!("{}({})", self.dtype, extents.join(", "))
    }
}

impl Stage {
    /// The axis with an id of this stage, which is not that of a [size](AxisId::of_size).
    #[must_use]
    pub fn axis(&self, id: AxisId) -> &Axis {
        &self.axes[id.0 as usize]
    }

    /// Whether it has data-dependent subscripts.
    #[must_use]
    pub fn has_data_subscripts(&self) -> bool {
        let mut found = !self.scatter.is_empty();
        self.body.walk_reads(&mut |read| found |= !read.checked.is_empty());
        found
    }

    /// Calls `visit` with every read of another tensor; a recurrence also reads its own output.
    pub fn walk_inputs<'a>(&'a self, visit: &mut impl FnMut(&'a Read)) {
        self.body.walk_reads(&mut |read| {
            if read.tensor != self.output {
                visit(read);
            }
        });
    }

    /// Whether an expression is a self-read of a recurrence.
    #[must_use]
    pub fn is_own_read(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Read(read) if read.tensor == self.output)
    }

    /// The axes of one kind, with their ids.
    pub fn axes_of(&self, kind: AxisKind) -> impl Iterator<Item = (AxisId, &Axis)> {
        (0..).map(AxisId).zip(&self.axes).filter(move |(_, axis)| axis.kind == kind)
    }

    /// The number of spatial axes, which is the rank of the output.
    #[must_use]
    pub fn spatial(&self) -> usize {
        self.axes_of(AxisKind::Spatial).count()
    }

    /// The product of the extents of one kind of axis.
    #[must_use]
    pub fn trip_count(&self, kind: AxisKind) -> u128 {
        self.axes_of(kind).map(|(_, axis)| axis.extent() as u128).product()
    }
}

/// Prints the program as source text with every size a number and every range explicit. The text
/// parses and binds to a program with the same [hash](Program::hash): names that inlining would
/// capture are replaced.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print::program_text(self))
    }
}
