//! [`Kernel`]: a compiled program that can be called.

mod arguments;
mod builder;
mod call;
mod constants;
mod diagnose;
mod direct;
mod invoke;
mod lowered;
mod memory;
mod rewritten;
mod verify;

pub use arguments::Arguments;
pub use builder::{KernelBuilder, schedule_target};
pub use call::{Call, Outputs};
pub use constants::Frozen;
pub use lowered::Lowered;
pub use rewritten::allow_for_rewriting;
pub use verify::{Against, Verification};

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tensorwright_codegen_llvm as codegen;
use tensorwright_codegen_llvm::error::Error;
use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_codegen_llvm::target::CpuTarget;
use tensorwright_runtime::Pool;
use tensorwright_runtime::fork::hold_forks;
use tensorwright_schedule::{LoopNest, Schedule};

use self::constants::Constants;
use self::diagnose::Diagnose;
use self::invoke::Loaded;
use crate::{Diagnostics, Program};

/// A compiled program.
///
/// [`Kernel::run`] is the simple way to call it. [`Kernel::bind`] keeps inputs and outputs in place
/// for many calls. Inputs that are `const` and that the schedule wants in another layout are
/// brought into it once, and again only when other values are given.
///
/// Kernels can be shared between threads.
#[derive(Debug)]
pub struct Kernel {
    lowered: Lowered,
    compiled: codegen::Compiled,
    /// Not there if this machine cannot run the code.
    loaded: Option<Loaded>,
    constants: Mutex<Option<Arc<Constants>>>,
}

/// How long the steps to a kernel took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompileTimes {
    /// Making or applying the schedule, and lowering.
    pub lowering: Duration,
    /// From loops to LLVM's IR.
    pub emit: Duration,
    /// LLVM's passes.
    pub passes: Duration,
    /// From IR to an object.
    pub codegen: Duration,
    /// Linking the object into this process.
    pub load: Duration,
}

impl CompileTimes {
    /// All together.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.lowering + self.emit + self.passes + self.codegen + self.load
    }
}

impl Kernel {
    fn new(lowered: Lowered) -> Result<Self, Diagnostics> {
        // LLVM has locks of its own.
        let _hold = hold_forks();
        let source = &lowered.program.ir().source;
        let compiled = lowered.compile()?;
        let loaded = if lowered.target.check_runs_here().is_ok() {
            let pool = match lowered.threads {
                1 => None,
                threads => Some(Pool::shared(threads).map_err(|error| error.diagnose(source))?),
            };
            let kernel = jit()
                .and_then(|jit| codegen::Kernel::load(jit, &compiled))
                .map_err(|error| error.diagnose(source))?;
            Some(Loaded::new(kernel, &lowered.nest, pool))
        } else {
            None
        };
        Ok(Self { lowered, compiled, loaded, constants: Mutex::new(None) })
    }

    /// The loops that were compiled, with all texts that can be made of them.
    #[must_use]
    pub fn lowered(&self) -> &Lowered {
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

    /// The loops at every step of the way; see [`Lowered::loops_after_each_pass`].
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
    /// If LLVM refuses the loops.
    pub fn llvm_ir(&self) -> Result<String, Diagnostics> {
        self.lowered.llvm_ir()
    }

    /// The assembly of the target.
    ///
    /// # Errors
    /// If LLVM refuses the loops.
    pub fn assembly(&self) -> Result<String, Diagnostics> {
        self.lowered.assembly()
    }

    /// The relocatable object file, which exports [`Lowered::symbol`].
    #[must_use]
    pub fn object(&self) -> &[u8] {
        &self.compiled.object
    }

    /// How long the steps to this kernel took.
    #[must_use]
    pub fn compile_times(&self) -> CompileTimes {
        let times = self.compiled.times;
        CompileTimes {
            lowering: self.lowered.lowering,
            emit: times.emit,
            passes: times.passes,
            codegen: times.codegen,
            load: self
                .loaded
                .as_ref()
                .map(|loaded| loaded.kernel().load_time())
                .unwrap_or_default(),
        }
    }

    /// The number of threads that parallel loops use, the caller's among them.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.lowered.threads
    }

    /// The threads that parallel loops use beside the caller's, if there are any: for measurements.
    #[must_use]
    pub fn pool(&self) -> Option<&Pool> {
        self.loaded.as_ref().and_then(Loaded::pool)
    }

    fn nest(&self) -> &LoopNest {
        &self.lowered.nest
    }

    /// The code, if this machine can run it.
    fn loaded(&self) -> Result<&Loaded, Diagnostics> {
        let source = &self.program().ir().source;
        self.loaded.as_ref().ok_or_else(|| {
            let error = self.lowered.target.check_runs_here().err();
            error.unwrap_or(Error::Target("the kernel is not loaded".to_owned())).diagnose(source)
        })
    }
}

/// The session that links kernels into this process. Its code is for processors of this machine's
/// kind, whatever their features.
fn jit() -> codegen::error::Result<&'static Jit> {
    static JIT: OnceLock<Jit> = OnceLock::new();
    if let Some(jit) = JIT.get() {
        return Ok(jit);
    }
    let jit = Jit::new(&CpuTarget::native()?)?;
    Ok(JIT.get_or_init(|| jit))
}
