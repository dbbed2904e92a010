//! Numbers that a kernel knows when it is called: sizes that vary, and strides.
//!
//! ```text
//! f(N in 1..=4096, float x[N][8], out float y[N][8]) {
//!   for i in 0..4096 {
//!     for j in 0..8 { if (i <= N - 1) y(i, j) = x(i, j); }      -> for i in 0..N ...
//! ```
//!
//! Such a number is a variable that no loop sets. Primitives see loops with their largest numbers
//! of iterations, and stores whose [domains](super::Store::domain) depend on sizes, as for tails;
//! lowering turns these into loops that [end](super::Span) where sizes say.

use tensorwright_lang::program::{Index, Interval, Rewrite, Size};

use super::{BufferId, LoopNest, Ranges, Var, rewrite_nodes};

/// The largest distance between neighbors, in elements: more than an address space has.
pub const MAX_STRIDE: i64 = 1 << 48;

/// The most bytes of a tensor or of a workspace: sums of offsets then fit 64 bits.
pub const MAX_BYTES: i64 = 1 << 62;

/// A condition on sizes beyond their ranges. The nest is only right for sizes that satisfy it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SizeBound {
    /// At least zero where the condition holds: a function of [sizes](NumberSource::Size).
    pub index: Index,
    /// The condition in the names of the sizes, such as `N >= 2`.
    pub text: String,
}

/// A number that is known when a kernel is called.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunTimeNumber {
    /// The variable that has its value.
    pub var: Var,
    /// Where it comes from.
    pub source: NumberSource,
    /// Its values.
    pub range: Interval,
}

/// The source of a [`RunTimeNumber`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NumberSource {
    /// A size, divided by the number of which it is a multiple.
    Size(Size),
    /// The distance between neighbors in a dimension of a parameter, in elements.
    Stride(BufferId, usize),
    /// The product of these functions of other numbers.
    Product(Vec<Index>),
    /// The end of a buffer in the workspace, in bytes from the start of the part whose size depends
    /// on sizes, rounded up to a multiple of [`ALIGNMENT`](crate::workspace::ALIGNMENT). Added by
    /// lowering.
    End {
        /// The start of the buffer.
        start: Index,
        /// The bytes of an element.
        bytes: i64,
        /// The extents of the buffer.
        extents: Vec<Index>,
    },
}

/// The extents and strides of a buffer, as functions of [`RunTimeNumber`]s.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunTimeShape {
    /// The extents, outermost first.
    pub extents: Vec<Index>,
    /// The distances between neighbors, in elements: constants, or variables.
    pub strides: Vec<Index>,
    /// The position in the part of the workspace whose size depends on sizes, in bytes; lowering
    /// decides it.
    pub start: Option<Index>,
}

impl RunTimeNumber {
    /// Whether callers pass it; others are computed from those.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        matches!(self.source, NumberSource::Size(_) | NumberSource::Stride(..))
    }
}

impl LoopNest {
    /// The ranges outside of all loops: those of the run-time numbers.
    #[must_use]
    pub fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::default();
        for number in &self.numbers {
            ranges.insert_number(number.var, number.range);
        }
        ranges
    }

    /// The run-time numbers that callers pass, in order.
    pub fn passed_numbers(&self) -> impl Iterator<Item = Var> {
        self.numbers.iter().filter(|number| number.is_passed()).map(|number| number.var)
    }

    /// Whether a variable is a run-time number.
    #[must_use]
    pub fn is_number(&self, var: Var) -> bool {
        self.numbers.iter().any(|number| number.var == var)
    }

    /// Whether an index depends on run-time numbers.
    #[must_use]
    pub fn is_sized(&self, index: &Index) -> bool {
        !self.numbers.is_empty() && index.mentions(&|var| self.is_number(var))
    }

    /// The nest for sizes: every size has one of these values, in order, and all memory is dense.
    /// `None` on overflow.
    #[must_use]
    pub fn at(&self, sizes: &[i64]) -> Option<LoopNest> {
        let mut nest = self.clone();
        let mut values: Vec<(Var, i64)> = Vec::new();
        let mut given = sizes.iter();
        for number in &self.numbers {
            let value = match &number.source {
                NumberSource::Size(size) => given.next()? / size.range.multiple.max(1),
                NumberSource::Product(factors) => {
                    let one = |factor: &Index| Fixed(&values).number(factor);
                    factors.iter().map(one).try_fold(1i64, |all, one| all.checked_mul(one?))?
                }
                // No subscript depends on these.
                NumberSource::Stride(..) | NumberSource::End { .. } => 1,
            };
            values.push((number.var, value));
        }
        for buffer in nest.buffers.iter_mut() {
            if let Some(shape) = buffer.run_time.take() {
                let extents = shape.extents.iter().map(|extent| Fixed(&values).number(extent));
                buffer.shape = extents.collect::<Option<Vec<i64>>>()?;
            }
        }
        for body in [&mut nest.prepare, &mut nest.body] {
            rewrite_nodes(body, &mut Fixed(&values))?;
        }
        nest.numbers.clear();
        nest.size_bounds.clear();
        Some(nest)
    }

    /// Adds a condition on sizes.
    pub(crate) fn add_size_bound(&mut self, index: Index, text: String) {
        self.size_bounds.push(SizeBound { index, text });
    }

    /// Adds a run-time number.
    pub(crate) fn add_number(&mut self, name: &str, source: NumberSource, range: Interval) -> Var {
        let var = self.add_var(name);
        self.numbers.push(RunTimeNumber { var, source, range });
        var
    }
}

/// Replaces variables by numbers.
struct Fixed<'a>(&'a [(Var, i64)]);

impl Fixed<'_> {
    fn number(mut self, index: &Index) -> Option<i64> {
        index.rewrite(&mut self)?.as_constant()
    }
}

impl Rewrite for Fixed<'_> {
    fn axis(&mut self, axis: Var) -> Option<Index> {
        let found = self.0.iter().find(|(var, _)| *var == axis);
        Some(found.map_or_else(|| Index::axis(axis), |(_, value)| Index::constant(*value)))
    }
}
