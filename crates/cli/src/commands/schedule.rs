//! `tensorwright schedule`

use std::io::Write;

use crate::args::{Format, ScheduleArgs};
use crate::failure::{InFormat, Outcome};
use crate::report;

/// Prints the schedule of a definition.
pub(crate) fn run(args: &ScheduleArgs) -> Outcome {
    let format = args.output.format;
    let program = super::program(&args.program).in_format(format)?;
    let lowered = super::kernel(&program, &args.kernel)
        .and_then(|kernel| kernel.lower())
        .in_format(format)?;
    let schedule = lowered.schedule().to_string();
    match format {
        Format::Text => write!(crate::terminal::out(), "{schedule}")?,
        Format::Json => report::json(&serde_json::json!({
            "def": program.name(),
            "hash": program.hash().to_string(),
            "target": lowered.generated_for(),
            "threads": args.kernel.target.threads,
            "schedule": schedule,
        }))?,
    }
    Ok(())
}
