//! One file per subcommand, and what they share.

pub(crate) mod check;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod machine;
pub(crate) mod run;
mod scalar;
pub(crate) mod schedule;

use std::collections::BTreeMap;

use tensorwright::{
    Code, CpuTarget, Def, Diagnostic, Diagnostics, KernelBuilder, Module, Program, Source,
};

use crate::args::{KernelArgs, ProgramArgs};
use crate::files;

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

/// The program of the command line, with all sizes given there.
pub(crate) fn program(args: &ProgramArgs) -> Result<Program, Diagnostics> {
    let module = files::module(&args.file)?;
    chosen(&module, args)?.bind(sizes(args))
}

/// A program with the schedule, target and threads of the command line.
pub(crate) fn kernel<'p>(
    program: &'p Program,
    args: &KernelArgs,
) -> Result<KernelBuilder<'p>, Diagnostics> {
    let mut builder = program.compile().target(target(&args.target)?).threads(args.threads.into());
    if let Some(path) = &args.schedule {
        builder = builder.schedule_source(files::schedule(path)?)?;
    }
    Ok(builder)
}

fn target(name: &str) -> Result<CpuTarget, Diagnostics> {
    CpuTarget::named(name).map_err(|_| {
        let message = format!("there is no target `{name}`");
        let diagnostic = Diagnostic::without_place(Code::UnknownTarget, message)
            .help(format!("the targets are {}", CpuTarget::NAMES.join(", ")));
        Diagnostics::new(Source::new("--target", ""), vec![diagnostic])
    })
}
