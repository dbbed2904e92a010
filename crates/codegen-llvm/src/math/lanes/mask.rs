//! Results of comparisons.

use inkwell::values::BasicValueEnum;

use super::{Float, build};
use crate::math::Math;

/// A scalar or vector of truth values.
#[derive(Clone, Copy)]
pub(in crate::math) struct Mask<'a, 'ctx> {
    pub(super) math: &'a Math<'a, 'ctx>,
    pub(super) value: BasicValueEnum<'ctx>,
}

impl<'a, 'ctx> Mask<'a, 'ctx> {
    pub(in crate::math) fn value(self) -> BasicValueEnum<'ctx> {
        self.value
    }

    pub(in crate::math) fn and(self, other: Self) -> Self {
        let math = self.math;
        let value = build!(math, IntValue, self.value, other.value, |x, y| math
            .builder
            .build_and(x, y, ""));
        Self { value, ..self }
    }

    pub(in crate::math) fn or(self, other: Self) -> Self {
        let math = self.math;
        let value =
            build!(math, IntValue, self.value, other.value, |x, y| math.builder.build_or(x, y, ""));
        Self { value, ..self }
    }

    /// Selects one number where the mask is set and the other where it is not.
    pub(in crate::math) fn select(
        self,
        yes: Float<'a, 'ctx>,
        no: Float<'a, 'ctx>,
    ) -> Float<'a, 'ctx> {
        let builder = self.math.builder;
        let built = match self.value {
            BasicValueEnum::IntValue(mask) => builder.build_select(mask, yes.value, no.value, ""),
            BasicValueEnum::VectorValue(mask) => {
                builder.build_select(mask, yes.value, no.value, "")
            }
            _ => return yes.with(self.math.mismatch(yes.value)),
        };
        yes.with(self.math.keep(built, yes.value))
    }
}
