//! What people see of a failure, and the file that replays it.

use std::path::{Path, PathBuf};

use tensorwright_schedule::{Schedule, canonical, lower};

use super::Options;
use super::case::Case;
use super::failure::{Kind, Problem, Suspect};

/// Where files of this command go.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/differential")
}

/// A case that was made smaller.
pub(crate) struct Small {
    /// The case.
    pub(crate) case: Case,
    /// Everything that is wrong with it, from all code generators.
    pub(crate) problems: Vec<Problem>,
}

/// Says what failed and writes the small case to a file.
pub(crate) fn write(options: &Options, index: u64, case: &Case, problem: &Problem, small: &Small) {
    let seed = options.seed;
    let name = format!("seed-{seed}-index-{index}.case");
    let place = match std::fs::write(folder().join(&name), small.case.to_string()) {
        Ok(()) => format!("target/differential/{name}"),
        Err(error) => format!("no file ({error})"),
    };
    let problems: Vec<String> = small.problems.iter().map(ToString::to_string).collect();
    let nest = match (problem.suspect, problem.kind) {
        // Making the nest is what killed a process.
        (Suspect::Schedule, Kind::Crash | Kind::Hang) => String::new(),
        _ => nest(&small.case),
    };
    println!(
        "\n=== pair {index} of seed {seed}: {problem}\n{case}\n--- made small ({place}):\n{}\n{nest}\
         --- what is wrong with it:\n{}\n  replay: cargo run --release -p tensorwright-xtask -- \
         differential --replay {place}\n",
        small.case,
        problems.join("\n")
    );
}

/// The lowered nest of a case, as text.
pub(crate) fn nest(case: &Case) -> String {
    let text = || {
        let program = case.bind()?;
        let schedule = Schedule::parse(&case.schedule).map_err(|why| why.to_string())?;
        let nest = schedule.apply(canonical(&program)).map_err(|why| why.to_string())?;
        lower(nest).map(|nest| nest.to_string()).map_err(|why| why.to_string())
    };
    let text: String = text().unwrap_or_else(|why: String| why);
    format!("--- nest\n{text}\n")
}
