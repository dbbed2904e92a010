//! Plans of an operator for given shapes.
#![allow(unsafe_code, reason = "reads memory of other libraries, after checking it")]

use std::sync::Arc;

use pyo3::prelude::*;
use tensorwright::{
    Arguments as KernelArguments, DType, Diagnostics, Frozen, Place, Program, View, ir,
};

use crate::arguments::{ArgumentValue, Arguments};
use crate::compiled::{Compiled, Strides};
use crate::definition::{Definition, Param, Signature, Sizes};
use crate::error::{Class, diagnosed, refused};
use crate::expected::Expected;
use crate::foreign::{Device, Foreign};
use crate::makers::ArrayMakers;
use crate::parts::{Part, Placement, Way};

/// The plan of calls with given shapes, with the expected arguments.
#[derive(Debug)]
pub(crate) struct Specialised {
    /// The bound sizes.
    pub(crate) sizes: Sizes,
    inputs: Vec<Input>,
    pub(crate) outputs: Vec<Expected>,
    /// The kernel; `None` if the results have no elements.
    pub(crate) part: Option<Part>,
    /// The makers of results.
    pub(crate) makers: ArrayMakers,
}

/// The inputs and outputs of a program.
pub(crate) type Shapes = (Vec<ir::Tensor>, Vec<ir::Tensor>);

/// The inputs and outputs of a program.
pub(crate) fn shapes(program: &Program) -> Shapes {
    (program.inputs().to_vec(), program.outputs().into_iter().cloned().collect())
}

/// The role of a parameter of the definition.
#[derive(Debug)]
enum Input {
    /// An input of the program.
    Tensor(Expected),
    /// Bound to this number.
    Bound(i64),
}

impl Specialised {
    /// The sizes inferred from arguments.
    pub(crate) fn sizes(
        definition: &Definition,
        py: Python<'_>,
        arguments: &Arguments,
    ) -> PyResult<Sizes> {
        let signature = &definition.signature;
        let def = definition.module.def(&signature.name).map_err(|error| diagnosed(py, &error))?;
        let mut given = arguments.sizes.clone();
        let mut shapes = Vec::new();
        for (param, argument) in signature.params.iter().zip(&arguments.given) {
            match argument {
                Some(ArgumentValue::Tensor(foreign))
                    if param.rank > 0 || !param.is_integer_scalar =>
                {
                    shapes.push((param.name.as_str(), foreign.extents.as_slice()));
                }
                Some(ArgumentValue::Number(number)) if param.is_integer_scalar => {
                    given.extend(number.integer.map(|value| (param.name.clone(), value)));
                }
                _ => {}
            }
        }
        def.sizes_of_shapes(shapes, &given).map_err(|error| refused(py, &error))
    }

    /// The program of an operator for sizes. Integer scalars that shape nothing stay inputs, so
    /// that other values use the same kernel.
    pub(crate) fn program(definition: &Definition, sizes: &Sizes) -> Result<Program, Diagnostics> {
        let def = definition.module.def(&definition.signature.name)?;
        let scalars = def.integer_scalars();
        let extents: Sizes = sizes
            .iter()
            .filter(|(name, _)| !scalars.contains(&name.as_str()))
            .map(|(name, size)| (name.clone(), *size))
            .collect();
        if extents.len() < sizes.len()
            && let Ok(program) = def.bind(extents)
        {
            return Ok(program);
        }
        def.bind(sizes.clone())
    }

    /// A plan for exactly these shapes.
    pub(crate) fn whole(
        definition: &Definition,
        program: &Program,
        sizes: Sizes,
        compiled: Arc<Compiled>,
    ) -> Self {
        let here = |count: usize| vec![Placement::At(0); count];
        let (inputs, outputs) = (here(program.inputs().len()), here(program.outputs().len()));
        let way = Way::Placed { inputs, outputs, ends: Vec::new() };
        let part = Part::new(compiled, way, program);
        Self::of(definition, &shapes(program), sizes, &Strides::new(), Some(part))
    }

    /// A plan whose inputs and outputs have these shapes.
    pub(crate) fn of(
        definition: &Definition,
        (inputs, outputs): &Shapes,
        sizes: Sizes,
        strides: &Strides,
        part: Option<Part>,
    ) -> Self {
        let input = |param: &Param| match inputs.iter().position(|tensor| tensor.name == param.name)
        {
            Some(number) => Input::Tensor(Expected {
                strides: strides.get(&number).cloned(),
                ..Expected::new(&inputs[number])
            }),
            None => Input::Bound(sizes.get(&param.name).map_or(0, |value| *value)),
        };
        Self {
            inputs: definition.signature.params.iter().map(input).collect(),
            outputs: outputs.iter().map(Expected::new).collect(),
            part,
            sizes,
            makers: ArrayMakers::default(),
        }
    }

    /// Whether its kernel is outdated.
    pub(crate) fn is_outdated(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.compiled.is_outdated())
    }

    /// Whether the plan fits the shapes and numbers of these arguments.
    pub(crate) fn is_for(&self, arguments: &Arguments) -> bool {
        let fits = |(input, given): (&Input, &Option<ArgumentValue>)| match (input, given) {
            (Input::Tensor(expected), Some(ArgumentValue::Tensor(foreign))) => {
                foreign.extents.as_slice() == expected.shape
                    && foreign.strides() == expected.strides.as_deref()
            }
            (Input::Tensor(expected), Some(ArgumentValue::Number(_))) => expected.shape.is_empty(),
            (Input::Tensor(_), None) => true,
            (Input::Bound(value), Some(ArgumentValue::Number(number))) => {
                number.integer == Some(*value)
            }
            (Input::Bound(_), _) => false,
        };
        arguments.sizes.iter().all(|(name, size)| self.sizes.get(name) == Some(size))
            && self.inputs.iter().zip(&arguments.given).all(fits)
    }

    /// Checks the arguments and collects their addresses, in the order of the program's inputs.
    /// Skips the values of arguments that were checked before.
    pub(crate) fn check(
        &self,
        py: Python<'_>,
        signature: &Signature,
        arguments: &Arguments,
        was_checked: impl Fn(usize) -> bool,
        pointers: &mut Vec<*const u8>,
    ) -> PyResult<()> {
        for (place, (input, given)) in self.inputs.iter().zip(&arguments.given).enumerate() {
            let Input::Tensor(expected) = input else { continue };
            let problem = match given {
                Some(ArgumentValue::Tensor(foreign)) => match expected.check(foreign) {
                    Ok(())
                        if expected.dtype == DType::Bool
                            && foreign.device == Device::Processor
                            && !was_checked(place)
                            && !is_bool(foreign, expected.bytes) =>
                    {
                        "has elements that are neither True nor False".to_owned()
                    }
                    Ok(()) => {
                        pointers.push(foreign.pointer);
                        continue;
                    }
                    Err(problem) => problem,
                },
                Some(ArgumentValue::Number(number)) => {
                    pointers.push(number.bytes.as_ptr());
                    continue;
                }
                None => "is missing".to_owned(),
            };
            let param = &signature.params[place];
            let message = signature.says(&format!("`{}` ({param}) {problem}", param.name));
            return Err(Class::Argument.error(py, message));
        }
        Ok(())
    }

    /// The device addresses of checked arguments, in the order of the program's inputs.
    pub(crate) fn places(&self, arguments: &Arguments) -> Vec<Place> {
        let place = |(input, given): (&Input, &Option<ArgumentValue>)| match (input, given) {
            (Input::Bound(_), _) | (_, None) => None,
            (Input::Tensor(_), Some(ArgumentValue::Number(number))) => {
                Some(Place::Host(number.bytes.as_ptr()))
            }
            (Input::Tensor(_), Some(ArgumentValue::Tensor(foreign))) => {
                Some(match foreign.device {
                    Device::Processor => Place::Host(foreign.pointer),
                    Device::Cuda { .. } => Place::Device(foreign.pointer as usize as u64),
                })
            }
        };
        self.inputs.iter().zip(&arguments.given).filter_map(place).collect()
    }
}

/// Whether all bytes are 0 or 1.
fn is_bool(foreign: &Foreign, bytes: usize) -> bool {
    let bytes = if foreign.is_dense() { bytes } else { foreign.extent() };
    // Nothing has no address.
    if bytes == 0 {
        return true;
    }
    // SAFETY: `Expected::check` found memory of this size, which the caller holds; gaps between
    // elements are other elements of the same tensor.
    let elements = unsafe { std::slice::from_raw_parts(foreign.pointer.cast_const(), bytes) };
    elements.iter().all(|element| *element <= 1)
}

/// Converts the selected `const` arguments to the kernel's layout. Unselected and unchanged ones
/// keep their known state.
pub(crate) fn freeze(
    signature: &Signature,
    shape: &Specialised,
    compiled: &Compiled,
    arguments: &Arguments,
    known: Option<&Frozen>,
    is_wanted: impl Fn(usize) -> bool,
) -> Result<Frozen, Diagnostics> {
    let program = compiled.kernel.lowered().program();
    let mut given = KernelArguments::new();
    if let Some(known) = known {
        given = given.frozen(known);
    }
    for (place, (input, argument)) in shape.inputs.iter().zip(&arguments.given).enumerate() {
        let (Input::Tensor(expected), Some(argument), true) = (input, argument, is_wanted(place))
        else {
            continue;
        };
        // Constants whose extents vary are inputs of calls.
        let mut constants = program.inputs().iter().filter(|tensor| tensor.is_const);
        if !constants.any(|tensor| tensor.name == expected.name) {
            continue;
        }
        let pointer = match argument {
            ArgumentValue::Tensor(foreign) => foreign.pointer.cast_const(),
            ArgumentValue::Number(number) => number.bytes.as_ptr(),
        };
        let extents: Vec<usize> =
            expected.shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
        // SAFETY: `Specialised::check` found dense memory of this size and type behind the pointer,
        // which the caller of this function holds for longer than the views.
        let view = unsafe { View::from_raw(pointer, expected.dtype.bytes(), &extents) };
        given = given.view(signature.params[place].name.clone(), view);
    }
    compiled.kernel.freeze(given)
}
