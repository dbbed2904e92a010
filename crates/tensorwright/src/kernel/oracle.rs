//! What a program ought to compute, however large it is, and how far from each element a right result may be.
//!
//! The reference interpreter says it all, at some millions of iterations per second. For more of them there are
//! two things instead, which the tuner's workers and [`Kernel::verify`](super::Kernel::verify) share:
//!
//! - *All elements, within bounds of their own.* The error analysis of the reference is written as a program
//!   ([`bounding`]) and compiled. It computes in `double`, and beside each element the bound that follows
//!   from the magnitudes of its own terms. So a small element beside large ones is held to a small bound.
//! - *Some elements by the interpreter itself*, with its own tolerances ([`sample`]): corners, edges, tails and any
//!   others. They are also what the compiled analysis is checked by, so that a mistake of the compiler in it does not
//!   go unnoticed.
//!
//! Where the compiled analysis knows no bound and the interpreter does, or where it cannot be compiled, an
//! estimate stands in. [`Against`] says of how many elements.

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

/// The most elements that the interpreter is asked for where it cannot compute all.
const SAMPLES: usize = 4096;

/// The most memory that the compiled analysis may take.
const ANALYSIS_BYTES: i128 = 4 << 30;

/// The most iterations that it may take: about half a minute of them.
const ANALYSIS_ITERATIONS: u128 = 200_000_000_000;

/// How expected results are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oracle {
    /// The most [work](work) of a program that the interpreter runs as a whole, in iterations.
    pub whole_iterations: u128,
    /// About how much of it is done for a sample.
    pub sample_iterations: u64,
    /// The threads that may be used.
    pub threads: usize,
    /// What the choice of elements of a sample depends on.
    pub seed: u64,
}

/// What a program ought to compute.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Expected {
    /// The outputs with their tolerances.
    pub run: Run,
    /// Where they come from.
    pub against: Against,
}

/// What results are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Against {
    /// The reference interpreter, within the error that it allows for each element.
    Reference,
    /// The reference interpreter for some elements, and the compiled error analysis for all, because the
    /// interpreter would take too long.
    Sampled {
        /// The elements that the interpreter computed.
        sampled: usize,
        /// The elements that have a bound of their own, those of the interpreter included.
        bounded: usize,
        /// The elements without one that are compared within an estimate: what rounding does to the longest sum
        /// of numbers as large as the largest element.
        estimated: usize,
        /// All elements. Of those that are left nothing can be said, for instance because a sum may overflow.
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
    /// What the program ought to compute from inputs, and how far from each element a right result may be.
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
    /// Inputs that do not fit, subscripts from data that are out of bounds, and a compiled analysis that the
    /// interpreter contradicts, which is a defect of the compiler.
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
            // Nothing of it was seen by the interpreter; at least another kernel has to agree.
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

    /// The outputs by the compiled analysis; `None` if it cannot be compiled or takes too much memory.
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

    /// The program without rewritings, scheduled by rules: another way to the same results than the default.
    fn as_written(&self, threads: usize) -> Result<Kernel, Diagnostics> {
        let cpu = Cpu::native().map_err(|error| error.diagnose(&self.ir().source))?;
        let goal = Goal::new(cpu).with_threads(threads);
        let schedule = complete(ScheduleState::new(canonical(self.ir())), &goal).schedule;
        self.compile().schedule(schedule).threads(threads).build()
    }

    /// What the interpreter computed has to be what was computed otherwise, within both their bounds: that is an
    /// evaluation like any other.
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

    /// What another kernel computed has to be within the bounds.
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

/// Which outputs have elements without a bound of which the interpreter has one for all that it looked at. If it
/// has none for some, others may rightly be anything, too.
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

/// Replaces elements by those of the interpreter.
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

/// An estimate of how far apart two right evaluations with rounding errors may be. Errors of a sum grow with the
/// square root of its terms and with the size of partial sums, for which the largest element stands;
/// eight times that is rare.
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
