//! [`SizedProgram`]: a definition bound to sizes that vary between calls, and its kernel.

mod call;

use std::sync::Arc;

use tensorwright_codegen_llvm::{CodegenOptions, Processor, compile_cached};
use tensorwright_machine::{Goal, Target};
use tensorwright_policy::{default_sized, lower_options};
use tensorwright_runtime::fork::hold_forks;
use tensorwright_schedule::interface::stem;
use tensorwright_schedule::{
    Interface, LoopNest, LoweredNest, Schedule, canonical_sized, lower_with,
};

use super::builder::{UNNAMED, parsed};
use super::code::{count_compilation, load};
use super::diagnose::Diagnose;
use super::engine::OnProcessor;
use crate::{Code, Def, Diagnostic, Diagnostics, Program, Source, ir};

/// A definition bound to sizes some of which vary between calls.
///
/// ```
/// use tensorwright::ir::{SizeRange, SizeValue};
/// use tensorwright::{Buffer, Inputs, Module};
///
/// let text = "def scale(float(N,D) x, float(D) s) -> (y) { y(n,d) = x(n,d) * s(d) }";
/// let module = Module::parse("scale.tc", text)?;
/// let rows = SizeValue::Varies(SizeRange { least: 1, most: 4096, likely: 64, multiple: 1 });
/// let program = module.def("scale")?.bind_sized([("N", rows), ("D", SizeValue::Known(2))])?;
///
/// // One kernel for all numbers of rows.
/// let kernel = program.compile().build()?;
/// for rows in [1, 3, 1000] {
///     let inputs = Inputs::from([
///         ("x".to_owned(), Buffer::from_f32(&[rows, 2], vec![1.5; 2 * rows as usize])?),
///         ("s".to_owned(), Buffer::from_f32(&[2], vec![2.0, 4.0])?),
///     ]);
///     let outputs = kernel.run(&inputs)?;
///     let y = outputs.get("y").and_then(Buffer::as_f32).ok_or("no output y")?;
///     assert_eq!((y.len(), &y[..2]), (2 * rows as usize, &[3.0, 6.0][..]));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SizedProgram {
    ir: Arc<ir::SizedProgram>,
}

/// Compiles a [`SizedProgram`]; made by [`SizedProgram::compile`].
#[derive(Debug, Clone)]
#[must_use]
pub struct SizedBuilder<'p> {
    program: &'p SizedProgram,
    schedule: Option<(Schedule, Source)>,
    target: Option<Target>,
    threads: usize,
}

/// The lowered loops of a [`SizedProgram`].
#[derive(Debug, Clone)]
pub struct SizedLoops {
    program: SizedProgram,
    schedule: Schedule,
    target: Target,
    threads: usize,
    nest: LoweredNest,
    interface: Interface,
}

/// A compiled program for a range of sizes. It can be shared between threads.
#[derive(Debug)]
pub struct SizedKernel {
    loops: SizedLoops,
    engine: OnProcessor,
}

impl Def<'_> {
    /// Binds the definition to sizes, some of which vary between calls.
    ///
    /// # Errors
    /// Those of [`Def::bind`], and sizes that cannot vary, each with the reason.
    pub fn bind_sized<N: Into<String>>(
        &self,
        sizes: impl IntoIterator<Item = (N, ir::SizeValue)>,
    ) -> Result<SizedProgram, Diagnostics> {
        let mut ir = self.inner().bind_sized(sizes)?;
        // Sizes of constants may vary, too, so nothing is prepared ahead of calls.
        for program in [&mut ir.likely, &mut ir.general] {
            program.tensors.iter_mut().for_each(|tensor| tensor.is_const = false);
        }
        Ok(SizedProgram { ir: Arc::new(ir) })
    }
}

impl SizedProgram {
    /// The program for the likely sizes.
    #[must_use]
    pub fn likely(&self) -> Program {
        Program::new(self.ir.likely.clone())
    }

    /// The representation, for tools.
    #[must_use]
    pub fn ir(&self) -> &ir::SizedProgram {
        &self.ir
    }

    /// Starts to compile the program.
    pub fn compile(&self) -> SizedBuilder<'_> {
        SizedBuilder { program: self, schedule: None, target: None, threads: 1 }
    }

    fn source(&self) -> &Source {
        &self.ir.general.source
    }

    fn failed(&self, code: Code, message: impl Into<String>) -> Diagnostics {
        let diagnostic = Diagnostic::without_place(code, message);
        Diagnostics::new(self.source().clone(), vec![diagnostic])
    }
}

impl SizedBuilder<'_> {
    /// Uses a schedule instead of the default one. Its steps see loops with their largest numbers
    /// of iterations.
    ///
    /// # Errors
    /// An invalid line.
    pub fn schedule_text(mut self, text: &str) -> Result<Self, Diagnostics> {
        self.schedule = Some(parsed(Source::new(UNNAMED, text))?);
        Ok(self)
    }

    /// Sets the target; the default is this machine's processor.
    pub fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// Sets the number of threads for parallel loops, including the caller's.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Applies the schedule and lowers the loops, without compiling them.
    ///
    /// # Errors
    /// A rejected schedule step, loops that generate too much code, or a target that is no
    /// processor.
    pub fn lower(self) -> Result<SizedLoops, Diagnostics> {
        let program = self.program.clone();
        let source = program.source();
        let target = self.target.map_or_else(Target::native, Ok);
        let target = target.map_err(|error| error.diagnose(source))?;
        if target.gpu().is_some() {
            let message = "sizes of a kernel for a device cannot vary yet";
            return Err(program.failed(Code::UnknownTarget, message));
        }
        let canonical = canonical_sized(program.ir());
        let canonical = canonical
            .ok_or_else(|| program.failed(Code::TooLarge, "an extent overflows 64 bits"))?;
        let (schedule, mut nest): (Schedule, LoopNest) = match self.schedule {
            Some((schedule, source)) => {
                let nest = schedule.apply(canonical);
                (schedule, nest.map_err(|error| error.diagnose(&source))?)
            }
            None => {
                let goal = Goal::new(target.clone()).on_this_machine().with_threads(self.threads);
                default_sized(program.ir(), canonical, &goal)
                    .map_err(|error| error.diagnose(source))?
            }
        };
        nest.name = stem(&nest.name);
        let nest = lower_with(nest, &lower_options(&target), &mut |_, _| {});
        let nest = nest.map_err(|error| (error, &schedule).diagnose(source))?;
        let interface = Interface::of(&nest);
        Ok(SizedLoops { program, schedule, target, threads: self.threads, nest, interface })
    }

    /// Compiles, and loads the code into this process.
    ///
    /// # Errors
    /// As [`SizedBuilder::lower`], errors of code generation, and a target that is not this
    /// machine's processor.
    pub fn build(self) -> Result<SizedKernel, Diagnostics> {
        let loops = self.lower()?;
        let source = loops.program.source();
        // A forked child must not inherit LLVM's locks from a thread that it lacks.
        let _hold = hold_forks();
        let processor =
            Processor::try_from(&loops.target).map_err(|error| error.diagnose(source))?;
        loops.target.check_runs_here().map_err(|error| error.diagnose(source))?;
        let compiled = compile_cached(&loops.nest, &processor, &CodegenOptions::default(), None)
            .map_err(|error| error.diagnose(source))?;
        count_compilation();
        let engine = load(&compiled, loops.threads, source)?;
        Ok(SizedKernel { loops, engine })
    }
}

impl SizedLoops {
    /// The schedule.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The lowered loops, for tools.
    #[must_use]
    pub fn nest(&self) -> &LoweredNest {
        &self.nest
    }

    /// The calling interface.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }
}

impl SizedKernel {
    /// The compiled loops.
    #[must_use]
    pub fn loops(&self) -> &SizedLoops {
        &self.loops
    }
}
