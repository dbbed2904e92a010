//! Calls of compiled code with checked memory.
#![allow(unsafe_code, reason = "calls compiled kernels, which take pointers")]

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use tensorwright_runtime::{AlignedBuffer, AllocError, Element, View};
use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::{Function, Number, Parameter};
use tensorwright_schedule::nest::Owner;
use tensorwright_schedule::workspace::Workspace;

use super::engine::{CallError, Engine, Session};
use super::memory;

/// The memory of one parameter.
#[derive(Debug)]
pub(super) enum Memory<'a> {
    /// Not passed: preparation only uses constants.
    Absent,
    /// Owned by the call, which may write it.
    Owned(AlignedBuffer),
    /// Dense memory of the caller.
    Borrowed(&'a [u8]),
    /// Constants, shared by calls.
    Shared(Arc<AlignedBuffer>),
}

/// Checked memory for all parameters of a call.
#[derive(Debug)]
pub(super) struct Bound<'a> {
    session: Box<dyn Session + 'a>,
    function: Function,
    memory: Vec<Memory<'a>>,
    /// The addresses of `memory`, and that of the numbers. Buffers are never replaced while they are
    /// bound.
    pointers: Vec<*mut c_void>,
    /// What the last pointer points to, if sizes vary.
    _numbers: Vec<i64>,
}

/// Whether memory may be passed for a parameter.
fn takes(parameter: &Parameter, memory: &Memory<'_>, function: Function) -> bool {
    let is_written = match parameter.owner {
        Owner::Output => true,
        Owner::Prepared => function == Function::Prepare,
        _ => false,
    };
    let needed = usize::try_from(parameter.bytes()).unwrap_or(0);
    match memory {
        // Preparation reads and writes only constants and prepared buffers.
        Memory::Absent => function == Function::Prepare && parameter.owner != Owner::Prepared,
        Memory::Owned(buffer) => buffer.len() >= needed,
        Memory::Borrowed(bytes) => !is_written && bytes.len() >= needed,
        Memory::Shared(buffer) => !is_written && buffer.len() >= needed,
    }
}

/// The numbers for dense memory and likely sizes, and their workspace: none if sizes are fixed.
/// Otherwise memory is only bound to prepare constants, which no size affects.
fn numbers(interface: &Interface) -> Option<(Vec<i64>, Workspace)> {
    let likely = |number: &Number| match number {
        Number::Size { likely, .. } => Some(*likely),
        _ => None,
    };
    let sizes: Vec<i64> = interface.numbers.iter().filter_map(likely).collect();
    let values = interface.numbers_for(&sizes)?;
    let stride = |parameter: usize, dimension: usize| {
        let shape = &interface.parameters.get(parameter)?.shape;
        memory::dense_strides(shape).get(dimension).copied()
    };
    Some((interface.call_numbers(&values, stride), interface.workspace_for(&values)?))
}

impl<'a> Memory<'a> {
    /// The memory of a dense view, or a dense copy of another view.
    pub(super) fn of_view(view: &View<'a>) -> Result<Self, AllocError> {
        if let Some(bytes) = view.dense_bytes() {
            return Ok(Memory::Borrowed(bytes));
        }
        let mut copy = AlignedBuffer::new(view.elements() * view.element_size())?;
        view.to_dense(&mut copy)?;
        Ok(Memory::Owned(copy))
    }

    /// The contents.
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
            // Only read: `takes` ensures that.
            Memory::Borrowed(bytes) => bytes.as_ptr().cast_mut().cast(),
            Memory::Shared(buffer) => buffer.as_ptr().cast_mut().cast(),
        }
    }
}

impl<'a> Bound<'a> {
    /// Checks memory, one entry per parameter, against what a function expects.
    pub(super) fn new(
        engine: &'a dyn Engine,
        function: Function,
        mut memory: Vec<Memory<'a>>,
    ) -> Result<Self, BindError> {
        let parameters = &engine.interface().parameters;
        let fits = memory.len() == parameters.len()
            && parameters.iter().zip(&memory).all(|(p, memory)| takes(p, memory, function));
        if !fits {
            return Err(BindError::Unfit);
        }
        let (mut numbers, workspace) = numbers(engine.interface()).ok_or(BindError::Unfit)?;
        let session = engine.session(workspace).map_err(BindError::Call)?;
        let mut pointers: Vec<*mut c_void> = memory.iter_mut().map(Memory::pointer).collect();
        if !numbers.is_empty() {
            pointers.push(numbers.as_mut_ptr().cast());
        }
        Ok(Self { session, function, memory, pointers, _numbers: numbers })
    }

    /// Calls the function, and returns its status.
    pub(super) fn call(&mut self) -> Result<i32, CallError> {
        // SAFETY: `new` checked that every parameter has memory of its size, initialised, owned
        // by this call if it is written, and aligned at least to its elements: buffers are
        // aligned to 64 bytes, and a view comes from a slice of elements. Distinct parameters
        // have distinct memory unless both are only read.
        unsafe { self.session.call(self.function, &self.pointers) }
    }

    /// Puts guards around memory of a device.
    pub(super) fn guard(&mut self) -> Result<(), CallError> {
        self.session.guard()
    }

    /// How long the last call took by the clock of a device.
    pub(super) fn elapsed(&self) -> Option<Duration> {
        self.session.elapsed()
    }

    /// The memory of a parameter.
    pub(super) fn memory(&self, parameter: usize) -> Option<&Memory<'a>> {
        self.memory.get(parameter)
    }

    /// The elements of a parameter for writing, if the call owns them. (Not the buffer: replacing
    /// it would leave a dangling pointer.)
    pub(super) fn owned_mut<T: Element>(&mut self, parameter: usize) -> Option<&mut [T]> {
        self.session.touch(parameter);
        match self.memory.get_mut(parameter) {
            Some(Memory::Owned(buffer)) => Some(buffer.as_mut_slice()),
            _ => None,
        }
    }

    /// Returns the memory.
    pub(super) fn into_memory(self) -> Vec<Memory<'a>> {
        self.memory
    }
}

/// Why memory cannot be bound.
#[derive(Debug)]
pub(super) enum BindError {
    /// It does not match the kernel's parameter.
    Unfit,
    /// A resource of the call cannot be allocated.
    Call(CallError),
}
