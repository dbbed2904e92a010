//! [`LoweredProgram`]: loops, and all texts that can be made of them.

use std::time::Duration;

use tensorwright_codegen_c::Dialect;
use tensorwright_codegen_llvm::{Compiled, Listing, Options, Processor, compile, listing};
use tensorwright_lang::precision::Precision;
use tensorwright_schedule::interface::DeviceProgram;
use tensorwright_schedule::{
    DeviceLimits, Interface, LoopNest, LowerOptions, LoweredNest, Schedule, StageMap, canonical,
    lower_traced, lower_with,
};
use tensorwright_target::Target;

use super::diagnose::Diagnose;
use crate::{Code, Diagnostic, Diagnostics, Program, Source};

/// A program with its schedule, its target and its [loops](LoweredNest), and the texts that can be made
/// of them. [`KernelBuilder::lower`](crate::KernelBuilder::lower) makes it.
#[derive(Debug, Clone)]
pub struct LoweredProgram {
    pub(super) program: Program,
    pub(super) schedule: Schedule,
    /// The text that steps of the schedule have their places in.
    pub(super) schedule_source: Source,
    pub(super) target: Target,
    pub(super) processor: Processor,
    pub(super) threads: usize,
    pub(super) options: Options,
    /// After the schedule, before lowering.
    pub(super) scheduled: LoopNest,
    pub(super) nest: LoweredNest,
    pub(super) interface: Interface,
    /// How long it took to come here.
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

    /// What code is generated for.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What LLVM has to know of the target.
    #[must_use]
    pub fn processor(&self) -> &Processor {
        &self.processor
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

    /// Which stage is computed where, how often, and what that keeps and moves.
    ///
    /// ```
    /// use tensorwright_kernel::Module;
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
        StageMap::of(&canonical(self.program.ir()), &self.scheduled)
    }

    /// The loops at every step of the way, each with the name of the step: `canonical`, as the
    /// program says; `schedule`, as the schedule wants them; then after each pass of lowering.
    #[must_use]
    pub fn loops_after_each_pass(&self) -> Vec<(String, String)> {
        let mut steps = vec![
            ("canonical".to_owned(), canonical(self.program.ir()).to_string()),
            ("schedule".to_owned(), self.scheduled.to_string()),
        ];
        // It was lowered before, so it does not fail; a failure would end the list early.
        let _ = lower_traced(self.scheduled.clone(), &mut |pass, nest| {
            steps.push((pass.to_owned(), nest.to_string()));
        });
        steps
    }

    /// The kernel in C.
    ///
    /// # Errors
    /// If C cannot express the loops.
    pub fn c_source(&self) -> Result<String, Diagnostics> {
        let source = tensorwright_codegen_c::emit(&self.nest).map_err(|error| {
            let diagnostic = Diagnostic::without_place(Code::KernelFailed, error.to_string());
            Diagnostics::new(self.program.ir().source.clone(), vec![diagnostic])
        })?;
        Ok(source.code)
    }

    /// The program for a device whose loops the schedule binds to blocks and threads, in a dialect of C: the text of its kernels, and
    /// how they are launched. What no step binds is launched with one thread.
    ///
    /// ```
    /// use tensorwright_kernel::{Dialect, Module};
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
        let options = LowerOptions::device(DeviceLimits::default());
        let source = &self.program.ir().source;
        let nest = lower_with(self.scheduled.clone(), &options, &mut |_, _| {})
            .map_err(|error| (error, &self.schedule).diagnose(&self.schedule_source))?;
        tensorwright_codegen_c::emit_device(&nest, dialect).map_err(|error| {
            let diagnostic = Diagnostic::without_place(Code::KernelFailed, error.to_string());
            Diagnostics::new(source.clone(), vec![diagnostic])
        })
    }

    /// What objects need of a processor.
    fn requirement(&self) -> tensorwright_codegen_c::Requirement {
        let Self { processor, .. } = self;
        let (triple, needs) = (processor.triple(), processor.needs());
        tensorwright_codegen_c::Requirement::new(&processor.to_string(), triple, needs)
    }

    /// The C header of the kernel, for the C source and for objects. It says for which processor objects
    /// are.
    #[must_use]
    pub fn c_header(&self) -> String {
        tensorwright_codegen_c::header(&self.interface, Some(&self.requirement()))
    }

    /// C source of the functions of the header that an object does not have: those with typed
    /// parameters.
    #[must_use]
    pub fn c_wrapper(&self) -> String {
        tensorwright_codegen_c::wrapper(&self.interface, &self.requirement())
    }

    /// A Rust module with safe functions that call the compiled kernel.
    #[must_use]
    pub fn rust_module(&self) -> String {
        tensorwright_codegen_c::rust_module(&self.interface, &self.requirement())
    }

    /// Whether the schedule keeps to the sums that the program names, or computes with other numbers.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.schedule.precision()
    }

    /// By how much rounding errors exceed those of the program's own sums on data of one magnitude; one
    /// unless the schedule computes with other numbers. An estimate for other data:
    /// [`Kernel::verify`](crate::Kernel::verify) bounds the errors on given inputs.
    #[must_use]
    pub fn error_growth(&self) -> f64 {
        self.nest.as_nest().error_growth
    }

    /// The memory that a call takes: its parameters, inputs included, and the workspace.
    pub(super) fn bytes(&self) -> i128 {
        let workers = i32::try_from(self.threads).unwrap_or(i32::MAX);
        let parameters = self.interface.parameters.iter().map(|p| i128::from(p.bytes()));
        parameters.sum::<i128>() + i128::from(self.interface.workspace.bytes(workers))
    }

    /// How the kernel is called, whoever generates its code.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The name of the function that objects export.
    #[must_use]
    pub fn symbol(&self) -> &str {
        &self.interface.symbol
    }

    /// LLVM's IR after its passes.
    ///
    /// # Errors
    /// If LLVM refuses the loops.
    pub fn llvm_ir(&self) -> Result<String, Diagnostics> {
        self.listing(Listing::Ir)
    }

    /// The assembly of the target.
    ///
    /// # Errors
    /// If LLVM refuses the loops.
    pub fn assembly(&self) -> Result<String, Diagnostics> {
        self.listing(Listing::Assembly)
    }

    /// The relocatable object file for the target, without loading it into this process.
    ///
    /// # Errors
    /// If LLVM refuses the loops.
    pub fn object(&self) -> Result<Vec<u8>, Diagnostics> {
        Ok(self.compile()?.object)
    }

    /// Generates code.
    pub(super) fn compile(&self) -> Result<Compiled, Diagnostics> {
        compile(&self.nest, &self.processor, &self.options)
            .map_err(|error| error.diagnose(&self.program.ir().source))
    }

    fn listing(&self, kind: Listing) -> Result<String, Diagnostics> {
        listing(&self.nest, &self.processor, &self.options, kind)
            .map_err(|error| error.diagnose(&self.program.ir().source))
    }
}
