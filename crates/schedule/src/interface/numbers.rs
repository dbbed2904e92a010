//! The numbers that callers pass to a kernel whose sizes vary.

use serde::{Deserialize, Serialize};
use tensorwright_lang::program::Index;

use super::{Formula, Interface, Part};
use crate::nest::{LoopNest, MAX_BYTES, NumberSource, SizeBound, Var};
use crate::workspace::{ALIGNMENT, Workspace};

/// A number that callers pass, or from which the size of the workspace follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Number {
    /// A size that varies.
    Size {
        /// The name in the source text.
        name: String,
        /// The least value.
        least: i64,
        /// The greatest value.
        most: i64,
        /// A value that satisfies all conditions.
        likely: i64,
        /// All values are multiples of it, and the kernel gets the quotient.
        multiple: i64,
    },
    /// The distance between neighbors in a dimension of a parameter, in elements.
    Stride {
        /// The position of the parameter.
        parameter: usize,
        /// The dimension.
        dimension: usize,
    },
    /// The end of a buffer in the run-time part of the workspace; not passed.
    End {
        /// The start of the buffer.
        start: Formula,
        /// The bytes of an element.
        bytes: i64,
        /// The extents.
        extents: Vec<Formula>,
    },
    /// Computed by the kernel; not passed.
    Computed,
}

/// A condition on sizes beyond their ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Condition {
    /// At least zero where the condition holds.
    pub formula: Formula,
    /// The condition in the names of the sizes, such as `N >= 2`.
    pub text: String,
}

impl Condition {
    /// A condition on the numbers of an interface.
    #[must_use]
    pub fn new(formula: Formula, text: String) -> Self {
        Self { formula, text }
    }
}

impl Interface {
    /// Whether sizes vary.
    #[must_use]
    pub fn is_sized(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// The numbers that are passed, with their positions among all.
    pub fn passed_numbers(&self) -> impl Iterator<Item = (usize, &Number)> {
        let is_passed =
            |(_, n): &(usize, &Number)| matches!(n, Number::Size { .. } | Number::Stride { .. });
        self.numbers.iter().enumerate().filter(is_passed)
    }

    /// The numbers of a call, in the order in which they are passed, from the
    /// [values](Interface::numbers_for) for its sizes and the strides of dimensions of parameters.
    pub fn call_numbers(
        &self,
        values: &[i64],
        stride: impl Fn(usize, usize) -> Option<i64>,
    ) -> Vec<i64> {
        let number = |(position, number): (usize, &Number)| match number {
            Number::Stride { parameter, dimension } => stride(*parameter, *dimension),
            _ => values.get(position).copied(),
        };
        self.passed_numbers().map(|passed| number(passed).unwrap_or(0)).collect()
    }

    /// The values of all numbers for these sizes (in the order of the definition, those that vary
    /// alone), with zero for strides. `None` if a size is not allowed, if a
    /// [condition](Interface::conditions) does not hold, or if the workspace is too large.
    #[must_use]
    pub fn numbers_for(&self, sizes: &[i64]) -> Option<Vec<i64>> {
        let mut given = sizes.iter();
        let mut values: Vec<i64> = Vec::with_capacity(self.numbers.len());
        for number in &self.numbers {
            let value = match number {
                Number::Size { least, most, multiple, .. } => {
                    let value = *given.next()?;
                    let fits = (*least..=*most).contains(&value) && value % multiple == 0;
                    fits.then_some(value / multiple)?
                }
                Number::Stride { .. } | Number::Computed => 0,
                Number::End { start, bytes, extents } => {
                    let mut extents = extents.iter().map(|extent| extent.value(&values));
                    let bytes = extents.try_fold(*bytes, |all, one| all.checked_mul(one?))?;
                    let end = start.value(&values)?.checked_add(bytes)?;
                    let end = end.checked_add(ALIGNMENT - 1)? / ALIGNMENT * ALIGNMENT;
                    (end <= MAX_BYTES).then_some(end)?
                }
            };
            values.push(value);
        }
        let holds =
            |condition: &Condition| condition.formula.value(&values).is_some_and(|n| n >= 0);
        self.conditions.iter().all(holds).then_some(values)
    }

    /// The workspace for the [values](Interface::numbers_for) of all numbers; `None` on overflow.
    #[must_use]
    pub fn workspace_for(&self, values: &[i64]) -> Option<Workspace> {
        let is_end = |(number, _): &(&Number, &i64)| matches!(number, Number::End { .. });
        let ends = self.numbers.iter().zip(values).filter(is_end).map(|(_, end)| *end);
        let shared_bytes = self.workspace.shared_bytes.checked_add(ends.max().unwrap_or(0))?;
        Some(Workspace { shared_bytes, ..self.workspace })
    }
}

/// The numbers of a nest.
pub(super) fn of(nest: &LoopNest) -> Vec<Number> {
    let one = |source: &NumberSource| match source {
        NumberSource::Size(size) => Number::Size {
            name: size.name.clone(),
            least: size.range.least,
            most: size.range.most,
            likely: size.range.likely,
            multiple: size.range.multiple.max(1),
        },
        NumberSource::Stride(buffer, dimension) => {
            let parameter = nest.parameters.iter().position(|id| id == buffer);
            Number::Stride { parameter: parameter.unwrap_or(usize::MAX), dimension: *dimension }
        }
        NumberSource::End { start, bytes, extents } => Number::End {
            start: formula(nest, start),
            bytes: *bytes,
            extents: extents.iter().map(|extent| formula(nest, extent)).collect(),
        },
        NumberSource::Product(_) => Number::Computed,
    };
    nest.numbers.iter().map(|number| one(&number.source)).collect()
}

/// The conditions of a nest.
pub(super) fn conditions(nest: &LoopNest) -> Vec<Condition> {
    let one =
        |SizeBound { index, text }: &SizeBound| Condition::new(formula(nest, index), text.clone());
    nest.size_bounds.iter().map(one).collect()
}

/// An index as a function of run-time numbers. If it has other variables it has no value, so that
/// calls are refused.
pub(super) fn formula(nest: &LoopNest, index: &Index) -> Formula {
    let position = |var: Var| nest.numbers.iter().position(|number| number.var == var);
    Formula::of(index, &position)
        .unwrap_or_else(|| Formula { terms: vec![(1, Part::Number(usize::MAX))], constant: 0 })
}
