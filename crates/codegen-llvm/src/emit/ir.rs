//! Instruction builder for scalars and vectors.
//!
//! A [`Value`] is a scalar or a vector; an operation with both kinds of operands broadcasts the
//! scalars. So the rest of the emitter is written as if for scalars: this is SPMD widening.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::{Context, ContextRef};
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{BasicType, BasicTypeEnum, IntType, VectorType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValueEnum, CallSiteValue, FunctionValue, InstructionOpcode,
    IntValue, VectorValue,
};
use inkwell::{FloatPredicate, IntPredicate};

use crate::error::{Error, Result};
use crate::processor::Processor;

/// A scalar or a vector.
pub(super) type Value<'ctx> = BasicValueEnum<'ctx>;

/// The insertion point of instructions.
pub(super) struct Ir<'a, 'ctx> {
    pub(super) context: &'ctx Context,
    pub(super) module: &'a Module<'ctx>,
    pub(super) builder: Builder<'ctx>,
    pub(super) target: &'a Processor,
}

/// The error for a violated invariant of the emitter.
pub(super) fn defect(what: &str) -> Error {
    Error::Build(format!("{what} (a bug in the emitter)"))
}

/// The number of lanes of a vector; `None` for a scalar.
pub(super) fn width(value: Value<'_>) -> Option<u32> {
    match value {
        BasicValueEnum::VectorValue(vector) => Some(vector.get_type().get_size()),
        _ => None,
    }
}

/// A type with as many lanes as a value.
pub(super) fn widened<'ctx>(scalar: BasicTypeEnum<'ctx>, like: Value<'ctx>) -> BasicTypeEnum<'ctx> {
    match width(like) {
        Some(count) => vector_of(scalar, count).into(),
        None => scalar,
    }
}

/// A vector of numbers or pointers.
pub(super) fn vector_of(scalar: BasicTypeEnum<'_>, count: u32) -> VectorType<'_> {
    match scalar {
        BasicTypeEnum::FloatType(float) => float.vec_type(count),
        BasicTypeEnum::PointerType(pointer) => pointer.vec_type(count),
        BasicTypeEnum::IntType(int) => int.vec_type(count),
        // No other type is an element of a buffer.
        other => other.as_basic_type_enum().get_context().i8_type().vec_type(count),
    }
}

/// The type of the lanes of a value.
pub(super) fn lane_type(value: Value<'_>) -> BasicTypeEnum<'_> {
    match value {
        BasicValueEnum::VectorValue(vector) => vector.get_type().get_element_type(),
        scalar => scalar.get_type(),
    }
}

trait TypeContext<'ctx> {
    fn get_context(&self) -> ContextRef<'ctx>;
}

impl<'ctx> TypeContext<'ctx> for BasicTypeEnum<'ctx> {
    fn get_context(&self) -> ContextRef<'ctx> {
        match self {
            BasicTypeEnum::ArrayType(t) => t.get_context(),
            BasicTypeEnum::FloatType(t) => t.get_context(),
            BasicTypeEnum::IntType(t) => t.get_context(),
            BasicTypeEnum::PointerType(t) => t.get_context(),
            BasicTypeEnum::StructType(t) => t.get_context(),
            BasicTypeEnum::VectorType(t) => t.get_context(),
            BasicTypeEnum::ScalableVectorType(t) => t.get_context(),
        }
    }
}

impl<'ctx> Ir<'_, 'ctx> {
    pub(super) fn i64(&self, value: i64) -> IntValue<'ctx> {
        self.context.i64_type().const_int(value as u64, true)
    }

    pub(super) fn i32(&self, value: i64) -> IntValue<'ctx> {
        self.context.i32_type().const_int(value as u64, true)
    }

    /// A vector of constants of an integer type.
    pub(super) fn constants(
        &self,
        kind: IntType<'ctx>,
        values: impl IntoIterator<Item = i64>,
    ) -> VectorValue<'ctx> {
        let values: Vec<_> =
            values.into_iter().map(|value| kind.const_int(value as u64, true)).collect();
        VectorType::const_vector(&values)
    }

    /// A constant in all lanes, with the type of a value.
    pub(super) fn constant_like(&self, value: i64, like: Value<'ctx>) -> Result<Value<'ctx>> {
        let scalar = match lane_type(like) {
            BasicTypeEnum::IntType(kind) => kind.const_int(value as u64, true).into(),
            BasicTypeEnum::FloatType(kind) => kind.const_float(value as f64).into(),
            _ => return Err(defect("a constant of a type without numbers")),
        };
        self.like(scalar, like)
    }

    /// A floating-point constant in all lanes, with the type of a value.
    pub(super) fn float_like(&self, value: f64, like: Value<'ctx>) -> Result<Value<'ctx>> {
        match lane_type(like) {
            BasicTypeEnum::FloatType(kind) => self.like(kind.const_float(value).into(), like),
            _ => Err(defect("a fraction of a type without fractions")),
        }
    }

    /// Broadcasts a value to all lanes.
    pub(super) fn splat(&self, value: Value<'ctx>, count: u32) -> Result<VectorValue<'ctx>> {
        if let BasicValueEnum::VectorValue(vector) = value {
            return Ok(vector);
        }
        let kind = vector_of(value.get_type(), count);
        let (poison, zero) = (kind.get_poison(), self.context.i32_type().const_zero());
        let one = self.builder.build_insert_element(poison, value, zero, "")?;
        let lanes = self.constants(self.context.i32_type(), (0..count).map(|_| 0));
        Ok(self.builder.build_shuffle_vector(one, poison, lanes, "")?)
    }

    /// Broadcasts a value to as many lanes as another one has.
    pub(super) fn like(&self, value: Value<'ctx>, like: Value<'ctx>) -> Result<Value<'ctx>> {
        match width(like) {
            Some(count) => Ok(self.splat(value, count)?.into()),
            None => Ok(value),
        }
    }

    /// Broadcasts two values to the larger number of lanes.
    pub(super) fn unify(
        &self,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<(Value<'ctx>, Value<'ctx>)> {
        Ok((self.like(a, b)?, self.like(b, a)?))
    }

    pub(super) fn binary(
        &self,
        op: InstructionOpcode,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let (a, b) = self.unify(a, b)?;
        Ok(self.builder.build_binop(op, a, b, "")?)
    }

    pub(super) fn add(&self, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
        self.binary(InstructionOpcode::Add, a, b)
    }

    pub(super) fn and(&self, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
        self.binary(InstructionOpcode::And, a, b)
    }

    pub(super) fn or(&self, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
        self.binary(InstructionOpcode::Or, a, b)
    }

    /// Bitwise negation.
    pub(super) fn not(&self, a: Value<'ctx>) -> Result<Value<'ctx>> {
        self.binary(InstructionOpcode::Xor, a, self.constant_like(-1, a)?)
    }

    /// Negates a floating-point number.
    pub(super) fn negate_float(&self, value: Value<'ctx>) -> Result<Value<'ctx>> {
        match value {
            BasicValueEnum::FloatValue(value) => {
                Ok(self.builder.build_float_neg(value, "")?.into())
            }
            BasicValueEnum::VectorValue(value) => {
                Ok(self.builder.build_float_neg(value, "")?.into())
            }
            _ => Err(defect("a floating-point negation of another value")),
        }
    }

    /// Converts every lane to a scalar type.
    pub(super) fn cast(
        &self,
        op: InstructionOpcode,
        value: Value<'ctx>,
        to: impl BasicType<'ctx>,
    ) -> Result<Value<'ctx>> {
        let to = widened(to.as_basic_type_enum(), value);
        if to == value.get_type() {
            return Ok(value);
        }
        Ok(self.builder.build_cast(op, value, to, "")?)
    }

    pub(super) fn compare_ints(
        &self,
        predicate: IntPredicate,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        match self.unify(a, b)? {
            (BasicValueEnum::IntValue(a), BasicValueEnum::IntValue(b)) => {
                Ok(self.builder.build_int_compare(predicate, a, b, "")?.into())
            }
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                Ok(self.builder.build_int_compare(predicate, a, b, "")?.into())
            }
            _ => Err(defect("an integer comparison of other values")),
        }
    }

    pub(super) fn compare_floats(
        &self,
        predicate: FloatPredicate,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        match self.unify(a, b)? {
            (BasicValueEnum::FloatValue(a), BasicValueEnum::FloatValue(b)) => {
                Ok(self.builder.build_float_compare(predicate, a, b, "")?.into())
            }
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                Ok(self.builder.build_float_compare(predicate, a, b, "")?.into())
            }
            _ => Err(defect("a floating-point comparison of other values")),
        }
    }

    /// `condition ? a : b`, by lane if the condition has lanes.
    pub(super) fn select(
        &self,
        condition: Value<'ctx>,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let (a, b) = self.unify(a, b)?;
        let (a, b) = (self.like(a, condition)?, self.like(b, condition)?);
        match condition {
            BasicValueEnum::IntValue(c) => Ok(self.builder.build_select(c, a, b, "")?),
            BasicValueEnum::VectorValue(c) => Ok(self.builder.build_select(c, a, b, "")?),
            _ => Err(defect("a condition that is no truth value")),
        }
    }

    /// A lane of a vector; a scalar itself.
    pub(super) fn lane(&self, value: Value<'ctx>, lane: u32) -> Result<Value<'ctx>> {
        match value {
            BasicValueEnum::VectorValue(vector) => {
                let lane = self.context.i32_type().const_int(u64::from(lane), false);
                Ok(self.builder.build_extract_element(vector, lane, "")?)
            }
            scalar => Ok(scalar),
        }
    }

    /// Shuffles the lanes of two vectors of one type.
    pub(super) fn shuffle(
        &self,
        a: VectorValue<'ctx>,
        b: VectorValue<'ctx>,
        lanes: impl IntoIterator<Item = i64>,
    ) -> Result<VectorValue<'ctx>> {
        let lanes = self.constants(self.context.i32_type(), lanes);
        Ok(self.builder.build_shuffle_vector(a, b, lanes, "")?)
    }

    /// Reverses the lanes of a vector.
    pub(super) fn reverse(&self, vector: VectorValue<'ctx>) -> Result<VectorValue<'ctx>> {
        let count = i64::from(vector.get_type().get_size());
        self.shuffle(vector, vector.get_type().get_poison(), (0..count).rev())
    }

    /// Whether a condition holds in some lane.
    pub(super) fn any(&self, condition: Value<'ctx>) -> Result<IntValue<'ctx>> {
        let any = match condition {
            BasicValueEnum::VectorValue(_) => {
                self.intrinsic("llvm.vector.reduce.or", &[condition.get_type()], &[condition])?
            }
            scalar => scalar,
        };
        Ok(any.into_int_value())
    }

    /// Calls an intrinsic that is overloaded on some types.
    pub(super) fn intrinsic(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'ctx>],
        args: &[Value<'ctx>],
    ) -> Result<Value<'ctx>> {
        let call = self.intrinsic_call(name, types, args)?;
        call.try_as_basic_value().basic().ok_or_else(|| defect("an intrinsic without a value"))
    }

    /// Calls an intrinsic that may have no value.
    pub(super) fn intrinsic_call(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'ctx>],
        args: &[Value<'ctx>],
    ) -> Result<CallSiteValue<'ctx>> {
        let function: FunctionValue<'ctx> = Intrinsic::find(name)
            .and_then(|intrinsic| intrinsic.get_declaration(self.module, types))
            .ok_or_else(|| defect(&format!("no intrinsic {name}")))?;
        let args: Vec<BasicMetadataValueEnum<'ctx>> =
            args.iter().map(|arg| (*arg).into()).collect();
        Ok(self.builder.build_call(function, &args, "")?)
    }

    /// Calls an intrinsic whose operands and result have one type.
    pub(super) fn uniform_intrinsic(
        &self,
        name: &str,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let (a, b) = self.unify(a, b)?;
        self.intrinsic(name, &[a.get_type()], &[a, b])
    }

    /// The value behind a `freeze`, which later passes do not look through.
    #[allow(unsafe_code, reason = "inkwell has no safe way to build this instruction")]
    pub(super) fn freeze(&self, value: Value<'ctx>) -> Result<Value<'ctx>> {
        use inkwell::llvm_sys::core::LLVMBuildFreeze;
        use inkwell::values::AsValueRef;
        // SAFETY: the builder stands in a block of the function that computes the value, and the
        // result is a value of the same type and context.
        let frozen = unsafe {
            let builder = self.builder.as_mut_ptr();
            BasicValueEnum::new(LLVMBuildFreeze(builder, value.as_value_ref(), c"".as_ptr()))
        };
        Ok(frozen)
    }

    /// Adds an attribute to a parameter.
    pub(super) fn attribute(
        &self,
        function: FunctionValue<'ctx>,
        place: AttributeLoc,
        name: &str,
        value: u64,
    ) {
        let kind = Attribute::get_named_enum_kind_id(name);
        function.add_attribute(place, self.context.create_enum_attribute(kind, value));
    }

    /// Reinterprets the bits of every lane.
    pub(super) fn bitcast(
        &self,
        value: Value<'ctx>,
        to: impl BasicType<'ctx>,
    ) -> Result<Value<'ctx>> {
        self.cast(InstructionOpcode::BitCast, value, to)
    }
}
