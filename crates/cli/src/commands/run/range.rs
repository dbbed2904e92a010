//! `run` with a range of sizes: lists the kernels and verifies them.

use std::io::Write;

use tensorwright::{Code, Def, Diagnostic, Diagnostics, Inputs, Program, Source};
use tensorwright_package::Sizes;
use tensorwright_package::buckets::BucketedKernel;
use tensorwright_tuner::SizeRange;

use super::inputs;
use crate::args::{Format, RunArgs};
use crate::failure::{InFormat, Outcome};
use crate::report;

/// Runs a definition for a range of one size.
pub(super) fn run(
    def: &Def<'_>,
    sizes: &Sizes,
    range: (&str, &SizeRange),
    args: &RunArgs,
) -> Outcome {
    let format = args.output.format;
    let (name, range) = range;
    let scalars = scalars(def, name, args).in_format(format)?;
    let target = crate::commands::target(&args.kernel.target.target).in_format(format)?;
    let kernel = BucketedKernel::new(def, &sizes.fixed, name, range, &target).in_format(format)?;
    let values = range.first..=range.last;
    if args.verify {
        for value in values.clone() {
            let program = def.bind(sizes.at(value)).in_format(format)?;
            let inputs =
                inputs::complete(&program, scalars.clone(), args.seed).in_format(format)?;
            verify(&kernel, value, &program, &inputs).in_format(format)?;
        }
    }
    if format == Format::Json {
        let covers: serde_json::Map<String, serde_json::Value> =
            values.map(|value| (value.to_string(), kernel.cover(value).into())).collect();
        let value = serde_json::json!({
            "size": name,
            "buckets": kernel.buckets(),
            "covers": covers,
            "verified": args.verify.then_some(true),
        });
        return Ok(report::json(&value)?);
    }
    let mut out = crate::terminal::out();
    let listed = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    writeln!(out, "kernels for {name} = {}", listed(kernel.buckets()))?;
    for value in values.filter(|value| kernel.kernel(*value).is_none()) {
        writeln!(out, "  {name} = {value}: {}", listed(&kernel.cover(value)))?;
    }
    if args.verify {
        writeln!(out, "every value agrees with the reference interpreter")?;
    }
    Ok(())
}

/// The scalars of the command line. Rejects options that need a single size.
fn scalars(def: &Def<'_>, name: &str, args: &RunArgs) -> Result<Inputs, Diagnostics> {
    let refused = [
        ("--schedule", args.kernel.schedule.is_some()),
        ("--reference", args.reference),
        ("--time", args.time),
        ("--db", args.kernel.db.is_some()),
        ("--precision", args.kernel.target.precision.is_some()),
        ("--output", !args.outputs.is_empty()),
    ];
    let given = inputs::given(def, args)?;
    let tensor = given.iter().find(|(_, buffer)| !buffer.shape().is_empty());
    let tensor = tensor.map(|(tensor, _)| format!("--input {tensor}"));
    let option =
        refused.iter().find(|(_, is_given)| *is_given).map(|(option, _)| (*option).to_owned());
    match option.or(tensor) {
        None => Ok(given),
        Some(option) => {
            let message = format!("`{name}` is a range, but {option} needs a single value");
            let diagnostic = Diagnostic::without_place(Code::VaryingSize, message)
                .help(format!("leave out {option}, or give `{name}` one number"));
            Err(Diagnostics::new(Source::new("--size", ""), vec![diagnostic]))
        }
    }
}

/// Compares the results for one size with the reference.
fn verify(
    kernel: &BucketedKernel,
    value: i64,
    program: &Program,
    inputs: &Inputs,
) -> Result<(), Diagnostics> {
    let results = kernel.run(value, inputs)?;
    let growth = kernel.error_growth();
    for output in program.run_reference(inputs)?.outputs {
        let mismatch = results.get(&output.name).and_then(|r| output.mismatch_within(r, growth));
        if let Some(mismatch) = mismatch {
            let message = format!("output `{}` for {value}: {mismatch}", output.name);
            let diagnostic = Diagnostic::without_place(Code::WrongResult, message)
                .help("please report this with the program and its sizes");
            return Err(Diagnostics::new(program.ir().source.clone(), vec![diagnostic]));
        }
    }
    Ok(())
}
