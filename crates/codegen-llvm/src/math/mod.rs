//! Builtin functions as LLVM instructions, on scalars and vectors.
//!
//! Elementary functions that matter for performance have their own implementation: straight-line
//! code without tables, so all lanes are computed at once and the code generator can schedule it
//! with the surrounding code. Each is accurate over the whole range of its argument, including
//! denormals, infinities and NaN. The others call the C library per lane (see `fallback`).
//!
//! Multiplications and additions are fused if the target supports it; the stated errors also hold
//! without.

mod erf;
mod exp;
mod exp2;
mod expm1;
mod extreme;
mod fallback;
mod integer;
mod lanes;
mod log;
mod log1p;
mod pow;
mod rsqrt;
mod sigmoid;
mod tanh;
mod trig;

use std::cell::RefCell;

use inkwell::FloatPredicate;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::BasicValueEnum;
use tensorwright_lang::builtin::Builtin;

use crate::error::{Error, Result};
use lanes::{Float, Precision};

/// Builds calls of builtins at the position of a builder.
#[derive(Debug)]
pub struct Math<'a, 'ctx> {
    module: &'a Module<'ctx>,
    builder: &'a Builder<'ctx>,
    /// The first instruction that could not be built; see `lanes`.
    failure: RefCell<Option<Error>>,
}

impl<'a, 'ctx> Math<'a, 'ctx> {
    /// Inserts calls at the position of `builder` and declarations into `module`.
    #[must_use]
    pub fn new(module: &'a Module<'ctx>, builder: &'a Builder<'ctx>) -> Self {
        Self { module, builder, failure: RefCell::new(None) }
    }

    /// Calls a builtin. The arguments are scalars or vectors of one type: `float` or `double`, or
    /// integers for integer builtins. `signed` is the signedness of integers. Tests such as `isnan`
    /// return `i1` or a vector of `i1`; all others return the type of the arguments.
    ///
    /// The builder stays in its block. Declarations and, for `sin` and `cos`, an internal function
    /// with the target attributes of the current one are added to the module.
    ///
    /// # Errors
    ///
    /// The arguments are not as described, or the builder has no position.
    pub fn call(
        &self,
        builtin: Builtin,
        args: &[BasicValueEnum<'ctx>],
        signed: bool,
    ) -> Result<BasicValueEnum<'ctx>> {
        let name = builtin.name();
        let [first, others @ ..] = args else {
            return Err(Error::Build(format!("`{name}` of nothing")));
        };
        if args.len() != builtin.arity() {
            return Err(Error::Build(format!("`{name}` of {} arguments", args.len())));
        }
        if others.iter().any(|other| other.get_type() != first.get_type()) {
            return Err(Error::Build(format!("`{name}` of arguments of different types")));
        }
        if let BasicTypeEnum::IntType(_) = lanes::element_type(first.get_type()) {
            return integer::call(self, builtin, args, signed);
        }
        let args = args.iter().map(|&arg| self.float(arg)).collect::<Result<Vec<_>>>()?;
        let result = call_float(builtin, &args)?;
        self.failure.take().map_or(Ok(result), Err)
    }
}

/// A builtin of floating-point arguments.
fn call_float<'ctx>(builtin: Builtin, args: &[Float<'_, 'ctx>]) -> Result<BasicValueEnum<'ctx>> {
    let result = match *args {
        [x] if matches!(builtin, Builtin::Sin | Builtin::Cos) => return trig::call(builtin, x),
        [x] => match test(builtin, x) {
            Some(truth) => return Ok(truth),
            None => unary(builtin, x),
        },
        [x, y] => binary(builtin, x, y),
        [x, y, z] => ternary(builtin, x, y, z),
        _ => None,
    };
    result.map_or_else(|| fallback::call(builtin, args), |result| Ok(result.value()))
}

/// The builtins with a `bool` result.
fn test<'ctx>(builtin: Builtin, x: Float<'_, 'ctx>) -> Option<BasicValueEnum<'ctx>> {
    let infinity = x.constant(f64::INFINITY);
    let mask = match builtin {
        Builtin::IsNan => x.is_nan(),
        Builtin::IsInf => x.abs().compare(FloatPredicate::OEQ, infinity),
        Builtin::IsFinite => x.abs().compare(FloatPredicate::OLT, infinity),
        _ => return None,
    };
    Some(mask.value())
}

fn unary<'a, 'ctx>(builtin: Builtin, x: Float<'a, 'ctx>) -> Option<Float<'a, 'ctx>> {
    Some(match builtin {
        Builtin::Abs => x.abs(),
        Builtin::Sqrt => x.sqrt(),
        Builtin::Rsqrt => rsqrt::rsqrt(x),
        Builtin::Exp => exp::exp(x),
        Builtin::Exp2 => exp2::exp2(x),
        Builtin::Expm1 => expm1::expm1(x),
        Builtin::Log => log::log(x),
        Builtin::Log2 => log::log2(x),
        Builtin::Log10 => log::log10(x),
        Builtin::Log1p => log1p::log1p(x),
        Builtin::Tanh => tanh::tanh(x),
        Builtin::Erf => erf::erf(x),
        Builtin::Sigmoid => sigmoid::sigmoid(x),
        Builtin::Floor => x.intrinsic("llvm.floor", &[]),
        Builtin::Ceil => x.intrinsic("llvm.ceil", &[]),
        Builtin::Round => x.intrinsic("llvm.round", &[]),
        Builtin::Rint => x.intrinsic("llvm.rint", &[]),
        Builtin::Trunc => x.intrinsic("llvm.trunc", &[]),
        _ => return None,
    })
}

fn binary<'a, 'ctx>(
    builtin: Builtin,
    x: Float<'a, 'ctx>,
    y: Float<'a, 'ctx>,
) -> Option<Float<'a, 'ctx>> {
    Some(match builtin {
        Builtin::Min => extreme::min(x, y),
        Builtin::Max => extreme::max(x, y),
        // Both prefer a number over NaN.
        Builtin::Fmin => x.intrinsic("llvm.minnum", &[y]),
        Builtin::Fmax => x.intrinsic("llvm.maxnum", &[y]),
        Builtin::Copysign => x.copysign(y),
        Builtin::Pow if x.precision() == Precision::Single => pow::pow(x, y),
        _ => return None,
    })
}

fn ternary<'a, 'ctx>(
    builtin: Builtin,
    x: Float<'a, 'ctx>,
    y: Float<'a, 'ctx>,
    z: Float<'a, 'ctx>,
) -> Option<Float<'a, 'ctx>> {
    Some(match builtin {
        Builtin::Clamp => extreme::min(extreme::max(x, y), z),
        // This must round only once, so it is not `mul_add`.
        Builtin::Fma => x.intrinsic("llvm.fma", &[y, z]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::values::FunctionValue;
    use tensorwright_machine::Cpu;

    use super::*;
    use crate::object;
    use crate::processor::Processor;

    /// `float f(float)`, with the given number of lanes.
    fn function<'ctx>(
        context: &'ctx Context,
        module: &Module<'ctx>,
        lanes: u32,
    ) -> FunctionValue<'ctx> {
        let vector = context.f32_type().vec_type(lanes);
        module.add_function("f", vector.fn_type(&[vector.into()], false), None)
    }

    fn message<'ctx>(
        math: &Math<'_, 'ctx>,
        builtin: Builtin,
        args: &[BasicValueEnum<'ctx>],
    ) -> String {
        math.call(builtin, args, true).unwrap_err().to_string()
    }

    #[test]
    fn wrong_arguments_are_errors() {
        let context = Context::create();
        let module = context.create_module("m");
        let builder = context.create_builder();
        let math = Math::new(&module, &builder);
        let x = function(&context, &module, 4).get_first_param().unwrap();
        for builtin in [Builtin::Exp, Builtin::Sin, Builtin::Cbrt, Builtin::Sqrt, Builtin::IsNan] {
            let error = math.call(builtin, &[x], true).unwrap_err();
            assert!(matches!(error, Error::Build(_)), "no position: {error}");
        }
        let function = module.get_function("f").unwrap();
        builder.position_at_end(context.append_basic_block(function, ""));
        let half = context.f16_type().const_zero().into();
        let float = context.f32_type().const_zero().into();
        let integer = context.i32_type().const_zero().into();
        assert_eq!(message(&math, Builtin::Exp, &[]), "building IR: `exp` of nothing");
        assert_eq!(message(&math, Builtin::Exp, &[x, x]), "building IR: `exp` of 2 arguments");
        assert_eq!(
            message(&math, Builtin::Exp, &[integer]),
            "building IR: `exp` does not take integers"
        );
        assert_eq!(message(&math, Builtin::Exp, &[half]), "building IR: no function of `half`");
        let mixed = message(&math, Builtin::Max, &[x, float]);
        assert_eq!(mixed, "building IR: `max` of arguments of different types");
        math.call(Builtin::Exp, &[x], true).unwrap();
    }

    /// Vectorized builtins call no function outside of the kernel, on any target.
    #[test]
    fn vectors_are_not_taken_apart() {
        for name in Cpu::NAMES {
            let target = Processor::named(name).unwrap();
            let machine = target.machine().unwrap();
            for builtin in [
                Builtin::Exp,
                Builtin::Exp2,
                Builtin::Expm1,
                Builtin::Log,
                Builtin::Log2,
                Builtin::Log10,
                Builtin::Log1p,
                Builtin::Tanh,
                Builtin::Erf,
                Builtin::Sigmoid,
                Builtin::Rsqrt,
            ] {
                let context = Context::create();
                let module = context.create_module("m");
                target.prepare(&module, &machine);
                let function = function(&context, &module, target.cpu().vector_bytes() as u32 / 4);
                target.annotate(function);
                let builder = context.create_builder();
                builder.position_at_end(context.append_basic_block(function, ""));
                let x = function.get_first_param().unwrap();
                let result = Math::new(&module, &builder).call(builtin, &[x], true).unwrap();
                builder.build_return(Some(&result)).unwrap();
                let text = object::assembly(&module, &machine).unwrap();
                let calls = text.lines().any(|line| {
                    let instruction = line.split_whitespace().next().unwrap_or_default();
                    instruction.starts_with("call") || instruction == "bl"
                });
                assert!(!calls, "{builtin:?} on {name}: {text}");
            }
        }
    }
}
