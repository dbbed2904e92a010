//! The inputs of a run: given or random.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tensorwright::{
    Buffer, Code, DType, Def, Diagnostic, Diagnostics, Inputs, Program, Source, npy,
};
use tensorwright_lang::program::Tensor;

use crate::args::RunArgs;
use crate::commands::scalar::scalar;
use crate::files;

/// The inputs of the command line.
pub(super) fn given(def: &Def<'_>, args: &RunArgs) -> Result<Inputs, Diagnostics> {
    once("--input", &args.inputs)?;
    once("--output", &args.outputs)?;
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

/// Rejects a name given twice: one of the two would be ignored.
fn once(option: &str, files: &[(String, PathBuf)]) -> Result<(), Diagnostics> {
    let mut names = BTreeSet::new();
    let Some((twice, _)) = files.iter().find(|(name, _)| !names.insert(name)) else {
        return Ok(());
    };
    let message = format!("`{twice}` is given twice");
    let help = format!("give {option} {twice}=... once");
    let diagnostic = Diagnostic::without_place(Code::UnknownInput, message).help(help);
    Err(Diagnostics::new(Source::new(option, ""), vec![diagnostic]))
}

/// Fills missing inputs with random tensors. Missing scalars are an error: a random `eps` or
/// exponent gives meaningless results such as NaN.
pub(super) fn complete(program: &Program, given: Inputs, seed: u64) -> Result<Inputs, Diagnostics> {
    scalars_are_given(program, &given)?;
    let mut inputs = given;
    if program.inputs().iter().any(|tensor| !inputs.contains_key(&tensor.name)) {
        for (name, buffer) in program.random_inputs(seed)? {
            inputs.entry(name).or_insert(buffer);
        }
    }
    for tensor in program.inputs() {
        // Types that NumPy lacks are read from a wider one.
        let Some(buffer) = inputs.get_mut(&tensor.name) else { continue };
        if tensor.dtype != buffer.dtype() && npy::stored_as(tensor.dtype) == buffer.dtype() {
            *buffer = converted(program, buffer, tensor.dtype)?;
        }
    }
    Ok(inputs)
}

fn scalars_are_given(program: &Program, given: &Inputs) -> Result<(), Diagnostics> {
    let missing = |tensor: &&Tensor| tensor.shape.is_empty() && !given.contains_key(&tensor.name);
    let missing: Vec<&Tensor> = program.inputs().iter().filter(missing).collect();
    let what = match missing.as_slice() {
        [] => return Ok(()),
        [_] => "a value for the scalar",
        _ => "values for the scalars",
    };
    let names: Vec<String> = missing.iter().map(|tensor| format!("`{}`", tensor.name)).collect();
    let options: Vec<String> = missing.iter().map(|tensor| option(tensor)).collect();
    let message = format!("`{}` needs {what} {}", program.name(), names.join(", "));
    let help = format!("such as {}; only tensors are random", options.join(" "));
    let diagnostic = Diagnostic::without_place(Code::MissingInput, message).help(help);
    Err(Diagnostics::new(program.ir().source.clone(), vec![diagnostic]))
}

/// The option that gives a scalar, with a value of its type.
fn option(scalar: &Tensor) -> String {
    let value = match scalar.dtype {
        DType::Bool => "true",
        dtype if dtype.is_float() => "0.5",
        _ => "1",
    };
    format!("--input {}={value}", scalar.name)
}

fn converted(program: &Program, buffer: &Buffer, dtype: DType) -> Result<Buffer, Diagnostics> {
    buffer.convert(dtype).map_err(|error| {
        let diagnostic = Diagnostic::without_place(Code::InputType, error.to_string());
        Diagnostics::new(program.ir().source.clone(), vec![diagnostic])
    })
}
