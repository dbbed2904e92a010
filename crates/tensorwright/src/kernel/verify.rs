//! Comparison of kernel results with expected ones.

use super::oracle::{Against, Expected, Oracle};
use super::{Kernel, Outputs, allow_for_rewriting};
use crate::{Diagnostics, Inputs, Mismatch, Precision, Run};

/// The most iterations for running the whole reference: some twenty seconds.
const REFERENCE_ITERATIONS: u128 = 60_000_000;

/// The iterations of a sample: some seconds.
const SAMPLE_ITERATIONS: u64 = 16_000_000;

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Verification {
    /// The origin of the expected results.
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
    /// Compares results of this kernel with the reference. Programs too large for the interpreter
    /// are compared on sampled elements, and on all elements within their own bounds; the
    /// [outcome](Verification::against) reports on how many.
    ///
    /// The interpreter bounds the error of each element on these inputs. For a kernel with
    /// algebraic rewrites ([`LoweredProgram::precision`](crate::LoweredProgram::precision)), the
    /// bounds follow from the rewritten computation; where it overflows or is not finite, every
    /// result agrees. If the program is too large for the interpreter, a
    /// [factor](crate::LoweredProgram::error_growth) is used.
    ///
    /// # Errors
    /// Invalid inputs, and out-of-bounds data subscripts.
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

    /// Widens the reference's tolerances to those of this kernel. A factor covers the rounding of
    /// tensor operations, or everything if the loops take too long.
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

/// The sample depends on the inputs.
fn seed(inputs: &Inputs) -> u64 {
    let numbers = inputs.values().flat_map(|input| input.values().take(16));
    numbers.fold(0, |seed, number| seed.rotate_left(5) ^ number.as_f64().to_bits())
}
