//! [`LoweredProgram`]: lowered loops and the texts generated from them.

use std::sync::Arc;
use std::time::Duration;

use tensorwright_codegen_c::Dialect;
use tensorwright_codegen_llvm::{
    CodegenOptions, Compiled, Listing, ObjectCache, Processor, compile_again, compile_cached,
    listing,
};
use tensorwright_lang::precision::Precision;
use tensorwright_machine::{GpuApi, Target, TargetError};
use tensorwright_policy::lower_options;
use tensorwright_schedule::interface::DeviceProgram;
use tensorwright_schedule::{
    DeviceLimits, Interface, LoopNest, LowerOptions, LoweredNest, Schedule, StageMap, canonical,
    canonical_sized, lower, lower_with,
};

use super::diagnose::Diagnose;
use crate::ir::SizedProgram;
use crate::{Code, Diagnostic, Diagnostics, Program, Source};

/// A program with its schedule, its target and its [loops](LoweredNest). Generates source and
/// object code. Made by [`KernelBuilder::lower`](crate::KernelBuilder::lower).
#[derive(Debug, Clone)]
pub struct LoweredProgram {
    pub(super) program: Program,
    /// The program for a range of sizes; `program` is then that for the largest ones.
    pub(super) sized: Option<Arc<SizedProgram>>,
    pub(super) schedule: Schedule,
    /// The source text of the schedule's locations.
    pub(super) schedule_source: Source,
    pub(super) target: Target,
    /// `None` for a device.
    pub(super) processor: Option<Processor>,
    pub(super) threads: usize,
    pub(super) options: CodegenOptions,
    /// The on-disk cache of objects.
    pub(super) cache: Option<ObjectCache>,
    /// The nest after scheduling, before lowering.
    pub(super) scheduled: LoopNest,
    pub(super) nest: LoweredNest,
    pub(super) interface: Interface,
    /// The time for scheduling and lowering.
    pub(super) lowering: Duration,
}

impl LoweredProgram {
    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The schedule; its `Display` is text that a builder takes.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// LLVM's description of the target, if it is a processor.
    #[must_use]
    pub fn processor(&self) -> Option<&Processor> {
        self.processor.as_ref()
    }

    /// The target as text: the features of a processor, the model of a device.
    #[must_use]
    pub fn generated_for(&self) -> String {
        match (&self.processor, &self.target) {
            (Some(processor), _) => processor.to_string(),
            (None, Target::Gpu(gpu)) => format!("{}, {}", gpu.name, gpu.model),
            (None, target) => target.name().to_owned(),
        }
    }

    /// LLVM's description of the target; an error that names `what` for devices.
    fn for_processor(&self, what: &str) -> Result<&Processor, Diagnostics> {
        self.processor.as_ref().ok_or_else(|| self.is_for_device(what))
    }

    /// The error for operations that devices do not support.
    pub(super) fn is_for_device(&self, what: &str) -> Diagnostics {
        let name = self.target.name();
        let message = format!("there is no {what} of a kernel for the device `{name}`");
        let help = "`compile --emit opencl` and `--emit cuda` write the text of its kernels";
        let diagnostic = Diagnostic::without_place(Code::UnknownTarget, message).help(help);
        Diagnostics::new(self.program.ir().source.clone(), vec![diagnostic])
    }

    /// The lowered loops, for tools that look inside.
    #[must_use]
    pub fn nest(&self) -> &LoweredNest {
        &self.nest
    }

    /// The lowered loops as text.
    #[must_use]
    pub fn loops(&self) -> String {
        self.nest.to_string()
    }

    /// The placement of stages: where and how often each is computed, its memory and traffic.
    ///
    /// ```
    /// use tensorwright::Module;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let text = "def f(float(N) x) -> (y) { t(i) = x(i) + x(i+1)\n y(i) = t(i) * t(i+1) }";
    /// let program = Module::parse("f.tc", text)?.def("f")?.bind([("N", 100)])?;
    /// let lowered = program.compile().schedule_text("y: split i 14\nt: compute_at y i.0")?.lower()?;
    /// let map = lowered.stage_map().to_string();
    /// assert!(map.contains("in loop i.0, 1.06 times, keeps 60 B"), "{map}");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stage_map(&self) -> StageMap {
        StageMap::of(&self.canonical(), &self.scheduled)
    }

    /// The loops of the program.
    fn canonical(&self) -> LoopNest {
        let sized = self.sized.as_deref().and_then(canonical_sized);
        sized.unwrap_or_else(|| canonical(self.program.ir()))
    }

    /// The loops after every step, each with the name of the step: `canonical` (as in the program),
    /// `schedule`, and then each lowering pass.
    #[must_use]
    pub fn loops_after_each_pass(&self) -> Vec<(String, String)> {
        let mut steps = vec![
            ("canonical".to_owned(), self.canonical().to_string()),
            ("schedule".to_owned(), self.scheduled.to_string()),
        ];
        // Lowering succeeded before; a failure would only shorten the list.
        let _ =
            lower_with(self.scheduled.clone(), &lower_options(&self.target), &mut |pass, nest| {
                steps.push((pass.to_owned(), nest.to_string()));
            });
        steps
    }

    /// The kernel in C.
    ///
    /// # Errors
    /// If C cannot express the loops.
    pub fn c_source(&self) -> Result<String, Diagnostics> {
        self.has_callers("C")?;
        let source = match self.target.gpu() {
            None => tensorwright_codegen_c::emit(&self.nest),
            // Blocks and threads run one after the other.
            Some(_) => {
                let source = &self.program.ir().source;
                let nest = lower(self.scheduled.clone());
                let nest = nest.map_err(|error| (error, &Schedule::default()).diagnose(source))?;
                tensorwright_codegen_c::emit(&nest)
            }
        };
        source.map(|source| source.code).map_err(|error| self.not_emitted(&error))
    }

    /// An error if callers in a language cannot prepare the constants.
    fn has_callers(&self, language: &str) -> Result<(), Diagnostics> {
        if !self.interface.is_sized() || !self.interface.has_constants() {
            return Ok(());
        }
        let message =
            format!("callers in {language} cannot prepare constants of kernels whose sizes vary");
        let help = "compile the program without constants (`with_changing_inputs`)";
        let diagnostic = Diagnostic::without_place(Code::KernelFailed, message).help(help);
        Err(Diagnostics::new(self.program.ir().source.clone(), vec![diagnostic]))
    }

    /// The device program in a dialect of C: kernels for the loops that the schedule binds to
    /// blocks and threads, and their launches. Unbound loops are launched with one thread.
    ///
    /// ```
    /// use tensorwright::{Dialect, Module};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let text = "def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }";
    /// let program = Module::parse("twice.tc", text)?.def("twice")?.bind([("N", 1000)])?;
    /// let steps = "y: split i 128\ny: bind i.0 block.x\ny: bind i.1 thread.x";
    /// let on_device = program.compile().schedule_text(steps)?.lower()?.device_program(Dialect::Cuda)?;
    /// assert_eq!((on_device.launches[0].grid, on_device.launches[0].block), ([8, 1, 1], [128, 1, 1]));
    /// assert!(on_device.source.contains("__global__"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the loops do not fit a device.
    pub fn device_program(&self, dialect: Dialect) -> Result<DeviceProgram, Diagnostics> {
        if self.target.gpu().is_some() {
            return self.written_in(dialect, &self.nest);
        }
        let options = LowerOptions::device(DeviceLimits::default());
        let nest = lower_with(self.scheduled.clone(), &options, &mut |_, _| {})
            .map_err(|error| (error, &self.schedule).diagnose(&self.schedule_source))?;
        self.written_in(dialect, &nest)
    }

    /// The device program in the dialect of the target.
    ///
    /// # Errors
    /// If the target is no device, or its dialect cannot express the loops.
    pub fn kernels(&self) -> Result<DeviceProgram, Diagnostics> {
        let dialect = match self.target.gpu().map(|gpu| gpu.api) {
            Some(GpuApi::OpenCl) => Dialect::OpenCl,
            Some(GpuApi::Cuda) => Dialect::Cuda,
            Some(GpuApi::Hip) => Dialect::Hip,
            None => {
                let name = self.target.name().to_owned();
                return Err(TargetError::Unavailable { name }.diagnose(&self.program.ir().source));
            }
        };
        self.written_in(dialect, &self.nest)
    }

    /// A nest lowered for a device, in a dialect.
    fn written_in(
        &self,
        dialect: Dialect,
        nest: &LoweredNest,
    ) -> Result<DeviceProgram, Diagnostics> {
        let written = tensorwright_codegen_c::emit_device(nest, dialect);
        written.map_err(|error| self.not_emitted(&error))
    }

    /// The error for loops that a dialect cannot express.
    fn not_emitted(&self, error: &tensorwright_codegen_c::EmitError) -> Diagnostics {
        let diagnostic = Diagnostic::without_place(Code::KernelFailed, error.to_string());
        Diagnostics::new(self.program.ir().source.clone(), vec![diagnostic])
    }

    /// The processor features that objects require, for `what`.
    fn requirement(&self, what: &str) -> Result<tensorwright_codegen_c::Requirement, Diagnostics> {
        let processor = self.for_processor(what)?;
        let (triple, needs) = (processor.triple(), processor.needs());
        Ok(tensorwright_codegen_c::Requirement::new(&processor.to_string(), triple, needs))
    }

    /// The C header of the kernel, for the C source and for objects. It names the processor that
    /// objects require.
    ///
    /// # Errors
    /// If the target is a device.
    pub fn c_header(&self) -> Result<String, Diagnostics> {
        self.has_callers("C")?;
        let requirement = self.requirement("header")?;
        Ok(tensorwright_codegen_c::header(&self.interface, Some(&requirement)))
    }

    /// C source of the header's functions with typed parameters, which objects lack.
    ///
    /// # Errors
    /// If the target is a device.
    pub fn c_wrapper(&self) -> Result<String, Diagnostics> {
        self.has_callers("C")?;
        let requirement = self.requirement("wrapper")?;
        Ok(tensorwright_codegen_c::wrapper(&self.interface, &requirement))
    }

    /// A Rust module with safe functions that call the compiled kernel.
    ///
    /// # Errors
    /// If the target is a device.
    pub fn rust_module(&self) -> Result<String, Diagnostics> {
        self.has_callers("Rust")?;
        let requirement = self.requirement("Rust module")?;
        Ok(tensorwright_codegen_c::rust_module(&self.interface, &requirement))
    }

    /// Whether the schedule only reorders sums or also uses algebraic rewrites.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.schedule.precision()
    }

    /// The factor by which rounding errors exceed those of the program's own sums on data of one
    /// magnitude; one without algebraic rewrites. An estimate for other data:
    /// [`Kernel::verify`](crate::Kernel::verify) bounds the errors on given inputs.
    #[must_use]
    pub fn error_growth(&self) -> f64 {
        self.nest.as_nest().error_growth
    }

    /// The memory of a call: parameters, including inputs, and the workspace.
    pub(super) fn bytes(&self) -> i128 {
        let workers = i32::try_from(self.threads).unwrap_or(i32::MAX);
        let parameters = self.interface.parameters.iter().map(|p| i128::from(p.bytes()));
        parameters.sum::<i128>() + i128::from(self.interface.workspace.bytes(workers))
    }

    /// The calling interface, the same for all code generators.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The exported symbol's name, the prefix of all functions in objects.
    #[must_use]
    pub fn symbol(&self) -> &str {
        &self.interface.symbol
    }

    /// LLVM's IR after its passes.
    ///
    /// # Errors
    /// If LLVM cannot compile the loops.
    pub fn llvm_ir(&self) -> Result<String, Diagnostics> {
        self.listing(Listing::Ir)
    }

    /// The assembly of the target.
    ///
    /// # Errors
    /// If LLVM cannot compile the loops.
    pub fn assembly(&self) -> Result<String, Diagnostics> {
        self.listing(Listing::Assembly)
    }

    /// The relocatable object file for the target, without loading it into this process.
    ///
    /// # Errors
    /// If LLVM cannot compile the loops.
    pub fn object(&self) -> Result<Vec<u8>, Diagnostics> {
        Ok(self.compile()?.object)
    }

    /// Generates code.
    pub(super) fn compile(&self) -> Result<Compiled, Diagnostics> {
        let processor = self.for_processor("object file")?;
        compile_cached(&self.nest, processor, &self.options, self.cache.as_ref())
            .map_err(|error| error.diagnose(&self.program.ir().source))
    }

    /// Generates code again, replacing an invalid cached object.
    pub(super) fn compile_again(&self) -> Result<Compiled, Diagnostics> {
        let processor = self.for_processor("object file")?;
        compile_again(&self.nest, processor, &self.options, self.cache.as_ref())
            .map_err(|error| error.diagnose(&self.program.ir().source))
    }

    fn listing(&self, kind: Listing) -> Result<String, Diagnostics> {
        let processor = self.for_processor("assembly")?;
        listing(&self.nest, processor, &self.options, kind)
            .map_err(|error| error.diagnose(&self.program.ir().source))
    }
}
