//! A part of a call: a kernel, and where it finds the tensors of the caller.

use tensorwright::Program;
use tensorwright::ir::{ReductionGuard, Tensor, TensorId};
use tensorwright_package::buckets::Variation;

use super::{Call, Problem};
use crate::compiled::Variant;
use crate::definition::{Definition, Sizes};
use crate::parts::{Part, Placement, Region};
use crate::specialised::Specialised;

/// Programs of a part: of what the caller wants of it, and of the kernel that computes at least that.
#[derive(Debug)]
pub(super) struct Made {
    sizes: Sizes,
    large: Program,
    pub(super) small: Program,
    /// Reductions of the kernel that end where those of the caller do.
    guards: Vec<ReductionGuard>,
}

impl Made {
    /// Programs for sizes of the kernel and for those of the caller, if the kernel can compute what the caller wants.
    pub(super) fn new(definition: &Definition, kernel: Sizes, small: &Sizes) -> Option<Self> {
        let large = Specialised::program(definition, &kernel).ok()?;
        let small = Specialised::program(definition, small).ok()?;
        let guards = large.guards_for(&small).ok()?;
        Some(Self { sizes: kernel, large, small, guards })
    }
}

/// A part of a call.
pub(super) fn part(
    call: &Call<'_>,
    made: &Made,
    along: Option<(&Variation, i64)>,
) -> Result<Part, Problem> {
    let (program, strides) = (call.program, &call.exact.strides);
    let Made { sizes, large, small, guards } = made;
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
    // A constant of which kernels get other pieces in other calls cannot be prepared.
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

/// Where a kernel for the tensor `large` finds the part `small` of the caller's, which starts so many elements in.
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

/// The bytes of so many elements.
pub(super) fn bytes(tensor: &Tensor, elements: i64) -> isize {
    elements as isize * tensor.dtype.bytes() as isize
}
