//! Generated code, shared by equal kernels.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use tensorwright_codegen_llvm as codegen;
use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_machine::Target;
use tensorwright_runtime::Pool;
use tensorwright_runtime::fork::hold_forks;
use tensorwright_schedule::interface::DeviceProgram;
use tracing::{debug_span, info_span};

use super::diagnose::Diagnose;
use super::engine::{Engine, OnDevice, OnProcessor};
use super::lowered::LoweredProgram;
use crate::ir::Size;
use crate::{CodegenOptions, Diagnostics, ProgramHash, Source};

static COMPILATIONS: AtomicU64 = AtomicU64::new(0);

/// The number of kernels compiled by this process. Kernels of equal programs with the same
/// schedule, processor and threads share their code while one of them exists, and count once.
#[must_use]
pub fn compilations() -> u64 {
    COMPILATIONS.load(Ordering::Relaxed)
}

/// Code and its engine.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) text: Text,
    /// `None` if this machine cannot run the code.
    pub(super) engine: Option<Box<dyn Engine>>,
}

/// The generated code.
#[derive(Debug)]
pub(super) enum Text {
    /// An object for a processor.
    Object(codegen::Compiled),
    /// Device kernels, which the runtime compiles, with the time to emit them.
    Kernels(DeviceProgram, Duration),
}

/// Everything that determines the code and the source locations of its errors.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    program: ProgramHash,
    /// The sizes that vary.
    sizes: Vec<Size>,
    def: String,
    text: Arc<str>,
    symbol: String,
    schedule: String,
    target: Target,
    threads: usize,
    options: CodegenOptions,
}

impl Key {
    fn new(lowered: &LoweredProgram) -> Self {
        Self {
            program: lowered.program.hash(),
            sizes: lowered.sized.as_ref().map_or_else(Vec::new, |sized| sized.sizes.clone()),
            def: lowered.program.name().to_owned(),
            text: lowered.program.ir().source.text().into(),
            symbol: lowered.symbol().to_owned(),
            schedule: lowered.schedule.to_string(),
            target: lowered.target.clone(),
            threads: lowered.threads,
            options: lowered.options.clone(),
        }
    }
}

impl Code {
    /// The code of loops: shared with an equal kernel, or new.
    pub(super) fn of(lowered: &LoweredProgram) -> Result<Arc<Self>, Diagnostics> {
        // LLVM has its own locks, and a forked child must not inherit ours from a thread it lacks.
        let _hold = hold_forks();
        let key = Key::new(lowered);
        if let Some(found) = known().get(&key).and_then(Weak::upgrade) {
            return Ok(found);
        }
        // Not locked: other threads may compile in parallel; of equal results, the first is used.
        let made = Arc::new(Self::new(lowered)?);
        let mut known = known();
        known.retain(|_, code| code.strong_count() > 0);
        if let Some(found) = known.get(&key).and_then(Weak::upgrade) {
            return Ok(found);
        }
        known.insert(key, Arc::downgrade(&made));
        Ok(made)
    }

    fn new(lowered: &LoweredProgram) -> Result<Self, Diagnostics> {
        let target = lowered.target.name();
        let _span = info_span!("compile", def = lowered.program.name(), target).entered();
        let runs_here = lowered.target.check_runs_here().is_ok();
        let made = match lowered.target.gpu() {
            Some(_) => Self::for_device(lowered, runs_here),
            None => Self::for_processor(lowered, runs_here),
        };
        let is_found = |code: &Self| matches!(&code.text, Text::Object(object) if object.is_cached);
        if !made.as_ref().is_ok_and(is_found) {
            COMPILATIONS.fetch_add(1, Ordering::Relaxed);
        }
        made
    }

    fn for_processor(lowered: &LoweredProgram, runs_here: bool) -> Result<Self, Diagnostics> {
        let source = &lowered.program.ir().source;
        let mut compiled = lowered.compile()?;
        if !runs_here {
            return Ok(Self { text: Text::Object(compiled), engine: None });
        }
        let mut engine = load(&compiled, lowered.threads, source);
        // If a cached object is invalid, the code is generated again.
        if engine.is_err() && compiled.is_cached {
            compiled = lowered.compile_again()?;
            engine = load(&compiled, lowered.threads, source);
        }
        Ok(Self { text: Text::Object(compiled), engine: Some(Box::new(engine?)) })
    }

    fn for_device(lowered: &LoweredProgram, runs_here: bool) -> Result<Self, Diagnostics> {
        let source = &lowered.program.ir().source;
        let start = Instant::now();
        let program = lowered.kernels()?;
        let emit = start.elapsed();
        let mut engine: Option<Box<dyn Engine>> = None;
        if runs_here {
            let device = tensorwright_device::shared(lowered.target.name());
            let loaded = device.and_then(|device| OnDevice::load(device, &program));
            engine = Some(Box::new(loaded.map_err(|error| error.diagnose(source))?));
        }
        Ok(Self { text: Text::Kernels(program, emit), engine })
    }
}

/// Loads an object into this process.
fn load(
    compiled: &codegen::Compiled,
    threads: usize,
    source: &Source,
) -> Result<OnProcessor, Diagnostics> {
    let pool = match threads {
        1 => None,
        threads => Some(Pool::shared(threads).map_err(|error| error.diagnose(source))?),
    };
    let _span = debug_span!("load").entered();
    let kernel =
        jit().and_then(|jit| codegen::JitKernel::load(jit, &compiled.interface, &compiled.object));
    Ok(OnProcessor::new(kernel.map_err(|error| error.diagnose(source))?, pool))
}

/// The code of all live kernels.
fn known() -> MutexGuard<'static, HashMap<Key, Weak<Code>>> {
    static KNOWN: OnceLock<Mutex<HashMap<Key, Weak<Code>>>> = OnceLock::new();
    // Every change is one insertion or removal, so a panic leaves the map valid.
    KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The JIT session of this process. Its code is for this machine's architecture, with any features.
fn jit() -> codegen::error::Result<&'static Jit> {
    static JIT: OnceLock<Jit> = OnceLock::new();
    if let Some(jit) = JIT.get() {
        return Ok(jit);
    }
    let jit = Jit::new(&codegen::Processor::native()?)?;
    Ok(JIT.get_or_init(|| jit))
}
