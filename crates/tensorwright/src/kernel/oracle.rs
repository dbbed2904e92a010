//! Expected results of a program with tolerances, for any program size.
//!
//! The reference interpreter computes both, at some millions of iterations per second. Larger
//! programs use two methods instead, which the tuner's workers and
//! [`Kernel::verify`](super::Kernel::verify) share:
//!
//! - *All elements, within their own bounds.* The reference's error analysis is written as a
//!   program ([`bounding`]) and compiled. It computes in `double`, with a bound per element that
//!   follows from the magnitudes of its terms. So a small element next to large ones gets a small
//!   bound.
//! - *Sampled elements by the interpreter*, with its own tolerances ([`sample`]): corners, edges,
//!   tails and random ones. The compiled analysis is also checked against them, which detects
//!   compiler errors in it.
//!
//! Where the compiled analysis has no bound but the interpreter does, or where it cannot be
//! compiled, an estimate is used. [`Against`] reports for how many elements.

use std::fmt;

use tensorwright_lang::text::grouped;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::cpu::rules::complete;
use tensorwright_reference::bounding::{ErrorAnalysis, bounding};
use tensorwright_reference::sample::{self, OutputElement, SampledElement, choose, work};
use tensorwright_schedule::{ScheduleState, canonical};

use super::diagnose::Diagnose;
use super::{Kernel, Outputs};
use crate::{Buffer, Code, Diagnostic, Diagnostics, Inputs, Program, Run, Value};

/// The most elements of a sample.
const SAMPLES: usize = 4096;

/// The most memory of the compiled analysis.
const ANALYSIS_BYTES: i128 = 4 << 30;

/// The most iterations of the compiled analysis: about half a minute.
const ANALYSIS_ITERATIONS: u128 = 200_000_000_000;

/// How expected results are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oracle {
    /// The most [work](work) for which the interpreter runs the whole program, in iterations.
    pub whole_iterations: u128,
    /// The approximate work for a sample.
    pub sample_iterations: u64,
    /// The number of threads.
    pub threads: usize,
    /// The seed of the sampled elements.
    pub seed: u64,
}

/// The expected results of a program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Expected {
    /// The outputs with their tolerances.
    pub run: Run,
    /// Their origin.
    pub against: Against,
}

/// The origin of expected results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Against {
    /// The reference interpreter, within its error bound for each element.
    Reference,
    /// The reference interpreter for some elements and the compiled error analysis for all, because
    /// the interpreter would take too long.
    Sampled {
        /// The elements computed by the interpreter.
        sampled: usize,
        /// The elements with their own bound, including the interpreter's.
        bounded: usize,
        /// The elements compared within an estimate: the rounding error of the longest sum of
        /// numbers as large as the largest element.
        estimated: usize,
        /// All elements. The rest cannot be checked, for instance because a sum may overflow.
        elements: usize,
    },
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Against::Sampled { sampled, bounded, estimated, elements } = *self else {
            return f.write_str("the reference interpreter");
        };
        write!(f, "the reference interpreter on {} sampled elements, and ", grouped(sampled))?;
        match (elements - bounded, bounded) {
            (0, _) => write!(f, "element-wise bounds on all {}", grouped(elements))?,
            (_, 0) => f.write_str("element-wise bounds on none")?,
            _ => write!(f, "element-wise bounds on {} of {}", grouped(bounded), grouped(elements))?,
        }
        if estimated > 0 {
            write!(f, ", an estimate on {}", grouped(estimated))?;
        }
        match elements - bounded - estimated {
            0 => Ok(()),
            unknown => write!(f, ", nothing known of {}", grouped(unknown)),
        }
    }
}

impl Program {
    /// The expected results for inputs, with a tolerance for each element.
    ///
    /// ```
    /// use tensorwright::{Against, Module, Oracle};
    ///
    /// let text = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
    /// let sizes = [("M", 100), ("K", 100), ("N", 100)];
    /// let program = Module::parse("mm.tc", text)?.def("mm")?.bind(sizes)?;
    /// let inputs = program.random_inputs(1)?;
    ///
    /// // As if a million iterations were too many for the interpreter.
    /// let oracle =
    ///     Oracle { whole_iterations: 100_000, sample_iterations: 50_000, threads: 1, seed: 7 };
    /// let expected = program.expect(&inputs, oracle)?;
    /// assert!(matches!(expected.against, Against::Sampled { bounded: 10_000, elements: 10_000, .. }));
    ///
    /// let outputs = program.compile().build()?.run(&inputs)?;
    /// let result = outputs.get("C").ok_or("no C")?;
    /// assert_eq!(expected.run.outputs[0].mismatch(result), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Invalid inputs, out-of-bounds data subscripts, and a compiled analysis that contradicts the
    /// interpreter, which is a compiler defect.
    pub fn expect(&self, inputs: &Inputs, oracle: Oracle) -> Result<Expected, Diagnostics> {
        if work(self.ir()) <= oracle.whole_iterations {
            let run = self.run_reference(inputs)?;
            return Ok(Expected { run, against: Against::Reference });
        }
        let sampled = self.sample(inputs, oracle)?;
        let (mut run, is_analysed) = match self.analysed(inputs, oracle.threads)? {
            Some(run) => (run, true),
            None => (self.computed(inputs, oracle.threads)?, false),
        };
        self.check_sampled(&run, &sampled)?;
        if is_analysed && sampled.is_empty() {
            // The interpreter checked nothing; at least another kernel has to agree.
            let outputs = self.as_written(oracle.threads)?.run(inputs)?;
            self.check_other(&run, &outputs)?;
        }
        let weak =
            if is_analysed { weak_outputs(&run, &sampled) } else { vec![true; run.outputs.len()] };
        adopt(&mut run, &sampled);
        let bounded = finite_tolerances(&run);
        let terms = longest_sum(self);
        for (output, _) in run.outputs.iter_mut().zip(weak).filter(|(_, is_weak)| *is_weak) {
            let estimate = allowance(&output.buffer, terms);
            output.tolerance.iter_mut().filter(|t| t.is_infinite()).for_each(|t| *t = estimate);
        }
        let estimated = finite_tolerances(&run) - bounded;
        let elements = run.outputs.iter().map(|output| output.buffer.len()).sum();
        let against = Against::Sampled { sampled: sampled.len(), bounded, estimated, elements };
        Ok(Expected { run, against })
    }

    fn sample(&self, inputs: &Inputs, oracle: Oracle) -> Result<Vec<SampledElement>, Diagnostics> {
        let wanted = choose(self.ir(), SAMPLES, oracle.seed);
        let effort =
            sample::Effort { iterations: oracle.sample_iterations, threads: oracle.threads };
        let sampled = sample::sample(self.ir(), inputs, &wanted, effort);
        sampled.map_err(|error| self.diagnostics(error))
    }

    /// The outputs of the compiled analysis; `None` if it cannot be compiled or needs too much
    /// memory.
    fn analysed(&self, inputs: &Inputs, threads: usize) -> Result<Option<Run>, Diagnostics> {
        let Some(ErrorAnalysis { program, outputs, .. }) = bounding(self.ir()) else {
            return Ok(None);
        };
        let program = Program::new(program);
        if program.iterations() > ANALYSIS_ITERATIONS {
            return Ok(None);
        }
        let Ok(lowered) = program.compile().threads(threads).lower() else { return Ok(None) };
        if lowered.bytes() > ANALYSIS_BYTES {
            return Ok(None);
        }
        let Ok(kernel) = Kernel::new(lowered) else { return Ok(None) };
        let computed = kernel.run(inputs)?;
        drop(kernel);
        let mut list = Vec::with_capacity(outputs.len());
        for bounded in &outputs {
            let Some(values) = computed.get(&bounded.values) else { return Ok(None) };
            let bounds = bounded.bounds.as_deref().and_then(|name| computed.get(name));
            list.push(bounded.output(values, bounds).map_err(|error| {
                self.diagnostics(Diagnostic::without_place(Code::TooLarge, error.to_string()))
            })?);
        }
        Ok(Some(Run::new(list)))
    }

    /// The outputs by a kernel, without bounds.
    fn computed(&self, inputs: &Inputs, threads: usize) -> Result<Run, Diagnostics> {
        let outputs = self.as_written(threads)?.run(inputs)?;
        let list = outputs.into_iter().map(|(name, buffer)| {
            let tolerance = vec![f64::INFINITY; buffer.len()];
            tensorwright_reference::Output::new(name, buffer, tolerance)
        });
        Ok(Run::new(list.collect()))
    }

    /// A kernel without rewrites and with a rule-based schedule, to differ from the default one.
    fn as_written(&self, threads: usize) -> Result<Kernel, Diagnostics> {
        let cpu = Cpu::native().map_err(|error| error.diagnose(&self.ir().source))?;
        let goal = Goal::new(cpu).with_threads(threads);
        let schedule = complete(ScheduleState::new(canonical(self.ir())), &goal).schedule;
        self.compile().schedule(schedule).threads(threads).build()
    }

    /// Checks that interpreter and other results agree within both their bounds.
    fn check_sampled(&self, run: &Run, sampled: &[SampledElement]) -> Result<(), Diagnostics> {
        for element in sampled {
            let OutputElement { output, position } = element.place;
            let Some(output) = run.outputs.get(output) else { continue };
            let (Some(value), Some(bound)) =
                (output.buffer.get(position), output.tolerance.get(position))
            else {
                continue;
            };
            let allowed = element.tolerance + if bound.is_finite() { *bound } else { 0.0 };
            if value.distance(element.value) > allowed {
                let index = output.buffer.index(position);
                let what = format!(
                    "the compiled program that results are compared with has {value} for `{}` at {index:?}, and the reference {}, \
                     within {allowed:.3e}",
                    output.name, element.value
                );
                return Err(self.contradiction(what));
            }
        }
        Ok(())
    }

    /// Checks the results of another kernel against the bounds.
    fn check_other(&self, run: &Run, outputs: &Outputs) -> Result<(), Diagnostics> {
        for output in &run.outputs {
            let other = outputs.get(&output.name);
            if let Some(mismatch) = other.and_then(|other| output.mismatch(other)) {
                let what = format!(
                    "the compiled error analysis and the program disagree about `{}`: {mismatch}",
                    output.name
                );
                return Err(self.contradiction(what));
            }
        }
        Ok(())
    }

    fn contradiction(&self, what: String) -> Diagnostics {
        let diagnostic = Diagnostic::without_place(Code::WrongResult, what)
            .note("the program is not at fault: this is a defect of the compiler")
            .help("please report this with the program, its sizes and the seed");
        self.diagnostics(diagnostic)
    }
}

/// The outputs with unbounded elements for which the interpreter bounds all its samples. If it
/// cannot bound a sample, other elements may rightly be unbounded too.
fn weak_outputs(run: &Run, sampled: &[SampledElement]) -> Vec<bool> {
    let mut known = vec![(false, false); run.outputs.len()];
    for element in sampled {
        let OutputElement { output, position } = element.place;
        let bound = run.outputs.get(output).and_then(|output| output.tolerance.get(position));
        if let (Some((some, none)), Some(f64::INFINITY)) = (known.get_mut(output), bound.copied()) {
            *some |= element.tolerance.is_finite();
            *none |= element.tolerance.is_infinite();
        }
    }
    known.into_iter().map(|(some, none)| some && !none).collect()
}

fn finite_tolerances(run: &Run) -> usize {
    let tolerances = run.outputs.iter().flat_map(|output| &output.tolerance);
    tolerances.filter(|tolerance| tolerance.is_finite()).count()
}

/// Replaces elements by the interpreter's.
fn adopt(run: &mut Run, sampled: &[SampledElement]) {
    for element in sampled {
        let OutputElement { output, position } = element.place;
        let Some(output) = run.outputs.get_mut(output) else { continue };
        output.buffer.set(position, element.value);
        if let Some(tolerance) = output.tolerance.get_mut(position) {
            *tolerance = element.tolerance;
        }
    }
}

/// The number of terms of the longest reduction.
fn longest_sum(program: &Program) -> f64 {
    let stages = program.analysis().stages;
    let terms = |trips: &[i64]| trips.iter().map(|trips| *trips as f64).product();
    stages.iter().map(|stage| terms(&stage.reduce_trip_counts)).fold(1.0, f64::max)
}

/// An estimate of the distance of two correct evaluations with rounding errors. Errors of a sum
/// grow with the square root of its length and with the size of partial sums, approximated by the
/// largest element; eight times that is rare.
fn allowance(expected: &Buffer, terms: f64) -> f64 {
    let epsilon = expected.dtype().unit_roundoff().map_or(0.0, |roundoff| 2.0 * roundoff);
    let finite = |value: Value| Some(value.as_f64().abs()).filter(|value| value.is_finite());
    let largest = expected.values().filter_map(finite).fold(0.0, f64::max);
    8.0 * epsilon * terms.sqrt() * largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    #[test]
    fn a_contradiction_is_a_defect_of_the_compiler_and_says_where() {
        let text = "def twice(float(M,N) A) -> (B) { B(m,n) = 2 * A(m,n) }";
        let module = Module::parse("t", text).unwrap();
        let program = module.def("twice").unwrap().bind([("M", 3), ("N", 4)]).unwrap();
        let inputs =
            Inputs::from([("A".to_owned(), Buffer::from_f32(&[3, 4], vec![0.5; 12]).unwrap())]);
        let oracle = Oracle { whole_iterations: 0, sample_iterations: 1000, threads: 1, seed: 1 };
        let mut sampled = program.sample(&inputs, oracle).unwrap();
        let run = program.analysed(&inputs, 1).unwrap().unwrap();
        assert!(program.check_sampled(&run, &sampled).is_ok());
        sampled[6].value = Value::Float(1.25);
        let contradiction = program.check_sampled(&run, &sampled).unwrap_err();
        assert_eq!(
            contradiction.render(false).trim_end(),
            "[E1008] Error: the compiled program that results are compared with has 1.0 for `B` at \
             [1, 2], and the reference 1.25, within 2.384e-7\n   \
             Help: please report this with the program, its sizes and the seed\n   \
             Note: the program is not at fault: this is a defect of the compiler"
        );
    }
}
