//! `tensorwright run`

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use tensorwright::{
    Buffer, Code, DType, Def, Diagnostic, Diagnostics, Inputs, Output, Program, Value,
};

use super::scalar::scalar;
use super::{chosen, sizes};
use crate::args::{Format, RunArgs};
use crate::failure::{InFormat, Outcome};
use crate::{files, report};

/// Runs a definition on the reference interpreter.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    let format = args.output.format;
    let module = files::module(&args.program.file).in_format(format)?;
    let def = chosen(&module, &args.program).in_format(format)?;
    let given = given_inputs(&def, args).in_format(format)?;
    let sizes = def.sizes_of(&given, &sizes(&args.program)).in_format(format)?;
    let program = def.bind(sizes).in_format(format)?;
    let inputs = complete(&program, given, args.seed).in_format(format)?;
    outputs_exist(&program, args).in_format(format)?;
    let start = Instant::now();
    let run = program.run_reference(&inputs).in_format(format)?;
    let seconds = start.elapsed().as_secs_f64();
    for (name, path) in &args.outputs {
        if let Some(output) = run.output(name) {
            files::write(path, &output.buffer).in_format(format)?;
        }
    }
    let outputs: Vec<OutputReport> = run.outputs.iter().map(output_report).collect();
    match format {
        Format::Json => report::json(&serde_json::json!({
            "def": program.name(),
            "engine": "reference",
            "hash": program.hash().to_string(),
            "seed": args.seed,
            "seconds": seconds,
            "outputs": outputs,
        }))?,
        Format::Text => {
            let mut out = std::io::stdout().lock();
            for (output, computed) in outputs.iter().zip(&run.outputs) {
                writeln!(
                    out,
                    "{} {}  checksum {}  min {}  max {}  sum {}  tolerance {:.2e}",
                    output.type_text,
                    output.name,
                    output.checksum,
                    output.min,
                    output.max,
                    output.sum,
                    output.tolerance
                )?;
                write_elements(&mut out, &computed.buffer)?;
            }
            writeln!(out, "reference interpreter, {seconds:.3} s, seed {}", args.seed)?;
        }
    }
    Ok(())
}

fn given_inputs(def: &Def<'_>, args: &RunArgs) -> Result<Inputs, Diagnostics> {
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

/// The elements of a small output, one row to a line.
fn write_elements(out: &mut impl Write, buffer: &Buffer) -> std::io::Result<()> {
    /// More than this is read by a program and not by a person.
    const MOST: usize = 32;
    let row = buffer.shape().last().map_or(1, |extent| (*extent).max(1) as usize);
    if buffer.len() > MOST || buffer.len() == 1 {
        return Ok(());
    }
    let elements: Vec<String> = buffer.values().map(|value| value.to_string()).collect();
    for row in elements.chunks(row) {
        writeln!(out, "  {}", row.join(" "))?;
    }
    Ok(())
}

/// Fills up with random inputs what was not given.
fn complete(program: &Program, given: Inputs, seed: u64) -> Result<Inputs, Diagnostics> {
    let mut inputs = given;
    if program.inputs().iter().any(|tensor| !inputs.contains_key(&tensor.name)) {
        for (name, buffer) in program.random_inputs(seed)? {
            inputs.entry(name).or_insert(buffer);
        }
    }
    for tensor in program.inputs() {
        // NumPy has no bfloat16: such inputs come as float32.
        let Some(buffer) = inputs.get_mut(&tensor.name) else { continue };
        if tensor.dtype == DType::BFloat16 && buffer.dtype() == DType::Float {
            *buffer = converted(program, buffer)?;
        }
    }
    Ok(inputs)
}

fn converted(program: &Program, buffer: &Buffer) -> Result<Buffer, Diagnostics> {
    buffer.convert(DType::BFloat16).map_err(|error| {
        let diagnostic = Diagnostic::without_place(Code::InputType, error.to_string());
        Diagnostics::new(program.ir().source.clone(), vec![diagnostic])
    })
}

/// Refuses `--output` of a name that is no output before anything is computed.
fn outputs_exist(program: &Program, args: &RunArgs) -> Result<(), Diagnostics> {
    let names: Vec<&str> = program.outputs().iter().map(|tensor| tensor.name.as_str()).collect();
    let Some((unknown, _)) = args.outputs.iter().find(|(name, _)| !names.contains(&name.as_str()))
    else {
        return Ok(());
    };
    let message = format!("`{}` has no output `{unknown}`", program.name());
    let diagnostic = Diagnostic::without_place(Code::UnknownInput, message)
        .help(format!("its outputs are {}", names.join(", ")));
    Err(Diagnostics::new(program.ir().source.clone(), vec![diagnostic]))
}

#[derive(Debug, Serialize)]
struct OutputReport {
    name: String,
    dtype: DType,
    shape: Vec<i64>,
    #[serde(skip)]
    type_text: String,
    checksum: String,
    min: String,
    max: String,
    sum: f64,
    /// The largest error that an evaluation in the output's own type may have.
    tolerance: f64,
}

fn output_report(output: &Output) -> OutputReport {
    let summary = output.summary();
    let text = |value: Option<Value>| value.map_or("nan".to_owned(), |value| value.to_string());
    OutputReport {
        name: output.name.clone(),
        dtype: output.buffer.dtype(),
        shape: output.buffer.shape().to_vec(),
        type_text: output.buffer.type_text(),
        checksum: format!("{:016x}", summary.checksum),
        min: text(summary.min),
        max: text(summary.max),
        sum: summary.sum,
        tolerance: output.tolerance.iter().copied().fold(0.0, f64::max),
    }
}
