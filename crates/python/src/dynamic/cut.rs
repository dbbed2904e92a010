//! Computing one size in pieces.

use tensorwright::Program;
use tensorwright::ir::TensorId;
use tensorwright_package::buckets::{
    Guess, Kind, Pieces, Variation, is_piece, largest_piece, variation,
};

use crate::compiled::Variant;
use crate::definition::{Definition, Sizes};
use crate::kernels::Kernels;
use crate::specialised::Specialised;

/// The assumed overhead of a kernel call in nanoseconds, until it is measured.
const CALL: f64 = 1500.0;

/// The assumed bandwidth in bytes per nanosecond, until kernels are measured.
const BYTES: f64 = 10.0;

/// The assumed innermost iterations per nanosecond, until kernels are measured.
const ITERATIONS: f64 = 16.0;

/// A size that is computed in pieces.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) name: String,
    pub(super) value: i64,
    /// What changes along it.
    pub(super) variation: Variation,
    guess: Guess,
}

impl Cut {
    /// The first size that may be cut.
    pub(super) fn of(
        definition: &Definition,
        program: &Program,
        sizes: &Sizes,
        names: &[String],
    ) -> Option<Self> {
        let one = |name: &String| {
            let value = sizes[name];
            let other = if is_piece(value) { value + 1 } else { largest_piece(value) };
            let mut others = sizes.clone();
            others.insert(name.clone(), other);
            let others = Specialised::program(definition, &others).ok()?;
            let variation = variation((program.ir(), value), (others.ir(), other)).ok()?;
            let is_cut = variation.kind == Kind::Sliced && is_outermost(program, &variation);
            let guess = || guess(program, value, &variation);
            is_cut.then(guess).map(|guess| Self { name: name.clone(), value, variation, guess })
        };
        names.iter().find_map(one)
    }

    /// The sizes of a piece.
    pub(super) fn at(&self, sizes: &Sizes, length: i64) -> Sizes {
        let mut sizes = sizes.clone();
        sizes.insert(self.name.clone(), length);
        sizes
    }

    /// Whether pieces of this length, computed by `small`, are slices of the program's result.
    pub(super) fn is_sliced(&self, program: &Program, small: &Program, length: i64) -> bool {
        let found = || variation((program.ir(), self.value), (small.ir(), length));
        length == self.value || found().is_ok_and(|found| found.kind == Kind::Sliced)
    }

    /// The cheapest pieces, by kernels for these sizes except the cut one.
    pub(super) fn pieces(&self, kernels: &Kernels, exact: &Variant, kernel: &Sizes) -> Pieces {
        let family = Variant::exact(self.at(kernel, 0), exact.strides.clone());
        Pieces::new(self.name.clone(), self.value, kernels.pricing(family, self.guess))
    }
}

/// Whether the size is the outermost axis of all caller tensors that have it.
fn is_outermost(program: &Program, variation: &Variation) -> bool {
    let ir = program.ir();
    let mut all = ir.input_ids().chain(ir.outputs.iter().copied());
    all.all(|id| match variation.dimensions.get(id.0 as usize).copied().flatten() {
        Some(dimension) => ir.tensor(id).shape[..dimension].iter().all(|extent| *extent == 1),
        None => true,
    })
}

/// An estimate of the cost of pieces: tensors that do not vary are read again for each piece.
fn guess(program: &Program, value: i64, variation: &Variation) -> Guess {
    let ir = program.ir();
    let moved = |varies: bool| -> f64 {
        let all = ir.input_ids().chain(ir.outputs.iter().copied());
        let is = |id: &TensorId| {
            variation.dimensions.get(id.0 as usize).copied().flatten().is_some() == varies
        };
        all.filter(is).map(|id| ir.tensor(id).bytes() as f64).sum()
    };
    let work = (program.iterations() as f64 / ITERATIONS).max(moved(true) / BYTES);
    Guess { call: CALL + moved(false) / BYTES, step: work / value as f64 }
}
