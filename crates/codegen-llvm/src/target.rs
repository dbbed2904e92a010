//! The processors that code is generated for.
//!
//! A [`CpuTarget`] is this machine or a named preset. It knows what an emitter has to know about
//! the processor (how wide a vector is and how many registers hold one) and what LLVM has to know
//! (triple, processor name, features).
//!
//! | preset | processor | vector | registers |
//! | --- | --- | --- | --- |
//! | `native` | this machine | by its features | |
//! | `sse` | any x86-64 | 16 bytes | 16 |
//! | `avx2` | `haswell` | 32 bytes | 16 |
//! | `avx512` | `skylake-avx512` | 64 bytes | 32 |
//! | `neon` | any AArch64 | 16 bytes | 32 |

use std::fmt;
use std::str::FromStr;
use std::sync::Once;

use inkwell::OptimizationLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::module::Module;
use inkwell::targets::{
    CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};
use inkwell::values::FunctionValue;

use crate::error::{Error, Result};

/// The vector instructions that an emitter may count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VectorIsa {
    /// x86-64's baseline: 16 vectors of 16 bytes, no fused multiply-add.
    Sse,
    /// AVX2 and FMA: 16 vectors of 32 bytes.
    Avx2,
    /// AVX-512 with F, BW, DQ and VL: 32 vectors of 64 bytes.
    Avx512,
    /// AArch64's baseline: 32 vectors of 16 bytes.
    Neon,
}

impl VectorIsa {
    /// The widest that the features of an x86-64 processor allow.
    #[must_use]
    pub fn of_x86(has: impl Fn(&str) -> bool) -> Self {
        let all = |names: &[&str]| names.iter().all(|name| has(name));
        if all(&["avx512f", "avx512bw", "avx512dq", "avx512vl"]) {
            VectorIsa::Avx512
        } else if all(&["avx2", "fma"]) {
            VectorIsa::Avx2
        } else {
            VectorIsa::Sse
        }
    }

    /// The widest that the features of a processor of either kind allow. All of AArch64 name `neon`.
    #[must_use]
    pub fn of_features(has: impl Fn(&str) -> bool) -> Self {
        if has("neon") { VectorIsa::Neon } else { Self::of_x86(has) }
    }

    /// [`VectorIsa::of_x86`] of LLVM's feature string.
    fn of_x86_features(features: &str) -> Self {
        Self::of_x86(|name| features.split(',').any(|f| f.strip_prefix('+') == Some(name)))
    }

    fn is_x86(self) -> bool {
        self != VectorIsa::Neon
    }

    /// Whether a processor with `self` runs code for `other`.
    fn runs(self, other: VectorIsa) -> bool {
        self.is_x86() == other.is_x86() && self >= other
    }
}

/// Microarchitecture levels of x86-64.
const X86_64_V3: &str = "sse3 ssse3 sse4.1 sse4.2 popcnt avx avx2 bmi bmi2 f16c fma lzcnt movbe";
const X86_64_V4: &str = "sse3 ssse3 sse4.1 sse4.2 popcnt avx avx2 bmi bmi2 f16c fma lzcnt movbe \
                         avx512f avx512bw avx512cd avx512dq avx512vl";

/// A processor to generate code for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CpuTarget {
    name: &'static str,
    triple: String,
    cpu: String,
    features: String,
    isa: VectorIsa,
}

impl CpuTarget {
    /// The names that [`CpuTarget::named`] knows.
    pub const NAMES: [&'static str; 5] = ["native", "sse", "avx2", "avx512", "neon"];

    /// This machine.
    ///
    /// # Errors
    ///
    /// If the machine is neither x86-64 nor AArch64.
    pub fn native() -> Result<Self> {
        let triple = owned(TargetMachine::get_default_triple().as_str());
        let features = owned(&TargetMachine::get_host_cpu_features());
        let isa = if cfg!(target_arch = "x86_64") {
            VectorIsa::of_x86_features(&features)
        } else if cfg!(target_arch = "aarch64") {
            VectorIsa::Neon
        } else {
            return Err(Error::Target(format!("`{triple}` is not supported")));
        };
        let cpu = owned(&TargetMachine::get_host_cpu_name());
        Ok(Self { name: "native", triple, cpu, features, isa })
    }

    /// The target of a name; `generic` and `x86-64` are other names of `sse`.
    ///
    /// # Errors
    ///
    /// If there is no such target.
    pub fn named(name: &str) -> Result<Self> {
        const X86: &str = "x86_64-unknown-linux-gnu";
        const ARM: &str = "aarch64-unknown-linux-gnu";
        let preset = |name, triple: &str, cpu: &str, features: &str, isa| {
            let [triple, cpu, features] = [triple, cpu, features].map(str::to_owned);
            Ok(Self { name, triple, cpu, features, isa })
        };
        match name {
            "native" => Self::native(),
            "sse" | "generic" | "x86-64" => preset("sse", X86, "x86-64", "", VectorIsa::Sse),
            "avx2" => preset("avx2", X86, "haswell", "+avx2,+fma", VectorIsa::Avx2),
            "avx512" => {
                let features = "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+fma";
                preset("avx512", X86, "skylake-avx512", features, VectorIsa::Avx512)
            }
            "neon" => preset("neon", ARM, "generic", "+neon", VectorIsa::Neon),
            _ => {
                let known = Self::NAMES.join("`, `");
                Err(Error::Target(format!("no target `{name}`; there are `{known}`")))
            }
        }
    }

    /// The name that [`CpuTarget::named`] takes.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// LLVM's target triple.
    #[must_use]
    pub fn triple(&self) -> &str {
        &self.triple
    }

    /// LLVM's name of the processor.
    #[must_use]
    pub fn cpu(&self) -> &str {
        &self.cpu
    }

    /// LLVM's feature string, such as `+avx2,+fma`.
    #[must_use]
    pub fn features(&self) -> &str {
        &self.features
    }

    /// LLVM's names of the features that code for the target may use.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        // What the processors of the presets have beyond the features that presets name.
        let level = match (self.name, self.isa) {
            ("native", _) | (_, VectorIsa::Sse | VectorIsa::Neon) => "",
            (_, VectorIsa::Avx2) => X86_64_V3,
            (_, VectorIsa::Avx512) => X86_64_V4,
        };
        let given = self.features.split(',').filter_map(|feature| feature.strip_prefix('+'));
        given.chain(level.split_whitespace())
    }

    /// The vector instructions.
    #[must_use]
    pub fn isa(&self) -> VectorIsa {
        self.isa
    }

    /// The size of the widest vector register.
    #[must_use]
    pub fn vector_bytes(&self) -> u32 {
        match self.isa {
            VectorIsa::Sse | VectorIsa::Neon => 16,
            VectorIsa::Avx2 => 32,
            VectorIsa::Avx512 => 64,
        }
    }

    /// The number of vector registers.
    #[must_use]
    pub fn vector_registers(&self) -> u32 {
        match self.isa {
            VectorIsa::Sse | VectorIsa::Avx2 => 16,
            VectorIsa::Avx512 | VectorIsa::Neon => 32,
        }
    }

    /// Checks that this machine can run code for the target.
    ///
    /// # Errors
    ///
    /// If it cannot.
    pub fn check_runs_here(&self) -> Result<()> {
        let here = Self::native()?;
        if here.isa.runs(self.isa) {
            return Ok(());
        }
        let Self { name, .. } = self;
        Err(Error::Target(format!("this machine (`{}`) cannot run code for `{name}`", here.cpu)))
    }

    /// LLVM's code generator for the target: position-independent code, optimised at O2.
    ///
    /// # Errors
    ///
    /// If LLVM was built without the target.
    pub fn machine(&self) -> Result<TargetMachine> {
        self.machine_at(OptimizationLevel::Default)
    }

    /// [`CpuTarget::machine`] at another level of code generation. Below `Less` (O1) registers
    /// are not allocated well enough for anything but debugging.
    ///
    /// # Errors
    ///
    /// If LLVM was built without the target.
    pub fn machine_at(&self, level: OptimizationLevel) -> Result<TargetMachine> {
        initialize();
        let triple = TargetTriple::create(&self.triple);
        let target =
            Target::from_triple(&triple).map_err(|e| Error::Target(e.to_string_lossy().into()))?;
        target
            .create_target_machine(
                &triple,
                &self.cpu,
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
        let bits = (8 * self.vector_bytes()).to_string();
        let mut strings = vec![("target-cpu", self.cpu.as_str())];
        if !self.features.is_empty() {
            strings.push(("target-features", self.features.as_str()));
        }
        if self.isa.is_x86() {
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

impl fmt::Display for CpuTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.name, self.cpu, self.triple)
    }
}

impl FromStr for CpuTarget {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::named(name)
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
        Target::initialize_x86(&config);
        Target::initialize_aarch64(&config);
    });
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::*;
    use crate::object;

    #[test]
    fn every_preset_makes_a_machine() {
        for name in CpuTarget::NAMES {
            let target: CpuTarget = name.parse().unwrap();
            assert_eq!(target.name(), name);
            target.machine().unwrap();
        }
        let error = CpuTarget::named("vax").unwrap_err();
        assert_eq!(
            error.to_string(),
            "target: no target `vax`; there are `native`, `sse`, `avx2`, `avx512`, `neon`"
        );
    }

    #[test]
    fn a_wider_machine_runs_narrower_code_of_its_family() {
        assert!(VectorIsa::Avx512.runs(VectorIsa::Sse));
        assert!(!VectorIsa::Sse.runs(VectorIsa::Avx2));
        assert!(!VectorIsa::Avx512.runs(VectorIsa::Neon));
        assert!(!VectorIsa::Neon.runs(VectorIsa::Sse));
        CpuTarget::native().unwrap().check_runs_here().unwrap();
    }

    #[test]
    fn features_decide_the_vector_width() {
        let isa = VectorIsa::of_x86_features;
        assert_eq!(isa("+avx2,-fma"), VectorIsa::Sse);
        assert_eq!(isa("+avx2,+fma,+avx512f"), VectorIsa::Avx2);
        assert_eq!(isa("+avx512f,+avx512bw,+avx512dq,+avx512vl"), VectorIsa::Avx512);
    }

    /// `out = a * b` on as many floats as a register holds.
    fn product_assembly(name: &str) -> String {
        let target = CpuTarget::named(name).unwrap();
        let machine = target.machine().unwrap();
        let context = Context::create();
        let module = context.create_module("m");
        target.prepare(&module, &machine);
        let vector = context.f32_type().vec_type(target.vector_bytes() / 4);
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
        assert!(product_assembly("avx512").contains("%zmm"));
        assert!(product_assembly("avx2").contains("%ymm"));
        assert!(product_assembly("sse").contains("mulps"));
        assert!(product_assembly("neon").contains(".4s"));
    }
}
