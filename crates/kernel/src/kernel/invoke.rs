//! Calling compiled code with memory that was checked to be what the code expects.
#![allow(unsafe_code, reason = "calls compiled kernels, which take pointers")]

use std::ffi::c_void;
use std::sync::{Arc, Mutex, TryLockError};

use tensorwright_codegen_llvm as codegen;
use tensorwright_codegen_llvm::error::Error;
use tensorwright_runtime::{AlignedBuffer, AllocError, Element, Pool, View, abi};
use tensorwright_schedule::interface::{Function, Parameter};
use tensorwright_schedule::nest::Owner;

/// Compiled code in this process, with what its calls need.
#[derive(Debug)]
pub(super) struct Loaded {
    kernel: codegen::JitKernel,
    pool: Option<Arc<Pool>>,
    /// Workspaces that no call uses at the moment.
    workspaces: Mutex<Vec<AlignedBuffer>>,
}

/// The memory of one parameter.
#[derive(Debug)]
pub(super) enum Memory<'a> {
    /// Not passed: preparation needs constants only.
    Absent,
    /// Belongs to the call, which may write it.
    Owned(AlignedBuffer),
    /// Dense memory of the caller.
    Borrowed(&'a [u8]),
    /// Constants, which several calls read.
    Shared(Arc<AlignedBuffer>),
}

/// Memory that fits a kernel: all that a call needs.
#[derive(Debug)]
pub(super) struct Bound<'a> {
    loaded: &'a Loaded,
    function: Function,
    memory: Vec<Memory<'a>>,
    workspace: AlignedBuffer,
    /// Where `memory` is. The buffers are never exchanged while they are bound.
    pointers: Vec<*mut c_void>,
}

impl Loaded {
    /// Code, and the threads that it may use.
    pub(super) fn new(kernel: codegen::JitKernel, pool: Option<Arc<Pool>>) -> Self {
        Self { kernel, pool, workspaces: Mutex::default() }
    }

    /// The code.
    pub(super) fn kernel(&self) -> &codegen::JitKernel {
        &self.kernel
    }

    /// The threads that parallel loops use beside the caller's.
    pub(super) fn pool(&self) -> Option<&Pool> {
        self.pool.as_deref()
    }

    fn workspace(&self) -> Result<AlignedBuffer, AllocError> {
        let workers = self.pool().map_or(1, Pool::workers);
        let workers = i32::try_from(workers).unwrap_or(i32::MAX);
        let bytes = self.kernel.interface().workspace.bytes(workers);
        AlignedBuffer::new(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Computes on memory that the caller vouches for, one pointer per parameter, and returns the
    /// status.
    ///
    /// # Safety
    /// Every pointer points to initialised memory of its parameter's size, aligned to its elements,
    /// which nobody writes during the call; memory of an output is written by nobody else, read by
    /// nobody else, and overlaps no other parameter's.
    pub(super) unsafe fn call_on(&self, pointers: &[*mut c_void]) -> Result<i32, CallError> {
        let kept = self.idle().and_then(|mut idle| idle.pop());
        let mut workspace = match kept {
            Some(workspace) => workspace,
            None => self.workspace().map_err(CallError::Alloc)?,
        };
        let pointer = workspace.as_mut_ptr().cast();
        // SAFETY: the caller vouches for the parameters; the workspace is this call's alone.
        let status = unsafe { self.kernel.call(pointers, pointer, self.pool_pointer()) };
        if let Some(mut idle) = self.idle() {
            idle.push(workspace);
        }
        status.map_err(CallError::Kernel)
    }

    /// The workspaces of earlier calls, if they can be had at once: a call never waits for them. In a
    /// child that was forked while another thread had them, they can never be had.
    fn idle(&self) -> Option<std::sync::MutexGuard<'_, Vec<AlignedBuffer>>> {
        match self.workspaces.try_lock() {
            Ok(idle) => Some(idle),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn pool_pointer(&self) -> *mut abi::Pool {
        self.pool().map_or(std::ptr::null_mut(), Pool::as_abi)
    }
}

/// Whether memory can be passed for a parameter.
fn takes(parameter: &Parameter, memory: &Memory<'_>, function: Function) -> bool {
    let is_written = match parameter.owner {
        Owner::Output => true,
        Owner::Prepared => function == Function::Prepare,
        _ => false,
    };
    let needed = usize::try_from(parameter.bytes()).unwrap_or(0);
    match memory {
        // What preparation reads and writes are constants and prepared buffers.
        Memory::Absent => function == Function::Prepare && parameter.owner != Owner::Prepared,
        Memory::Owned(buffer) => buffer.len() >= needed,
        Memory::Borrowed(bytes) => !is_written && bytes.len() >= needed,
        Memory::Shared(buffer) => !is_written && buffer.len() >= needed,
    }
}

impl<'a> Memory<'a> {
    /// The memory of a dense view, or a dense copy of another one.
    pub(super) fn of_view(view: &View<'a>) -> Result<Self, AllocError> {
        if let Some(bytes) = view.dense_bytes() {
            return Ok(Memory::Borrowed(bytes));
        }
        let mut copy = AlignedBuffer::new(view.elements() * view.element_size())?;
        view.to_dense(&mut copy)?;
        Ok(Memory::Owned(copy))
    }

    /// What it holds.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Memory::Absent => &[],
            Memory::Owned(buffer) => buffer.as_bytes(),
            Memory::Borrowed(bytes) => bytes,
            Memory::Shared(buffer) => buffer.as_bytes(),
        }
    }

    fn pointer(&mut self) -> *mut c_void {
        match self {
            Memory::Absent => std::ptr::null_mut(),
            Memory::Owned(buffer) => buffer.as_mut_ptr().cast(),
            // Only read through: `takes` makes sure of it.
            Memory::Borrowed(bytes) => bytes.as_ptr().cast_mut().cast(),
            Memory::Shared(buffer) => buffer.as_ptr().cast_mut().cast(),
        }
    }
}

impl<'a> Bound<'a> {
    /// Checks memory, one entry per parameter, against what a function expects.
    pub(super) fn new(
        loaded: &'a Loaded,
        function: Function,
        mut memory: Vec<Memory<'a>>,
    ) -> Result<Self, BindError> {
        let parameters = &loaded.kernel.interface().parameters;
        let fits = memory.len() == parameters.len()
            && parameters.iter().zip(&memory).all(|(p, memory)| takes(p, memory, function));
        if !fits {
            return Err(BindError::Unfit);
        }
        let workspace = loaded.workspace().map_err(BindError::Alloc)?;
        let pointers = memory.iter_mut().map(Memory::pointer).collect();
        Ok(Self { loaded, function, memory, workspace, pointers })
    }

    /// Calls the function, and returns its status.
    pub(super) fn call(&mut self) -> Result<i32, Error> {
        let pool = self.loaded.pool_pointer();
        let (kernel, workspace) = (&self.loaded.kernel, self.workspace.as_mut_ptr().cast());
        // SAFETY: `new` checked that every parameter has memory of its size, initialised, owned
        // by this call if it is written, and aligned at least to its elements: buffers are
        // aligned to 64 bytes, and a view comes from a slice of elements. Distinct parameters
        // have distinct memory unless both are only read. `&mut self` makes the workspace ours
        // alone; it has the size that the kernel asks for with the workers of this pool. The pool
        // lives as long as `loaded`.
        unsafe {
            match self.function {
                Function::Prepare => kernel.prepare(&self.pointers, workspace, pool),
                Function::Compute => kernel.call(&self.pointers, workspace, pool),
            }
        }
    }

    /// The memory of a parameter.
    pub(super) fn memory(&self, parameter: usize) -> Option<&Memory<'a>> {
        self.memory.get(parameter)
    }

    /// The elements of a parameter, to write, if the call owns them. (Not the buffer: exchanging
    /// it would leave the pointer behind.)
    pub(super) fn owned_mut<T: Element>(&mut self, parameter: usize) -> Option<&mut [T]> {
        match self.memory.get_mut(parameter) {
            Some(Memory::Owned(buffer)) => Some(buffer.as_mut_slice()),
            _ => None,
        }
    }

    /// Gives the memory back.
    pub(super) fn into_memory(self) -> Vec<Memory<'a>> {
        self.memory
    }
}

/// Why a call on memory of the caller's could not be made.
#[derive(Debug)]
pub(super) enum CallError {
    /// The code refused it.
    Kernel(Error),
    /// There is no memory for the workspace.
    Alloc(AllocError),
}

/// Why memory cannot be bound.
#[derive(Debug)]
pub(super) enum BindError {
    /// It is not what the kernel expects.
    Unfit,
    /// There is none for the workspace.
    Alloc(AllocError),
}
