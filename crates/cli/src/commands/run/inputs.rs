//! The inputs of a run: given on the command line, or random.

use std::path::PathBuf;

use tensorwright::{Buffer, Code, DType, Def, Diagnostic, Diagnostics, Inputs, Program, npy};

use crate::args::RunArgs;
use crate::commands::scalar::scalar;
use crate::files;

/// The inputs of the command line.
pub(super) fn given(def: &Def<'_>, args: &RunArgs) -> Result<Inputs, Diagnostics> {
    let given = |(name, path): &(String, PathBuf)| {
        let text = path.to_str().unwrap_or_default();
        let buffer = match scalar(def, name, text) {
            Some(buffer) => buffer,
            None => files::buffer(path)?,
        };
        Ok((name.clone(), buffer))
    };
    args.inputs.iter().map(given).collect()
}

/// Fills up with random inputs what was not given.
pub(super) fn complete(program: &Program, given: Inputs, seed: u64) -> Result<Inputs, Diagnostics> {
    let mut inputs = given;
    if program.inputs().iter().any(|tensor| !inputs.contains_key(&tensor.name)) {
        for (name, buffer) in program.random_inputs(seed)? {
            inputs.entry(name).or_insert(buffer);
        }
    }
    for tensor in program.inputs() {
        // Types that NumPy does not have come as a wider one.
        let Some(buffer) = inputs.get_mut(&tensor.name) else { continue };
        if tensor.dtype != buffer.dtype() && npy::stored_as(tensor.dtype) == buffer.dtype() {
            *buffer = converted(program, buffer, tensor.dtype)?;
        }
    }
    Ok(inputs)
}

fn converted(program: &Program, buffer: &Buffer, dtype: DType) -> Result<Buffer, Diagnostics> {
    buffer.convert(dtype).map_err(|error| {
        let diagnostic = Diagnostic::without_place(Code::InputType, error.to_string());
        Diagnostics::new(program.ir().source.clone(), vec![diagnostic])
    })
}
