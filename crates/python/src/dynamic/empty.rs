//! Calls with sizes that are zero.

use tensorwright::Program;
use tensorwright::ir::{Axis, AxisId, AxisKind, EmptyRange, Interval, Stage, Tensor, TensorId};

use super::Problem;
use crate::compiled::{Compiled, Strides, Variant};
use crate::definition::{Definition, Sizes};
use crate::kernels::Kernels;
use crate::parts::{Part, Placement, Region, Way};
use crate::specialised::{Shapes, Specialised, shapes};

/// Sizes to check that extents are linear, in addition to two and three.
const TRIED: [i64; 3] = [1, 5, 64];

/// A definition with zero sizes, analysed through two larger ones.
pub(super) struct Empty {
    /// The zero sizes, for messages.
    zeros: String,
    /// The sizes with two in place of zero.
    two: Sizes,
    program: Program,
    larger: Program,
    /// The inputs and outputs.
    pub(super) real: Shapes,
}

impl Empty {
    pub(super) fn new(definition: &Definition, sizes: &Sizes) -> Result<Self, Problem> {
        let is_zero = |name: &String| {
            definition.signature.sizes.contains(name) && sizes.get(name) == Some(&0)
        };
        let at = |value: i64| -> Sizes {
            let one = |(name, size): (&String, &i64)| {
                (name.clone(), if is_zero(name) { value } else { *size })
            };
            sizes.iter().map(one).collect()
        };
        let zeros: Vec<String> =
            sizes.keys().filter(|name| is_zero(name)).map(|name| format!("`{name}`")).collect();
        let zeros = zeros.join(", ");
        let refused = |why: String| Problem::Argument(format!("{zeros} cannot be 0: {why}"));
        let program = Specialised::program(definition, &at(2))?;
        let larger = Specialised::program(definition, &at(3))?;
        let def = definition.module.def(&definition.signature.name)?;
        if let Some(size) = def.nonlinear_sizes().iter().find(|size| is_zero(&size.to_string())) {
            return Err(refused(format!("a range is not linear in `{size}`")));
        }
        for value in TRIED {
            // A window may be longer than the size.
            let Ok(other) = Specialised::program(definition, &at(value)) else { continue };
            if let Some(tensor) = unexpected(&program, &larger, &other, value) {
                let why = format!("an extent of `{tensor}` is not linear in it");
                return Err(refused(why));
            }
        }
        let mut real: Shapes = shapes(&program);
        let others = shapes(&larger);
        let pairs = real.0.iter_mut().zip(&others.0).chain(real.1.iter_mut().zip(&others.1));
        for (tensor, other) in pairs {
            tensor.shape = zero_shape(tensor, other);
            if tensor.shape.iter().any(|extent| *extent < 0) {
                return Err(refused(format!("`{}` would have a negative extent", tensor.name)));
            }
        }
        Ok(Self { zeros, two: at(2), program, larger, real })
    }

    /// Whether a tensor of the program has no elements.
    fn has_none(&self, id: TensorId) -> bool {
        let shape = zero_shape(self.program.ir().tensor(id), self.larger.ir().tensor(id));
        shape.iter().any(|extent| *extent <= 0)
    }

    /// The true start and end of a range.
    fn range(&self, stage: usize, axis: AxisId) -> (i64, i64) {
        let of = |program: &Program| {
            program.ir().stages.get(stage).map(|stage| (stage.axis(axis).lo, stage.axis(axis).hi))
        };
        let both = of(&self.program).zip(of(&self.larger));
        both.map_or((0, 0), |(two, three)| (at(0, two.0, three.0), at(0, two.1, three.1)))
    }

    /// The stages with an empty range.
    fn without_points(&self) -> Vec<(usize, EmptyRange)> {
        let lacking = |(number, stage): (usize, &Stage)| {
            let axes = || (0..).map(AxisId).zip(&stage.axes);
            let is_empty = |(id, _): &(AxisId, &Axis)| {
                let (lo, hi) = self.range(number, *id);
                hi <= lo
            };
            let of_elements = |(_, axis): &(AxisId, &Axis)| axis.kind == AxisKind::Spatial;
            if axes().any(|axis| of_elements(&axis) && is_empty(&axis)) {
                Some((number, EmptyRange::Elements))
            } else {
                axes().any(|axis| is_empty(&axis)).then_some((number, EmptyRange::Terms))
            }
        };
        self.program.ir().stages.iter().enumerate().filter_map(lacking).collect()
    }

    /// A tensor without elements that a non-empty stage reads.
    fn read(&self, empty: &[(usize, EmptyRange)]) -> Option<&str> {
        let ir = self.program.ir();
        let has_points = |number: usize| !empty.iter().any(|(other, _)| *other == number);
        let stages = ir.stages.iter().enumerate().filter(|(number, _)| has_points(*number));
        let is_read = |id: &TensorId| {
            stages.clone().any(|(number, stage)| {
                let range = |axis| {
                    let (lo, hi) = self.range(number, axis);
                    Interval { lo: lo.into(), hi: i128::from(hi) - 1 }
                };
                stage.body.may_read(&range, &|other| other == *id)
            })
        };
        let mut ids = (0..ir.tensors.len() as u32).map(TensorId);
        let found = ids.find(|id| self.has_none(*id) && is_read(id));
        found.map(|id| ir.tensor(id).name.as_str())
    }

    /// A tensor without elements that a scatter writes to.
    fn scattered(&self) -> Option<&str> {
        let ir = self.program.ir();
        let has_terms = |number: usize, stage: &Stage| {
            let mut axes = (0..).map(AxisId).zip(&stage.axes);
            let is_of_term = |id: AxisId| !stage.scatter.iter().any(|scatter| scatter.axis == id);
            axes.all(|(id, _)| {
                !is_of_term(id) || self.range(number, id).0 < self.range(number, id).1
            })
        };
        let goes_nowhere = |(number, stage): &(usize, &Stage)| {
            stage.scatter.iter().any(|scatter| {
                let (lo, hi) = self.range(*number, scatter.axis);
                scatter.checked && hi <= lo
            }) && has_terms(*number, stage)
        };
        let found = ir.stages.iter().enumerate().find(goes_nowhere);
        found.map(|(_, stage)| ir.tensor(stage.output).name.as_str())
    }
}

/// Extrapolates linearly from the numbers at two and at three.
fn at(value: i64, two: i64, three: i64) -> i64 {
    two + (value - 2) * (three - two)
}

fn zero_shape(two: &Tensor, three: &Tensor) -> Vec<i64> {
    two.shape.iter().zip(&three.shape).map(|(two, three)| at(0, *two, *three)).collect()
}

/// A tensor whose extents or ranges are not linear in the size.
fn unexpected(two: &Program, three: &Program, other: &Program, value: i64) -> Option<String> {
    let (two, three, other) = (two.ir(), three.ir(), other.ir());
    let goes_on = |a: &Tensor, b: &Tensor, c: &Tensor| {
        let mut pairs = a.shape.iter().zip(&b.shape).zip(&c.shape);
        pairs.all(|((a, b), c)| at(value, *a, *b) == *c)
    };
    let tensors = two.tensors.iter().zip(&three.tensors).zip(&other.tensors);
    let wrong = tensors.into_iter().find(|((a, b), c)| !goes_on(a, b, c));
    if let Some(((tensor, _), _)) = wrong {
        return Some(tensor.name.clone());
    }
    let axes_go_on = |a: &Stage, b: &Stage, c: &Stage| {
        let mut axes = a.axes.iter().zip(&b.axes).zip(&c.axes);
        axes.all(|((a, b), c)| (at(value, a.lo, b.lo), at(value, a.hi, b.hi)) == (c.lo, c.hi))
    };
    let mut stages = two.stages.iter().zip(&three.stages).zip(&other.stages);
    let wrong = stages.find(|((a, b), c)| !axes_go_on(a, b, c));
    wrong.map(|((stage, _), _)| two.tensor(stage.output).name.clone())
}

/// Plans calls with zero sizes from the programs for larger ones.
pub(super) fn empty(
    definition: &Definition,
    kernels: &Kernels,
    sizes: Sizes,
) -> Result<Specialised, Problem> {
    let found = Empty::new(definition, &sizes)?;
    let refused = |reason: &str| {
        Problem::Argument(format!("has no value where {} is 0: {reason}", found.zeros))
    };
    if let Some(name) = found.scattered() {
        return Err(refused(&format!("terms go to elements of `{name}`, which has none")));
    }
    let real = &found.real;
    if real.1.iter().all(|tensor| tensor.shape.contains(&0)) {
        return Ok(Specialised::of(definition, real, sizes, &Strides::new(), None));
    }
    let empty = found.without_points();
    if let Some(name) = found.read(&empty) {
        return Err(refused(&format!("an element of `{name}` is read, which has none")));
    }
    let emptied = |program: &Program| program.without_points(&empty);
    let (program, larger) = (&found.program, &found.larger);
    let mut guards = emptied(larger).guards_for(&emptied(program)).map_err(refused)?;
    guards.retain(|guard| !empty.iter().any(|(stage, _)| *stage == guard.stage));
    let varies = |(a, b): (&Tensor, &Tensor)| a.is_const && a.shape != b.shape;
    let has_constants = !real.0.iter().zip(program.inputs()).any(varies);
    let strides = Strides::new();
    let two = found.two.clone();
    let exact = Variant::exact(two, strides);
    let variant = Variant { guards: guards.clone(), empty, has_constants, ..exact };
    let make = || Compiled::new(definition, &variant, program);
    let compiled = kernels.compile(&variant, make)?;
    let outputs = program.outputs();
    let way = Way::Placed {
        inputs: real.0.iter().zip(program.inputs()).map(placement).collect(),
        outputs: real.1.iter().zip(outputs).map(placement).collect(),
        ends: guards.iter().map(|it| found.range(it.stage, it.axis).1.max(0) as i32).collect(),
    };
    let part = Part::new(compiled, way, program);
    Ok(Specialised::of(definition, real, sizes, &Strides::new(), Some(part)))
}

/// Where a kernel for the tensor `made` finds the caller's tensor `real`.
fn placement((real, made): (&Tensor, &Tensor)) -> Placement {
    if real.shape == made.shape {
        return Placement::At(0);
    }
    let extents = |tensor: &Tensor| tensor.shape.iter().map(|extent| *extent as usize).collect();
    let (valid, padded) = (extents(real), extents(made));
    Placement::Copied(Region { element: real.dtype.bytes(), valid, padded })
}
