#![allow(unsafe_code, reason = "asks LLVM for the elements of a constant")]
//! Detects lanes that are never active.
//!
//! Before AVX-512, LLVM 19 turns a masked load into an unmasked one if it finds that the mask is
//! zero in all lanes of a register: the load reads out of bounds or crashes. This happens if a
//! condition on data is combined with a constant one. So no load is emitted for registers without
//! possibly active lanes.

use inkwell::llvm_sys::core::LLVMGetAggregateElement;
use inkwell::values::{
    AsValueRef, BasicValueEnum, InstructionOpcode, IntValue, Operand, VectorValue,
};

/// The most conditions of a mask to examine.
const DEEPEST: usize = 16;

/// Whether each lane of a mask is known to be idle.
pub(super) fn idle(mask: VectorValue<'_>) -> Vec<bool> {
    let count = mask.get_type().get_size() as usize;
    look(mask, DEEPEST).unwrap_or_else(|| vec![false; count])
}

fn look(mask: VectorValue<'_>, depth: usize) -> Option<Vec<bool>> {
    if mask.is_const() {
        return constant(mask);
    }
    let instruction = mask.as_instruction().filter(|_| depth > 0)?;
    if instruction.get_opcode() != InstructionOpcode::And {
        return None;
    }
    let of = |place| match instruction.get_operand(place)? {
        Operand::Value(BasicValueEnum::VectorValue(operand)) => look(operand, depth - 1),
        _ => None,
    };
    match (of(0), of(1)) {
        (Some(a), Some(b)) => Some(a.iter().zip(&b).map(|(a, b)| *a || *b).collect()),
        (a, b) => a.or(b),
    }
}

/// The lanes of a constant that are zero.
fn constant(mask: VectorValue<'_>) -> Option<Vec<bool>> {
    let is_zero = |lane| {
        // SAFETY: the value is a constant vector, and a lane that it does not have is null.
        let element = unsafe { LLVMGetAggregateElement(mask.as_value_ref(), lane) };
        if element.is_null() {
            return None;
        }
        // SAFETY: an element of a vector of truth values is an integer.
        let element = unsafe { IntValue::new(element) };
        Some(element.get_zero_extended_constant() == Some(0))
    };
    (0..mask.get_type().get_size()).map(is_zero).collect()
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::types::VectorType;

    use super::*;

    #[test]
    fn constants_in_conjunctions_are_found() {
        let context = Context::create();
        let (module, builder) = (context.create_module("m"), context.create_builder());
        let bits = |bits: [u64; 4]| {
            VectorType::const_vector(&bits.map(|bit| context.bool_type().const_int(bit, false)))
        };
        let lanes = context.bool_type().vec_type(4);
        let function =
            module.add_function("f", context.void_type().fn_type(&[lanes.into()], false), None);
        builder.position_at_end(context.append_basic_block(function, ""));
        let data = function.get_nth_param(0).unwrap().into_vector_value();
        let and = |a, b| builder.build_and(a, b, "").unwrap();
        assert_eq!(idle(data), [false; 4]);
        assert_eq!(idle(bits([1, 0, 1, 0])), [false, true, false, true]);
        assert_eq!(idle(lanes.const_zero()), [true; 4]);
        assert_eq!(idle(and(data, bits([1, 1, 0, 0]))), [false, false, true, true]);
        let both = and(and(data, bits([1, 1, 0, 0])), and(data, bits([0, 1, 1, 1])));
        assert_eq!(idle(both), [true, false, true, true]);
        assert_eq!(idle(builder.build_or(data, bits([0; 4]), "").unwrap()), [false; 4]);
    }
}
