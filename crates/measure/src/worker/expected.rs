//! Inputs, and what a right candidate computes from them.
//!
//! Small programs go through the reference interpreter, which knows how far from each element a right
//! result may be. For large ones that would take minutes: they run as a kernel with the default
//! schedule, a sample of whose result is checked by the interpreter; where even a sample takes long,
//! because of what it is computed from, the result is compared with that of a kernel without
//! rewritings. The tolerance then follows from the length of the longest sum.

use std::fs::File;
use std::io;

use tensorwright_kernel::{
    Buffer, CpuTarget, Diagnostics, Inputs, Kernel, Program, schedule_target,
};
use tensorwright_schedule::{Draft, canonical, complete};

use super::sample;
use crate::shared::{Layout, Part};

/// The most iterations for which the interpreter is waited for: some seconds of them.
const REFERENCE_ITERATIONS: u128 = 20_000_000;

/// An expected result.
struct Expected {
    buffer: Buffer,
    tolerance: Tolerance,
}

enum Tolerance {
    /// Of each element.
    Elements(Vec<f64>),
    /// Of all elements.
    All(f64),
}

/// Fills the shared file.
pub(super) fn fill(
    program: &Program,
    seed: u64,
    threads: usize,
    shared: &File,
) -> Result<(), String> {
    let layout = Layout::of(program).ok_or("the tensors are too large")?;
    let inputs = program.random_inputs(seed).map_err(text)?;
    let expected = if program.iterations() <= REFERENCE_ITERATIONS {
        interpret(program, &inputs)
    } else {
        compute(program, threads, &inputs)
    }?;
    write(program, &layout, &inputs, &expected, shared)
        .map_err(|error| format!("cannot write the results: {error}"))
}

fn interpret(program: &Program, inputs: &Inputs) -> Result<Vec<Expected>, String> {
    let run = program.run_reference(inputs).map_err(text)?;
    let expected = run.outputs.into_iter().map(|output| Expected {
        buffer: output.buffer,
        tolerance: Tolerance::Elements(output.tolerance),
    });
    Ok(expected.collect())
}

fn compute(program: &Program, threads: usize, inputs: &Inputs) -> Result<Vec<Expected>, String> {
    let kernel = program.compile().threads(threads).build().map_err(text)?;
    let outputs = kernel.run(inputs).map_err(text)?;
    match sample::check(program, inputs, &outputs) {
        Some(checked) => checked?,
        None => {
            let other = as_written(program, threads)?.run(inputs).map_err(text)?;
            if let Some((name, mismatch)) = kernel.differences(&other, &outputs).first() {
                return Err(format!("the default schedule is wrong about `{name}`: {mismatch}"));
            }
        }
    }
    let expected = outputs.into_iter().map(|(_, buffer)| {
        let tolerance = Tolerance::All(program.rounding_allowance(&buffer));
        Expected { buffer, tolerance }
    });
    Ok(expected.collect())
}

/// The program without rewritings, scheduled by rules: another way to the same results, and a fast one.
fn as_written(program: &Program, threads: usize) -> Result<Kernel, String> {
    let target = CpuTarget::native().map_err(|error| error.to_string())?;
    let draft = Draft::new(canonical(program.ir()));
    let schedule = complete(draft, &schedule_target(&target, threads)).schedule;
    program.compile().schedule(schedule).threads(threads).build().map_err(text)
}

fn write(
    program: &Program,
    layout: &Layout,
    inputs: &Inputs,
    expected: &[Expected],
    shared: &File,
) -> io::Result<()> {
    for (tensor, part) in program.inputs().iter().zip(&layout.inputs) {
        let input = inputs.get(&tensor.name);
        let input = input.ok_or_else(|| io::Error::other("an input is missing"))?;
        part.write(shared, &input.to_bytes())?;
    }
    if expected.len() != layout.outputs.len() {
        return Err(io::Error::other("an output is missing"));
    }
    for (expected, (values, tolerances)) in expected.iter().zip(&layout.outputs) {
        values.write(shared, &expected.buffer.to_bytes())?;
        expected.tolerance.write(shared, tolerances)?;
    }
    Ok(())
}

impl Tolerance {
    fn write(&self, shared: &File, part: &Part) -> io::Result<()> {
        match self {
            Self::Elements(each) => part.write_tolerances(shared, each.iter().copied()),
            Self::All(one) => part.write_tolerances(shared, std::iter::repeat(*one)),
        }
    }
}

fn text(diagnostics: Diagnostics) -> String {
    diagnostics.render(false)
}
