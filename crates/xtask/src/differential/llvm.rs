#![allow(unsafe_code, reason = "calls generated code")]
//! Runs pairs as LLVM code in this process.

use std::ffi::c_void;
use std::ptr;

use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_codegen_llvm::{CodegenOptions, JitKernel, Processor, compile};
use tensorwright_machine::Cpu;
use tensorwright_runtime::Pool as Threads;
use tensorwright_runtime::abi::{Pool, Task};
use tensorwright_schedule::nest::Owner;
use tensorwright_schedule::workspace::ALIGNMENT;

use super::failure::{Kind, Problem, Suspect};
use super::memory::Guarded;
use super::pair::Pair;

/// The in-process runner.
pub(crate) struct Llvm {
    /// The processors whose code runs here, this machine first.
    targets: Vec<Processor>,
    jit: Jit,
    threads: Threads,
}

/// A pool that runs iterations one by one, backwards, with changing workers: exposes dependences on
/// the iteration order or on worker state deterministically.
static BACKWARDS: Pool = Pool { run: run_backwards, workers: 3 };

unsafe extern "C" fn run_backwards(pool: *mut Pool, task: Task, context: *mut c_void, count: i64) {
    // SAFETY: kernels pass the pool that they are given, and a task with its context.
    unsafe {
        for i in (0..count).rev() {
            task(context, i, i + 1, (i % i64::from((*pool).workers)) as i32);
        }
    }
}

impl Llvm {
    /// Prepares to run code.
    pub(crate) fn new() -> Result<Self, String> {
        let native = Processor::native().map_err(|error| error.to_string())?;
        let jit = Jit::new(&native).map_err(|error| error.to_string())?;
        let threads = Threads::new(2).map_err(|error| error.to_string())?;
        let named = Cpu::NAMES.iter().filter_map(|name| Processor::named(name).ok());
        let others = named.filter(|target| target.cpu().check_runs_here().is_ok());
        let targets = [native].into_iter().chain(others).collect();
        Ok(Self { targets, jit, threads })
    }

    /// Compiles a pair, runs it with and without workers, and compares.
    pub(crate) fn check(&self, pair: &Pair) -> Result<(), Problem> {
        let problem = |kind, message: String| Problem::new(Suspect::Llvm, kind, message);
        // Uses this machine in place of a processor that it is not.
        let target = self.targets.iter().find(|target| target.cpu().name() == pair.target);
        let target = target.unwrap_or(&self.targets[0]);
        let compiled = compile(&pair.nest, target, &CodegenOptions::default())
            .map_err(|error| problem(Kind::Compile, error.to_string()))?;
        let kernel = JitKernel::load(&self.jit, &compiled.interface, &compiled.object)
            .map_err(|error| problem(Kind::Compile, error.to_string()))?;
        let alone: (*mut Pool, i32) = (ptr::null_mut(), 1);
        let backwards = (ptr::from_ref(&BACKWARDS).cast_mut(), BACKWARDS.workers);
        let threads = (self.threads.as_abi(), self.threads.workers() as i32);
        let pools =
            [("no pool", alone), ("a pool that runs backwards", backwards), ("2 threads", threads)];
        let count = if pair.has_parallel_loop() { pools.len() } else { 1 };
        for (name, pool) in &pools[..count] {
            run(pair, &kernel, *pool)
                .map_err(|(kind, why)| problem(kind, format!("with {name}: {why}")))?;
        }
        Ok(())
    }
}

/// Runs a kernel once, on its own memory.
fn run(pair: &Pair, kernel: &JitKernel, pool: (*mut Pool, i32)) -> Result<(), (Kind, String)> {
    let memory = |why: String| (Kind::Compile, why);
    let mut buffers = Vec::new();
    for (parameter, contents) in pair.interface.parameters.iter().zip(pair.contents()) {
        let bytes = parameter.bytes().max(0) as usize;
        let buffer = match (contents, parameter.owner) {
            (Some(contents), _) => Guarded::read_only(contents),
            (None, Owner::Prepared) => Guarded::new(bytes, ALIGNMENT as usize, pair.garbage),
            (None, _) => Guarded::new(bytes, 1, pair.garbage),
        };
        buffers.push(buffer.map_err(memory)?);
    }
    let bytes = pair.interface.workspace.bytes(pool.1).max(0) as usize;
    let workspace = Guarded::new(bytes, ALIGNMENT as usize, pair.garbage).map_err(memory)?;
    let addresses: Vec<*mut c_void> = buffers.iter().map(Guarded::address).collect();
    // SAFETY: buffers and workspace have the sizes that the nest asks for and are initialised, and
    // the pool outlives the call. A kernel that does not keep to them is what we look for.
    let status = unsafe {
        let prepared = kernel.prepare(&addresses, workspace.address(), pool.0);
        prepared.and_then(|status| match status {
            0 => kernel.call(&addresses, workspace.address(), pool.0),
            status => Ok(status),
        })
    };
    let status = status.map_err(|error| (Kind::Compile, error.to_string()))?;
    if !buffers.iter().chain([&workspace]).all(Guarded::is_intact) {
        return Err((Kind::Memory, "wrote before a buffer or after it".to_owned()));
    }
    let outputs: Vec<Vec<u8>> = pair
        .interface
        .parameters
        .iter()
        .zip(&buffers)
        .filter(|(parameter, _)| parameter.owner == Owner::Output)
        .map(|(_, buffer)| buffer.contents())
        .collect();
    pair.judge(status, &outputs)
}
