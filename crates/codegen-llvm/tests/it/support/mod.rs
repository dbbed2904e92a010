//! Runs programs through code generation and compares them with the reference.
//!
//! Buffers end at an inaccessible page, which detects out-of-bounds accesses.
#![allow(unsafe_code, reason = "compiled kernels are called")]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;

use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_codegen_llvm::{CodegenOptions, Compiled, JitKernel, compile};
use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_machine::Cpu;
use tensorwright_reference::{Buffer, random_inputs, run};
use tensorwright_runtime::abi::{Pool, Task};
use tensorwright_schedule::nest::Owner;
use tensorwright_schedule::{LoweredNest, Schedule, canonical, lower};

pub(crate) type Inputs = BTreeMap<String, Buffer>;

/// Memory between two inaccessible pages, ending at the second.
pub(crate) struct Guarded {
    map: *mut c_void,
    length: usize,
    data: *mut u8,
    bytes: usize,
}

const PAGE: usize = 4096;

impl Guarded {
    pub(crate) fn new(contents: &[u8]) -> Self {
        let pages = contents.len().div_ceil(PAGE).max(1);
        let length = (pages + 2) * PAGE;
        // SAFETY: a fresh anonymous mapping; the protection of its inner pages is changed and
        // only those are written.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let map = libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(map, libc::MAP_FAILED);
            let inner = map.cast::<u8>().add(PAGE);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(inner.cast(), pages * PAGE, access), 0);
            let data = inner.add(pages * PAGE - contents.len());
            ptr::copy_nonoverlapping(contents.as_ptr(), data, contents.len());
            Self { map, length, data, bytes: contents.len() }
        }
    }

    pub(crate) fn pointer(&self) -> *mut c_void {
        self.data.cast()
    }

    pub(crate) fn contents(&self) -> Vec<u8> {
        // SAFETY: the memory is ours, initialised and not written at the moment.
        unsafe { std::slice::from_raw_parts(self.data, self.bytes) }.to_vec()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours.
        unsafe { libc::munmap(self.map, self.length) };
    }
}

/// A pool that distributes iterations over two threads.
pub(crate) fn threads() -> Pool {
    unsafe extern "C" fn run(_: *mut Pool, task: Task, context: *mut c_void, count: i64) {
        struct Shared(*mut c_void);
        // SAFETY: tasks are made to share their context.
        unsafe impl Sync for Shared {}
        impl Shared {
            fn get(&self) -> *mut c_void {
                self.0
            }
        }
        let shared = Shared(context);
        std::thread::scope(|scope| {
            for worker in 0..3_i32 {
                let shared = &shared;
                scope.spawn(move || {
                    for i in (i64::from(worker)..count).step_by(3) {
                        // SAFETY: the ranges of all workers cover 0..count once.
                        unsafe { task(shared.get(), i, i + 1, worker) };
                    }
                });
            }
        });
    }
    Pool { run, workers: 3 }
}

pub(crate) fn program(source: &str, def: Option<&str>, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", source).unwrap_or_else(|e| panic!("{e}"));
    let def = match def {
        Some(name) => module.def(name).unwrap(),
        None => module.defs().next().unwrap(),
    };
    let sizes: BTreeMap<String, i64> = sizes.iter().map(|(n, s)| ((*n).to_owned(), *s)).collect();
    def.bind(sizes).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn scheduled(program: &Program, schedule: &str) -> LoweredNest {
    let schedule = Schedule::parse(schedule).unwrap_or_else(|e| panic!("{e:?}"));
    let nest = schedule.apply(canonical(program)).unwrap_or_else(|e| panic!("{e:?}"));
    lower(nest).unwrap_or_else(|e| panic!("{e}"))
}

/// The result of a kernel run.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) outputs: BTreeMap<String, Buffer>,
    pub(crate) compiled: Compiled,
}

/// A kernel in this process.
pub(crate) struct Loaded {
    kernel: JitKernel,
    compiled: Compiled,
}

/// Compiles and loads a nest.
pub(crate) fn load(nest: &LoweredNest, target: &str) -> Loaded {
    let target = Processor::named(target).unwrap();
    let compiled = compile(nest, &target, &CodegenOptions::default())
        .unwrap_or_else(|error| panic!("{error}\n{nest}"));
    let jit = Jit::new(&target).unwrap();
    let kernel = JitKernel::load(&jit, &compiled.interface, &compiled.object)
        .unwrap_or_else(|error| panic!("{error}"));
    Loaded { kernel, compiled }
}

/// Calls a kernel.
pub(crate) fn call(program: &Program, loaded: &Loaded, inputs: &Inputs, pooled: bool) -> Ran {
    let Loaded { kernel, compiled } = loaded;
    let parameters = &kernel.interface().parameters;
    let memory: Vec<Guarded> = parameters
        .iter()
        .map(|parameter| {
            let is_input = parameter.owner == Owner::Input;
            let input = is_input.then(|| &inputs[&program.tensor(parameter.id).name]);
            let fresh = || vec![0xcd; parameter.bytes() as usize];
            Guarded::new(&input.map_or_else(fresh, Buffer::to_bytes))
        })
        .collect();
    let pointers: Vec<*mut c_void> = memory.iter().map(Guarded::pointer).collect();
    let mut pool = threads();
    let workspace =
        Guarded::new(&vec![0xab; kernel.interface().workspace.bytes(pool.workers) as usize]);
    let pool = if pooled { &raw mut pool } else { ptr::null_mut() };
    // SAFETY: the buffers have the sizes that the nest says, and nobody else uses them.
    let status = unsafe {
        assert_eq!(kernel.prepare(&pointers, workspace.pointer(), pool).unwrap(), 0);
        kernel.call(&pointers, workspace.pointer(), pool).unwrap()
    };
    let outputs = parameters.iter().zip(&memory).filter(|(p, _)| p.owner == Owner::Output);
    let outputs = outputs.map(|(parameter, memory)| {
        let tensor = program.tensor(parameter.id);
        let buffer = Buffer::from_bytes(tensor.dtype, &tensor.shape, &memory.contents());
        (tensor.name.clone(), buffer.unwrap())
    });
    Ran { status, outputs: outputs.collect(), compiled: compiled.clone() }
}

/// Compares a nest with the reference; returns the differences as text.
pub(crate) fn difference(
    program: &Program,
    nest: &LoweredNest,
    inputs: &Inputs,
    target: &str,
) -> Option<String> {
    let expected = run(program, inputs).unwrap_or_else(|error| panic!("{error:?}"));
    let loaded = load(nest, target);
    for pooled in [false, true] {
        let ran = call(program, &loaded, inputs, pooled);
        if ran.status != 0 {
            return Some(format!("status {}", ran.status));
        }
        for output in &expected.outputs {
            if let Some(mismatch) = output.mismatch(&ran.outputs[&output.name]) {
                return Some(format!("{target}: {}: {mismatch}", output.name));
            }
        }
    }
    None
}

/// The named targets that this machine can run.
pub(crate) fn targets() -> Vec<&'static str> {
    let runs = |name: &&str| {
        *name != "native" && Processor::named(name).is_ok_and(|t| t.cpu().check_runs_here().is_ok())
    };
    Cpu::NAMES.into_iter().filter(runs).collect()
}

/// Checks a program with a schedule on all targets.
pub(crate) fn check(source: &str, sizes: &[(&str, i64)], schedule: &str) {
    check_with(source, sizes, schedule, &Inputs::new());
}

/// Checks a program with some given inputs; the others are random.
pub(crate) fn check_with(source: &str, sizes: &[(&str, i64)], schedule: &str, given: &Inputs) {
    let program = program(source, None, sizes);
    let nest = scheduled(&program, schedule);
    let mut inputs = random_inputs(&program, 7).unwrap();
    inputs.extend(given.clone());
    for target in targets() {
        if let Some(difference) = difference(&program, &nest, &inputs, target) {
            panic!("{difference}\n{nest}");
        }
    }
}
