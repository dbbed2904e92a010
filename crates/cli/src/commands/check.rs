//! `tensorwright check`

use std::io::Write;

use crate::args::{CheckArgs, Format};
use crate::failure::{Failure, Outcome};
use crate::{files, report};

/// Checks all files and reports their problems.
pub(crate) fn run(args: &CheckArgs) -> Outcome {
    let format = args.output.format;
    let mut failed = false;
    let mut all = Vec::new();
    for path in &args.files {
        let (diagnostics, defs) = match files::module(path) {
            Ok(module) => (module.warnings(), Some(module.defs().count())),
            Err(diagnostics) => (diagnostics, None),
        };
        failed |= defs.is_none();
        match format {
            Format::Json => all.extend(report::as_json(&diagnostics)),
            Format::Text => {
                report::problems(&diagnostics, format);
                if let Some(defs) = defs {
                    let plural = if defs == 1 { "" } else { "s" };
                    let name = path.display();
                    writeln!(crate::terminal::out(), "{name}: ok, {defs} definition{plural}")?;
                }
            }
        }
    }
    if format == Format::Json {
        report::json(&serde_json::json!({ "ok": !failed, "diagnostics": all }))?;
    }
    if failed { Err(Failure::Reported) } else { Ok(()) }
}
