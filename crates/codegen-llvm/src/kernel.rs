#![allow(unsafe_code, reason = "calls generated code with pointers that the caller vouches for")]
//! A compiled kernel that can be called.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use tensorwright_schedule::workspace::Plan;

use crate::compile::Compiled;
use crate::emit::CheckedRead;
use crate::error::{Error, Result};
use crate::jit::{Jit, LoadedCode};

/// The function that a kernel exports.
type EntryPoint = unsafe extern "C" fn(*const *mut c_void, *mut c_void, *mut Pool) -> i32;

/// What a pool runs: iterations `begin` to below `end` of a parallel loop.
pub type Task = unsafe extern "C" fn(context: *mut c_void, begin: i64, end: i64, worker: i32);

/// Something that runs the iterations of parallel loops, as C sees it.
#[derive(Debug)]
#[repr(C)]
pub struct Pool {
    /// Runs a task on ranges that together cover 0 to below `count` once, and returns when all
    /// are done. Workers are numbered from 0 to below `workers`; no two ranges run with the same
    /// number at the same time.
    pub run: unsafe extern "C" fn(pool: *mut Pool, task: Task, context: *mut c_void, count: i64),
    /// The number of workers.
    pub workers: i32,
}

/// A kernel in this process.
#[derive(Debug)]
pub struct Kernel {
    call: EntryPoint,
    prepare: Option<EntryPoint>,
    workspace: Plan,
    checked: Vec<CheckedRead>,
    parameters: usize,
    load_time: Duration,
    /// Frees the code when it goes.
    _code: LoadedCode,
}

impl Kernel {
    /// Links a compiled kernel into this process.
    ///
    /// # Errors
    ///
    /// If the object does not link.
    pub fn load(jit: &Jit, compiled: &Compiled) -> Result<Self> {
        let start = Instant::now();
        let code = jit.load(&compiled.object)?;
        // SAFETY: the emitter gives both functions the type of the C interface, and the pointers
        // live as long as the code, in one structure.
        let (call, prepare) = unsafe {
            let call: EntryPoint = code.function(&compiled.symbol)?;
            let prepare = compiled.has_prepare.then(|| format!("{}_prepare", compiled.symbol));
            let prepare = prepare.map(|name| code.function::<EntryPoint>(&name)).transpose()?;
            (call, prepare)
        };
        Ok(Self {
            call,
            prepare,
            workspace: compiled.workspace.clone(),
            checked: compiled.checked.clone(),
            parameters: compiled.parameters,
            load_time: start.elapsed(),
            _code: code,
        })
    }

    /// Calls the kernel. The status is 0, or one more than the number of a
    /// [checked read](Kernel::checked) that was out of bounds.
    ///
    /// # Errors
    ///
    /// If the number of buffers is wrong.
    ///
    /// # Safety
    ///
    /// - `buffers` holds the address of each parameter of the nest, in order. Each is valid for
    ///   the buffer's bytes, aligned to its elements and initialised if it is read; outputs are
    ///   valid for writes and overlap nothing.
    /// - `workspace` is valid for [`Kernel::workspace`]'s bytes for the workers of the pool, is
    ///   aligned to 64 bytes and used by nobody else. It may be null if no bytes are needed.
    /// - `pool` is null or a pool that keeps what [`Pool`] says.
    pub unsafe fn call(
        &self,
        buffers: &[*mut c_void],
        workspace: *mut c_void,
        pool: *mut Pool,
    ) -> Result<i32> {
        self.check(buffers)?;
        // SAFETY: the code is loaded, and the caller vouches for the arguments.
        Ok(unsafe { (self.call)(buffers.as_ptr(), workspace, pool) })
    }

    /// Fills the prepared buffers, if there are any.
    ///
    /// # Errors
    ///
    /// If the number of buffers is wrong.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::call`], with prepared buffers valid for writes.
    pub unsafe fn prepare(
        &self,
        buffers: &[*mut c_void],
        workspace: *mut c_void,
        pool: *mut Pool,
    ) -> Result<i32> {
        self.check(buffers)?;
        match self.prepare {
            // SAFETY: as in `call`.
            Some(prepare) => Ok(unsafe { prepare(buffers.as_ptr(), workspace, pool) }),
            None => Ok(0),
        }
    }

    fn check(&self, buffers: &[*mut c_void]) -> Result<()> {
        if buffers.len() == self.parameters {
            return Ok(());
        }
        let (given, taken) = (buffers.len(), self.parameters);
        Err(Error::Link(format!("the kernel takes {taken} buffers, not {given}")))
    }

    /// The workspace that a call needs.
    #[must_use]
    pub fn workspace(&self) -> &Plan {
        &self.workspace
    }

    /// The reads that are checked when the kernel runs, by number.
    #[must_use]
    pub fn checked(&self) -> &[CheckedRead] {
        &self.checked
    }

    /// How long linking took.
    #[must_use]
    pub fn load_time(&self) -> Duration {
        self.load_time
    }
}
