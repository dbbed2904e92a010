//! LLVM passes between emission and code generation.
//!
//! Kernels are emitted in their final form, so the passes only clean up: `sroa` turns stack slots
//! into registers, `early-cse` shares address arithmetic. LLVM's `default<O3>` takes several times
//! as long and its loop passes undo register tiles.

use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;

use crate::error::{Error, Result};

/// The default pipeline, in the syntax of `opt -passes=`.
pub const DEFAULT_PIPELINE: &str = "sroa,early-cse";

/// Verifies a module, then runs a pipeline over it.
///
/// Verification comes first because passes and code generators may abort the process on malformed
/// IR.
///
/// # Errors
///
/// The module is not well-formed or the pipeline cannot be parsed.
pub fn run(module: &Module<'_>, machine: &TargetMachine, pipeline: &str) -> Result<()> {
    verify(module)?;
    if pipeline.contains('\0') {
        return Err(Error::Passes("a pipeline has no NUL character".into()));
    }
    module
        .run_passes(pipeline, machine, PassBuilderOptions::create())
        .map_err(|message| Error::Passes(message.to_string_lossy().into()))
}

/// Checks that a module is well-formed.
///
/// # Errors
///
/// The module is not well-formed.
pub fn verify(module: &Module<'_>) -> Result<()> {
    module.verify().map_err(|message| Error::Verify(message.to_string_lossy().into()))
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::*;
    use crate::processor::Processor;

    #[test]
    fn failures_are_values() {
        let machine = Processor::native().unwrap().machine().unwrap();
        let context = Context::create();
        let module = context.create_module("m");
        run(&module, &machine, DEFAULT_PIPELINE).unwrap();
        assert!(matches!(run(&module, &machine, "no-such-pass"), Err(Error::Passes(_))));
        assert!(matches!(run(&module, &machine, "s\0"), Err(Error::Passes(_))));
        let function = module.add_function("f", context.i32_type().fn_type(&[], false), None);
        context.append_basic_block(function, "without a terminator");
        assert!(matches!(run(&module, &machine, DEFAULT_PIPELINE), Err(Error::Verify(_))));
    }
}
