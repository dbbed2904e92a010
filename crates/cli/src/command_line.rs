//! Definition of the command line: one subcommand per file of `commands`.

use clap::{Parser, Subcommand};

use crate::args::{
    CheckArgs, CompileArgs, CompletionsArgs, ExplainArgs, ListArgs, LspArgs, MachineArgs, RunArgs,
    ScheduleArgs,
};
use crate::commands::cache::CacheArgs;
use crate::commands::compare::CompareArgs;
use crate::commands::config::ConfigArgs;
use crate::commands::cost_model::CostModelArgs;
use crate::commands::db::DbArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::fleet::FleetArgs;
use crate::commands::grad::GradArgs;
use crate::commands::landscape::LandscapeArgs;
use crate::commands::man::ManArgs;
use crate::commands::package::PackageArgs;
use crate::commands::report::ReportArgs;
use crate::commands::space::SpaceArgs;
use crate::commands::tune::TuneArgs;
use crate::commands::worker::WorkerArgs;
use crate::logging::LoggingArgs;

/// The last line of every `--help`.
const LEARN_MORE: &str =
    "The language is described in docs/language.md, with examples in examples/kernels/.";

/// The description of the command. A doc comment on [`Cli`] would be a doctest.
const ABOUT: &str = "\
A tensor compiler and autotuner: you write the mathematics of an operator, it finds fast code.

A file holds one or more definitions:

    def matmul(float(M,K) A, float(K,N) B) -> (C) {
      C(m,n) +=! A(m,k) * B(k,n)
    }

Index variables are implicit, `k` is summed because it stands only on the right, and all ranges
are inferred from the sizes. `run` compiles and runs a definition, `tune` searches for a faster
schedule and remembers it, `compile` and `package` write libraries.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "tensorwright", version = crate::version::text(), about = ABOUT.lines().next(), long_about = ABOUT)]
#[command(after_help = LEARN_MORE)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) logging: LoggingArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(CheckArgs),
    Explain(ExplainArgs),
    Grad(GradArgs),
    Run(RunArgs),
    Compile(CompileArgs),
    Package(PackageArgs),
    Schedule(ScheduleArgs),
    Space(SpaceArgs),
    Tune(TuneArgs),
    Worker(WorkerArgs),
    Fleet(FleetArgs),
    Landscape(LandscapeArgs),
    #[command(alias = "model")]
    CostModel(CostModelArgs),
    Compare(CompareArgs),
    List(ListArgs),
    Lsp(LspArgs),
    Machine(MachineArgs),
    Doctor(DoctorArgs),
    Db(DbArgs),
    Cache(CacheArgs),
    Report(ReportArgs),
    Config(ConfigArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_teaches_by_an_example_and_is_on_the_page() {
        let page = include_str!("../../../docs/cli.md");
        let command = super::Cli::command();
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{name} --help has no example");
            let shown = page.lines().filter_map(|line| line.strip_prefix("| `")).any(|row| {
                let row = row.strip_prefix("tensorwright ").unwrap_or(row);
                row.split([' ', '`']).next() == Some(name)
            });
            assert!(shown, "docs/cli.md has no row for {name}");
        }
    }
}
