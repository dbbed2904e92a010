//! Writes a module as object file, assembly or IR text.
//!
//! The [JIT](crate::jit) and linkers receive the same object, so measurements apply to shipped
//! code. The functions verify the module first, because code generators abort on malformed IR.

use inkwell::module::Module;
use inkwell::targets::{FileType, TargetMachine};

use crate::error::{Error, Result};
use crate::passes;

/// The relocatable object file of a module.
///
/// Code generation modifies the module: do this last.
///
/// # Errors
///
/// The module is not well-formed, or the code generator rejects it.
pub fn object(module: &Module<'_>, machine: &TargetMachine) -> Result<Vec<u8>> {
    generate(module, machine, FileType::Object)
}

/// The assembly text of a module, which is not modified.
///
/// # Errors
///
/// The module is not well-formed, or the code generator rejects it.
pub fn assembly(module: &Module<'_>, machine: &TargetMachine) -> Result<String> {
    // Cloning an invalid module crashes LLVM.
    passes::verify(module)?;
    let text = generate(&module.clone(), machine, FileType::Assembly)?;
    let text = text.strip_suffix(b"\0").unwrap_or(&text);
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The IR of a module as text.
#[must_use]
pub fn llvm_ir(module: &Module<'_>) -> String {
    module.print_to_string().to_string_lossy().into_owned()
}

fn generate(module: &Module<'_>, machine: &TargetMachine, kind: FileType) -> Result<Vec<u8>> {
    passes::verify(module)?;
    let buffer = machine
        .write_to_memory_buffer(module, kind)
        .map_err(|message| Error::Emit(message.to_string_lossy().into()))?;
    Ok(buffer.as_slice().to_vec())
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::*;
    use crate::processor::Processor;

    #[test]
    fn a_module_becomes_text_and_an_object() {
        let machine = Processor::named("avx2").unwrap().machine().unwrap();
        let context = Context::create();
        let module = context.create_module("m");
        let i32_type = context.i32_type();
        let function = module.add_function("answer", i32_type.fn_type(&[], false), None);
        let builder = context.create_builder();
        builder.position_at_end(context.append_basic_block(function, "entry"));
        builder.build_return(Some(&i32_type.const_int(42, false))).unwrap();
        assert!(llvm_ir(&module).contains("ret i32 42"));
        let text = assembly(&module, &machine).unwrap();
        assert!(text.contains("answer:") && text.contains("$42"), "{text}");
        assert!(!text.contains('\0'));
        assert!(object(&module, &machine).unwrap().starts_with(b"\x7fELF"));
    }
}
