//! Calls of kernels whose sizes vary.
#![allow(unsafe_code, reason = "calls compiled kernels, which take pointers")]

use std::ffi::c_void;
use std::sync::{PoisonError, TryLockError};

use tensorwright_runtime::{AlignedBuffer, Pool, abi};
use tensorwright_schedule::interface::{Formula, Number, Parameter, Part};
use tensorwright_schedule::nest::Owner;

use super::super::arguments::Strided;
use super::super::diagnose::Diagnose;
use super::super::{Arguments, Outputs, memory};
use super::{SizedKernel, SizedProgram};
use crate::{Code, Diagnostic, Diagnostics};

/// The memory of a parameter.
struct Placed {
    pointer: *mut c_void,
    /// The distances between neighbors, in elements.
    strides: Vec<i64>,
}

impl SizedKernel {
    /// Runs the kernel on inputs, whose extents are the sizes of the call. Views are used in place
    /// if neighbors of their last axis are neighbors in memory.
    ///
    /// # Errors
    /// Missing or invalid inputs, sizes for which the kernel was not made, or an out-of-bounds
    /// subscript from data.
    pub fn run<'a>(&self, arguments: impl Into<Arguments<'a>>) -> Result<Outputs, Diagnostics> {
        let arguments = arguments.into();
        let interface = self.loops.interface();
        let program = &self.loops.program;
        let failed = |code: Code, message: String| program.failed(code, message);
        let mut inputs: Vec<Option<Strided<'_>>> = Vec::new();
        for parameter in &interface.parameters {
            inputs.push(match parameter.owner {
                Owner::Input => Some(self.input(&arguments, parameter)?),
                _ => None,
            });
        }
        let sizes = self.sizes(&inputs)?;
        let values = interface.numbers_for(&sizes).ok_or_else(|| {
            failed(Code::InvalidSize, "the sizes are not those of the kernel".to_owned())
        })?;
        let mut outputs: Vec<(Vec<i64>, AlignedBuffer)> = Vec::new();
        for (parameter, input) in interface.parameters.iter().zip(&inputs) {
            let shape = extents(parameter, &values).ok_or_else(|| {
                failed(Code::TooLarge, format!("`{}` is too large", parameter.name))
            })?;
            match input {
                Some(input) if input.shape == shape => {}
                Some(input) => {
                    let (name, found) = (&parameter.name, &input.shape);
                    let message = format!("input `{name}` has extents {found:?}, not {shape:?}");
                    return Err(failed(Code::InputShape, message));
                }
                None => {
                    let bytes = shape.iter().try_fold(parameter.dtype.bytes(), |all, extent| {
                        all.checked_mul(usize::try_from(*extent).ok()?)
                    });
                    let memory = AlignedBuffer::new(bytes.unwrap_or(usize::MAX));
                    outputs.push((shape, memory.map_err(|e| e.diagnose(program.source()))?));
                }
            }
        }
        let mut made = outputs.iter_mut();
        let mut placed: Vec<Placed> = Vec::new();
        for input in &inputs {
            placed.push(match input {
                // Inputs are only read.
                Some(input) => Placed {
                    pointer: input.pointer().cast_mut().cast(),
                    strides: input.strides.clone(),
                },
                None => {
                    let Some((shape, memory)) = made.next() else { continue };
                    let pointer = memory.as_mut_ptr().cast();
                    Placed { pointer, strides: memory::dense_strides(shape) }
                }
            });
        }
        // SAFETY: the extents of all memory were compared with those of the interface for these
        // sizes; views were checked to lie in their slices; outputs are new.
        let status = unsafe { self.call(&values, &placed) }?;
        if let Some(read) = interface.failed_read(status) {
            let name = interface.parameters.iter().find(|p| p.id == read.buffer);
            let name = name.map_or("a tensor", |parameter| &parameter.name);
            let message = format!("a subscript of `{name}` from data is out of bounds");
            let diagnostic = Diagnostic::new(Code::IndexOutOfBounds, read.place, message)
                .here("outside of its tensor in this call");
            return Err(Diagnostics::new(program.source().clone(), vec![diagnostic]));
        }
        let results = interface.parameters.iter().filter(|p| p.owner == Owner::Output);
        let one = |(parameter, (shape, memory)): (&Parameter, (Vec<i64>, AlignedBuffer))| {
            let buffer = memory::tensor(parameter.dtype, &shape, memory.as_bytes());
            let buffer = buffer.map_err(|error| failed(Code::TooLarge, error.to_string()))?;
            Ok((parameter.name.clone(), buffer))
        };
        let list = results.zip(outputs).map(one).collect::<Result<Vec<_>, Diagnostics>>()?;
        Ok(Outputs::new(list))
    }

    fn input<'a>(
        &self,
        arguments: &Arguments<'a>,
        parameter: &Parameter,
    ) -> Result<Strided<'a>, Diagnostics> {
        let program = &self.loops.program;
        let name = &parameter.name;
        let found = arguments.strided(name, parameter.dtype).ok_or_else(|| {
            program.failed(Code::MissingInput, format!("the input `{name}` is missing"))
        })?;
        found
            .map_err(|problem| program.failed(Code::InputType, format!("input `{name}` {problem}")))
    }

    /// The sizes of a call, from the extents of inputs that are a size or a multiple of one.
    fn sizes(&self, inputs: &[Option<Strided<'_>>]) -> Result<Vec<i64>, Diagnostics> {
        let interface = self.loops.interface();
        let program = &self.loops.program;
        let mut sizes = Vec::new();
        for (position, number) in interface.numbers.iter().enumerate() {
            let Number::Size { name, multiple, .. } = number else { continue };
            let found = interface.parameters.iter().zip(inputs).find_map(|(parameter, input)| {
                let input = input.as_ref()?;
                let dimension =
                    parameter.extents.iter().position(|e| is_size(e, position, *multiple))?;
                input.shape.get(dimension).copied()
            });
            let size = found.ok_or_else(|| {
                let message = format!("no input has an extent `{name}`");
                program.failed(Code::MissingSize, message)
            })?;
            sizes.push(size);
        }
        program.check(&sizes)?;
        Ok(sizes)
    }

    /// Calls the code.
    ///
    /// # Safety
    /// `placed` has the memory of each parameter of the interface, in order, with the extents that
    /// follow from the `values` of the numbers; outputs overlap nothing.
    unsafe fn call(&self, values: &[i64], placed: &[Placed]) -> Result<i32, Diagnostics> {
        let interface = self.loops.interface();
        let program = &self.loops.program;
        let workers = self.pool.as_deref().map_or(1, Pool::workers);
        let size = interface.workspace_for(values);
        let bytes = size.map(|size| size.bytes(i32::try_from(workers).unwrap_or(i32::MAX)));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
        let kept = match self.idle.try_lock() {
            Ok(mut idle) => idle.pop(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().pop(),
            Err(TryLockError::WouldBlock) => None,
        };
        let mut workspace = match kept.filter(|kept| kept.len() >= bytes) {
            Some(kept) => kept,
            None => AlignedBuffer::new(bytes).map_err(|e| e.diagnose(program.source()))?,
        };
        let mut numbers: Vec<i64> = interface
            .passed_numbers()
            .map(|(position, number)| match number {
                Number::Stride { parameter, dimension } => {
                    let strides = placed.get(*parameter).map(|placed| &placed.strides);
                    strides.and_then(|strides| strides.get(*dimension)).copied().unwrap_or(0)
                }
                _ => values.get(position).copied().unwrap_or(0),
            })
            .collect();
        let mut pointers: Vec<*mut c_void> = placed.iter().map(|placed| placed.pointer).collect();
        if !numbers.is_empty() {
            pointers.push(numbers.as_mut_ptr().cast());
        }
        let pool = self.pool.as_deref().map_or(std::ptr::null_mut::<abi::Pool>(), Pool::as_abi);
        // SAFETY: the caller vouches for the parameters; the numbers follow from them, and the
        // workspace has the size for these numbers.
        let status = unsafe { self.code.call(&pointers, workspace.as_mut_ptr().cast(), pool) };
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
        status.map_err(|error| error.diagnose(program.source()))
    }
}

impl SizedProgram {
    /// Whether the program is defined for sizes, in the order of those that vary.
    ///
    /// # Errors
    /// The size that is out of its range, or the condition that does not hold.
    pub fn check(&self, sizes: &[i64]) -> Result<(), Diagnostics> {
        self.ir.check(sizes).map_err(|reason| self.failed(Code::InvalidSize, reason.to_string()))
    }
}

/// Whether an extent is a size.
fn is_size(extent: &Formula, position: usize, multiple: i64) -> bool {
    extent.constant == 0 && extent.terms == [(multiple, Part::Number(position))]
}

/// The extents of a parameter, given the values of the numbers.
fn extents(parameter: &Parameter, values: &[i64]) -> Option<Vec<i64>> {
    if parameter.extents.is_empty() {
        return Some(parameter.shape.clone());
    }
    parameter.extents.iter().map(|extent| extent.value(values)).collect()
}
