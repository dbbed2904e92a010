//! The subcommands, one file each, and their shared functions.

pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cost_model;
pub(crate) mod db;
pub(crate) mod doctor;
pub(crate) mod explain;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;
#[cfg(not(feature = "fleet"))]
#[path = "no_fleet.rs"]
pub(crate) mod fleet;
pub(crate) mod grad;
pub(crate) mod landscape;
pub(crate) mod list;
pub(crate) mod lsp;
pub(crate) mod machine;
pub(crate) mod man;
pub(crate) mod package;
pub(crate) mod report;
pub(crate) mod run;
mod scalar;
pub(crate) mod schedule;
pub(crate) mod space;
pub(crate) mod tune;
pub(crate) mod worker;

use std::collections::BTreeMap;

use tensorwright::{
    Def, Diagnostics, Goal, KernelBuilder, Module, Program, Source, Target, TargetError,
};

use tensorwright_tuner::ScheduleQuery;

use crate::args::{KernelArgs, ProgramArgs, TargetArgs};
use crate::files;
use crate::tuned;

/// The selected definition: the named one, or the only one.
pub(crate) fn chosen<'m>(module: &'m Module, args: &ProgramArgs) -> Result<Def<'m>, Diagnostics> {
    chosen_def(module, args.def.as_deref())
}

/// The definition with a name, or the only one.
pub(crate) fn chosen_def<'m>(
    module: &'m Module,
    name: Option<&str>,
) -> Result<Def<'m>, Diagnostics> {
    let def = module.chosen(name, "with --def")?;
    let broken = module.broken();
    if !broken.is_empty() {
        let (file, names) = (module.source().name(), broken.join("`, `"));
        eprintln!("note: `{names}` cannot be used: `tensorwright check {file}` says why");
    }
    Ok(def)
}

/// The sizes of the command line, all of them fixed.
pub(crate) fn sizes(args: &ProgramArgs) -> Result<BTreeMap<String, i64>, Diagnostics> {
    crate::sizes::exact(&args.sizes)
}

/// The program of the command line, with all sizes bound.
pub(crate) fn program(args: &ProgramArgs) -> Result<Program, Diagnostics> {
    let module = files::module_with(&args.file)?;
    chosen(&module, args)?.bind(sizes(args)?)
}

/// A program with the target, threads and schedule of the command line: the given schedule, else
/// the best recorded one, else the default one.
pub(crate) fn kernel<'p>(
    program: &'p Program,
    args: &KernelArgs,
) -> Result<KernelBuilder<'p>, Diagnostics> {
    let goal = goal(&args.target)?;
    let builder = program.compile().target(goal.target.clone()).threads(goal.threads());
    let mut builder = builder.precision(goal.precision);
    if let Some(path) = &args.schedule {
        builder = builder.schedule_source(files::schedule(path)?)?;
    } else if !args.untuned
        && let Some(found) = tuned::best(&ScheduleQuery { program, goal: &goal }, args.db.as_ref())?
    {
        builder = builder.schedule(found);
    }
    Ok(builder)
}

/// The target, threads and precision of the command line.
pub(crate) fn goal(args: &TargetArgs) -> Result<Goal, Diagnostics> {
    let goal = Goal::new(target(&args.target)?).with_precision(args.precision());
    Ok(goal.with_threads(args.threads.into()))
}

/// The target with a name.
pub(crate) fn target(name: &str) -> Result<Target, Diagnostics> {
    tensorwright::target(name).map_err(|error| unavailable(&error))
}

/// The diagnostic for an unavailable target.
pub(crate) fn unavailable(error: &TargetError) -> Diagnostics {
    Diagnostics::new(Source::new("--target", ""), vec![error.diagnostic()])
}
