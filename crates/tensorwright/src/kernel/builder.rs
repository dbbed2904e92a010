//! [`KernelBuilder`]: options for compiling a program to a kernel.

use std::sync::Arc;
use std::time::Instant;

use tensorwright_codegen_llvm::{CodegenOptions, ObjectCache, Processor};
use tensorwright_lang::precision::Precision;
use tensorwright_machine::{Goal, Target};
use tensorwright_policy::{default_schedule, default_sized, lower_options};
use tensorwright_schedule::interface::stem;
use tensorwright_schedule::{
    Interface, Schedule, ScheduleError, canonical, canonical_sized, lower_with,
};
use tracing::{debug_span, info_span};

use super::Kernel;
use super::diagnose::Diagnose;
use super::lowered::LoweredProgram;
use crate::ir::SizedProgram;
use crate::{Code, Diagnostic, Diagnostics, Program, Source};

/// The name of schedules that come from no file.
const UNNAMED: &str = "<schedule>";

/// Compiles a program; made by [`Program::compile`].
///
/// The defaults are the [default schedule](default_schedule), this machine, and one thread.
///
/// ```
/// use tensorwright::{Target, Module};
///
/// let text = "def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }";
/// let program = Module::parse("twice.tc", text)?.def("twice")?.bind([("N", 64)])?;
///
/// let kernel = program.compile().schedule_text("B: split i 16\nB: vectorize i.1")?.build()?;
/// assert!(kernel.loops().contains("[i.1 = 0..16]"));
///
/// // For another machine: it cannot run here, but can be written to files.
/// let kernel = program.compile().target(Target::named("neon")?).build()?;
/// assert!(kernel.assembly()?.contains("fadd") || kernel.assembly()?.contains("fmul"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct KernelBuilder<'p> {
    program: &'p Program,
    /// The program for a range of sizes.
    sized: Option<&'p Arc<SizedProgram>>,
    schedule: Option<(Schedule, Source)>,
    target: Option<Target>,
    threads: usize,
    precision: Precision,
    symbol: Option<String>,
    options: CodegenOptions,
    cache: Option<ObjectCache>,
}

/// Why lowering failed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NotLowered {
    /// The rejected step of the schedule; `None` if the resulting loops cannot be lowered (for this
    /// target).
    pub refusal: Option<ScheduleError>,
    /// The diagnostics.
    pub diagnostics: Diagnostics,
}

/// A schedule and its text, for located errors.
fn spelled(schedule: Schedule) -> (Schedule, Source) {
    let (schedule, text) = schedule.spelled();
    (schedule, Source::new(UNNAMED, &text))
}

impl Program {
    /// Starts to compile the program.
    ///
    /// ```
    /// use tensorwright::{Buffer, Inputs, Module};
    ///
    /// let text = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
    /// let module = Module::parse("matmul.tc", text)?;
    /// let program = module.def("matmul")?.bind([("M", 2), ("K", 3), ("N", 1)])?;
    ///
    /// let kernel = program.compile().build()?;
    /// let inputs = Inputs::from([
    ///     ("A".to_owned(), Buffer::from_f32(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?),
    ///     ("B".to_owned(), Buffer::from_f32(&[3, 1], vec![1.0, 0.0, -1.0])?),
    /// ]);
    /// let outputs = kernel.run(&inputs)?;
    /// assert_eq!(outputs.get("C").and_then(Buffer::as_f32), Some(&[-2.0, -2.0][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile(&self) -> KernelBuilder<'_> {
        KernelBuilder::new(self, None)
    }
}

impl<'p> KernelBuilder<'p> {
    /// The defaults, for a program or for a range of sizes.
    pub(super) fn new(program: &'p Program, sized: Option<&'p Arc<SizedProgram>>) -> Self {
        Self {
            program,
            sized,
            schedule: None,
            target: None,
            threads: 1,
            precision: Precision::default(),
            symbol: None,
            options: CodegenOptions::default(),
            cache: None,
        }
    }

    /// Uses a schedule instead of the default one; an empty one keeps the loops of the program.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = Some(spelled(schedule));
        self
    }

    /// Uses the schedule in a text, one step per line.
    ///
    /// # Errors
    /// An invalid line.
    pub fn schedule_text(self, text: &str) -> Result<Self, Diagnostics> {
        self.schedule_source(Source::new(UNNAMED, text))
    }

    /// Like [`KernelBuilder::schedule_text`], for a named text.
    ///
    /// # Errors
    /// An invalid line.
    pub fn schedule_source(mut self, source: Source) -> Result<Self, Diagnostics> {
        let schedule = Schedule::parse(source.text()).map_err(|error| error.diagnose(&source))?;
        self.schedule = Some((schedule, source));
        Ok(self)
    }

    /// Sets the target: another kind of processor, or a [device](crate::target). The default is
    /// this machine's processor.
    pub fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// Sets the number of threads for parallel loops, including the caller's.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Sets the precision of the default schedule. [`Precision::Exact`], the default, may only
    /// reorder sums; [`Precision::Fast`] also allows algebraic rewrites that round differently,
    /// such as Winograd convolutions. An explicit schedule may use any rewrites;
    /// [`LoweredProgram::precision`] reports which precision it has.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Sets the exported symbol's name, adapted to C's rules; the default is the name of the
    /// definition.
    pub fn symbol(mut self, name: &str) -> Self {
        self.symbol = Some(name.to_owned());
        self
    }

    /// Sets the options of LLVM.
    pub fn options(mut self, options: CodegenOptions) -> Self {
        self.options = options;
        self
    }

    /// Caches generated code on disk. Without it, every process generates its own code.
    ///
    /// ```
    /// use tensorwright::{Module, ObjectCache};
    ///
    /// let folder = std::env::temp_dir().join(format!("kept-{}", std::process::id()));
    /// let cache = ObjectCache::open(&folder, 256 << 20)?;
    /// let text = "def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }";
    /// let program = Module::parse("twice.tc", text)?.def("twice")?.bind([("N", 64)])?;
    /// program.compile().cache(&cache).build()?;
    /// assert_eq!(cache.footprint()?.0, 1);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cache(mut self, cache: &ObjectCache) -> Self {
        self.cache = Some(cache.clone());
        self
    }

    /// Applies the schedule and lowers the loops, without compiling them.
    ///
    /// # Errors
    /// A rejected schedule step, or loops that generate too much code.
    pub fn lower(self) -> Result<LoweredProgram, Diagnostics> {
        self.try_lower().map_err(|failed| failed.diagnostics)
    }

    /// Like [`KernelBuilder::lower`], with a structured error.
    ///
    /// # Errors
    /// As [`KernelBuilder::lower`].
    pub fn try_lower(self) -> Result<LoweredProgram, Box<NotLowered>> {
        let start = Instant::now();
        let _span = info_span!("lower", def = self.program.name()).entered();
        let program = self.program.clone();
        let source = &program.ir().source;
        let not_lowered = |diagnostics| NotLowered { refusal: None, diagnostics };
        let refused = |code: Code, message: &str| {
            let diagnostic = Diagnostic::without_place(code, message);
            not_lowered(Diagnostics::new(source.clone(), vec![diagnostic]))
        };
        let target = self.target.map_or_else(Target::native, Ok);
        let canonical = match self.sized {
            None => canonical(program.ir()),
            Some(_) if target.as_ref().is_ok_and(|target| target.gpu().is_some()) => {
                let message = "sizes of a kernel for a device cannot vary yet";
                return Err(Box::new(refused(Code::UnknownTarget, message)));
            }
            Some(sized) => canonical_sized(sized)
                .ok_or_else(|| refused(Code::TooLarge, "an extent overflows 64 bits"))?,
        };
        let known = target.and_then(|target| {
            let goal = Goal::new(target.clone()).on_this_machine().with_threads(self.threads);
            let goal = goal.with_precision(self.precision);
            let given = match self.schedule {
                Some(given) => given,
                None => {
                    let choose = || match self.sized {
                        None => default_schedule(program.ir(), &goal),
                        Some(sized) => default_sized(sized, canonical.clone(), &goal),
                    };
                    spelled(debug_span!("choose schedule").in_scope(choose)?)
                }
            };
            let processor = match &goal.target {
                Target::Gpu(_) => None,
                other => Some(Processor::try_from(other)?),
            };
            Ok((processor, target, given))
        });
        let (processor, target, (schedule, schedule_source)) =
            known.map_err(|error| not_lowered(error.diagnose(source)))?;
        let applied = debug_span!("apply schedule").in_scope(|| schedule.apply(canonical));
        let scheduled = applied.map_err(|error| {
            let diagnostics = error.diagnose(&schedule_source);
            NotLowered { refusal: Some(error), diagnostics }
        });
        let mut scheduled = scheduled?;
        if let Some(name) = self.symbol {
            scheduled.name = name;
        }
        // Loops are shown under the exported symbol's name.
        scheduled.name = stem(&scheduled.name);
        let nest = lower_with(scheduled.clone(), &lower_options(&target), &mut |_, _| {});
        let nest =
            nest.map_err(|error| not_lowered((error, &schedule).diagnose(&schedule_source)))?;
        Ok(LoweredProgram {
            program,
            sized: self.sized.cloned(),
            schedule,
            schedule_source,
            processor,
            target,
            threads: self.threads,
            options: self.options,
            cache: self.cache,
            scheduled,
            interface: Interface::of(&nest),
            nest,
            lowering: start.elapsed(),
        })
    }

    /// Compiles, and loads the code into this process if it can run here.
    ///
    /// # Errors
    /// As [`KernelBuilder::lower`], and errors of code generation.
    pub fn build(self) -> Result<Kernel, Diagnostics> {
        Kernel::new(self.lower()?)
    }
}

#[cfg(test)]
mod tests {
    use super::NotLowered;
    use crate::{Module, Schedule};

    /// The error for a program with a schedule without source locations.
    fn failed(text: &str, sizes: &[(&str, i64)], steps: &str) -> Box<NotLowered> {
        let module = Module::parse("f.tc", text).unwrap();
        let program = module.def("f").unwrap().bind(sizes.iter().copied()).unwrap();
        let mut schedule = Schedule::parse(steps).unwrap();
        schedule.steps.iter_mut().for_each(|step| step.span = Default::default());
        program.compile().schedule(schedule).try_lower().unwrap_err()
    }

    #[test]
    fn who_refuses_is_said_and_where() {
        let text = "def f(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }";
        let steps = "y: split m 2\ny: fuse m.0 k\n";
        let failed = failed(text, &[("M", 4), ("K", 8)], steps);
        let refusal = failed.refusal.unwrap();
        assert_eq!((refusal.stage(), refusal.keyword()), (Some("y"), Some("fuse")));
        assert_eq!(refusal.reason(), "cannot fuse: loop `m.0` of `y` does not hold `k` directly");
        insta::assert_snapshot!(failed.diagnostics.render(false));
    }

    #[test]
    fn loops_that_cannot_be_lowered_are_no_step_of_a_schedule() {
        let axes = ["a", "b", "c", "d", "e", "g", "h", "i", "j", "k", "l", "m"];
        let (all, shape) = (axes.join(","), ["N"; 12].join(","));
        let text = format!("def f(float({shape}) A) -> (B) {{ B({all}) = A({all}) }}");
        let steps: String = axes.iter().map(|axis| format!("B: split {axis} 2 [peel]\n")).collect();
        let failed = failed(&text, &[("N", 3)], &steps);
        assert!(failed.refusal.is_none());
        insta::assert_snapshot!(failed.diagnostics.render(false));
    }
}
