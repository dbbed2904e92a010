//! `sin` and `cos`, within 1 ulp in both precisions.
//!
//! `x = n pi/2 + r` with integer `n` and `|r| <= pi/4`; the result is the sine or the cosine of
//! `r`, depending on the parity of `n`, with a sign. pi/2 is split into three parts whose products
//! with `n` are exact up to [`LIMIT`], and `r` is kept as a sum of two numbers. Single precision is
//! reduced in double precision.
//!
//! Larger arguments need more digits of pi. They are rare in kernels, but must be correct: if a
//! lane exceeds the limit, all lanes use the library. That is a branch, so both functions are
//! emitted once per type, outside of the caller.

use std::f64::consts::FRAC_2_PI;

use inkwell::FloatPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue};
use tensorwright_lang::builtin::Builtin;

use super::lanes::{Bits, Float, Mask, Precision};
use super::{Math, fallback};
use crate::error::{Error, Result};

/// The largest argument that is reduced here: `n` has at most 20 bits.
const LIMIT: f64 = 1_000_000.0;

/// pi/2 in parts of 33 bits, and the rest.
const HALF_PI: [f64; 3] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21];

/// `(sin(r) - r) / r^3` in `r^2`, error `2^-28`.
const SIN_SINGLE: [f64; 3] = [-1.6666655e-01, 8.332173e-03, -1.9516656e-04];

/// The same for double precision, error `2^-57`.
const SIN_DOUBLE: [f64; 6] = [
    -0.16666666666666632,
    0.008333333333322316,
    -0.00019841269829725246,
    2.7557313662073064e-06,
    -2.5050753267155156e-08,
    1.5896505108238152e-10,
];

/// `(cos(r) - 1 + r^2/2) / r^4` in `r^2`, error `2^-33`.
const COS_SINGLE: [f64; 3] = [4.1666646e-02, -1.3887362e-03, 2.443773e-05];

/// The same for double precision, error `2^-64`.
const COS_DOUBLE: [f64; 6] = [
    0.0416666666666666,
    -0.001388888888887399,
    2.4801587289394943e-05,
    -2.7557314326036945e-07,
    2.0875719559665487e-09,
    -1.1359448734749006e-11,
];

/// `sin(x)` or `cos(x)`.
pub(super) fn call<'ctx>(builtin: Builtin, x: Float<'_, 'ctx>) -> Result<BasicValueEnum<'ctx>> {
    let function = function(x.math(), builtin, x)?;
    x.math().call_function(function, &[x.value()])
}

/// The function in the module for a type, built on first use.
fn function<'ctx>(
    math: &Math<'_, 'ctx>,
    builtin: Builtin,
    like: Float<'_, 'ctx>,
) -> Result<FunctionValue<'ctx>> {
    let ty = like.value().get_type();
    let lanes = match ty {
        BasicTypeEnum::VectorType(vector) => format!("v{}", vector.get_size()),
        _ => String::new(),
    };
    let name =
        format!("tensorwright.{}.{lanes}{}", builtin.name(), like.precision().pick("f32", "f64"));
    if let Some(function) = math.module.get_function(&name) {
        return Ok(function);
    }
    let signature = ty.fn_type(&[ty.into()], false);
    let function = math.module.add_function(&name, signature, Some(Linkage::Internal));
    inherit_target(math, function)?;
    define(math, builtin, function)?;
    Ok(function)
}

/// Copies the target attributes of the current function: vectors are passed in registers, so caller
/// and callee must agree.
fn inherit_target<'ctx>(math: &Math<'_, 'ctx>, function: FunctionValue<'ctx>) -> Result<()> {
    let block = math.builder.get_insert_block();
    let caller = block
        .and_then(|block| block.get_parent())
        .ok_or_else(|| Error::Build("the builder is not in a function".into()))?;
    let nounwind = Attribute::get_named_enum_kind_id("nounwind");
    for attribute in caller.attributes(AttributeLoc::Function) {
        if attribute.is_string() || attribute.get_enum_kind_id() == nounwind {
            function.add_attribute(AttributeLoc::Function, attribute);
        }
    }
    Ok(())
}

/// The body with both paths.
fn define<'ctx>(
    math: &Math<'_, 'ctx>,
    builtin: Builtin,
    function: FunctionValue<'ctx>,
) -> Result<()> {
    let context = math.module.get_context();
    let builder = context.create_builder();
    let math = Math::new(math.module, &builder);
    let [entry, near, far] =
        ["entry", "near", "far"].map(|name| context.append_basic_block(function, name));
    let argument = function.get_first_param();
    let argument = argument.ok_or_else(|| Error::Build("a function of nothing".into()))?;

    builder.position_at_end(entry);
    let x = math.float(argument)?;
    // Infinities and NaN also yield NaN on the near path, but one comparison is enough.
    let large = any(&math, x.abs().compare(FloatPredicate::UGT, x.constant(LIMIT)))?;
    builder.build_conditional_branch(large, far, near)?;

    builder.position_at_end(near);
    builder.build_return(Some(&sin_or_cos(builtin, x).value()))?;

    builder.position_at_end(far);
    builder.build_return(Some(&fallback::call(builtin, &[x])?))?;
    math.failure.take().map_or(Ok(()), Err)
}

/// Whether a mask is set in a lane.
fn any<'ctx>(math: &Math<'_, 'ctx>, mask: Mask<'_, 'ctx>) -> Result<IntValue<'ctx>> {
    let any = match mask.value() {
        BasicValueEnum::VectorValue(lanes) => {
            math.intrinsic("llvm.vector.reduce.or", &[lanes.into()])?
        }
        scalar => scalar,
    };
    Ok(any.into_int_value())
}

/// The function for arguments up to the limit.
fn sin_or_cos<'a, 'ctx>(builtin: Builtin, x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    let (quadrant, [r, low]) = reduce(x);
    // The cosine is the sine a quarter turn ahead.
    let quadrant = if builtin == Builtin::Cos { quadrant.offset(1) } else { quadrant };
    let swapped = quadrant.masked(1).equals(1);
    let result = swapped.select(cos_of_remainder(r, low), sin_of_remainder(r, low));
    let result = quadrant.masked(2).equals(2).select(-result, result);
    // The sums of the reduction lose the sign of -0.
    if builtin == Builtin::Sin { x.equals(0.0).select(x, result) } else { result }
}

/// `n`, and `x - n pi/2` as a sum.
fn reduce<'a, 'ctx>(x: Float<'a, 'ctx>) -> (Bits<'a, 'ctx>, [Float<'a, 'ctx>; 2]) {
    let wide = x.widen();
    let [first, second, third] = HALF_PI.map(|part| wide.constant(part));
    let (n, bits) = wide.nearest_integer(FRAC_2_PI);
    let start = wide - n * first;
    let offset = n * second;
    let coarse = start - offset;
    let rest = ((start - coarse) - offset) - n * third;
    let r = coarse + rest;
    let pair = match x.precision() {
        Precision::Double => [r, (coarse - r) + rest],
        Precision::Single => [r.narrow(), (r - r.narrow().widen()).narrow()],
    };
    (bits, pair)
}

/// `sin(r + low)` for `|r| <= pi/4`.
fn sin_of_remainder<'a, 'ctx>(r: Float<'a, 'ctx>, low: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    let z = r * r;
    let cubic = z.polynomial(r.precision().pick(&SIN_SINGLE, &SIN_DOUBLE)) * z;
    // sin(r + low) is about sin(r) + low cos(r), and cos(r) about 1 - z/2.
    let slope = z.mul_add(z.constant(-0.5), z.constant(1.0));
    r + cubic.mul_add(r, low * slope)
}

/// `cos(r + low)` for `|r| <= pi/4`.
fn cos_of_remainder<'a, 'ctx>(r: Float<'a, 'ctx>, low: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    let z = r * r;
    let quartic = z * z * z.polynomial(r.precision().pick(&COS_SINGLE, &COS_DOUBLE));
    let half = z * z.constant(0.5);
    let one = z.constant(1.0);
    let main = one - half;
    main + (((one - main) - half) + (quartic - r * low))
}
