//! Calls of kernels whose sizes vary.
#![allow(unsafe_code, reason = "calls compiled kernels, which take pointers")]

use std::ffi::c_void;

use tensorwright_runtime::{AlignedBuffer, ViewMut};
use tensorwright_schedule::interface::{Formula, Function, Number, Parameter, Part};
use tensorwright_schedule::nest::Owner;

use super::super::arguments::Strided;
use super::super::diagnose::Diagnose;
use super::super::engine::Session;
use super::super::{Arguments, Outputs, memory};
use super::{SizedKernel, SizedProgram};
use crate::{Code, Diagnostic, Diagnostics};

/// The memory of a parameter.
struct Placed {
    pointer: *mut c_void,
    /// The distances between neighbors, in elements.
    strides: Vec<i64>,
}

/// A call whose inputs and sizes fit the kernel.
struct Checked<'a> {
    /// By parameter; `None` for an output.
    inputs: Vec<Option<Strided<'a>>>,
    /// The values of the interface's numbers.
    values: Vec<i64>,
    /// The extents of each parameter.
    shapes: Vec<Vec<i64>>,
}

impl SizedKernel {
    /// Runs the kernel on inputs, whose extents are the sizes of the call. Views are used in place
    /// if neighbors on their last axis are neighbors in memory.
    ///
    /// # Errors
    /// Missing, unknown or invalid inputs, sizes for which the kernel was not made, or an
    /// out-of-bounds subscript from data.
    pub fn run<'a>(&self, arguments: impl Into<Arguments<'a>>) -> Result<Outputs, Diagnostics> {
        let checked = self.checked(&arguments.into())?;
        let program = &self.loops.program;
        let parameters = &self.loops.interface().parameters;
        let mut results: Vec<(&Parameter, &[i64], AlignedBuffer)> = Vec::new();
        for (parameter, shape) in parameters.iter().zip(&checked.shapes) {
            if parameter.owner == Owner::Output {
                let bytes = shape.iter().try_fold(parameter.dtype.bytes(), |all, extent| {
                    all.checked_mul(usize::try_from(*extent).ok()?)
                });
                let memory = AlignedBuffer::new(bytes.unwrap_or(usize::MAX));
                let memory = memory.map_err(|error| error.diagnose(program.source()))?;
                results.push((parameter, shape, memory));
            }
        }
        let place = |(_, shape, memory): &mut (&Parameter, &[i64], AlignedBuffer)| Placed {
            pointer: memory.as_mut_ptr().cast(),
            strides: memory::dense_strides(shape),
        };
        let outputs: Vec<Placed> = results.iter_mut().map(place).collect();
        // SAFETY: outputs are new, and have the extents of the call.
        unsafe { self.call(&checked, outputs) }?;
        let one = |(parameter, shape, memory): (&Parameter, &[i64], AlignedBuffer)| {
            let buffer = memory::tensor(parameter.dtype, shape, memory.as_bytes());
            let buffer = buffer.map_err(|e| program.failed(Code::TooLarge, e.to_string()))?;
            Ok((program.name_of(parameter).to_owned(), buffer))
        };
        Ok(Outputs::new(results.into_iter().map(one).collect::<Result<_, Diagnostics>>()?))
    }

    /// Like [`SizedKernel::run`], and writes the outputs to memory of the caller, such as a part of
    /// an image. Elements of storage-only types are their bits, those of `bool` are `u8`.
    ///
    /// ```
    /// use tensorwright::ir::{SizeRange, SizeValue};
    /// use tensorwright::{Arguments, Module, View, ViewMut};
    ///
    /// let text = "def invert(float(H,W) x) -> (y) { y(i,j) = 1 - x(i,j) }";
    /// let any = SizeValue::Varies(SizeRange { least: 1, most: 4096, likely: 512, multiple: 1 });
    /// let module = Module::parse("invert.tc", text)?;
    /// let kernel = module.def("invert")?.bind_sized([("H", any), ("W", any)])?.compile().build()?;
    ///
    /// let image = [0.25f32; 6];
    /// let mut canvas = [0.0f32; 100];
    /// let x = View::dense(&image, &[2, 3])?;
    /// let y = ViewMut::new(&mut canvas, 42, &[2, 3], &[10, 1])?;
    /// kernel.run_into(Arguments::new().view("x", x), [("y", y)])?;
    /// assert_eq!((canvas[41], canvas[42], canvas[54], canvas[55]), (0.0, 0.75, 0.75, 0.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`SizedKernel::run`], and views that are not of the outputs' types and extents, or whose
    /// last axis is not contiguous.
    pub fn run_into<'a, 'n>(
        &self,
        arguments: impl Into<Arguments<'a>>,
        outputs: impl IntoIterator<Item = (&'n str, ViewMut<'a>)>,
    ) -> Result<(), Diagnostics> {
        let checked = self.checked(&arguments.into())?;
        let program = &self.loops.program;
        let mut given: Vec<(&str, ViewMut<'a>)> = outputs.into_iter().collect();
        let parameters = &self.loops.interface().parameters;
        let mut placed: Vec<Placed> = Vec::new();
        for (parameter, shape) in parameters.iter().zip(&checked.shapes) {
            if parameter.owner != Owner::Output {
                continue;
            }
            let name = program.name_of(parameter);
            let Some(at) = given.iter().position(|(known, _)| *known == name) else {
                let message = format!("there is no memory for the output `{name}`");
                return Err(program.failed(Code::MissingInput, message));
            };
            let (_, mut view) = given.swap_remove(at);
            if view.element_size() != parameter.dtype.bytes() {
                let (dtype, bytes) = (parameter.dtype, view.element_size());
                let message = format!(
                    "output `{name}` is a `{dtype}`, and the view has elements of {bytes} bytes"
                );
                return Err(program.failed(Code::InputType, message));
            }
            let extents: Vec<i64> = view.shape().iter().map(|extent| *extent as i64).collect();
            if extents != *shape {
                let message = format!("output `{name}` has extents {shape:?}, not {extents:?}");
                return Err(program.failed(Code::InputShape, message));
            }
            let last = view.shape().last().zip(view.strides().last());
            if last.is_some_and(|(extent, stride)| *extent > 1 && *stride != 1) {
                let message = format!("the last axis of the view for `{name}` is not contiguous");
                return Err(program.failed(Code::InputShape, message));
            }
            let strides = view.strides().iter().map(|stride| *stride as i64).collect();
            placed.push(Placed { pointer: view.as_mut_ptr().cast(), strides });
        }
        if let Some((name, _)) = given.first() {
            let message = format!("there is no output `{name}`");
            return Err(program.failed(Code::UnknownInput, message));
        }
        // SAFETY: the views have the extents of the call, their elements are distinct and borrowed
        // exclusively for `'a`, which includes this call.
        unsafe { self.call(&checked, placed) }
    }

    /// Checks the inputs of a call, and finds its sizes.
    fn checked<'a>(&self, arguments: &Arguments<'a>) -> Result<Checked<'a>, Diagnostics> {
        let interface = self.loops.interface();
        let program = &self.loops.program;
        let mut inputs: Vec<Option<Strided<'_>>> = Vec::new();
        for parameter in &interface.parameters {
            inputs.push(match parameter.owner {
                Owner::Input => Some(self.input(arguments, parameter)?),
                _ => None,
            });
        }
        let is_known = |name: &str| {
            let mut of_inputs = interface.parameters.iter().filter(|p| p.owner == Owner::Input);
            of_inputs.any(|parameter| program.name_of(parameter) == name)
        };
        if let Some(name) = arguments.names().find(|name| !is_known(name)) {
            let message = format!("there is no input `{name}`");
            return Err(program.failed(Code::UnknownInput, message));
        }
        let sizes = self.sizes(&inputs)?;
        let values = interface.numbers_for(&sizes).ok_or_else(|| self.too_large())?;
        let mut shapes = Vec::new();
        for (parameter, input) in interface.parameters.iter().zip(&inputs) {
            let name = program.name_of(parameter);
            let shape = extents(parameter, &values)
                .ok_or_else(|| program.failed(Code::TooLarge, format!("`{name}` is too large")))?;
            if let Some(found) = input.as_ref().map(|input| &input.shape).filter(|f| **f != shape) {
                let message = format!("input `{name}` has extents {found:?}, not {shape:?}");
                return Err(program.failed(Code::InputShape, message));
            }
            shapes.push(shape);
        }
        Ok(Checked { inputs, values, shapes })
    }

    fn input<'a>(
        &self,
        arguments: &Arguments<'a>,
        parameter: &Parameter,
    ) -> Result<Strided<'a>, Diagnostics> {
        let program = &self.loops.program;
        let name = program.name_of(parameter);
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

    fn too_large(&self) -> Diagnostics {
        let message = "these sizes need more memory than there can be";
        self.loops.program.failed(Code::TooLarge, message)
    }

    /// Calls the code.
    ///
    /// # Safety
    /// `outputs` has the memory of each output, in order, with the extents of the call; outputs
    /// overlap nothing.
    unsafe fn call(&self, checked: &Checked<'_>, outputs: Vec<Placed>) -> Result<(), Diagnostics> {
        let interface = self.loops.interface();
        let program = &self.loops.program;
        let Checked { inputs, values, .. } = checked;
        let mut outputs = outputs.into_iter();
        let place = |input: &Option<Strided<'_>>| match input {
            // Inputs are only read.
            Some(input) => Some(Placed {
                pointer: input.pointer().cast_mut().cast(),
                strides: input.strides.clone(),
            }),
            None => outputs.next(),
        };
        let placed: Vec<Placed> = inputs.iter().filter_map(place).collect();
        let workspace = interface.workspace_for(values).ok_or_else(|| self.too_large())?;
        let session = self.engine.session_with(workspace);
        let mut session = session.map_err(|error| error.diagnose(program.source()))?;
        // One element has no neighbors, whatever its view says of their distance.
        let stride = |parameter: usize, dimension: usize| {
            let extent = checked.shapes.get(parameter)?.get(dimension)?;
            let stride = placed.get(parameter)?.strides.get(dimension)?;
            (*extent > 1).then_some(*stride)
        };
        let mut numbers: Vec<i64> = interface
            .passed_numbers()
            .map(|(position, number)| match number {
                Number::Stride { parameter, dimension } => stride(*parameter, *dimension),
                _ => values.get(position).copied(),
            })
            .map(|number| number.unwrap_or(0))
            .collect();
        let mut pointers: Vec<*mut c_void> = placed.iter().map(|placed| placed.pointer).collect();
        if !numbers.is_empty() {
            pointers.push(numbers.as_mut_ptr().cast());
        }
        // SAFETY: inputs were checked to have the extents of the call, the caller vouches for
        // outputs; the numbers follow from both, and the workspace has the size for them.
        let status = unsafe { session.call(Function::Compute, &pointers) };
        let status = status.map_err(|error| error.diagnose(program.source()))?;
        let Some(read) = interface.failed_read(status) else { return Ok(()) };
        let tensor = interface.parameters.iter().find(|p| p.id == read.buffer);
        let name = tensor.map_or("a tensor", |parameter| program.name_of(parameter));
        let message = format!("a subscript of `{name}` from data is out of bounds");
        let diagnostic = Diagnostic::new(Code::IndexOutOfBounds, read.place, message)
            .here("outside of its tensor in this call");
        Err(Diagnostics::new(program.source().clone(), vec![diagnostic]))
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

impl SizedProgram {
    /// The name of a parameter in the source text; buffers of earlier versions have others.
    fn name_of<'a>(&'a self, parameter: &'a Parameter) -> &'a str {
        let tensor = self.ir.general.tensors.get(parameter.id.0 as usize);
        tensor.map_or(&parameter.name, |tensor| &tensor.name)
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
