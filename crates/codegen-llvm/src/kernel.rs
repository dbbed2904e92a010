#![allow(unsafe_code, reason = "calls generated code with pointers that the caller vouches for")]
//! [`JitKernel`]: a compiled kernel that can be called.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use tensorwright_runtime::abi;
use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::Function;

use crate::error::{Error, Result};
use crate::jit::{Jit, LoadedCode};

/// A kernel in this process.
#[derive(Debug)]
pub struct JitKernel {
    call: abi::KernelFn,
    prepare: Option<abi::KernelFn>,
    interface: Interface,
    load_time: Duration,
    /// Frees the code when dropped.
    _code: LoadedCode,
}

impl JitKernel {
    /// Links an object with a known interface into this process.
    ///
    /// # Errors
    ///
    /// The object does not link, or lacks the functions of the interface.
    pub fn load(jit: &Jit, interface: &Interface, object: &[u8]) -> Result<Self> {
        let start = Instant::now();
        let code = jit.load(object)?;
        let function = |function: Function| {
            // SAFETY: emitters give both functions the type of the C interface, and the pointers live
            // as long as the code, in one structure. An object that violates this harms its callers.
            // They have to vouch for the object.
            unsafe { code.function::<abi::KernelFn>(&interface.function(function)) }
        };
        let call = function(Function::Compute)?;
        let prepare = interface.has_prepare.then(|| function(Function::Prepare)).transpose()?;
        let (interface, load_time) = (interface.clone(), start.elapsed());
        Ok(Self { call, prepare, interface, load_time, _code: code })
    }

    /// The calling convention.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Calls the kernel. The status is 0, or one more than the number of a
    /// [checked read](Interface::checked) that was out of bounds.
    ///
    /// # Errors
    ///
    /// The number of buffers is wrong.
    ///
    /// # Safety
    ///
    /// - `buffers` holds the address of each parameter of the interface, in order, and then that of the
    ///   [passed numbers](Interface::passed_numbers), if there are any. Each is valid for
    ///   the buffer's bytes, aligned to its elements and initialised if it is read; outputs are
    ///   valid for writes and overlap nothing.
    /// - `workspace` is valid for the bytes of [`Interface::workspace`] for the workers of the pool, is
    ///   aligned to 64 bytes and not used elsewhere. It may be null if no bytes are needed.
    /// - `pool` is null or a pool that keeps what [`abi::Pool`] says.
    /// - The object keeps to its interface.
    pub unsafe fn call(
        &self,
        buffers: &[*mut c_void],
        workspace: *mut c_void,
        pool: *mut abi::Pool,
    ) -> Result<i32> {
        self.check(buffers)?;
        // SAFETY: the code is loaded, and the caller vouches for the arguments.
        Ok(unsafe { (self.call)(buffers.as_ptr(), workspace, pool) })
    }

    /// Fills the prepared buffers, if any.
    ///
    /// # Errors
    ///
    /// The number of buffers is wrong.
    ///
    /// # Safety
    ///
    /// As for [`JitKernel::call`], with prepared buffers valid for writes.
    pub unsafe fn prepare(
        &self,
        buffers: &[*mut c_void],
        workspace: *mut c_void,
        pool: *mut abi::Pool,
    ) -> Result<i32> {
        self.check(buffers)?;
        match self.prepare {
            // SAFETY: as in `call`.
            Some(prepare) => Ok(unsafe { prepare(buffers.as_ptr(), workspace, pool) }),
            None => Ok(0),
        }
    }

    fn check(&self, buffers: &[*mut c_void]) -> Result<()> {
        let numbers = usize::from(self.interface.passed_numbers().next().is_some());
        let (given, taken) = (buffers.len(), self.interface.parameters.len() + numbers);
        if given == taken {
            return Ok(());
        }
        Err(Error::Link(format!("the kernel takes {taken} buffers, not {given}")))
    }

    /// The time that linking took.
    #[must_use]
    pub fn load_time(&self) -> Duration {
        self.load_time
    }
}
