//! Workspace tasks: `cargo run --release -p tensorwright-xtask -- fuzz`, `... -- differential`,
//! `... -- campaign` (both of them), `... -- tune`, `... -- study`, `... -- validate` and `... -- plans`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks on its streams")]

mod arguments;
mod campaign;
mod differential;
mod fuzz;
mod plans;
mod processor;
mod study;
mod summary;
mod tuning;
mod validate;

use std::process::ExitCode;

const USAGE: &str = "\
usage: xtask fuzz [--target NAME] [--count N] [--seed S] [--from INDEX] [--jobs J] [--max-bytes B]
                  [--replay FILE]
       xtask differential [--schedules random|space|policy] [--programs NAME] [--count N] [--seed S]
                          [--from INDEX] [--jobs J] [--emitters llvm,c,aarch64] [--c-every N]
                          [--sanitize] [--max-failures N]
       xtask differential [--schedules KIND] [--emitters LIST] --replay FILE
       xtask campaign --hours H [--resume] [--seed S] [--only KINDS] [--state FILE] [--recheck]
                      [--page FILE] [--full FILE]
       xtask tune [--trials N] [--sizes N] [--strategy NAME] [--seed S] [--from EXAMPLE]
                  [--command FILE] [--target NAME]
       xtask study states|times|throughput|growth [--only NAME] [--threads N] [--longest SECONDS]
                  [--seeds N] [--command FILE] [--plot FILE.svg]
       xtask validate [FOLDER]
       xtask plans [--check] [--only SUITE]

`fuzz` feeds mutated inputs to a target: texts (the front end), schedules, imports, databases, npy,
manifests, lsp. An input that panics, overflows the stack or takes too long is made small, written to
target/fuzz/ and reported; `--seed S --from INDEX --count 1` replays it.

`differential` compares what code generators make of programs with schedules with the reference. A
failure is made small, written to target/differential/ and reported.

`campaign` splits its time over all of these. It keeps what it has done in target/campaign.json, goes on
from there with `--resume`, replays its failures with `--recheck` and writes a page with `--page`. `--full`
records the line that `.ci/run full` wrote.

`tune` tunes every example at odd sizes with the command of a release build: no candidate may be wrong,
crash or fail to build.

`study` evaluates the pipeline search on the benchmark applications: tables 1 to 3
and figure 7 of Anderson et al. 2021, and how scheduling time grows with the stages of a program.

`validate` compiles each emitted text that is kept as a snapshot once, with a compiler that is not ours:
clang, NVRTC or rustc.

`plans` writes the untuned schedules and predicted cycles of all examples and workloads to tests/plans;
`--check` compares instead, and reports every difference.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((command, rest)) if command == "fuzz" => {
            fuzz::FuzzOptions::parse(rest).and_then(fuzz::run)
        }
        Some((command, rest)) if command == "differential" => {
            differential::DifferentialOptions::parse(rest).and_then(differential::run)
        }
        Some((command, rest)) if command == "campaign" => {
            campaign::CampaignOptions::parse(rest).and_then(|options| campaign::run(&options))
        }
        Some((command, rest)) if command == "tune" => {
            tuning::TuningOptions::parse(rest).and_then(|options| tuning::run(&options))
        }
        Some((command, rest)) if command == "study" => {
            study::StudyOptions::parse(rest).and_then(|options| study::run(&options))
        }
        Some((command, rest)) if command == "validate" => validate::run(rest),
        Some((command, rest)) if command == "plans" => {
            plans::PlansOptions::parse(rest).and_then(|options| plans::run(&options))
        }
        _ => Err("no such command".to_owned()),
    };
    result.unwrap_or_else(|message| {
        eprintln!("{message}\n\n{USAGE}");
        ExitCode::from(2)
    })
}
