//! [`Kernel`]: a compiled, callable program.

mod arguments;
mod builder;
mod call;
mod code;
mod constants;
mod diagnose;
mod direct;
mod engine;
mod invoke;
mod lowered;
mod memory;
mod oracle;
mod place;
mod rewritten;
mod sized;
mod streamed;
mod verify;

pub use arguments::Arguments;
pub use builder::{KernelBuilder, NotLowered};
pub use call::{Call, Outputs};
pub use code::compilations;
pub use constants::Frozen;
pub use lowered::LoweredProgram;
pub use oracle::{Against, Expected, Oracle};
pub use place::Place;
pub use rewritten::allow_for_rewriting;
pub use sized::{SizedBuilder, SizedCall, SizedKernel, SizedProgram};
pub use verify::Verification;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tensorwright_codegen_llvm as codegen;
use tensorwright_codegen_llvm::error::Error;
use tensorwright_runtime::Pool;
use tensorwright_schedule::interface::DeviceProgram;
use tensorwright_schedule::{Interface, Schedule};

use self::code::{Code, Text};
use self::constants::Constants;
use self::diagnose::Diagnose;
use self::engine::Engine;
use crate::{Diagnostics, Program};

/// A compiled program.
///
/// [`Kernel::run`] is the simple way to call it. [`Kernel::bind`] keeps inputs and outputs in place
/// for many calls. If the schedule changes the layout of `const` inputs, they are converted once:
/// when they are [frozen](Kernel::freeze), or by the first call with their values, and again only
/// when a call has other values.
///
/// Kernels can be shared between threads. Kernels of equal programs with the same schedule,
/// processor and threads share their code while one of them exists ([`compilations`] counts).
#[derive(Debug)]
pub struct Kernel {
    lowered: LoweredProgram,
    code: Arc<Code>,
    /// The constants of the last call.
    constants: Mutex<Option<Arc<Constants>>>,
}

/// The compile times of the phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompileTimes {
    /// Scheduling and lowering.
    pub lowering: Duration,
    /// Emitting LLVM IR, or device source code.
    pub emit: Duration,
    /// LLVM's passes.
    pub passes: Duration,
    /// Generating an object from IR.
    pub codegen: Duration,
    /// Linking the object into this process, or compilation by the device's runtime.
    pub load: Duration,
}

impl CompileTimes {
    /// The total.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.lowering + self.emit + self.passes + self.codegen + self.load
    }
}

impl Kernel {
    fn new(lowered: LoweredProgram) -> Result<Self, Diagnostics> {
        let code = Code::of(&lowered)?;
        Ok(Self { lowered, code, constants: Mutex::new(None) })
    }

    /// The compiled loops, which generate all texts.
    #[must_use]
    pub fn lowered(&self) -> &LoweredProgram {
        &self.lowered
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.lowered.program
    }

    /// The schedule.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.lowered.schedule
    }

    /// The lowered loops as text.
    #[must_use]
    pub fn loops(&self) -> String {
        self.lowered.loops()
    }

    /// The loops after every step; see [`LoweredProgram::loops_after_each_pass`].
    #[must_use]
    pub fn loops_after_each_pass(&self) -> Vec<(String, String)> {
        self.lowered.loops_after_each_pass()
    }

    /// The kernel in C.
    ///
    /// # Errors
    /// If C cannot express the loops.
    pub fn c_source(&self) -> Result<String, Diagnostics> {
        self.lowered.c_source()
    }

    /// LLVM's IR after its passes.
    ///
    /// # Errors
    /// If LLVM cannot compile the loops.
    pub fn llvm_ir(&self) -> Result<String, Diagnostics> {
        self.lowered.llvm_ir()
    }

    /// The assembly of the target.
    ///
    /// # Errors
    /// If LLVM cannot compile the loops.
    pub fn assembly(&self) -> Result<String, Diagnostics> {
        self.lowered.assembly()
    }

    /// The relocatable object file, whose functions begin with [`LoweredProgram::symbol`].
    ///
    /// # Errors
    /// If the kernel is for a device.
    pub fn object(&self) -> Result<&[u8], Diagnostics> {
        match &self.code.text {
            Text::Object(compiled) => Ok(&compiled.object),
            Text::Kernels(..) => Err(self.lowered.is_for_device("object file")),
        }
    }

    /// The device kernels and their launches; `None` for a processor.
    #[must_use]
    pub fn device_program(&self) -> Option<&DeviceProgram> {
        match &self.code.text {
            Text::Object(_) => None,
            Text::Kernels(program, _) => Some(program),
        }
    }

    /// The compile times of this kernel, including those of shared code compiled earlier.
    #[must_use]
    pub fn compile_times(&self) -> CompileTimes {
        let load = self.code.engine.as_ref().map(|engine| engine.load_time()).unwrap_or_default();
        let lowering = self.lowered.lowering;
        match &self.code.text {
            Text::Object(codegen::Compiled { times, .. }) => {
                let (emit, passes, codegen) = (times.emit, times.passes, times.codegen);
                CompileTimes { lowering, emit, passes, codegen, load }
            }
            Text::Kernels(_, emit) => {
                CompileTimes { lowering, emit: *emit, load, ..CompileTimes::default() }
            }
        }
    }

    /// The number of threads for parallel loops, including the caller's.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.lowered.threads
    }

    /// The threads for parallel loops other than the caller's, for measurements.
    #[must_use]
    pub fn pool(&self) -> Option<&Pool> {
        self.code.engine.as_ref().and_then(|engine| engine.pool())
    }

    fn interface(&self) -> &Interface {
        self.lowered.interface()
    }

    /// The engine, if this machine can run the code.
    fn engine(&self) -> Result<&dyn Engine, Diagnostics> {
        let source = &self.program().ir().source;
        self.code.engine.as_deref().ok_or_else(|| match self.lowered.target.check_runs_here() {
            Err(error) => error.diagnose(source),
            Ok(()) => Error::Target("the kernel is not loaded".to_owned()).diagnose(source),
        })
    }
}
