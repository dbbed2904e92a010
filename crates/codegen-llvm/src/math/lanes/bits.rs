//! Bits of floating-point numbers, as integers.

use inkwell::IntPredicate;
use inkwell::values::BasicValueEnum;

use super::{Float, Mask, Precision, build, same_shape, splat};
use crate::math::Math;

/// A scalar or vector of integers as wide as a floating-point number.
#[derive(Clone, Copy)]
pub(in crate::math) struct Bits<'a, 'ctx> {
    pub(super) math: &'a Math<'a, 'ctx>,
    pub(super) precision: Precision,
    pub(super) value: BasicValueEnum<'ctx>,
}

impl<'a, 'ctx> Bits<'a, 'ctx> {
    fn constant(self, number: i64) -> BasicValueEnum<'ctx> {
        let context = self.math.module.get_context();
        let scalar = self.precision.pick(context.i32_type(), context.i64_type());
        splat(self.value.get_type(), scalar.const_int(number.cast_unsigned(), true).into())
    }

    /// Plus a constant.
    pub(in crate::math) fn offset(self, number: i64) -> Self {
        let (math, constant) = (self.math, self.constant(number));
        let value = build!(math, IntValue, self.value, constant, |x, y| math
            .builder
            .build_int_add(x, y, ""));
        Self { value, ..self }
    }

    pub(in crate::math) fn minus(self, other: Self) -> Self {
        let math = self.math;
        let value = build!(math, IntValue, self.value, other.value, |x, y| math
            .builder
            .build_int_sub(x, y, ""));
        Self { value, ..self }
    }

    /// Bitwise and with a constant.
    pub(in crate::math) fn masked(self, mask: i64) -> Self {
        let (math, constant) = (self.math, self.constant(mask));
        let value =
            build!(math, IntValue, self.value, constant, |x, y| math.builder.build_and(x, y, ""));
        Self { value, ..self }
    }

    pub(in crate::math) fn shift_left(self, count: u32) -> Self {
        let (math, count) = (self.math, self.constant(count.into()));
        let value = build!(math, IntValue, self.value, count, |x, y| math
            .builder
            .build_left_shift(x, y, ""));
        Self { value, ..self }
    }

    /// Shifted right, keeping the sign.
    pub(in crate::math) fn shift_right(self, count: u32) -> Self {
        let (math, count) = (self.math, self.constant(count.into()));
        let value = build!(math, IntValue, self.value, count, |x, y| math
            .builder
            .build_right_shift(x, y, true, ""));
        Self { value, ..self }
    }

    pub(in crate::math) fn equals(self, number: i64) -> Mask<'a, 'ctx> {
        let (math, constant) = (self.math, self.constant(number));
        let value = build!(math, IntValue, self.value, constant, |x, y| math
            .builder
            .build_int_compare(IntPredicate::EQ, x, y, ""));
        Mask { math, value }
    }

    /// The number with these bits.
    pub(in crate::math) fn float(self) -> Float<'a, 'ctx> {
        let Self { math, precision, value } = self;
        let context = math.module.get_context();
        let scalar = precision.pick(context.f32_type(), context.f64_type());
        let cast =
            math.builder.build_bit_cast(value, same_shape(value.get_type(), scalar.into()), "");
        Float { math, precision, value: math.keep(cast, value) }
    }

    /// The integer as a number, if it is less than `2^(mantissa_bits - 1)`. (Vectors of 64-bit
    /// integers have a conversion instruction in AVX-512 only.)
    pub(in crate::math) fn to_float(self) -> Float<'a, 'ctx> {
        let shifter = self.precision.shifter();
        let shifted = self.offset(self.precision.bits_of(shifter)).float();
        shifted - shifted.constant(shifter)
    }

    /// `2^self`, for exponents of numbers that are neither denormal nor infinite.
    pub(in crate::math) fn power_of_two(self) -> Float<'a, 'ctx> {
        self.offset(self.precision.bias()).shift_left(self.precision.mantissa_bits()).float()
    }

    /// Minus the bits of a number.
    pub(in crate::math) fn minus_bits_of(self, number: f64) -> Self {
        self.offset(-self.precision.bits_of(number))
    }
}
