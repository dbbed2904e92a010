//! Chores of the workspace that are programs: `cargo run --release -p tensorwright-xtask -- fuzz`
//! and `... -- differential`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks on its streams")]

mod differential;
mod fuzz;
mod processor;
mod summary;

use std::process::ExitCode;

const USAGE: &str = "\
usage: xtask fuzz [--count N] [--seed S] [--from INDEX] [--jobs J] [--max-bytes B]
       xtask differential [--count N] [--seed S] [--from INDEX] [--jobs J] [--emitters llvm,c]
                          [--sanitize] [--max-failures N]
       xtask differential --replay FILE

`fuzz` feeds mutated programs to the front end. An input that panics, overflows the stack or takes
too long is written to target/fuzz/ and reported; `--seed S --from INDEX --count 1` replays it.

`differential` compares what code generators make of random programs with random schedules with
the reference. A failure is made small, written to target/differential/ and reported.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((command, rest)) if command == "fuzz" => fuzz::Options::parse(rest).map(fuzz::run),
        Some((command, rest)) if command == "differential" => {
            differential::Options::parse(rest).and_then(differential::run)
        }
        _ => Err("no such command".to_owned()),
    };
    result.unwrap_or_else(|message| {
        eprintln!("{message}\n\n{USAGE}");
        ExitCode::from(2)
    })
}
