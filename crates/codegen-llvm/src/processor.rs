//! [`Processor`]: LLVM's description of a CPU: triple, name and features.
//!
//! All other properties are in [`Cpu`].

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

/// A CPU to generate code for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Processor {
    cpu: Cpu,
    triple: String,
    model: String,
    features: String,
    /// The features that LLVM implies for the model, beyond the named ones.
    implied: &'static str,
}

impl Processor {
    /// LLVM's description of a CPU. For this machine, LLVM knows the exact model.
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
        // The model and the features that LLVM implies for it belong together: code with undeclared
        // requirements would crash without a message.
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

    /// The CPU of this machine.
    ///
    /// # Errors
    ///
    /// The machine is neither x86-64 nor AArch64.
    pub fn native() -> Result<Self> {
        Ok(Self::of(&Cpu::native()?))
    }

    /// The CPU of a named target.
    ///
    /// # Errors
    ///
    /// There is no such target, or it is not a CPU.
    pub fn named(name: &str) -> Result<Self> {
        Ok(Self::try_from(&Target::named(name)?)?)
    }

    /// The CPU.
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

    /// LLVM's names of the features that generated code may use.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        let given = self.features.split(',').filter_map(|feature| feature.strip_prefix('+'));
        given.chain(self.implied.split_whitespace())
    }

    /// LLVM's code generator for the target: position-independent code, optimized at O2.
    ///
    /// # Errors
    ///
    /// LLVM was built without the target.
    pub fn machine(&self) -> Result<TargetMachine> {
        self.machine_at(OptimizationLevel::Default)
    }

    /// [`Processor::machine`] at another optimization level. Below `Less` (O1), register allocation
    /// is only good enough for debugging.
    ///
    /// # Errors
    ///
    /// LLVM was built without the target.
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

    /// Sets a module's triple and data layout, on which optimizer and code generator must agree.
    /// Call it before emitting anything into the module.
    pub fn prepare(&self, module: &Module<'_>, machine: &TargetMachine) {
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
    }

    /// Sets the target attributes of a function.
    ///
    /// LLVM tunes several AVX-512 CPUs for 256-bit vectors, because the first ones were slower with
    /// wide ones; without `prefer-vector-width` it may split vectors.
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

/// A string of LLVM's, which is always UTF-8.
fn owned(text: &std::ffi::CStr) -> String {
    text.to_string_lossy().into_owned()
}

/// Registers LLVM's code generators, once.
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

    /// `out = a * b` on one register of floats.
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
