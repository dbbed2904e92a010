//! [`SizedProgram`]: a definition bound to sizes that vary between calls, and its kernel.

mod call;
mod plan;

pub use plan::SizedCall;

use std::sync::Arc;

use super::builder::KernelBuilder;
use super::lowered::LoweredProgram;
use super::{Arguments, Frozen, Kernel};
use crate::{
    Code, Def, Diagnostic, Diagnostics, ObjectCache, Precision, Program, Source, Target, ir,
};

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
    /// The program for the largest sizes.
    general: Program,
}

/// Compiles a [`SizedProgram`]; made by [`SizedProgram::compile`].
#[derive(Debug, Clone)]
#[must_use]
pub struct SizedBuilder<'p> {
    program: &'p SizedProgram,
    builder: KernelBuilder<'p>,
}

/// A compiled program for a range of sizes. It can be shared between threads.
#[derive(Debug)]
pub struct SizedKernel {
    program: SizedProgram,
    /// Its code, for the program for the largest sizes.
    kernel: Kernel,
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
        // Constants are prepared before the sizes of calls are known.
        let varies = |shape: &Vec<ir::Index>| shape.iter().any(|e| e.as_constant().is_none());
        for program in [&mut ir.likely, &mut ir.general] {
            for (tensor, shape) in program.tensors.iter_mut().zip(&ir.shapes) {
                tensor.is_const &= !varies(shape);
            }
        }
        let general = Program::new(ir.general.clone());
        Ok(SizedProgram { ir: Arc::new(ir), general })
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

    /// The same program without constants, whose values may change in every call: texts of kernels
    /// whose sizes vary have no function that prepares them.
    #[must_use]
    pub fn with_changing_inputs(&self) -> Self {
        let mut ir = ir::SizedProgram::clone(&self.ir);
        for program in [&mut ir.likely, &mut ir.general] {
            program.tensors.iter_mut().for_each(|tensor| tensor.is_const = false);
        }
        Self { general: Program::new(ir.general.clone()), ir: Arc::new(ir) }
    }

    /// Starts to compile the program.
    pub fn compile(&self) -> SizedBuilder<'_> {
        let builder = KernelBuilder::new(&self.general, Some(&self.ir));
        SizedBuilder { program: self, builder }
    }

    /// Whether the program is defined for sizes, in the order of those that vary.
    ///
    /// # Errors
    /// The size that is out of its range, or the condition that does not hold.
    pub fn check(&self, sizes: &[i64]) -> Result<(), Diagnostics> {
        self.ir.check(sizes).map_err(|reason| self.failed(Code::InvalidSize, reason.to_string()))
    }

    fn failed(&self, code: Code, message: impl Into<String>) -> Diagnostics {
        let diagnostic = Diagnostic::without_place(code, message);
        Diagnostics::new(self.general.ir().source.clone(), vec![diagnostic])
    }
}

impl SizedBuilder<'_> {
    /// Uses a schedule instead of the default one. Its steps see loops with their largest numbers
    /// of iterations.
    ///
    /// # Errors
    /// An invalid line.
    pub fn schedule_text(self, text: &str) -> Result<Self, Diagnostics> {
        Ok(Self { builder: self.builder.schedule_text(text)?, ..self })
    }

    /// Like [`SizedBuilder::schedule_text`], for a named text.
    ///
    /// # Errors
    /// An invalid line.
    pub fn schedule_source(self, source: Source) -> Result<Self, Diagnostics> {
        Ok(Self { builder: self.builder.schedule_source(source)?, ..self })
    }

    /// Sets the target; the default is this machine's processor.
    pub fn target(self, target: Target) -> Self {
        Self { builder: self.builder.target(target), ..self }
    }

    /// Sets the number of threads for parallel loops, including the caller's.
    pub fn threads(self, threads: usize) -> Self {
        Self { builder: self.builder.threads(threads), ..self }
    }

    /// As [`KernelBuilder::precision`].
    pub fn precision(self, precision: Precision) -> Self {
        Self { builder: self.builder.precision(precision), ..self }
    }

    /// As [`KernelBuilder::symbol`].
    pub fn symbol(self, name: &str) -> Self {
        Self { builder: self.builder.symbol(name), ..self }
    }

    /// As [`KernelBuilder::cache`].
    pub fn cache(self, cache: &ObjectCache) -> Self {
        Self { builder: self.builder.cache(cache), ..self }
    }

    /// Applies the schedule and lowers the loops, without compiling them.
    ///
    /// Functions of all texts take the sizes that vary first, and refuse those for which the kernel
    /// is not made.
    ///
    /// ```
    /// use tensorwright::Module;
    /// use tensorwright::ir::{SizeRange, SizeValue};
    ///
    /// let text = "def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }";
    /// let any = SizeValue::Varies(SizeRange { least: 1, most: 4096, likely: 512, multiple: 1 });
    /// let program = Module::parse("twice.tc", text)?.def("twice")?.bind_sized([("N", any)])?;
    /// let text = program.compile().lower()?.c_source()?;
    /// assert!(text.contains("int twice_call(int64_t N, const float *x, float *y) {"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A rejected schedule step, loops that generate too much code, or a target that is no
    /// processor.
    pub fn lower(self) -> Result<LoweredProgram, Diagnostics> {
        self.builder.lower()
    }

    /// Compiles, and loads the code into this process if it can run here.
    ///
    /// # Errors
    /// As [`SizedBuilder::lower`], and errors of code generation.
    pub fn build(self) -> Result<SizedKernel, Diagnostics> {
        Ok(SizedKernel { program: self.program.clone(), kernel: self.builder.build()? })
    }
}

impl SizedKernel {
    /// The program.
    #[must_use]
    pub fn program(&self) -> &SizedProgram {
        &self.program
    }

    /// The compiled loops, which generate all texts. [`LoweredProgram::program`] is the program for
    /// the largest sizes.
    #[must_use]
    pub fn lowered(&self) -> &LoweredProgram {
        self.kernel.lowered()
    }

    /// Whether calls need [frozen](SizedKernel::freeze) constants.
    #[must_use]
    pub fn needs_constants(&self) -> bool {
        self.kernel.needs_constants()
    }

    /// As [`Kernel::freeze`]. Constants whose extents depend on sizes that vary are no constants of
    /// the kernel: every call takes them.
    ///
    /// # Errors
    /// Missing, unknown or invalid inputs.
    pub fn freeze<'a>(&self, arguments: impl Into<Arguments<'a>>) -> Result<Frozen, Diagnostics> {
        self.kernel.freeze(arguments)
    }
}
