//! What LLVM has to know of a processor: triple, name and features. All else is in [`Cpu`].

use std::fmt;
use std::sync::Once;

use inkwell::OptimizationLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::module::Module;
use inkwell::targets::{
    CodeModel, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple,
};
use inkwell::values::FunctionValue;
use tensorwright_machine::{Cpu, Target, TargetError, VectorIsa};

use crate::error::{Error, Result};

/// Microarchitecture levels of x86-64.
const X86_64_V3: &str = "sse3 ssse3 sse4.1 sse4.2 popcnt avx avx2 bmi bmi2 f16c fma lzcnt movbe";
const X86_64_V4: &str = "sse3 ssse3 sse4.1 sse4.2 popcnt avx avx2 bmi bmi2 f16c fma lzcnt movbe \
                         avx512f avx512bw avx512cd avx512dq avx512vl";

/// A processor to generate code for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Processor {
    cpu: Cpu,
    triple: String,
    model: String,
    features: String,
    /// What LLVM takes the model to have beyond the features that are named.
    implied: &'static str,
}

impl Processor {
    /// What LLVM has to know of a processor. Of this machine's it knows more than anybody asks.
    #[must_use]
    pub fn of(cpu: &Cpu) -> Self {
        const X86: &str = "x86_64-unknown-linux-gnu";
        const ARM: &str = "aarch64-unknown-linux-gnu";
        if cpu.is_native() {
            return Self {
                cpu: cpu.clone(),
                triple: owned(TargetMachine::get_default_triple().as_str()),
                model: owned(&TargetMachine::get_host_cpu_name()),
                features: owned(&TargetMachine::get_host_cpu_features()),
                implied: "",
            };
        }
        // A model and all that LLVM may use of it belong together: code that asks for less than it uses ends a
        // program without a word.
        let (triple, model, implied) = match cpu.isa() {
            VectorIsa::Sse => (X86, "x86-64", ""),
            VectorIsa::Avx2 => (X86, "haswell", X86_64_V3),
            VectorIsa::Avx512 => (X86, "skylake-avx512", X86_64_V4),
            VectorIsa::Neon => (ARM, "generic", ""),
        };
        let features: Vec<String> = cpu.features().iter().map(|name| format!("+{name}")).collect();
        let [triple, model] = [triple, model].map(str::to_owned);
        Self { cpu: cpu.clone(), triple, model, features: features.join(","), implied }
    }

    /// This machine's.
    ///
    /// # Errors
    ///
    /// If the machine is neither x86-64 nor AArch64.
    pub fn native() -> Result<Self> {
        Ok(Self::of(&Cpu::native()?))
    }

    /// The one of a target's name.
    ///
    /// # Errors
    ///
    /// If there is no such target, or it is no processor.
    pub fn named(name: &str) -> Result<Self> {
        Ok(Self::try_from(&Target::named(name)?)?)
    }

    /// The processor that code is generated for.
    #[must_use]
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// LLVM's target triple.
    #[must_use]
    pub fn triple(&self) -> &str {
        &self.triple
    }

    /// LLVM's name of the processor.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// LLVM's feature string, such as `+avx2,+fma`.
    #[must_use]
    pub fn features(&self) -> &str {
        &self.features
    }

    /// LLVM's names of the features that code for the target may use.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        let given = self.features.split(',').filter_map(|feature| feature.strip_prefix('+'));
        given.chain(self.implied.split_whitespace())
    }

    /// LLVM's code generator for the target: position-independent code, optimised at O2.
    ///
    /// # Errors
    ///
    /// If LLVM was built without the target.
    pub fn machine(&self) -> Result<TargetMachine> {
        self.machine_at(OptimizationLevel::Default)
    }

    /// [`Processor::machine`] at another level of code generation. Below `Less` (O1) registers
    /// are not allocated well enough for anything but debugging.
    ///
    /// # Errors
    ///
    /// If LLVM was built without the target.
    pub fn machine_at(&self, level: OptimizationLevel) -> Result<TargetMachine> {
        initialize();
        let triple = TargetTriple::create(&self.triple);
        let target = LlvmTarget::from_triple(&triple)
            .map_err(|e| Error::Target(e.to_string_lossy().into()))?;
        target
            .create_target_machine(
                &triple,
                &self.model,
                &self.features,
                level,
                RelocMode::PIC,
                CodeModel::Default,
            )
            .ok_or_else(|| Error::Target(format!("LLVM has no code generator for {self}")))
    }

    /// Gives a module the triple and the data layout of the machine, which the optimiser and the
    /// code generator have to agree on. Call it before anything is emitted into the module.
    pub fn prepare(&self, module: &Module<'_>, machine: &TargetMachine) {
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
    }

    /// Marks a function as compiled for the processor.
    ///
    /// LLVM tunes several AVX-512 processors for vectors of 256 bits, because the first of them
    /// ran slower with wide ones; without `prefer-vector-width` it may split what we emit.
    pub fn annotate(&self, function: FunctionValue<'_>) {
        let context = function.get_type().get_context();
        let bits = (8 * self.cpu.vector_bytes()).to_string();
        let mut strings = vec![("target-cpu", self.model.as_str())];
        if !self.features.is_empty() {
            strings.push(("target-features", self.features.as_str()));
        }
        if self.cpu.isa().is_x86() {
            strings.push(("prefer-vector-width", bits.as_str()));
            strings.push(("min-legal-vector-width", bits.as_str()));
        }
        for (key, value) in strings {
            let attribute = context.create_string_attribute(key, value);
            function.add_attribute(AttributeLoc::Function, attribute);
        }
        let nounwind = inkwell::attributes::Attribute::get_named_enum_kind_id("nounwind");
        function.add_attribute(AttributeLoc::Function, context.create_enum_attribute(nounwind, 0));
    }
}

impl TryFrom<&Target> for Processor {
    type Error = TargetError;

    fn try_from(target: &Target) -> std::result::Result<Self, TargetError> {
        match target {
            Target::Cpu(cpu) => Ok(Self::of(cpu)),
            Target::Gpu(_) | Target::Fpga(_) => {
                Err(TargetError::Unavailable { name: target.name().to_owned() })
            }
        }
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.cpu.name(), self.model, self.triple)
    }
}

/// A string of LLVM's, which are UTF-8 in every case that is not a bug.
fn owned(text: &std::ffi::CStr) -> String {
    text.to_string_lossy().into_owned()
}

/// Registers the code generators with LLVM, once.
pub(crate) fn initialize() {
    static INITIALIZED: Once = Once::new();
    INITIALIZED.call_once(|| {
        let config = InitializationConfig::default();
        LlvmTarget::initialize_x86(&config);
        LlvmTarget::initialize_aarch64(&config);
    });
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::*;
    use crate::object;

    #[test]
    fn every_processor_makes_a_machine() {
        for name in Cpu::NAMES {
            Processor::named(name).unwrap().machine().unwrap();
        }
    }

    /// `out = a * b` on as many floats as a register holds.
    fn product_assembly(cpu: &Cpu) -> String {
        let target = Processor::of(cpu);
        let machine = target.machine().unwrap();
        let context = Context::create();
        let module = context.create_module("m");
        target.prepare(&module, &machine);
        let vector = context.f32_type().vec_type(cpu.vector_bytes() as u32 / 4);
        let pointer = context.ptr_type(Default::default()).into();
        let function =
            module.add_function("f", context.void_type().fn_type(&[pointer, pointer], false), None);
        target.annotate(function);
        let builder = context.create_builder();
        builder.position_at_end(context.append_basic_block(function, ""));
        let a = function.get_nth_param(0).unwrap().into_pointer_value();
        let x = builder.build_load(vector, a, "").unwrap().into_vector_value();
        let y = builder.build_float_mul(x, x, "").unwrap();
        builder.build_store(function.get_nth_param(1).unwrap().into_pointer_value(), y).unwrap();
        builder.build_return(None).unwrap();
        object::assembly(&module, &machine).unwrap()
    }

    #[test]
    fn full_vector_registers_are_used() {
        assert!(product_assembly(&Cpu::avx512()).contains("%zmm"));
        assert!(product_assembly(&Cpu::avx2()).contains("%ymm"));
        assert!(product_assembly(&Cpu::sse()).contains("mulps"));
        assert!(product_assembly(&Cpu::neon()).contains(".4s"));
    }
}
