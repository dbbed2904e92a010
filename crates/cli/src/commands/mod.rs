//! One file per subcommand, and what they share.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod run;
mod scalar;

use std::collections::BTreeMap;

use tensorwright::{Code, Def, Diagnostic, Diagnostics, Module};

use crate::args::ProgramArgs;

/// The definition that is meant: the named one, or the only one.
pub(crate) fn chosen<'m>(module: &'m Module, args: &ProgramArgs) -> Result<Def<'m>, Diagnostics> {
    if let Some(name) = &args.def {
        return module.def(name);
    }
    let mut defs = module.defs();
    if let (Some(only), None) = (defs.next(), defs.next()) {
        return Ok(only);
    }
    let names: Vec<&str> = module.defs().map(|def| def.name()).collect();
    let (message, help) = match names.as_slice() {
        [] => {
            (format!("{} has no definitions", module.source().name()), "write a `def`".to_owned())
        }
        names => (
            format!("{} has {} definitions", module.source().name(), names.len()),
            format!("choose one with --def: {}", names.join(", ")),
        ),
    };
    let diagnostic = Diagnostic::without_place(Code::NoSuchDef, message).help(help);
    Err(Diagnostics::new(module.source().clone(), vec![diagnostic]))
}

/// The sizes of the command line; the last one of a name counts.
pub(crate) fn sizes(args: &ProgramArgs) -> BTreeMap<String, i64> {
    args.sizes.iter().cloned().collect()
}
