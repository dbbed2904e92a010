//! A program at certain sizes: whether it is defined there, its shapes and its ranges.

use std::fmt;

use super::{Size, SizeCondition, SizedProgram};
use crate::program::{AxisId, Index, TensorId};

/// Why a program is not defined for sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SizeError {
    /// There are more sizes, or fewer.
    Count {
        /// The number of sizes that vary.
        expected: usize,
        /// The number of given ones.
        given: usize,
    },
    /// A size is not one of its values.
    Range {
        /// The size.
        size: Size,
        /// The given value.
        value: i64,
    },
    /// A condition does not hold.
    Condition {
        /// The condition, such as `N >= 2`.
        condition: String,
        /// The sizes and their values, such as `N = 1`.
        values: String,
    },
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeError::Count { expected, given } => {
                write!(f, "{given} sizes are given, and {expected} vary")
            }
            SizeError::Range { size: Size { name, range }, value } => {
                write!(f, "`{name}` is {value}, and must be {} to {}", range.least, range.most)?;
                if range.multiple > 1 {
                    write!(f, ", a multiple of {}", range.multiple)?;
                }
                Ok(())
            }
            SizeError::Condition { condition, values } => {
                write!(f, "`{condition}` does not hold for {values}")
            }
        }
    }
}

impl std::error::Error for SizeError {}

impl SizedProgram {
    /// Checks that the program is defined for these values of its [sizes](SizedProgram::sizes).
    ///
    /// # Errors
    /// The first size that is out of range or no multiple, or the first condition that does not
    /// hold.
    pub fn check(&self, values: &[i64]) -> Result<(), SizeError> {
        if values.len() != self.sizes.len() {
            return Err(SizeError::Count { expected: self.sizes.len(), given: values.len() });
        }
        for (size, value) in self.sizes.iter().zip(values) {
            let range = &size.range;
            let is_one = (range.least..=range.most).contains(value) && value % range.multiple == 0;
            if !is_one {
                return Err(SizeError::Range { size: size.clone(), value: *value });
            }
        }
        let Some(condition) = self.conditions.iter().find(|it| !self.holds(it, values)) else {
            return Ok(());
        };
        let (SizeCondition::AtLeastZero(index) | SizeCondition::Zero(index)) = condition;
        let is_in = |number: usize| index.mentions(&|axis: AxisId| axis.size() == Some(number));
        let sizes = self.sizes.iter().zip(values).enumerate();
        let named = sizes.filter(|(number, _)| is_in(*number));
        let named: Vec<String> =
            named.map(|(_, (size, value))| format!("{} = {value}", size.name)).collect();
        Err(SizeError::Condition {
            condition: self.condition_text(condition),
            values: named.join(", "),
        })
    }

    fn holds(&self, condition: &SizeCondition, values: &[i64]) -> bool {
        match condition {
            SizeCondition::AtLeastZero(index) => self.value(index, values) >= 0,
            SizeCondition::Zero(index) => self.value(index, values) == 0,
        }
    }

    /// The value of a function of sizes, such as an extent.
    #[must_use]
    pub fn value(&self, index: &Index, values: &[i64]) -> i64 {
        let axis = |axis: AxisId| {
            let number = axis.size();
            let size = number.and_then(|number| self.sizes.get(number).zip(values.get(number)));
            size.map_or(0, |(size, value)| value / size.range.multiple)
        };
        let value = index.eval::<()>(&axis, &mut |_| Ok(0)).unwrap_or(0);
        i64::try_from(value).unwrap_or(i64::MAX)
    }

    /// The shape of a tensor.
    ///
    /// Ids come from this program; an id of another program may panic.
    #[must_use]
    pub fn shape(&self, tensor: TensorId, values: &[i64]) -> Vec<i64> {
        self.shapes[tensor.0 as usize].iter().map(|extent| self.value(extent, values)).collect()
    }
}
