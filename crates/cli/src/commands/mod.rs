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
pub(crate) mod package;
pub(crate) mod report;
pub(crate) mod run;
mod scalar;
pub(crate) mod schedule;
pub(crate) mod space;
pub(crate) mod tune;
pub(crate) mod worker;

use std::collections::BTreeMap;

use tensorwright::{Def, Diagnostics, KernelBuilder, Module, Program, Source, Target, TargetError};

use tensorwright_tuner::Wanted;

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
    module.chosen(name, "with --def")
}

/// The sizes of the command line, none of which may vary; the last one of a name counts.
pub(crate) fn sizes(args: &ProgramArgs) -> Result<BTreeMap<String, i64>, Diagnostics> {
    crate::sizes::exact(&args.sizes)
}

/// The program of the command line, with all sizes given there.
pub(crate) fn program(args: &ProgramArgs) -> Result<Program, Diagnostics> {
    let module = files::module(&args.file)?;
    chosen(&module, args)?.bind(sizes(args)?)
}

/// A program with the schedule, target and threads of the command line: the given schedule, or the
/// best of the records, or the default one.
pub(crate) fn kernel<'p>(
    program: &'p Program,
    args: &KernelArgs,
) -> Result<KernelBuilder<'p>, Diagnostics> {
    let (target, threads) = (target(&args.target.target)?, args.target.threads);
    let precision = args.target.precision();
    let mut builder =
        program.compile().target(target.clone()).threads(threads.into()).precision(precision);
    if let Some(path) = &args.schedule {
        builder = builder.schedule_source(files::schedule(path)?)?;
    } else if !args.untuned {
        let wanted = Wanted { program, threads: threads.into(), target: &target, precision };
        if let Some(found) = tuned::best(&wanted, args.db.as_deref()) {
            builder = builder.schedule(found);
        }
    }
    Ok(builder)
}

/// The target of a name.
pub(crate) fn target(name: &str) -> Result<Target, Diagnostics> {
    Target::named(name).map_err(|error| unavailable(&error))
}

/// Says what is wrong with a target.
pub(crate) fn unavailable(error: &TargetError) -> Diagnostics {
    Diagnostics::new(Source::new("--target", ""), vec![error.diagnostic()])
}
