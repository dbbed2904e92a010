//! Programs with sizes that are known at run time.
//!
//! A size that varies is a variable, as an axis is: [`AxisId::of_size`]. Its value is the same in
//! a whole call. A [`SizedProgram`] has the same stages for all values of its sizes; extents,
//! ranges and subscripts are functions of them.
//!
//! ```text
//! def f(float(N) x) -> (y) { y(i) = x(i) + x(i+1) }      N in 2..=4096, likely 512
//!
//! likely:  y(511), i in 0:511                              y(i) = x(i) + x(i+1)
//! general: y(N-1), i in 0:N-1                              y(i) = x(i) + x(i+1)
//! ```

mod check;
mod text;

use super::{AxisId, Index, Interval, Program};

pub use check::SizeError;
pub(crate) use text::sized_text;

/// The first number of a size; axes of stages and variables of loops have smaller ones.
const FIRST: u32 = 1 << 30;

impl AxisId {
    /// The variable that stands for a size that varies, by its number in [`SizedProgram::sizes`].
    #[must_use]
    pub fn of_size(number: u32) -> Self {
        Self(FIRST + number)
    }

    /// The number of the size that the variable stands for.
    #[must_use]
    pub fn size(self) -> Option<usize> {
        self.0.checked_sub(FIRST).map(|number| number as usize)
    }
}

/// A value for a size, or the values that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeValue {
    /// It is known.
    Known(i64),
    /// It varies between calls.
    Varies(SizeRange),
}

/// The values that a size may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SizeRange {
    /// The least value.
    pub least: i64,
    /// The greatest value.
    pub most: i64,
    /// The value for which the code should be fastest.
    pub likely: i64,
    /// All values are multiples of this.
    pub multiple: i64,
}

/// A size that varies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Size {
    /// The name in the source text.
    pub name: String,
    /// Its values.
    pub range: SizeRange,
}

impl Size {
    /// The values of [its variable](AxisId::of_size), which counts multiples.
    #[must_use]
    pub fn interval(&self) -> Interval {
        let of = |value: i64| i128::from(value / self.range.multiple.max(1));
        Interval { lo: of(self.range.least), hi: of(self.range.most) }
    }
}

/// A condition on sizes: for sizes that do not satisfy it, the program is not defined, or it is
/// another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeCondition {
    /// The index, a function of sizes, is at least zero.
    AtLeastZero(Index),
    /// It is zero.
    Zero(Index),
}

/// A program for a range of sizes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SizedProgram {
    /// The program for the likely sizes.
    pub likely: Program,
    /// The program for all sizes: its extents and the ends of its axes are the largest ones, and
    /// its expressions mention [sizes](AxisId::of_size).
    pub general: Program,
    /// The sizes that vary.
    pub sizes: Vec<Size>,
    /// The extents of every tensor, as functions of the sizes.
    pub shapes: Vec<Vec<Index>>,
    /// The first value of every axis of every stage, and one past the last, as functions of the
    /// sizes.
    pub ranges: Vec<Vec<(Index, Index)>>,
    /// The sizes for which all of this holds: those that satisfy all conditions.
    pub conditions: Vec<SizeCondition>,
}
