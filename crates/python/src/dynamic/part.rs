//! One part of a call: a kernel and the placement of its tensors.

use tensorwright::Program;
use tensorwright::ir::{ReductionGuard, Tensor, TensorId};
use tensorwright_package::buckets::Variation;

use super::{Call, Problem};
use crate::compiled::Variant;
use crate::definition::{Definition, Sizes};
use crate::parts::{Part, Placement, Region};
use crate::specialised::Specialised;

/// Two programs of a part: the requested computation, and the kernel's, which computes at least
/// that.
#[derive(Debug)]
pub(super) struct PartPrograms {
    sizes: Sizes,
    large: Program,
    pub(super) small: Program,
    /// Reductions of the kernel with the caller's ends.
    guards: Vec<ReductionGuard>,
}

impl PartPrograms {
    /// The programs for the kernel's and the caller's sizes, if the kernel can compute the request.
    pub(super) fn new(definition: &Definition, kernel: Sizes, small: &Sizes) -> Option<Self> {
        let large = Specialised::program(definition, &kernel).ok()?;
        let small = Specialised::program(definition, small).ok()?;
        let guards = large.guards_for(&small).ok()?;
        Some(Self { sizes: kernel, large, small, guards })
    }
}

/// Builds a part of a call.
pub(super) fn part(
    call: &Call<'_>,
    made: &PartPrograms,
    along: Option<(&Variation, i64)>,
) -> Result<Part, Problem> {
    let (program, strides) = (call.program, &call.exact.strides);
    let PartPrograms { sizes, large, small, guards } = made;
    let ir = program.ir();
    let place = |id: TensorId| {
        let number = id.0 as usize;
        let apart = strides.get(&number);
        let start = along.and_then(|(variation, start)| {
            let dimension = variation.dimensions.get(number).copied().flatten()?;
            let dense = || ir.tensor(id).shape[dimension + 1..].iter().product();
            Some(start * apart.map_or_else(dense, |strides| strides[dimension]))
        });
        let (tensor, start) = (ir.tensor(id), start.unwrap_or(0));
        let Some(apart) = apart else {
            return placement(tensor, small.ir().tensor(id), large.ir().tensor(id), start);
        };
        match large.with_strides(number, apart) {
            Some((_, before)) => Placement::At(bytes(tensor, start - before)),
            None => Placement::At(0),
        }
    };
    let kernel_takes = |number: usize| {
        strides.get(&number).is_none_or(|strides| large.with_strides(number, strides).is_some())
    };
    let has_its_shape = |number: &usize| {
        let (small, large) = (&small.inputs()[*number], &large.inputs()[*number]);
        small.shape == large.shape && kernel_takes(*number)
    };
    if !strides.keys().all(has_its_shape) {
        return Err(Problem::Dense(None));
    }
    let inputs: Vec<Placement> = ir.input_ids().map(place).collect();
    let outputs = ir.outputs.iter().map(|id| place(*id)).collect();
    // A constant whose pieces differ between calls cannot be prepared.
    let differs = |(a, b): (&Tensor, &Tensor)| a.is_const && a.shape != b.shape;
    let has_constants = !program.inputs().iter().zip(large.inputs()).any(differs);
    let variant = Variant {
        sizes: sizes.clone(),
        guards: guards.clone(),
        empty: Vec::new(),
        has_constants,
        strides: strides.clone(),
    };
    let compiled = call.kernels.compile(call.definition, &variant, large)?;
    let end = |guard: &ReductionGuard| small.ir().stages[guard.stage].axis(guard.axis).hi as i32;
    Ok(Part { compiled, inputs, outputs, ends: guards.iter().map(end).collect() })
}

/// Where a kernel for the tensor `large` finds the caller's part `small`, which starts at element
/// `start`.
pub(super) fn placement(whole: &Tensor, small: &Tensor, large: &Tensor, start: i64) -> Placement {
    if small.shape == large.shape {
        // A piece of the outermost axis, or all.
        return Placement::At(bytes(whole, start));
    }
    let start = start as usize * whole.dtype.bytes();
    let extents = |tensor: &Tensor| tensor.shape.iter().map(|extent| *extent as usize).collect();
    let (valid, padded) = (extents(small), extents(large));
    Placement::Copied(Region {
        start,
        element: whole.dtype.bytes(),
        whole: extents(whole),
        valid,
        padded,
    })
}

/// The bytes of a number of elements.
pub(super) fn bytes(tensor: &Tensor, elements: i64) -> isize {
    elements as isize * tensor.dtype.bytes() as isize
}
