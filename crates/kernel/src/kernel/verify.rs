//! Comparing a kernel with what it ought to compute.

use tensorwright_schedule::Schedule;

use super::{Kernel, Outputs, allow_for_rewriting};
use crate::{Buffer, DType, Diagnostics, Inputs, Mismatch, Precision, Program, Run, Value};

/// The most iterations for which the reference is waited for: some twenty seconds of them.
const REFERENCE_ITERATIONS: u128 = 60_000_000;

/// What came of comparing a kernel with what it ought to compute.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Verification {
    /// What the results were compared with.
    pub against: Against,
    /// The outputs that differ, and how.
    pub mismatches: Vec<(String, Mismatch)>,
}

/// What results are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The reference interpreter, within the error that it allows for each element.
    Reference,
    /// The same program compiled without a schedule, because the interpreter would take too long.
    /// Both have rounding errors, so an allowance is made that grows with the longest sum: an estimate for
    /// data of one magnitude.
    Unscheduled,
}

impl Verification {
    /// Whether all outputs agree.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.mismatches.is_empty()
    }
}

impl Kernel {
    /// Compares results of this kernel with the reference: the interpreter, or for programs that
    /// are too large for it, the same program compiled without a schedule.
    ///
    /// The interpreter knows how far from each element a right result may be on these inputs. For a
    /// kernel that computes with other numbers ([`Lowered::precision`](crate::Lowered::precision)) it
    /// follows from these numbers; where they overflow or are not finite, nothing can be said, and
    /// every result agrees.
    ///
    /// # Errors
    /// Inputs that do not fit, and subscripts from data that are out of bounds.
    pub fn verify(&self, inputs: &Inputs, outputs: &Outputs) -> Result<Verification, Diagnostics> {
        if self.program().iterations() <= REFERENCE_ITERATIONS {
            let mut run = self.program().run_reference(inputs)?;
            let growth = self.allow_for_precision(&mut run, inputs)?;
            let mismatches = mismatches(&run, outputs, growth);
            return Ok(Verification { against: Against::Reference, mismatches });
        }
        let plain = self.program().compile().schedule(Schedule::default()).build()?;
        let expected = plain.run(inputs)?;
        let mismatches = self.differences(&expected, outputs);
        Ok(Verification { against: Against::Unscheduled, mismatches })
    }

    /// Widens the tolerances of a run of the reference to what this kernel may differ by. What is left
    /// to estimate is a factor, which is one unless the loops take too long to be looked at.
    fn allow_for_precision(&self, run: &mut Run, inputs: &Inputs) -> Result<f64, Diagnostics> {
        let lowered = self.lowered();
        if lowered.precision() == Precision::Exact {
            return Ok(1.0);
        }
        let program = self.program().ir();
        let known = allow_for_rewriting(run, program, lowered.nest(), inputs)
            .map_err(|problem| Diagnostics::new(program.source.clone(), vec![problem]))?;
        Ok(if known { 1.0 } else { lowered.error_growth() })
    }

    /// How results of this kernel differ from those of another kernel of the same program, whose
    /// rounding errors are those of the program's own sums, by more than both may.
    #[must_use]
    pub fn differences(&self, expected: &Outputs, actual: &Outputs) -> Vec<(String, Mismatch)> {
        let terms = longest_sum(self.program());
        let growth = self.lowered().error_growth();
        let pairs = expected.iter().filter_map(|(name, expected)| {
            let actual = actual.get(name)?;
            Some((name.to_owned(), difference(expected, actual, terms, growth)?))
        });
        pairs.collect()
    }
}

impl Program {
    /// How far from an output that a kernel computed another right one may be: both have rounding
    /// errors, which grow with the longest sum. Zero for integers. [`Program::run_reference`] knows
    /// it exactly, and takes its time.
    #[must_use]
    pub fn rounding_allowance(&self, output: &Buffer) -> f64 {
        allowance(output, longest_sum(self))
    }
}

fn mismatches(run: &Run, outputs: &Outputs, growth: f64) -> Vec<(String, Mismatch)> {
    let compare = |output: &crate::Output| {
        let actual = outputs.get(&output.name)?;
        Some((output.name.clone(), output.mismatch_within(actual, growth)?))
    };
    run.outputs.iter().filter_map(compare).collect()
}

/// The number of terms of the longest reduction.
fn longest_sum(program: &Program) -> f64 {
    let stages = program.analysis().stages;
    let terms = |trips: &[i64]| trips.iter().map(|trips| *trips as f64).product();
    stages.iter().map(|stage| terms(&stage.reduce_trip_counts)).fold(1.0, f64::max)
}

/// How far apart two right evaluations with rounding errors may be. Errors of a sum grow with the
/// square root of its terms and with the size of partial sums, for which the largest element stands;
/// eight times that is rare, and a wrong term is far more.
fn allowance(expected: &Buffer, terms: f64) -> f64 {
    let epsilon = match expected.dtype() {
        DType::Double => f64::EPSILON,
        DType::Float => f64::from(f32::EPSILON),
        DType::Half => 2f64.powi(-10),
        DType::BFloat16 => 2f64.powi(-7),
        _ => 0.0,
    };
    let finite = |value: Value| Some(value.as_f64().abs()).filter(|value| value.is_finite());
    let largest = expected.values().filter_map(finite).fold(0.0, f64::max);
    8.0 * epsilon * terms.sqrt() * largest
}

/// How two evaluations with rounding errors differ by more than these explain.
fn difference(expected: &Buffer, actual: &Buffer, terms: f64, growth: f64) -> Option<Mismatch> {
    let allowed = growth * allowance(expected, terms);
    let wrong = |(expected, actual): &(Value, Value)| {
        let same = expected.as_f64().is_nan() && actual.as_f64().is_nan() || expected == actual;
        let distance = (expected.as_f64() - actual.as_f64()).abs();
        !same && (distance.is_nan() || distance > allowed)
    };
    let pairs = || expected.values().zip(actual.values());
    let count = pairs().filter(wrong).count();
    let position = pairs().position(|pair| wrong(&pair))?;
    Some(Mismatch::Elements {
        count,
        total: expected.len(),
        index: expected.index(position),
        expected: expected.get(position)?,
        actual: actual.get(position)?,
        allowed,
    })
}
