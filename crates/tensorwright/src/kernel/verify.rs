//! Comparing a kernel with what it ought to compute.

use super::oracle::{Against, Expected, Oracle};
use super::{Kernel, Outputs, allow_for_rewriting};
use crate::{Diagnostics, Inputs, Mismatch, Precision, Run};

/// The most iterations for which the reference is waited for: some twenty seconds of them.
const REFERENCE_ITERATIONS: u128 = 60_000_000;

/// The iterations of a sample: some seconds of them.
const SAMPLE_ITERATIONS: u64 = 16_000_000;

/// What came of comparing a kernel with what it ought to compute.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Verification {
    /// What the results were compared with.
    pub against: Against,
    /// The outputs that differ, and how.
    pub mismatches: Vec<(String, Mismatch)>,
}

impl Verification {
    /// Whether all outputs agree.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.mismatches.is_empty()
    }
}

impl Kernel {
    /// Compares results of this kernel with the reference. Programs that are too large for the interpreter
    /// are compared with it on sampled elements, and all elements within bounds of their own; the
    /// [outcome](Verification::against) says on how many.
    ///
    /// The interpreter knows how far from each element a right result may be on these inputs. For a
    /// kernel that computes with other numbers ([`LoweredProgram::precision`](crate::LoweredProgram::precision)) it
    /// follows from these numbers; where they overflow or are not finite, nothing can be said, and
    /// every result agrees. If the program is too large for the interpreter, a
    /// [factor](crate::LoweredProgram::error_growth) stands for them.
    ///
    /// # Errors
    /// Inputs that do not fit, and subscripts from data that are out of bounds.
    pub fn verify(&self, inputs: &Inputs, outputs: &Outputs) -> Result<Verification, Diagnostics> {
        let oracle = Oracle {
            whole_iterations: REFERENCE_ITERATIONS,
            sample_iterations: SAMPLE_ITERATIONS,
            threads: self.threads(),
            seed: seed(inputs),
        };
        let Expected { mut run, against } = self.program().expect(inputs, oracle)?;
        let growth = match against {
            Against::Reference => self.allow_for_precision(&mut run, inputs)?,
            Against::Sampled { .. } => self.lowered().error_growth(),
        };
        Ok(Verification { against, mismatches: mismatches(&run, outputs, growth) })
    }

    /// Widens the tolerances of a run of the reference to what this kernel may differ by. What is left
    /// to estimate is a factor: how tensor operations round, and all if the loops take too long to be looked at.
    fn allow_for_precision(&self, run: &mut Run, inputs: &Inputs) -> Result<f64, Diagnostics> {
        let lowered = self.lowered();
        let rounding = lowered.nest().as_nest().rounding_growth;
        if lowered.precision() == Precision::Exact {
            return Ok(rounding);
        }
        let program = self.program().ir();
        let known = allow_for_rewriting(run, program, lowered.nest(), inputs)
            .map_err(|problem| Diagnostics::new(program.source.clone(), vec![problem]))?;
        Ok(if known { rounding } else { lowered.error_growth() })
    }
}

fn mismatches(run: &Run, outputs: &Outputs, growth: f64) -> Vec<(String, Mismatch)> {
    let compare = |output: &crate::Output| {
        let actual = outputs.get(&output.name)?;
        Some((output.name.clone(), output.mismatch_within(actual, growth)?))
    };
    run.outputs.iter().filter_map(compare).collect()
}

/// Other inputs are looked at in other places.
fn seed(inputs: &Inputs) -> u64 {
    let numbers = inputs.values().flat_map(|input| input.values().take(16));
    numbers.fold(0, |seed, number| seed.rotate_left(5) ^ number.as_f64().to_bits())
}
