//! Arithmetic on scalars and vectors.
//!
//! A [`Float`] is a scalar or vector of `float` or `double` in the current function; [`Bits`] is
//! the integer of the same shape, [`Mask`] the result of a comparison. The operators build
//! instructions, so a function reads like its formula.
//!
//! Building fails only if the emitter uses a value of a wrong type or has not set an insertion
//! point. [`Math`] records the first failure and returns it at the end; a failed operation returns
//! its operand.

mod bits;
mod float;
mod mask;

use inkwell::attributes::AttributeLoc;
use inkwell::builder::BuilderError;
use inkwell::intrinsics::Intrinsic;
use inkwell::types::{BasicType, BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, CallSiteValue, FunctionValue};

use super::Math;
use crate::error::{Error, Result};

pub(super) use bits::Bits;
pub(super) use float::Float;
pub(super) use mask::Mask;

/// The two supported formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::math) enum Precision {
    Single,
    Double,
}

impl Precision {
    /// Stored bits of the significand.
    pub(in crate::math) const fn mantissa_bits(self) -> u32 {
        match self {
            Precision::Single => 23,
            Precision::Double => 52,
        }
    }

    /// The exponent of 1.
    pub(in crate::math) const fn bias(self) -> i64 {
        match self {
            Precision::Single => 127,
            Precision::Double => 1023,
        }
    }

    /// The least positive number that is not denormal.
    pub(in crate::math) const fn min_positive(self) -> f64 {
        match self {
            Precision::Single => f32::MIN_POSITIVE as f64,
            Precision::Double => f64::MIN_POSITIVE,
        }
    }

    /// `1.5 * 2^mantissa_bits`: its neighbors are the integers, so adding it rounds to an integer
    /// and leaves that integer in the low bits.
    const fn shifter(self) -> f64 {
        match self {
            Precision::Single => 12_582_912.0,
            Precision::Double => 6_755_399_441_055_744.0,
        }
    }

    /// The bits of a number.
    const fn bits_of(self, number: f64) -> i64 {
        match self {
            Precision::Single => (number as f32).to_bits() as i64,
            Precision::Double => number.to_bits() as i64,
        }
    }

    /// One of two constants.
    pub(in crate::math) const fn pick<T: Copy>(self, single: T, double: T) -> T {
        match self {
            Precision::Single => single,
            Precision::Double => double,
        }
    }
}

/// Builds an instruction on two scalars or on two vectors.
macro_rules! build {
    ($math:expr, $scalar:ident, $a:expr, $b:expr, |$x:ident, $y:ident| $build:expr) => {
        match ($a, $b) {
            (BasicValueEnum::$scalar($x), BasicValueEnum::$scalar($y)) => {
                $math.keep($build.map(BasicValueEnum::from), $a)
            }
            (BasicValueEnum::VectorValue($x), BasicValueEnum::VectorValue($y)) => {
                $math.keep($build.map(BasicValueEnum::from), $a)
            }
            _ => $math.mismatch($a),
        }
    };
}

use build;

impl<'a, 'ctx> Math<'a, 'ctx> {
    /// A value as floating-point number.
    pub(in crate::math) fn float(&'a self, value: BasicValueEnum<'ctx>) -> Result<Float<'a, 'ctx>> {
        let context = self.module.get_context();
        let element = element_type(value.get_type());
        let precision = if element == context.f32_type().into() {
            Precision::Single
        } else if element == context.f64_type().into() {
            Precision::Double
        } else {
            let name = element.print_to_string();
            return Err(Error::Build(format!("no function of `{}`", name.to_string_lossy())));
        };
        Ok(Float { math: self, precision, value })
    }

    /// The built value, or the operand after a failure.
    fn keep(
        &self,
        built: std::result::Result<BasicValueEnum<'ctx>, BuilderError>,
        operand: BasicValueEnum<'ctx>,
    ) -> BasicValueEnum<'ctx> {
        built.unwrap_or_else(|error| self.fail(error.into(), operand))
    }

    fn mismatch(&self, operand: BasicValueEnum<'ctx>) -> BasicValueEnum<'ctx> {
        self.fail(Error::Build("operands of different shape".into()), operand)
    }

    fn fail(&self, error: Error, operand: BasicValueEnum<'ctx>) -> BasicValueEnum<'ctx> {
        self.failure.borrow_mut().get_or_insert(error);
        operand
    }

    /// Calls an intrinsic that is overloaded on the type of its first argument.
    pub(in crate::math) fn intrinsic(
        &self,
        name: &str,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let missing = || Error::Build(format!("no intrinsic `{name}`"));
        let overload = args.first().ok_or_else(missing)?.get_type();
        let function = Intrinsic::find(name)
            .and_then(|intrinsic| intrinsic.get_declaration(self.module, &[overload]))
            .ok_or_else(missing)?;
        self.call_function(function, args)
    }

    /// Calls a target intrinsic that returns the type of its first argument.
    pub(in crate::math) fn exact_intrinsic(
        &self,
        name: &str,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let types: Vec<_> = args.iter().map(|arg| arg.get_type().into()).collect();
        let missing = || Error::Build(format!("`{name}` of nothing"));
        let result = args.first().ok_or_else(missing)?.get_type();
        let declared = self.module.get_function(name);
        let declare = || self.module.add_function(name, result.fn_type(&types, false), None);
        self.call_function(declared.unwrap_or_else(declare), args)
    }

    /// Whether the current function targets a CPU with 512-bit vectors.
    pub(in crate::math) fn has_wide_vectors(&self) -> bool {
        let function = self.builder.get_insert_block().and_then(|block| block.get_parent());
        let width = function.and_then(|function| {
            function.get_string_attribute(AttributeLoc::Function, "prefer-vector-width")
        });
        width.is_some_and(|width| width.get_string_value().to_bytes() == b"512")
    }

    /// Calls a function that returns a value.
    pub(in crate::math) fn call_function(
        &self,
        function: FunctionValue<'ctx>,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let args: Vec<_> = args.iter().map(|&arg| arg.into()).collect();
        let call: CallSiteValue<'ctx> = self.builder.build_call(function, &args, "")?;
        call.try_as_basic_value()
            .basic()
            .ok_or_else(|| Error::Build("the function returns nothing".into()))
    }
}

/// The type of a lane.
pub(in crate::math) fn element_type(ty: BasicTypeEnum<'_>) -> BasicTypeEnum<'_> {
    match ty {
        BasicTypeEnum::VectorType(vector) => vector.get_element_type(),
        scalar => scalar,
    }
}

/// A type with as many lanes as another.
pub(in crate::math) fn same_shape<'ctx>(
    shape: BasicTypeEnum<'ctx>,
    element: BasicTypeEnum<'ctx>,
) -> BasicTypeEnum<'ctx> {
    match (shape, element) {
        (BasicTypeEnum::VectorType(vector), BasicTypeEnum::FloatType(element)) => {
            element.vec_type(vector.get_size()).as_basic_type_enum()
        }
        (BasicTypeEnum::VectorType(vector), BasicTypeEnum::IntType(element)) => {
            element.vec_type(vector.get_size()).as_basic_type_enum()
        }
        (_, element) => element,
    }
}

/// A constant in every lane.
pub(in crate::math) fn splat<'ctx>(
    shape: BasicTypeEnum<'ctx>,
    scalar: BasicValueEnum<'ctx>,
) -> BasicValueEnum<'ctx> {
    let BasicTypeEnum::VectorType(vector) = shape else { return scalar };
    let count = vector.get_size() as usize;
    match scalar {
        BasicValueEnum::FloatValue(scalar) => VectorType::const_vector(&vec![scalar; count]).into(),
        BasicValueEnum::IntValue(scalar) => VectorType::const_vector(&vec![scalar; count]).into(),
        other => other,
    }
}
