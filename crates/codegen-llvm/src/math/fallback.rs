//! Calls the C library per lane for functions without a vector implementation.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::{BasicValueEnum, FunctionValue};
use tensorwright_lang::builtin::Builtin;

use super::Math;
use super::lanes::{Float, Precision};
use crate::error::{Error, Result};

/// A call of the function in C's `math.h` with the name of the builtin.
pub(super) fn call<'ctx>(
    builtin: Builtin,
    args: &[Float<'_, 'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let first = args.first().ok_or_else(|| Error::Build("a function of nothing".into()))?;
    let function = declare(first.math(), builtin, first.precision(), args.len());
    let math = first.math();
    let values: Vec<_> = args.iter().map(|arg| arg.value()).collect();
    let BasicValueEnum::VectorValue(shape) = first.value() else {
        return math.call_function(function, &values);
    };
    let index_type = math.module.get_context().i32_type();
    let mut result = shape.get_type().get_poison();
    for lane in 0..shape.get_type().get_size() {
        let index = index_type.const_int(lane.into(), false);
        let lanes = values.iter().map(|value| match value {
            BasicValueEnum::VectorValue(vector) => {
                Ok(math.builder.build_extract_element(*vector, index, "")?)
            }
            _ => Err(Error::Build("operands of different shape".into())),
        });
        let element = math.call_function(function, &lanes.collect::<Result<Vec<_>>>()?)?;
        result = math.builder.build_insert_element(result, element, index, "")?;
    }
    Ok(result.into())
}

/// The declaration of `expf` or `exp`.
fn declare<'ctx>(
    math: &Math<'_, 'ctx>,
    builtin: Builtin,
    precision: Precision,
    arity: usize,
) -> FunctionValue<'ctx> {
    let name = format!("{}{}", builtin.name(), precision.pick("f", ""));
    if let Some(function) = math.module.get_function(&name) {
        return function;
    }
    let context = math.module.get_context();
    let scalar = precision.pick(context.f32_type(), context.f64_type());
    let function =
        math.module.add_function(&name, scalar.fn_type(&vec![scalar.into(); arity], false), None);
    let nounwind = context.create_enum_attribute(Attribute::get_named_enum_kind_id("nounwind"), 0);
    function.add_attribute(AttributeLoc::Function, nounwind);
    function
}
