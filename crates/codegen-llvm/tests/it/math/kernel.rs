//! Kernels that apply a builtin to arrays.

use inkwell::IntPredicate;
use inkwell::context::Context;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValue, BasicValueEnum, PointerValue};
use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::jit::{Jit, LoadedCode};
use tensorwright_codegen_llvm::math::Math;
use tensorwright_codegen_llvm::passes::{self, DEFAULT_PIPELINE};
use tensorwright_lang::builtin::{Builtin, Signature};

/// `f(x, y, z, out, vectors)`.
type Entry = unsafe extern "C" fn(*const u8, *const u8, *const u8, *mut u8, i64);

/// An element type of a kernel.
pub(crate) trait Element: Copy + Default {
    const SIGNED: bool = true;
    fn llvm_type(context: &Context) -> BasicTypeEnum<'_>;
}

macro_rules! element {
    ($($rust:ty, $llvm:ident, $signed:literal;)*) => {$(
        impl Element for $rust {
            const SIGNED: bool = $signed;
            fn llvm_type(context: &Context) -> BasicTypeEnum<'_> {
                context.$llvm().into()
            }
        }
    )*};
}

element! {
    f32, f32_type, true;
    f64, f64_type, true;
    i32, i32_type, true;
    u8, i8_type, false;
    i8, i8_type, true;
}

/// A builtin, compiled for vectors of a length (1: a scalar).
pub(crate) struct Kernel {
    _code: LoadedCode,
    entry: Entry,
    lanes: usize,
}

impl Kernel {
    pub(crate) fn new<T: Element>(
        jit: &Jit,
        target: &Processor,
        builtin: Builtin,
        lanes: u32,
    ) -> Self {
        let machine = target.machine().unwrap();
        let context = Context::create();
        let module = context.create_module("math");
        target.prepare(&module, &machine);
        emit::<T>(&context, &module, target, builtin, lanes);
        passes::run(&module, &machine, DEFAULT_PIPELINE).unwrap();
        let code = jit.load_module(&module, &machine).unwrap();
        // SAFETY: `emit` builds a function of this type.
        let entry = unsafe { code.function("f").unwrap() };
        Self { _code: code, entry, lanes: lanes as usize }
    }

    /// The results for some arguments; missing arguments may be empty. Tests return 0 and 1.
    pub(crate) fn run<T: Element>(&self, args: [&[T]; 3]) -> Vec<T> {
        let count = args[0].len();
        let padded = count.div_ceil(self.lanes) * self.lanes;
        let args = args.map(|arg| {
            let mut arg = arg.to_vec();
            arg.resize(padded, T::default());
            arg
        });
        let mut out = vec![T::default(); padded];
        let [x, y, z] = args.each_ref().map(|arg| arg.as_ptr().cast());
        let vectors = i64::try_from(padded / self.lanes).unwrap();
        // SAFETY: each array has `vectors` times `lanes` elements of the type.
        unsafe { (self.entry)(x, y, z, out.as_mut_ptr().cast(), vectors) };
        out.truncate(count);
        out
    }
}

/// A loop over the vectors.
fn emit<'ctx, T: Element>(
    context: &'ctx Context,
    module: &inkwell::module::Module<'ctx>,
    target: &Processor,
    builtin: Builtin,
    lanes: u32,
) {
    let element = T::llvm_type(context);
    let vector = match (lanes, element) {
        (1, scalar) => scalar,
        (_, BasicTypeEnum::FloatType(ty)) => ty.vec_type(lanes).into(),
        (_, other) => other.into_int_type().vec_type(lanes).as_basic_type_enum(),
    };
    let pointer = context.ptr_type(Default::default()).into();
    let i64_type = context.i64_type();
    let params = [pointer, pointer, pointer, pointer, i64_type.into()];
    let function = module.add_function("f", context.void_type().fn_type(&params, false), None);
    target.annotate(function);
    let [entry, body, exit] =
        ["entry", "body", "exit"].map(|b| context.append_basic_block(function, b));
    let builder = context.create_builder();
    let count = function.get_nth_param(4).unwrap().into_int_value();
    builder.position_at_end(entry);
    let zero = i64_type.const_zero();
    let empty = builder.build_int_compare(IntPredicate::SLE, count, zero, "").unwrap();
    builder.build_conditional_branch(empty, exit, body).unwrap();

    builder.position_at_end(body);
    let counter = builder.build_phi(i64_type, "i").unwrap();
    let i = counter.as_basic_value().into_int_value();
    let step = i64_type.const_int(lanes.into(), false);
    let offset = builder.build_int_mul(i, step, "").unwrap();
    let place = |number: u32| -> PointerValue<'ctx> {
        let base = function.get_nth_param(number).unwrap().into_pointer_value();
        // SAFETY: the caller passes arrays of enough elements.
        unsafe { builder.build_gep(element, base, &[offset], "").unwrap() }
    };
    let align = std::mem::align_of::<T>().try_into().unwrap();
    let args: Vec<BasicValueEnum<'ctx>> = (0..u32::try_from(builtin.arity()).unwrap())
        .map(|number| {
            let value = builder.build_load(vector, place(number), "").unwrap();
            value.as_instruction_value().unwrap().set_alignment(align).unwrap();
            value
        })
        .collect();
    let mut result = Math::new(module, &builder).call(builtin, &args, T::SIGNED).unwrap();
    if builtin.signature() == Signature::FloatTest {
        result = match (result, vector) {
            (BasicValueEnum::IntValue(truth), BasicTypeEnum::FloatType(ty)) => {
                builder.build_unsigned_int_to_float(truth, ty, "").unwrap().into()
            }
            (truth, ty) => builder
                .build_unsigned_int_to_float(truth.into_vector_value(), ty.into_vector_type(), "")
                .unwrap()
                .into(),
        };
    }
    builder.build_store(place(3), result).unwrap().set_alignment(align).unwrap();
    let next = builder.build_int_add(i, i64_type.const_int(1, false), "").unwrap();
    let done = builder.build_int_compare(IntPredicate::EQ, next, count, "").unwrap();
    builder.build_conditional_branch(done, exit, body).unwrap();
    counter.add_incoming(&[(&zero, entry), (&next, builder.get_insert_block().unwrap())]);

    builder.position_at_end(exit);
    builder.build_return(None).unwrap();
}
