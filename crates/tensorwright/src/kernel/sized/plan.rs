//! [`SizedCall`]: the numbers of a call, known before its memory.
#![allow(unsafe_code, reason = "calls compiled kernels, which take pointers")]

use std::sync::Arc;

use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::Parameter;
use tensorwright_schedule::nest::{MAX_STRIDE, Owner};
use tensorwright_schedule::workspace::Workspace;

use super::super::constants::Constants;
use super::super::{Frozen, memory};
use super::{SizedKernel, SizedProgram};
use crate::{Code, Diagnostic, Diagnostics};

/// The sizes and strides of a call of a [`SizedKernel`], checked and ready to be passed. Calls with
/// equal sizes and strides can share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizedCall {
    /// The extents of inputs and outputs, in the order of the program.
    shapes: Vec<Vec<i64>>,
    /// What the code takes.
    numbers: Vec<i64>,
    workspace: Workspace,
}

impl SizedCall {
    /// The extents of the inputs and then of the outputs, in the order of the program.
    #[must_use]
    pub fn shapes(&self) -> &[Vec<i64>] {
        &self.shapes
    }
}

impl SizedKernel {
    /// Prepares calls with these sizes, in the order of those that vary. Inputs and outputs, in the
    /// order of the program, have these strides in elements (the last one is 1), or are dense.
    ///
    /// # Errors
    /// Sizes for which the kernel was not made, or that need too much memory, and strides that do
    /// not fit.
    pub fn plan(
        &self,
        sizes: &[i64],
        strides: &[Option<Vec<i64>>],
    ) -> Result<SizedCall, Diagnostics> {
        let (program, interface) = (&self.program, self.interface());
        program.check(sizes)?;
        let too_large = || {
            let message = "these sizes need more memory than there can be";
            program.failed(Code::TooLarge, message)
        };
        let values = interface.numbers_for(sizes).ok_or_else(too_large)?;
        let of_parameters = interface.parameters.iter().map(|p| extents(p, &values));
        let extents: Option<Vec<Vec<i64>>> = of_parameters.collect();
        let extents = extents.ok_or_else(too_large)?;
        let bytes = |(parameter, shape): (&Parameter, &Vec<i64>)| {
            let bytes = i64::try_from(parameter.dtype.bytes()).ok();
            shape.iter().try_fold(bytes?, |all, extent| all.checked_mul(*extent))
        };
        if interface.parameters.iter().zip(&extents).map(bytes).any(|bytes| bytes.is_none()) {
            return Err(too_large());
        }
        let mut all = Vec::with_capacity(extents.len());
        for (parameter, shape) in interface.parameters.iter().zip(&extents) {
            let given = self.position(parameter).and_then(|place| strides.get(place)?.as_ref());
            all.push(match given.filter(|_| !parameter.is_const) {
                None => memory::dense_strides(shape),
                Some(given) => self.fitting(parameter, shape, given)?,
            });
        }
        // One element has no neighbors, whatever its view says of their distance.
        let stride = |parameter: usize, dimension: usize| {
            let stride = all.get(parameter)?.get(dimension)?;
            (*extents.get(parameter)?.get(dimension)? > 1).then_some(*stride)
        };
        let numbers = interface.call_numbers(&values, stride);
        let workspace = interface.workspace_for(&values).ok_or_else(too_large)?;
        let general = &program.ir.general;
        let mut shapes = vec![Vec::new(); general.inputs + general.outputs.len()];
        for (parameter, shape) in interface.parameters.iter().zip(extents) {
            if let Some(place) = self.position(parameter) {
                shapes[place] = shape;
            }
        }
        Ok(SizedCall { shapes, numbers, workspace })
    }

    /// Strides whose last one is 1.
    fn fitting(
        &self,
        parameter: &Parameter,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Vec<i64>, Diagnostics> {
        let name = self.program.name_of(parameter);
        let last = shape.last().zip(strides.last());
        let message = if shape.len() != strides.len() {
            let given = strides.len();
            format!("`{name}` was given with {given} axes, and its extents are {shape:?}")
        } else if last.is_some_and(|(extent, stride)| *extent > 1 && *stride != 1) {
            format!("the last axis of `{name}` is not contiguous")
        } else if strides.iter().any(|stride| stride.unsigned_abs() > MAX_STRIDE.unsigned_abs()) {
            format!("neighbors in `{name}` are more than {MAX_STRIDE} elements apart")
        } else {
            return Ok(strides.to_vec());
        };
        Err(self.program.failed(Code::InputShape, message))
    }

    /// Computes on caller memory: a pointer per input and per output, in the order of the program.
    /// Pointers of constants are ignored if they are in `frozen`.
    ///
    /// # Errors
    /// As [`Kernel::call_on`](crate::Kernel::call_on).
    ///
    /// # Safety
    /// As [`Kernel::call_on`](crate::Kernel::call_on); elements lie where the plan's strides say,
    /// and those of an output are distinct.
    pub unsafe fn call_on(
        &self,
        plan: &SizedCall,
        frozen: Option<&Frozen>,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<(), Diagnostics> {
        let constants = self.kernel.snapshot(frozen)?.map(Arc::as_ref);
        // SAFETY: the caller says so.
        unsafe { self.call_with(plan, constants, inputs, outputs) }
    }

    /// # Safety
    /// As [`SizedKernel::call_on`].
    pub(super) unsafe fn call_with(
        &self,
        plan: &SizedCall,
        constants: Option<&Constants>,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<(), Diagnostics> {
        let mut pointers = self.kernel.pointers(constants, inputs, outputs)?;
        if !plan.numbers.is_empty() {
            // Only read.
            pointers.push(plan.numbers.as_ptr().cast_mut().cast());
        }
        // SAFETY: the caller vouches for inputs and outputs; the numbers say where their elements
        // are, and the workspace is made for them.
        let status = unsafe { self.kernel.call_with(plan.workspace, &pointers) }?;
        if status == 0 {
            return Ok(());
        }
        Err(match self.interface().failed_read(status) {
            Some(read) => {
                let tensor = self.program.ir.general.tensors.get(read.buffer.0 as usize);
                let name = tensor.map_or("a tensor", |tensor| &tensor.name);
                let message = format!("a subscript of `{name}` from data is out of bounds");
                let diagnostic = Diagnostic::new(Code::IndexOutOfBounds, read.place, message)
                    .here("outside of its tensor in this call");
                Diagnostics::new(self.program.general.ir().source.clone(), vec![diagnostic])
            }
            None => self.program.failed(Code::KernelFailed, format!("it returned {status}")),
        })
    }

    pub(super) fn interface(&self) -> &Interface {
        self.kernel.lowered().interface()
    }

    /// The position of a parameter among the inputs and outputs of the program.
    pub(super) fn position(&self, parameter: &Parameter) -> Option<usize> {
        let general = &self.program.ir.general;
        match parameter.owner {
            Owner::Input => Some(parameter.id.0 as usize),
            Owner::Output => {
                let number = general.outputs.iter().position(|output| *output == parameter.id)?;
                Some(general.inputs + number)
            }
            _ => None,
        }
    }
}

impl SizedProgram {
    /// The name of a parameter in the source text; buffers of earlier versions have others.
    pub(super) fn name_of<'a>(&'a self, parameter: &'a Parameter) -> &'a str {
        let tensor = self.ir.general.tensors.get(parameter.id.0 as usize);
        tensor.map_or(&parameter.name, |tensor| &tensor.name)
    }
}

/// The extents of a parameter, given the values of the numbers.
fn extents(parameter: &Parameter, values: &[i64]) -> Option<Vec<i64>> {
    if parameter.extents.is_empty() {
        return Some(parameter.shape.clone());
    }
    parameter.extents.iter().map(|extent| extent.value(values)).collect()
}
