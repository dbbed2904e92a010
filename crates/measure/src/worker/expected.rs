//! Computes inputs and expected results once for all candidates.

use std::fs::File;
use std::io;

use tensorwright::{Diagnostics, Inputs, Oracle, Output, Program};

use crate::shared::Layout;

/// The most iterations that the interpreter computes in full: some seconds.
const REFERENCE_ITERATIONS: u128 = 20_000_000;

/// The iterations of a sample: about a second.
const SAMPLE_ITERATIONS: u64 = 4_000_000;

/// Fills the shared file.
pub(super) fn fill(
    program: &Program,
    seed: u64,
    threads: usize,
    shared: &File,
) -> Result<(), String> {
    let layout = Layout::of(program).ok_or("the tensors are too large")?;
    let inputs = program.random_inputs(seed).map_err(text)?;
    let oracle = Oracle {
        whole_iterations: REFERENCE_ITERATIONS,
        sample_iterations: SAMPLE_ITERATIONS,
        threads,
        seed,
    };
    let expected = program.expect(&inputs, oracle).map_err(text)?;
    write(program, &layout, &inputs, &expected.run.outputs, shared)
        .map_err(|error| format!("cannot write the results: {error}"))
}

fn write(
    program: &Program,
    layout: &Layout,
    inputs: &Inputs,
    expected: &[Output],
    shared: &File,
) -> io::Result<()> {
    for (tensor, part) in program.inputs().iter().zip(&layout.inputs) {
        let input = inputs.get(&tensor.name);
        let input = input.ok_or_else(|| io::Error::other("an input is missing"))?;
        part.write_tensor(shared, input)?;
    }
    if expected.len() != layout.outputs.len() {
        return Err(io::Error::other("an output is missing"));
    }
    for (expected, (values, tolerances)) in expected.iter().zip(&layout.outputs) {
        values.write_tensor(shared, &expected.buffer)?;
        tolerances.write_tolerances(shared, expected.tolerance.iter().copied())?;
    }
    Ok(())
}

fn text(diagnostics: Diagnostics) -> String {
    diagnostics.render(false)
}
