//! The code generation pipeline: from a lowered nest to an object.

use std::time::{Duration, Instant};

use inkwell::GlobalVisibility;
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::values::FunctionValue;
use tensorwright_schedule::{Interface, LoweredNest};
use tracing::debug_span;

use crate::cache::{Key, ObjectCache};
use crate::emit;
use crate::error::Result;
use crate::object;
use crate::options::CodegenOptions;
use crate::passes;
use crate::processor::Processor;

/// A compiled kernel.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Compiled {
    /// The calling convention.
    pub interface: Interface,
    /// The relocatable object file.
    pub object: Vec<u8>,
    /// The time of each step.
    pub times: PhaseTimes,
    /// Whether the object came from a cache.
    pub is_cached: bool,
}

/// The times of the steps from a nest to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PhaseTimes {
    /// From the nest to IR.
    pub emit: Duration,
    /// LLVM's passes, and the verifier.
    pub passes: Duration,
    /// From IR to an object.
    pub codegen: Duration,
}

/// A kernel as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// The emitted LLVM IR.
    EmittedIr,
    /// LLVM's IR after the passes.
    Ir,
    /// The target's assembly.
    Assembly,
}

/// Compiles a lowered nest to an object.
///
/// # Errors
///
/// The nest is too large, or LLVM reports an error.
pub fn compile(
    nest: &LoweredNest,
    target: &Processor,
    options: &CodegenOptions,
) -> Result<Compiled> {
    compile_cached(nest, target, options, None)
}

/// Compiles a lowered nest to an object, or takes the object from a cache.
///
/// # Errors
///
/// As for [`compile`]. Errors of the cache are ignored.
pub fn compile_cached(
    nest: &LoweredNest,
    target: &Processor,
    options: &CodegenOptions,
    cache: Option<&ObjectCache>,
) -> Result<Compiled> {
    generate(nest, target, options, cache, true)
}

/// Recompiles a lowered nest and replaces the cached object, which cannot be linked.
///
/// # Errors
///
/// As for [`compile`].
pub fn compile_again(
    nest: &LoweredNest,
    target: &Processor,
    options: &CodegenOptions,
    cache: Option<&ObjectCache>,
) -> Result<Compiled> {
    generate(nest, target, options, cache, false)
}

/// Compiles a lowered nest and caches the object; uses a cached one if allowed.
fn generate(
    nest: &LoweredNest,
    target: &Processor,
    options: &CodegenOptions,
    cache: Option<&ObjectCache>,
    may_take: bool,
) -> Result<Compiled> {
    let mut clock = Clock(Instant::now());
    let machine = target.machine_at(options.level.into())?;
    let context = Context::create();
    let interface = Interface::of(nest);
    let module = debug_span!("emit")
        .in_scope(|| emit::emit(&context, nest, &interface, target, &machine))?;
    if options.hidden {
        hide(&module);
    }
    let kept = cache.map(|cache| (cache, Key::of(&module, target, options)));
    let emit = clock.lap();
    if let Some(object) = kept.filter(|_| may_take).and_then(|(cache, key)| cache.get(key)) {
        let times = PhaseTimes { emit, ..PhaseTimes::default() };
        return Ok(Compiled { interface, object, times, is_cached: true });
    }
    debug_span!("passes").in_scope(|| passes::run(&module, &machine, &options.pipeline))?;
    let passes = clock.lap();
    let object = debug_span!("codegen").in_scope(|| object::object(&module, &machine))?;
    let codegen = clock.lap();
    if let Some((cache, key)) = kept {
        cache.put(key, &object);
    }
    let times = PhaseTimes { emit, passes, codegen };
    Ok(Compiled { interface, object, times, is_cached: false })
}

/// Gives the exported functions hidden visibility.
fn hide(module: &Module<'_>) {
    let exported = |function: &FunctionValue<'_>| {
        function.count_basic_blocks() > 0 && function.get_linkage() == Linkage::External
    };
    for function in module.get_functions().filter(exported) {
        function.as_global_value().set_visibility(GlobalVisibility::Hidden);
    }
}

/// The text of a lowered nest at one of LLVM's stages.
///
/// # Errors
///
/// As for [`compile`].
pub fn listing(
    nest: &LoweredNest,
    target: &Processor,
    options: &CodegenOptions,
    kind: Listing,
) -> Result<String> {
    let machine = target.machine_at(options.level.into())?;
    let context = Context::create();
    let module = emit::emit(&context, nest, &Interface::of(nest), target, &machine)?;
    if kind == Listing::EmittedIr {
        return Ok(object::llvm_ir(&module));
    }
    passes::run(&module, &machine, &options.pipeline)?;
    match kind {
        Listing::Assembly => object::assembly(&module, &machine),
        _ => Ok(object::llvm_ir(&module)),
    }
}

/// A stopwatch.
struct Clock(Instant);

impl Clock {
    fn lap(&mut self) -> Duration {
        let start = std::mem::replace(&mut self.0, Instant::now());
        self.0.duration_since(start)
    }
}
