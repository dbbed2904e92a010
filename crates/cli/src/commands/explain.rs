//! `tensorwright explain`

use std::io::Write;

use super::{chosen, sizes};
use crate::args::{ExplainArgs, Format};
use crate::failure::{InFormat, Outcome};
use crate::{files, report};

/// Explains a definition for given sizes.
pub(crate) fn run(args: &ExplainArgs) -> Outcome {
    let format = args.output.format;
    let module = files::module(&args.program.file).in_format(format)?;
    let def = chosen(&module, &args.program).in_format(format)?;
    let sizes = sizes(&args.program).in_format(format)?;
    let program = def.bind(sizes).in_format(format)?;
    if args.text {
        return Ok(write!(std::io::stdout(), "{program}")?);
    }
    match format {
        Format::Text => write!(std::io::stdout(), "{}", program.explain())?,
        Format::Json => report::json(&program.explain())?,
    }
    Ok(())
}
