//! Calls of kernels whose sizes vary.
#![allow(unsafe_code, reason = "calls compiled kernels, which take pointers")]

use std::sync::Arc;

use tensorwright_runtime::{AlignedBuffer, ViewMut};
use tensorwright_schedule::interface::{Formula, Number, Part};
use tensorwright_schedule::nest::Owner;

use super::super::arguments::Strided;
use super::super::constants::Constants;
use super::super::diagnose::Diagnose;
use super::super::{Arguments, Outputs, memory};
use super::{SizedCall, SizedKernel};
use crate::ir::{Tensor, TensorId};
use crate::{Code, Diagnostics};

/// Inputs of the types of the kernel, and the sizes that they have.
struct Checked<'a> {
    /// `None` for constants that were given before.
    inputs: Vec<Option<Strided<'a>>>,
    sizes: Vec<i64>,
    /// The constants of an earlier call.
    constants: Option<Arc<Constants>>,
}

impl SizedKernel {
    /// Runs the kernel on inputs, whose extents are the sizes of the call. Views are used in place
    /// if neighbors on their last axis are neighbors in memory.
    ///
    /// # Errors
    /// Missing, unknown or invalid inputs, sizes for which the kernel was not made, or an
    /// out-of-bounds subscript from data.
    pub fn run<'a>(&self, arguments: impl Into<Arguments<'a>>) -> Result<Outputs, Diagnostics> {
        let arguments = arguments.into();
        let checked = self.checked(&arguments)?;
        let plan = self.plan(&checked.sizes, &checked.strides())?;
        self.check_shapes(&checked, &plan)?;
        let general = &self.program.ir.general;
        let of_outputs = general.outputs.iter().map(|id| general.tensor(*id));
        let mut results: Vec<(&Tensor, &[i64], AlignedBuffer)> = Vec::new();
        for (tensor, shape) in of_outputs.zip(&plan.shapes()[general.inputs..]) {
            let bytes = shape.iter().product::<i64>().saturating_mul(tensor.dtype.bytes() as i64);
            let memory = AlignedBuffer::new(usize::try_from(bytes).unwrap_or(usize::MAX));
            let memory = memory.map_err(|error| error.diagnose(&general.source))?;
            results.push((tensor, shape, memory));
        }
        let pointers: Vec<*mut u8> =
            results.iter_mut().map(|(.., memory)| memory.as_mut_ptr()).collect();
        // SAFETY: outputs are new, dense, and have the extents of the call.
        unsafe { self.call_checked(&arguments, checked, &plan, &pointers) }?;
        let one = |(tensor, shape, memory): (&Tensor, &[i64], AlignedBuffer)| {
            let buffer = memory::tensor(tensor.dtype, shape, memory.as_bytes());
            let buffer = buffer.map_err(|e| self.program.failed(Code::TooLarge, e.to_string()))?;
            Ok((tensor.name.clone(), buffer))
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
        let arguments = arguments.into();
        let checked = self.checked(&arguments)?;
        let program = &self.program;
        let general = &program.ir.general;
        let mut given: Vec<(&str, ViewMut<'a>)> = outputs.into_iter().collect();
        let (mut strides, mut pointers) = (checked.strides(), Vec::new());
        let mut shapes: Vec<Vec<i64>> = Vec::new();
        for tensor in general.outputs.iter().map(|id| general.tensor(*id)) {
            let (name, dtype) = (&tensor.name, tensor.dtype);
            let Some(at) = given.iter().position(|(known, _)| known == name) else {
                let message = format!("there is no memory for the output `{name}`");
                return Err(program.failed(Code::MissingInput, message));
            };
            let (_, mut view) = given.swap_remove(at);
            if view.element_size() != dtype.bytes() {
                let bytes = view.element_size();
                let message = format!(
                    "output `{name}` is a `{dtype}`, and the view has elements of {bytes} bytes"
                );
                return Err(program.failed(Code::InputType, message));
            }
            shapes.push(view.shape().iter().map(|extent| *extent as i64).collect());
            strides.push(Some(view.strides().iter().map(|stride| *stride as i64).collect()));
            pointers.push(view.as_mut_ptr());
        }
        if let Some((name, _)) = given.first() {
            let message = format!("there is no output `{name}`");
            return Err(program.failed(Code::UnknownInput, message));
        }
        let plan = self.plan(&checked.sizes, &strides)?;
        self.check_shapes(&checked, &plan)?;
        for (id, (found, shape)) in
            general.outputs.iter().zip(shapes.iter().zip(&plan.shapes()[general.inputs..]))
        {
            if found != shape {
                let name = &general.tensor(*id).name;
                let message = format!("output `{name}` has extents {shape:?}, not {found:?}");
                return Err(program.failed(Code::InputShape, message));
            }
        }
        // SAFETY: the views have the extents of the call, their elements are distinct and borrowed
        // exclusively for `'a`, which includes this call.
        unsafe { self.call_checked(&arguments, checked, &plan, &pointers) }
    }

    /// Reads the inputs of a call, and finds its sizes.
    fn checked<'a>(&self, arguments: &Arguments<'a>) -> Result<Checked<'a>, Diagnostics> {
        let program = &self.program;
        let general = &program.general;
        let is_known = |name: &str| general.inputs().iter().any(|tensor| tensor.name == name);
        if let Some(name) = arguments.names().find(|name| !is_known(name)) {
            let message = format!("there is no input `{name}`");
            return Err(program.failed(Code::UnknownInput, message));
        }
        let constants = self.kernel.known(arguments)?;
        let mut inputs: Vec<Option<Strided<'_>>> = Vec::new();
        for Tensor { name, dtype, is_const, .. } in general.inputs() {
            inputs.push(match arguments.strided(name, *dtype) {
                Some(found) => Some(found.map_err(|problem| {
                    let message = format!("input `{name}` {problem}");
                    program.failed(Code::InputType, message)
                })?),
                None if *is_const && constants.is_some() => None,
                None => {
                    let message = format!("the input `{name}` is missing");
                    return Err(program.failed(Code::MissingInput, message));
                }
            });
        }
        let sizes = self.sizes(&inputs)?;
        Ok(Checked { inputs, sizes, constants })
    }

    /// The sizes of a call, from the extents of inputs that are a size or a multiple of one.
    fn sizes(&self, inputs: &[Option<Strided<'_>>]) -> Result<Vec<i64>, Diagnostics> {
        let interface = self.interface();
        let mut sizes = Vec::new();
        for (position, number) in interface.numbers.iter().enumerate() {
            let Number::Size { name, multiple, .. } = number else { continue };
            let of_inputs = interface.parameters.iter().filter(|p| p.owner == Owner::Input);
            let found = of_inputs.into_iter().find_map(|parameter| {
                let input = inputs.get(parameter.id.0 as usize)?.as_ref()?;
                let dimension =
                    parameter.extents.iter().position(|e| is_size(e, position, *multiple))?;
                input.shape.get(dimension).copied()
            });
            let size = found.ok_or_else(|| {
                let message = format!("no input has an extent `{name}`");
                self.program.failed(Code::MissingSize, message)
            })?;
            sizes.push(size);
        }
        Ok(sizes)
    }

    /// Whether the inputs have the extents of the call.
    fn check_shapes(&self, checked: &Checked<'_>, plan: &SizedCall) -> Result<(), Diagnostics> {
        for (place, (input, shape)) in checked.inputs.iter().zip(plan.shapes()).enumerate() {
            if let Some(found) = input.as_ref().map(|input| &input.shape).filter(|f| *f != shape) {
                let name = &self.program.ir.general.tensor(TensorId(place as u32)).name;
                let message = format!("input `{name}` has extents {found:?}, not {shape:?}");
                return Err(self.program.failed(Code::InputShape, message));
            }
        }
        Ok(())
    }

    /// Calls the code.
    ///
    /// # Safety
    /// The inputs fit the plan. `outputs` has the memory of each output as the plan says; outputs
    /// overlap nothing.
    unsafe fn call_checked(
        &self,
        arguments: &Arguments<'_>,
        checked: Checked<'_>,
        plan: &SizedCall,
        outputs: &[*mut u8],
    ) -> Result<(), Diagnostics> {
        let Checked { inputs: held, constants, .. } = checked;
        let constants = match self.needs_constants() {
            true => Some(self.kernel.constants_of_checked(constants, arguments)?),
            false => None,
        };
        let pointer =
            |input: &Option<Strided<'_>>| input.as_ref().map_or(std::ptr::null(), Strided::pointer);
        let inputs: Vec<*const u8> = held.iter().map(pointer).collect();
        // SAFETY: the caller says so; `held` keeps the inputs.
        unsafe { self.call_with(plan, constants.as_deref(), &inputs, outputs) }
    }
}

impl Checked<'_> {
    /// The strides of the inputs.
    fn strides(&self) -> Vec<Option<Vec<i64>>> {
        self.inputs.iter().map(|input| Some(input.as_ref()?.strides.clone())).collect()
    }
}

/// Whether an extent is a size.
fn is_size(extent: &Formula, position: usize, multiple: i64) -> bool {
    extent.constant == 0 && extent.terms == [(multiple, Part::Number(position))]
}
