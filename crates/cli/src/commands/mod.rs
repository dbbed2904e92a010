//! One file per subcommand, and what they share.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod db;
pub(crate) mod explain;
pub(crate) mod grad;
pub(crate) mod landscape;
pub(crate) mod list;
pub(crate) mod lsp;
pub(crate) mod machine;
pub(crate) mod report;
pub(crate) mod run;
mod scalar;
pub(crate) mod schedule;
pub(crate) mod space;
pub(crate) mod tune;
pub(crate) mod worker;

use std::collections::BTreeMap;

use tensorwright::{
    Code, CpuTarget, Def, Diagnostic, Diagnostics, KernelBuilder, Module, Program, Source,
};

use crate::args::{KernelArgs, ProgramArgs};
use crate::files;
use crate::tuned;

/// The definition that is meant: the named one, or the only one.
pub(crate) fn chosen<'m>(module: &'m Module, args: &ProgramArgs) -> Result<Def<'m>, Diagnostics> {
    chosen_def(module, args.def.as_deref())
}

/// The definition of a name, or the only one.
pub(crate) fn chosen_def<'m>(
    module: &'m Module,
    name: Option<&str>,
) -> Result<Def<'m>, Diagnostics> {
    if let Some(name) = name {
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

/// A program with the schedule, target and threads of the command line: the given schedule, or the
/// best of the records, or the default one.
pub(crate) fn kernel<'p>(
    program: &'p Program,
    args: &KernelArgs,
) -> Result<KernelBuilder<'p>, Diagnostics> {
    let (target, threads) = (target(&args.target.target)?, args.target.threads);
    let exact = args.target.exact;
    let mut builder = program.compile().target(target.clone()).threads(threads.into()).exact(exact);
    if let Some(path) = &args.schedule {
        builder = builder.schedule_source(files::schedule(path)?)?;
    } else if !args.untuned
        && let Some(found) =
            tuned::best(program, threads.into(), &target, exact, args.db.as_deref())
    {
        builder = builder.schedule(found);
    }
    Ok(builder)
}

/// The target of a name.
pub(crate) fn target(name: &str) -> Result<CpuTarget, Diagnostics> {
    CpuTarget::named(name).map_err(|_| {
        let message = format!("there is no target `{name}`");
        let diagnostic = Diagnostic::without_place(Code::UnknownTarget, message)
            .help(format!("the targets are {}", CpuTarget::NAMES.join(", ")));
        Diagnostics::new(Source::new("--target", ""), vec![diagnostic])
    })
}
