//! [`Argument`]: a parameter of a definition, as callers see it.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::FixedScalar;

use super::Parameter;
use crate::nest::Owner;

/// A parameter of a definition, or one of its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument<'a> {
    /// A parameter of the kernel.
    Passed(&'a Parameter),
    /// A number that is compiled into the loops: callers must pass the same number.
    Fixed(&'a FixedScalar),
}

impl<'a> Argument<'a> {
    /// The name in the source text.
    #[must_use]
    pub fn name(&self) -> &'a str {
        match self {
            Self::Passed(parameter) => &parameter.name,
            Self::Fixed(scalar) => &scalar.name,
        }
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> DType {
        match self {
            Self::Passed(parameter) => parameter.dtype,
            Self::Fixed(scalar) => scalar.dtype,
        }
    }

    /// The extents; empty for one element.
    #[must_use]
    pub fn shape(&self) -> &'a [i64] {
        match self {
            Self::Passed(parameter) => &parameter.shape,
            Self::Fixed(_) => &[],
        }
    }

    /// Whether it is an input whose values do not change between calls.
    #[must_use]
    pub fn is_const(&self) -> bool {
        match self {
            Self::Passed(parameter) => parameter.is_const,
            Self::Fixed(scalar) => scalar.is_const,
        }
    }

    /// Whether it is a result.
    #[must_use]
    pub fn is_output(&self) -> bool {
        matches!(self, Self::Passed(parameter) if parameter.owner == Owner::Output)
    }

    /// Whether it is a scalar input, which is passed by value in typed interfaces.
    #[must_use]
    pub fn is_scalar_input(&self) -> bool {
        !self.is_output() && self.shape().is_empty()
    }
}

/// Merges parameters and fixed numbers in the order of the definition.
pub fn in_order<'f, T>(
    passed: impl IntoIterator<Item = T>,
    fixed: &'f [FixedScalar],
    of_fixed: impl Fn(&'f FixedScalar) -> T,
) -> Vec<T> {
    let mut fixed = fixed.iter().peekable();
    let mut list = Vec::new();
    for one in passed {
        while let Some(scalar) = fixed.next_if(|scalar| scalar.place == list.len()) {
            list.push(of_fixed(scalar));
        }
        list.push(one);
    }
    list.extend(fixed.map(of_fixed));
    list
}
