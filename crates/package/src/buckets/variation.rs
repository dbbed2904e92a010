//! Proves whether and how a size can be dynamic with fixed kernels.
//!
//! Programs have numbers for sizes, so this compares the programs of all values in the range. They
//! may differ only in one dimension per tensor and one axis per stage, whose length is the size,
//! and the axis may only be used as a plain subscript of such a dimension:
//!
//! ```text
//! C(m,n) +=! A(m,k) * B(k,n)    N varies: n is spatial, so elements do not depend on each other,
//!                               and a kernel of 16 columns computes any 16 columns
//!                               K varies: k is summed, and rows of zeros change no sum
//! B(i) = A(N - 1 - i)           N cannot be a range: which element is read depends on its value
//! ```

use tensorwright::Span;
use tensorwright::ir::{
    Axis, AxisId, AxisKind, Combine, Expr, Index, Program, Read, Stage, TensorId,
};
use tensorwright_lang::ops::ReductionOp;

use super::vanish::Vanishing;

/// How a size varies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variation {
    /// The dimension of each tensor whose length is the size.
    pub dimensions: Vec<Option<usize>>,
    /// What a kernel for another value can compute.
    pub kind: Kind,
    /// The padding of inputs beyond the value.
    pub padding: Padding,
}

/// What a kernel for one value of the size can compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Slices of larger values, and smaller values: elements are independent.
    Sliced,
    /// Smaller values only: the size is reduced over.
    Padded,
}

/// The padding of inputs beyond the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Zeros.
    Zero,
    /// Copies of the last element.
    Edge,
}

/// Why a size cannot be a range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    /// The reason, as the end of "`N` cannot be a range: ...".
    pub reason: String,
    /// Its source location.
    pub span: Span,
}

impl Refusal {
    pub(super) fn new(span: Span, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), span }
    }
}

/// Candidates for the dynamic dimensions and axes, to be confirmed for every value.
#[derive(Debug)]
pub(super) struct Varying<'p> {
    program: &'p Program,
    dimensions: Vec<Option<usize>>,
    axes: Vec<Option<AxisId>>,
}

impl<'p> Varying<'p> {
    /// Finds the differences between two programs of different values.
    ///
    /// # Errors
    /// If they differ in more than one dimension of a tensor or axis of a stage.
    pub(super) fn between(
        (program, value): (&'p Program, i64),
        (other, other_value): (&Program, i64),
    ) -> Result<Self, Refusal> {
        let start = program.stages.first().map(|stage| stage.span).unwrap_or_default();
        let same = program.tensors.len() == other.tensors.len()
            && program.stages.iter().zip(&other.stages).all(|(a, b)| a.axes.len() == b.axes.len());
        if !same {
            return Err(Refusal::new(start, "other values of it have other statements"));
        }
        let mut dimensions = Vec::new();
        for (tensor, other) in program.tensors.iter().zip(&other.tensors) {
            let pairs = tensor.shape.iter().zip(&other.shape).enumerate();
            let mut differ = pairs.filter(|(_, (a, b))| a != b);
            let (first, second) = (differ.next(), differ.next());
            if second.is_some() {
                let reason = format!(
                    "two dimensions of `{}` have this size, as in attention, and only one dimension of a \
                     tensor can be padded or cut",
                    tensor.name
                );
                return Err(Refusal::new(tensor.span, reason));
            }
            let plain = first.is_none_or(|(_, (a, b))| (*a, *b) == (value, other_value));
            if !plain {
                let reason = format!(
                    "an extent of `{}` is computed from it, and only extents equal to it can be padded or cut",
                    tensor.name
                );
                return Err(Refusal::new(tensor.span, reason));
            }
            dimensions.push(first.map(|(dimension, _)| dimension));
        }
        let mut axes = Vec::new();
        for (stage, other) in program.stages.iter().zip(&other.stages) {
            let pairs = (0..).map(AxisId).zip(stage.axes.iter().zip(&other.axes));
            let mut differ = pairs.filter(|(_, (a, b))| (a.lo, a.hi) != (b.lo, b.hi));
            let (first, second) = (differ.next(), differ.next());
            let plain = first
                .is_none_or(|(_, (a, b))| (a.lo, a.hi, b.lo, b.hi) == (0, value, 0, other_value));
            if second.is_some() {
                let reason = format!(
                    "two indices of `{}` range over it, as in attention, and only one index of a statement \
                     can be padded or cut",
                    program.tensor(stage.output).name
                );
                return Err(Refusal::new(stage.span, reason));
            }
            if !plain {
                let reason = format!(
                    "an index range of `{}` is computed from it, and only ranges from 0 to it can be padded \
                     or cut",
                    program.tensor(stage.output).name
                );
                return Err(Refusal::new(stage.span, reason));
            }
            axes.push(first.map(|(axis, _)| axis));
        }
        Ok(Self { program, dimensions, axes })
    }

    /// Checks that the program of another value has no other differences.
    ///
    /// # Errors
    /// If it does.
    pub(super) fn confirm(&self, other: &Program, value: i64) -> Result<(), Refusal> {
        let program = self.program;
        let start = program.stages.first().map(|stage| stage.span).unwrap_or_default();
        let refuse = |span, what: &str| {
            let reason = format!(
                "{what} uses its value as a number, so a kernel for another value computes something else"
            );
            Err(Refusal::new(span, reason))
        };
        if (program.tensors.len(), program.stages.len(), &program.outputs)
            != (other.tensors.len(), other.stages.len(), &other.outputs)
        {
            return refuse(start, "a statement");
        }
        for ((a, b), varies) in program.tensors.iter().zip(&other.tensors).zip(&self.dimensions) {
            let mut shape = a.shape.clone();
            if let Some(extent) = varies.and_then(|dimension| shape.get_mut(dimension)) {
                *extent = value;
            }
            if shape != b.shape || a.dtype != b.dtype {
                return refuse(a.span, &format!("the shape of `{}`", a.name));
            }
        }
        for ((a, b), varies) in program.stages.iter().zip(&other.stages).zip(&self.axes) {
            let axis =
                |(id, (a, b)): (AxisId, (&_, &_))| same_axis(a, b, *varies == Some(id), value);
            let same = (a.output, a.base, a.combine, &a.body)
                == (b.output, b.base, b.combine, &b.body)
                && a.axes.len() == b.axes.len()
                && starts_from(a) == starts_from(b)
                && (0..).map(AxisId).zip(a.axes.iter().zip(&b.axes)).all(axis);
            if !same {
                return refuse(a.span, &format!("`{}`", program.tensor(a.output).name));
            }
        }
        Ok(())
    }

    /// The kind of variation, after all values are confirmed.
    ///
    /// # Errors
    /// If padding would change results.
    pub(super) fn settle(self) -> Result<Variation, Refusal> {
        for (stage, axis) in self.program.stages.iter().zip(&self.axes) {
            self.check_target(stage, *axis)?;
            self.check_body(stage, *axis)?;
        }
        let reduced = |(stage, axis): &(&Stage, &Option<AxisId>)| {
            axis.is_some_and(|axis| stage.axis(axis).kind == AxisKind::Reduce)
        };
        let stages = self.program.stages.iter().zip(&self.axes);
        let reductions: Vec<&Stage> = stages.filter(reduced).map(|(stage, _)| stage).collect();
        let (kind, padding) = match reductions.first() {
            None if self.has_checked_reads() => (Kind::Sliced, Padding::Edge),
            None => (Kind::Sliced, Padding::Zero),
            Some(_) => (Kind::Padded, self.neutral_padding(&reductions)?),
        };
        Ok(Variation { dimensions: self.dimensions, kind, padding })
    }

    /// The left side: the dynamic dimension is the dynamic axis.
    fn check_target(&self, stage: &Stage, axis: Option<AxisId>) -> Result<(), Refusal> {
        let spatial = axis.filter(|axis| stage.axis(*axis).kind == AxisKind::Spatial);
        let of_output = self.dimension(stage.output).map(|dimension| AxisId(dimension as u32));
        if spatial == of_output {
            return Ok(());
        }
        Err(Refusal::new(
            stage.span,
            "a statement computes only a part of a dimension of this size",
        ))
    }

    /// The right side: the dynamic axis is a plain subscript of dynamic dimensions, and nothing
    /// else depends on it.
    fn check_body(&self, stage: &Stage, axis: Option<AxisId>) -> Result<(), Refusal> {
        let mut wrong = None;
        let mentions = |index: &Index| {
            let mut found = false;
            index.walk_axes(&mut |other| found |= Some(other) == axis);
            found
        };
        stage.body.walk(&mut |expr| {
            let refusal = match expr {
                Expr::Read(read) => self.check_read(read, axis, &mentions),
                Expr::Index(index, _) if mentions(index) => {
                    Some("a statement uses an index along it as a number".to_owned())
                }
                Expr::CompareIndex(_, a, b) if mentions(a) || mentions(b) => {
                    Some("a condition compares an index along it".to_owned())
                }
                _ => None,
            };
            wrong = wrong.take().or(refusal);
        });
        wrong.map_or(Ok(()), |reason| Err(Refusal::new(stage.span, reason)))
    }

    fn check_read(
        &self,
        read: &Read,
        axis: Option<AxisId>,
        mentions: &impl Fn(&Index) -> bool,
    ) -> Option<String> {
        let varies = self.dimension(read.tensor);
        let wrong = |(dimension, subscript): (usize, &Index)| match varies == Some(dimension) {
            true => subscript.as_axis() != axis || axis.is_none(),
            false => mentions(subscript),
        };
        let name = &self.program.tensor(read.tensor).name;
        let any = read.subscripts.iter().enumerate().any(wrong);
        any.then(|| {
            format!(
                "a statement reads `{name}` at another position along it than the one it computes"
            )
        })
    }

    fn has_checked_reads(&self) -> bool {
        let mut found = false;
        for stage in &self.program.stages {
            stage.body.walk_reads(&mut |read| found |= !read.checked.is_empty());
            found |= stage.scatter.iter().any(|scatter| scatter.checked);
        }
        found
    }

    /// A padding of inputs that changes no reduction over the size.
    fn neutral_padding(&self, reductions: &[&Stage]) -> Result<Padding, Refusal> {
        // A duplicated element changes no minimum or maximum.
        let sum = reductions.iter().find(|stage| !is_idempotent(stage));
        let Some(sum) = sum else { return Ok(Padding::Edge) };
        if reductions.iter().any(|stage| is_idempotent(stage)) {
            let reason = "a minimum or maximum and a sum reduce over it, as in a softmax, and no padding \
                          is neutral for both";
            return Err(Refusal::new(sum.span, reason));
        }
        if self.has_checked_reads() {
            return Err(Refusal::new(
                sum.span,
                "data are subscripts along it, and padding them with zeros would read other elements",
            ));
        }
        self.zeros_vanish()?;
        Ok(Padding::Zero)
    }

    /// Checks that every reduction over the size is a sum whose terms are zero where inputs are.
    fn zeros_vanish(&self) -> Result<(), Refusal> {
        let dtype = |id: TensorId| self.program.tensor(id).dtype;
        let mut zero: Vec<bool> = self.dimensions.iter().map(Option::is_some).collect();
        for (stage, axis) in self.program.stages.iter().zip(&self.axes) {
            let vanishing = Vanishing { zero: &zero, dtype: &dtype };
            let vanishes = vanishing.expr(&stage.body);
            let is_sum = stage.combine.reduction().is_none_or(|op| op == ReductionOp::Sum);
            let reduces = axis.is_some_and(|axis| stage.axis(axis).kind == AxisKind::Reduce);
            if reduces && !(is_sum && vanishes) {
                return Err(Refusal::new(
                    stage.span,
                    "padding would change a reduction over it: only minima, maxima and sums of products of \
                     elements along it can be padded",
                ));
            }
            let base = stage.base.is_none_or(|base| zero[base.0 as usize]);
            zero[stage.output.0 as usize] &= vanishes && is_sum && base;
        }
        Ok(())
    }

    fn dimension(&self, tensor: TensorId) -> Option<usize> {
        self.dimensions.get(tensor.0 as usize).copied().flatten()
    }
}

fn is_idempotent(stage: &Stage) -> bool {
    matches!(
        stage.combine,
        Combine::Reduce(ReductionOp::Min | ReductionOp::Max)
            | Combine::Accumulate(ReductionOp::Min | ReductionOp::Max)
    )
}

/// The initial value of a recurrence.
fn starts_from(stage: &Stage) -> Option<&Expr> {
    stage.scan.as_ref().map(|scan| &scan.start)
}

fn same_axis(a: &Axis, b: &Axis, varies: bool, value: i64) -> bool {
    let expected = if varies { (0, value) } else { (a.lo, a.hi) };
    a.kind == b.kind && (b.lo, b.hi) == expected
}
