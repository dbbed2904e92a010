//! Sizes that are zero.

use tensorwright::Program;
use tensorwright::ir::{AxisId, Stage, Tensor, TensorId};

use super::Problem;
use super::part::placement;
use crate::compiled::{Strides, Variant};
use crate::definition::{Definition, Sizes};
use crate::kernels::Kernels;
use crate::parts::Part;
use crate::specialised::{Shapes, Specialised, shapes};

/// A definition for sizes of which some are zero: it is known by two larger ones.
pub(super) struct Empty {
    /// The zeros, for messages.
    zeros: String,
    /// The sizes with two in the place of zero.
    two: Sizes,
    program: Program,
    larger: Program,
    /// The inputs and outputs.
    pub(super) real: Shapes,
}

impl Empty {
    pub(super) fn new(definition: &Definition, sizes: &Sizes) -> Result<Self, Problem> {
        let is_size = |name: &String| definition.signature.sizes.contains(name);
        let at = |value: i64| -> Sizes {
            let one = |(name, size): (&String, &i64)| {
                (name.clone(), if *size == 0 && is_size(name) { value } else { *size })
            };
            sizes.iter().map(one).collect()
        };
        let zeros = sizes.iter().filter(|(name, size)| **size == 0 && is_size(name));
        let zeros = zeros.map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let program = Specialised::program(definition, &at(2))?;
        let larger = Specialised::program(definition, &at(3))?;
        let mut real: Shapes = shapes(&program);
        let others = shapes(&larger);
        let pairs = real.0.iter_mut().zip(&others.0).chain(real.1.iter_mut().zip(&others.1));
        for (tensor, other) in pairs {
            tensor.shape = tensor.shape.iter().zip(&other.shape).map(extent).collect();
            if tensor.shape.iter().any(|extent| *extent < 0) {
                let message =
                    format!("{zeros} cannot be 0: `{}` would have a negative extent", tensor.name);
                return Err(Problem::Argument(message));
            }
        }
        Ok(Self { zeros, two: at(2), program, larger, real })
    }
}

/// Extents are sums of sizes, so that they go on to zero as they went from three to two.
fn extent((two, three): (&i64, &i64)) -> i64 {
    two - 2 * (three - two)
}

/// How to compute calls with sizes of which some are zero: by what is common to larger ones.
pub(super) fn empty(
    definition: &Definition,
    kernels: &Kernels,
    sizes: Sizes,
) -> Result<Specialised, Problem> {
    let Empty { zeros, two, program, larger, real } = Empty::new(definition, &sizes)?;
    if real.1.iter().all(|tensor| tensor.shape.contains(&0)) {
        return Ok(Specialised::of(definition, &real, sizes, &Strides::new(), Vec::new()));
    }
    let refused =
        |reason: &str| Problem::Argument(format!("has no value where {zeros} is 0: {reason}"));
    let end = |stage: usize, axis: AxisId| {
        let hi = |program: &Program| program.ir().stages.get(stage).map(|it| it.axis(axis).hi);
        hi(&program).zip(hi(&larger)).map_or(0, |(two, three)| extent((&two, &three)))
    };
    let empty = without_points(&program, &end);
    let mut read = real.0.iter().filter(|tensor| tensor.shape.contains(&0));
    if let Some(input) = read.find(|input| is_read(&program, &empty, &input.name)) {
        return Err(refused(&format!("an element of `{}` is read, which has none", input.name)));
    }
    let emptied = |program: &Program| program.without_points(&empty);
    let mut guards = emptied(&larger).guards_for(&emptied(&program)).map_err(refused)?;
    guards.retain(|guard| !empty.contains(&guard.stage));
    let varies = |(a, b): (&Tensor, &Tensor)| a.is_const && a.shape != b.shape;
    let has_constants = !real.0.iter().zip(program.inputs()).any(varies);
    let strides = Strides::new();
    let variant = Variant { sizes: two, guards: guards.clone(), empty, has_constants, strides };
    let compiled = kernels.compile(definition, &variant, &program)?;
    let outputs = program.outputs();
    let place = |(real, made): (&Tensor, &Tensor)| placement(real, real, made, 0);
    let part = Part {
        compiled,
        inputs: real.0.iter().zip(program.inputs()).map(place).collect(),
        outputs: real.1.iter().zip(outputs).map(place).collect(),
        ends: guards.iter().map(|it| end(it.stage, it.axis).max(0) as i32).collect(),
    };
    Ok(Specialised::of(definition, &real, sizes, &Strides::new(), vec![part]))
}

/// The stages with a range that is empty; `end` says where ranges end.
fn without_points(program: &Program, end: &impl Fn(usize, AxisId) -> i64) -> Vec<usize> {
    let stages = program.ir().stages.iter().enumerate();
    let is_empty = |(number, stage): &(usize, &Stage)| {
        let mut axes = (0..).map(AxisId).zip(&stage.axes);
        axes.any(|(id, axis)| end(*number, id) <= axis.lo)
    };
    stages.filter(is_empty).map(|(number, _)| number).collect()
}

/// Whether a stage with points reads an element of an input, whatever its conditions say.
fn is_read(program: &Program, empty: &[usize], input: &str) -> bool {
    let ir = program.ir();
    let is_it = |id: TensorId| ir.tensor(id).name == input;
    let stages = ir.stages.iter().enumerate().filter(|(number, _)| !empty.contains(number));
    stages.into_iter().any(|(_, stage)| stage.body.always_reads(&is_it))
}
