//! `tensorwright run`

mod inputs;
mod range;
mod show;

use std::time::Instant;

use tensorwright::{
    Buffer, Code, Diagnostic, Diagnostics, Inputs, Kernel, Outputs, Program, Verification,
};

use self::show::{Computed, Engine, Report};
use super::chosen;
use crate::args::RunArgs;
use crate::failure::{Failure, InFormat, Outcome};
use crate::measure::measure;
use crate::{files, report};

/// Runs a definition.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    let format = args.output.format;
    let module = files::module_with(&args.program.file).in_format(format)?;
    let def = chosen(&module, &args.program).in_format(format)?;
    let sizes = crate::sizes::ranged(&args.program.sizes).in_format(format)?;
    if let Some((name, values)) = &sizes.varying {
        return range::run(&def, &sizes, (name, values), args);
    }
    let given = inputs::given(&def, args).in_format(format)?;
    let sizes = def.sizes_of(&given, &sizes.fixed).in_format(format)?;
    let program = def.bind(sizes).in_format(format)?;
    outputs_exist(&program, args).in_format(format)?;
    let inputs = inputs::complete(&program, given, args.seed).in_format(format)?;
    let report = if args.reference {
        reference(&program, &inputs)
    } else {
        compiled(&program, &inputs, args)
    };
    let report = report.in_format(format)?;
    for (name, path) in &args.outputs {
        if let Some(buffer) = report.output(name) {
            files::write(path, buffer).in_format(format)?;
        }
    }
    report.show(&program, args)?;
    match report.wrong_result(&program) {
        Some(diagnostics) => {
            report::on_stderr(&diagnostics);
            Err(Failure::Reported)
        }
        None => Ok(()),
    }
}

fn reference(program: &Program, inputs: &Inputs) -> Result<Report, Diagnostics> {
    let start = Instant::now();
    let run = program.run_reference(inputs)?;
    let seconds = start.elapsed().as_secs_f64();
    let outputs = run.outputs.into_iter().map(|output| {
        let tolerance = output.tolerance.iter().copied().fold(0.0, f64::max);
        Computed { name: output.name, buffer: output.buffer, tolerance: Some(tolerance) }
    });
    Ok(Report::new(Engine::Reference, seconds, outputs.collect()))
}

fn compiled(program: &Program, inputs: &Inputs, args: &RunArgs) -> Result<Report, Diagnostics> {
    let kernel = super::kernel(program, &args.kernel)?.build()?;
    let mut call = kernel.bind(inputs)?;
    if args.verify {
        call.guard()?;
    }
    let start = Instant::now();
    call.run()?;
    let seconds = start.elapsed().as_secs_f64();
    let (outputs, measurement) = if args.time {
        (call.outputs()?, Some(measure(&kernel, &mut call)?))
    } else {
        (call.into_outputs()?, None)
    };
    let verification = verify(&kernel, inputs, &outputs, args)?;
    let outputs = outputs.into_iter();
    let outputs =
        outputs.map(|(name, buffer)| Computed { name, buffer, tolerance: None }).collect();
    let engine = Engine::Compiled {
        target: kernel.lowered().generated_for(),
        threads: kernel.threads(),
        compile_seconds: kernel.compile_times().total().as_secs_f64(),
        precision: kernel.lowered().precision(),
        error_growth: kernel.lowered().error_growth(),
    };
    Ok(Report { verification, measurement, ..Report::new(engine, seconds, outputs) })
}

fn verify(
    kernel: &Kernel,
    inputs: &Inputs,
    outputs: &Outputs,
    args: &RunArgs,
) -> Result<Option<Verification>, Diagnostics> {
    if args.verify { kernel.verify(inputs, outputs).map(Some) } else { Ok(None) }
}

/// Rejects `--output` with an unknown name before anything is computed.
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

impl Report {
    fn output(&self, name: &str) -> Option<&Buffer> {
        self.outputs.iter().find(|output| output.name == name).map(|output| &output.buffer)
    }

    /// The diagnostic for wrong results.
    fn wrong_result(&self, program: &Program) -> Option<Diagnostics> {
        let mismatches = &self.verification.as_ref()?.mismatches;
        let one = |(name, mismatch): &(String, tensorwright::Mismatch)| {
            Diagnostic::without_place(Code::WrongResult, format!("output `{name}`: {mismatch}"))
                .help("please report this with the program, its sizes and its schedule")
        };
        let list: Vec<Diagnostic> = mismatches.iter().map(one).collect();
        (!list.is_empty()).then(|| Diagnostics::new(program.ir().source.clone(), list))
    }
}
