//! Plans of calls: which kernel serves which shapes.
//!
//! ```text
//! x(100, 5), x(50, 5)    kernels for each of these shapes
//! x(0..1000, 5)          one kernel for all N, once N is known to vary
//! anything, N = 0        by the kernel for 2, with sums that end at 0
//! ```
//!
//! A size varies if the user says so, or after some values ([`varying`]). What cannot vary gets a
//! kernel for each value ([`ranges`] knows the reason), and so do sizes for which the records have a
//! schedule.

mod empty;
mod ranges;
mod varying;

use std::collections::BTreeMap;

use tensorwright::ir::{Stage, Tensor};
use tensorwright::{Diagnostics, Program};

use crate::compiled::{Compiled, CompiledKernel, Strides, Variant};
use crate::definition::{Definition, Sizes};
use crate::family::FamilyProgram;
use crate::kernels::Kernels;
use crate::parts::{Part, Placement, Way};
use crate::specialised::{Shapes, Specialised, shapes};

/// Why a call cannot be computed.
#[derive(Debug)]
pub(crate) enum Problem {
    Diagnosed(Diagnostics),
    /// The arguments are invalid.
    Argument(String),
    /// Inputs have to be dense; with the reason, if the caller can change that.
    Dense(Option<String>),
}

impl From<Diagnostics> for Problem {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Diagnosed(diagnostics)
    }
}

/// Plans calls with given sizes: `exactly` by a kernel for them alone, or by one that serves other
/// sizes too.
pub(crate) fn plan(
    definition: &Definition,
    kernels: &Kernels,
    sizes: Sizes,
    given: &BTreeMap<String, Vec<i64>>,
    exactly: bool,
) -> Result<Specialised, Problem> {
    if has_zeros(definition, &sizes) {
        return if given.is_empty() {
            empty::empty(definition, kernels, sizes)
        } else {
            Err(Problem::Dense(None))
        };
    }
    let program = Specialised::program(definition, &sizes)?;
    if !exactly {
        if kernels.is_first_plan() {
            kernels.warn(ranges::warning(definition, kernels, &sizes));
        }
        let varying = varying::varying(definition, kernels, &sizes);
        let known = kernels.compiled(&Variant::exact(sizes.clone(), Strides::new()));
        let is_known = given.is_empty() && known.is_some();
        if !varying.is_empty() && !is_known && !Kernels::is_tuned(definition, &program) {
            let call = (&program, &sizes, given);
            if let Some(plan) = of_family(definition, kernels, call, varying)? {
                return Ok(plan);
            }
        }
    }
    let strides = strides(definition, kernels, &program, given)?;
    Ok(whole(definition, kernels, &program, Variant::exact(sizes, strides))?)
}

/// A plan by a kernel for the sizes that vary; `None` if there is none for these sizes.
fn of_family(
    definition: &Definition,
    kernels: &Kernels,
    (program, sizes, given): (&Program, &Sizes, &BTreeMap<String, Vec<i64>>),
    varying: Vec<String>,
) -> Result<Option<Specialised>, Problem> {
    let Some(found) = ranges::of_call(definition, kernels, sizes, varying) else {
        return Ok(None);
    };
    let FamilyProgram::Bound(family) = &*found.program else { return Ok(None) };
    let values: Option<Vec<i64>> =
        family.ir().sizes.iter().map(|size| sizes.get(&size.name).copied()).collect();
    let Some(values) = values.filter(|values| family.check(values).is_ok()) else {
        return Ok(None);
    };
    // A scalar may be an input of one and a number in the other.
    let general = &family.ir().general;
    let of_family = general.input_ids().map(|id| &general.tensor(id).name);
    if !of_family.eq(program.inputs().iter().map(|input| &input.name)) {
        return Ok(None);
    }
    let mut strides = Strides::new();
    let mut all: Vec<Option<Vec<i64>>> = Vec::new();
    for (number, input) in program.inputs().iter().enumerate() {
        let own = given.get(&input.name);
        if let Some(own) = own {
            let last = input.shape.last().zip(own.last());
            if input.is_const || last.is_some_and(|(extent, stride)| *extent > 1 && *stride != 1) {
                return Err(Problem::Dense(None));
            }
            strides.insert(number, own.clone());
        }
        all.push(own.cloned());
    }
    let variant = Variant::family(&found.family);
    let Ok(compiled) = kernels.compile(&variant, || Compiled::family(definition, family)) else {
        return Ok(None);
    };
    let CompiledKernel::Sized(kernel) = &compiled.kernel else { return Ok(None) };
    let way = Way::Sized(kernel.plan(&values, &all)?);
    let (part, shapes) = (Part::new(compiled, way, program), shapes(program));
    Ok(Some(Specialised::of(definition, &shapes, sizes.clone(), &strides, Some(part))))
}

/// The inputs and outputs of a definition for sizes, some of which may be zero.
pub(crate) fn shapes_of(definition: &Definition, sizes: &Sizes) -> Result<Shapes, Problem> {
    if has_zeros(definition, sizes) {
        return Ok(empty::Empty::new(definition, sizes)?.real);
    }
    Ok(shapes(&Specialised::program(definition, sizes)?))
}

fn has_zeros(definition: &Definition, sizes: &Sizes) -> bool {
    let is_size = |name: &String| definition.signature.sizes.contains(name);
    sizes.iter().any(|(name, value)| *value == 0 && is_size(name))
}

fn whole(
    definition: &Definition,
    kernels: &Kernels,
    program: &Program,
    exact: Variant,
) -> Result<Specialised, Diagnostics> {
    let compiled = kernels.compile(&exact, || Compiled::new(definition, &exact, program))?;
    let place = |(number, tensor): (usize, &Tensor)| {
        let before =
            exact.strides.get(&number).and_then(|strides| program.with_strides(number, strides));
        let elements = before.map_or(0, |(_, before)| before);
        Placement::At(-(elements as isize * tensor.dtype.bytes() as isize))
    };
    let inputs = program.inputs().iter().enumerate().map(place).collect();
    let outputs = vec![Placement::At(0); program.outputs().len()];
    let way = Way::Placed { inputs, outputs, ends: Vec::new() };
    let part = Part::new(compiled, way, program);
    Ok(Specialised::of(definition, &shapes(program), exact.sizes, &exact.strides, Some(part)))
}

/// The strides of non-dense inputs, if they may get kernels.
fn strides(
    definition: &Definition,
    kernels: &Kernels,
    program: &Program,
    given: &BTreeMap<String, Vec<i64>>,
) -> Result<Strides, Problem> {
    // The diagnosis of an out-of-bounds subscript reads all memory of the inputs, including gaps.
    let is_checked = program.ir().stages.iter().any(Stage::has_data_subscripts);
    let mut found = Strides::new();
    for (number, input) in program.inputs().iter().enumerate() {
        let Some(strides) = given.get(&input.name) else { continue };
        if input.is_const || is_checked || program.with_strides(number, strides).is_none() {
            let advice = format!(
                "{}: `{}` is copied on every call, because {}; pass .contiguous() or numpy.ascontiguousarray(...) to copy it once",
                definition.signature.name,
                input.name,
                if input.is_const {
                    "a constant has to be contiguous"
                } else if is_checked {
                    "subscripts depend on data"
                } else {
                    "kernels cannot read it with these strides"
                }
            );
            return Err(Problem::Dense(Some(advice)));
        }
        found.insert(number, strides.clone());
    }
    let is_here = definition.choices.target.gpu().is_none();
    if found.is_empty() || is_here && kernels.admits(&found) {
        Ok(found)
    } else {
        Err(Problem::Dense(None))
    }
}
