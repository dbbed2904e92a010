//! CPU engine: machine code in this process.
#![allow(unsafe_code, reason = "calls compiled kernels, which take pointers")]

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use tensorwright_codegen_llvm::JitKernel;
use tensorwright_runtime::{AlignedBuffer, Pool, abi};
use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::Function;
use tensorwright_schedule::workspace::Workspace;

use super::{CallError, Engine, Session};

/// Machine code with the resources of its calls.
#[derive(Debug)]
pub(in super::super) struct OnProcessor {
    kernel: JitKernel,
    pool: Option<Arc<Pool>>,
    /// Workspaces not in use by any call.
    idle: Mutex<Vec<AlignedBuffer>>,
}

/// A workspace for a sequence of calls.
#[derive(Debug)]
struct ProcessorSession<'a> {
    engine: &'a OnProcessor,
    workspace: AlignedBuffer,
}

impl OnProcessor {
    /// Code and its thread pool.
    pub(in super::super) fn new(kernel: JitKernel, pool: Option<Arc<Pool>>) -> Self {
        Self { kernel, pool, idle: Mutex::default() }
    }

    /// The idle workspaces, if the lock is free: a call never waits for it. In a child forked while
    /// another thread held it, it stays locked.
    fn idle(&self) -> Option<MutexGuard<'_, Vec<AlignedBuffer>>> {
        match self.idle.try_lock() {
            Ok(idle) => Some(idle),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Engine for OnProcessor {
    fn interface(&self) -> &Interface {
        self.kernel.interface()
    }

    fn session(&self, workspace: Workspace) -> Result<Box<dyn Session + '_>, CallError> {
        let workers = self.pool().map_or(1, Pool::workers);
        let bytes = workspace.bytes(i32::try_from(workers).unwrap_or(i32::MAX));
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let kept = self.idle().and_then(|mut idle| idle.pop());
        let workspace = match kept.filter(|kept| kept.len() >= bytes) {
            Some(kept) => kept,
            None => AlignedBuffer::new(bytes).map_err(CallError::Alloc)?,
        };
        Ok(Box::new(ProcessorSession { engine: self, workspace }))
    }

    fn load_time(&self) -> Duration {
        self.kernel.load_time()
    }

    fn pool(&self) -> Option<&Pool> {
        self.pool.as_deref()
    }
}

impl Session for ProcessorSession<'_> {
    unsafe fn call(
        &mut self,
        function: Function,
        pointers: &[*mut c_void],
    ) -> Result<i32, CallError> {
        let kernel = &self.engine.kernel;
        let workspace = self.workspace.as_mut_ptr().cast();
        let pool = self.engine.pool().map_or(std::ptr::null_mut::<abi::Pool>(), Pool::as_abi);
        // SAFETY: the caller vouches for the parameters. `&mut self` makes the workspace this
        // call's alone; it has the size that was asked for with the workers of this pool, which
        // lives as long as the engine.
        let status = unsafe {
            match function {
                Function::Prepare => kernel.prepare(pointers, workspace, pool),
                Function::Compute => kernel.call(pointers, workspace, pool),
            }
        };
        status.map_err(CallError::Kernel)
    }

    /// Calls work on the memory itself.
    fn touch(&mut self, _: usize) {}

    fn elapsed(&self) -> Option<Duration> {
        None
    }
}

impl Drop for ProcessorSession<'_> {
    fn drop(&mut self) {
        if let (Some(mut idle), Ok(nothing)) = (self.engine.idle(), AlignedBuffer::new(0)) {
            idle.push(std::mem::replace(&mut self.workspace, nothing));
        }
    }
}
