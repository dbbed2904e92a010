//! `tensorwright explain`

use std::io::Write;

use super::{chosen, sizes};
use crate::args::{ExplainArgs, Format};
use crate::failure::{InFormat, Outcome};
use crate::{files, report};

/// Explains a definition for given sizes.
pub(crate) fn run(args: &ExplainArgs) -> Outcome {
    let format = args.output.format;
    let module = files::module_with(&args.program.file).in_format(format)?;
    let def = chosen(&module, &args.program).in_format(format)?;
    let sizes = sizes(&args.program).in_format(format)?;
    let program = def.bind(sizes).in_format(format)?;
    if args.text {
        return Ok(write!(crate::terminal::out(), "{program}")?);
    }
    let mut explanation = program.explain();
    // A single stage has nothing to place.
    if explanation.stages.len() > 1 {
        let lowered = super::kernel(&program, &args.kernel).and_then(|kernel| kernel.lower());
        explanation = explanation.with_stage_map(lowered.in_format(format)?.stage_map());
    }
    match format {
        Format::Text => write!(crate::terminal::out(), "{explanation}")?,
        Format::Json => report::json(&explanation)?,
    }
    Ok(())
}
