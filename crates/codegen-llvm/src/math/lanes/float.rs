//! Floating-point scalars and vectors.

use std::ops::{Add, Div, Mul, Neg, Sub};

use inkwell::FloatPredicate;
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::BasicValueEnum;

use super::{Bits, Mask, Precision, build, same_shape, splat};
use crate::math::Math;

/// A scalar or vector of floating-point numbers.
#[derive(Clone, Copy)]
pub(in crate::math) struct Float<'a, 'ctx> {
    pub(super) math: &'a Math<'a, 'ctx>,
    pub(super) precision: Precision,
    pub(super) value: BasicValueEnum<'ctx>,
}

impl<'a, 'ctx> Float<'a, 'ctx> {
    pub(in crate::math) fn math(self) -> &'a Math<'a, 'ctx> {
        self.math
    }

    pub(in crate::math) fn value(self) -> BasicValueEnum<'ctx> {
        self.value
    }

    pub(in crate::math) fn precision(self) -> Precision {
        self.precision
    }

    pub(super) fn with(self, value: BasicValueEnum<'ctx>) -> Self {
        Self { value, ..self }
    }

    /// A constant in every lane.
    pub(in crate::math) fn constant(self, number: f64) -> Self {
        let context = self.math.module.get_context();
        let scalar = self.precision.pick(context.f32_type(), context.f64_type());
        let scalar = scalar.const_float(number);
        self.with(splat(self.value.get_type(), scalar.into()))
    }

    /// An intrinsic such as `llvm.sqrt`, of `self` and other arguments.
    pub(in crate::math) fn intrinsic(self, name: &str, others: &[Self]) -> Self {
        let mut args = vec![self.value];
        args.extend(others.iter().map(|other| other.value));
        match self.math.intrinsic(name, &args) {
            Ok(value) => self.with(value),
            Err(error) => self.with(self.math.fail(error, self.value)),
        }
    }

    /// `self * factor + addend`, fused if the target has an instruction for it. Results must not
    /// depend on whether it is fused.
    pub(in crate::math) fn mul_add(self, factor: Self, addend: Self) -> Self {
        self.intrinsic("llvm.fmuladd", &[factor, addend])
    }

    pub(in crate::math) fn abs(self) -> Self {
        self.intrinsic("llvm.fabs", &[])
    }

    pub(in crate::math) fn sqrt(self) -> Self {
        self.intrinsic("llvm.sqrt", &[])
    }

    /// The magnitude of `self` with the sign of another number.
    pub(in crate::math) fn copysign(self, sign: Self) -> Self {
        self.intrinsic("llvm.copysign", &[sign])
    }

    /// A polynomial with the constant coefficient first, by Horner's rule.
    pub(in crate::math) fn polynomial(self, coefficients: &[f64]) -> Self {
        let mut terms = coefficients.iter().rev().map(|&coefficient| self.constant(coefficient));
        let leading = terms.next().unwrap_or_else(|| self.constant(0.0));
        terms.fold(leading, |sum, coefficient| sum.mul_add(self, coefficient))
    }

    pub(in crate::math) fn compare(self, predicate: FloatPredicate, other: Self) -> Mask<'a, 'ctx> {
        let math = self.math;
        let value = build!(math, FloatValue, self.value, other.value, |x, y| math
            .builder
            .build_float_compare(predicate, x, y, ""));
        Mask { math, value }
    }

    /// Whether it is less than a constant; false for NaN.
    pub(in crate::math) fn below(self, bound: f64) -> Mask<'a, 'ctx> {
        self.compare(FloatPredicate::OLT, self.constant(bound))
    }

    /// Whether it is greater than a constant; false for NaN.
    pub(in crate::math) fn above(self, bound: f64) -> Mask<'a, 'ctx> {
        self.compare(FloatPredicate::OGT, self.constant(bound))
    }

    /// Whether it equals a constant; false for NaN.
    pub(in crate::math) fn equals(self, number: f64) -> Mask<'a, 'ctx> {
        self.compare(FloatPredicate::OEQ, self.constant(number))
    }

    pub(in crate::math) fn is_nan(self) -> Mask<'a, 'ctx> {
        self.compare(FloatPredicate::UNO, self)
    }

    /// Whether it is a compile-time constant.
    pub(in crate::math) fn is_constant(self) -> bool {
        match self.value {
            BasicValueEnum::FloatValue(value) => value.is_const(),
            BasicValueEnum::VectorValue(value) => value.is_const(),
            _ => false,
        }
    }

    /// Whether the target has minimum and maximum instructions that propagate NaN.
    pub(in crate::math) fn has_nan_extremes(self) -> bool {
        self.math.module.get_triple().as_str().to_bytes().starts_with(b"aarch64")
    }

    /// Clamps to a range; NaN stays NaN.
    pub(in crate::math) fn clamp(self, low: f64, high: f64) -> Self {
        let raised = self.below(low).select(self.constant(low), self);
        raised.above(high).select(self.constant(high), raised)
    }

    /// Its bits as an integer.
    pub(in crate::math) fn bits(self) -> Bits<'a, 'ctx> {
        let Self { math, precision, value } = self;
        let integer = same_shape(value.get_type(), self.integer_type());
        let cast = math.builder.build_bit_cast(value, integer, "");
        Bits { math, precision, value: math.keep(cast, value) }
    }

    /// The nearest integer to `self * scale`, as a number and as bits. The product must be less
    /// than `2^(mantissa_bits - 1)`; NaN gives NaN and some integer.
    ///
    /// (`llvm.rint` would be a library call for each lane before SSE 4.1.)
    pub(in crate::math) fn nearest_integer(self, scale: f64) -> (Self, Bits<'a, 'ctx>) {
        let shifter = self.precision.shifter();
        let shifted = if scale == 1.0 {
            self + self.constant(shifter)
        } else {
            self.mul_add(self.constant(scale), self.constant(shifter))
        };
        let integer = shifted.bits().offset(-self.precision.bits_of(shifter));
        (shifted - self.constant(shifter), integer)
    }

    /// `self * 2^exponent`, rounded once, for exponents from `-2 * bias` to `2 * bias`.
    pub(in crate::math) fn scale(self, exponent: Bits<'a, 'ctx>) -> Self {
        // The power itself may be out of range even if the product is not. Only the second product
        // can be denormal, so only it rounds.
        let half = exponent.shift_right(1);
        self * half.power_of_two() * exponent.minus(half).power_of_two()
    }

    /// `self * 2^number` for an integral number, rounded once, if the target has an instruction for
    /// vectors of this shape.
    pub(in crate::math) fn scale_whole(self, number: Self) -> Option<Self> {
        if !self.math.has_wide_vectors() {
            return None;
        }
        let BasicTypeEnum::VectorType(ty) = self.value.get_type() else { return None };
        let (name, lanes) = self.precision.pick(("ps", 16), ("pd", 8));
        if ty.get_size() != lanes {
            return None;
        }
        let name = format!("llvm.x86.avx512.mask.scalef.{name}.512");
        let context = self.math.module.get_context();
        // All lanes, with the current rounding mode.
        let mask = self.precision.pick(context.i16_type(), context.i8_type()).const_all_ones();
        let rounding = context.i32_type().const_int(4, false);
        let args = [self.value, number.value, self.value, mask.into(), rounding.into()];
        Some(match self.math.exact_intrinsic(&name, &args) {
            Ok(value) => self.with(value),
            Err(error) => self.with(self.math.fail(error, self.value)),
        })
    }

    /// Converted to double precision.
    pub(in crate::math) fn widen(self) -> Self {
        self.convert(Precision::Double)
    }

    /// Converted to single precision.
    pub(in crate::math) fn narrow(self) -> Self {
        self.convert(Precision::Single)
    }

    fn convert(self, precision: Precision) -> Self {
        if precision == self.precision {
            return self;
        }
        let builder = self.math.builder;
        let context = self.math.module.get_context();
        let scalar = precision.pick(context.f32_type(), context.f64_type());
        let ty = same_shape(self.value.get_type(), scalar.into());
        let value = match (self.value, ty) {
            (BasicValueEnum::FloatValue(x), BasicTypeEnum::FloatType(ty)) => {
                self.math.keep(builder.build_float_cast(x, ty, "").map(Into::into), self.value)
            }
            (BasicValueEnum::VectorValue(x), BasicTypeEnum::VectorType(ty)) => {
                self.math.keep(builder.build_float_cast(x, ty, "").map(Into::into), self.value)
            }
            _ => self.math.mismatch(self.value),
        };
        Self { precision, value, ..self }
    }

    fn integer_type(self) -> BasicTypeEnum<'ctx> {
        let context = self.math.module.get_context();
        self.precision.pick::<IntType<'ctx>>(context.i32_type(), context.i64_type()).into()
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $build:ident) => {
        impl<'a, 'ctx> $trait for Float<'a, 'ctx> {
            type Output = Self;

            fn $method(self, other: Self) -> Self {
                let math = self.math;
                self.with(build!(math, FloatValue, self.value, other.value, |x, y| math
                    .builder
                    .$build(x, y, "")))
            }
        }
    };
}

operator!(Add, add, build_float_add);
operator!(Sub, sub, build_float_sub);
operator!(Mul, mul, build_float_mul);
operator!(Div, div, build_float_div);

impl Neg for Float<'_, '_> {
    type Output = Self;

    fn neg(self) -> Self {
        let math = self.math;
        self.with(build!(math, FloatValue, self.value, self.value, |x, _y| math
            .builder
            .build_float_neg(x, "")))
    }
}
