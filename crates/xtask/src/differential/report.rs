//! Failure reports and replay files.

use std::path::{Path, PathBuf};

use tensorwright_schedule::{Schedule, canonical, lower};

use super::DifferentialOptions;
use super::case::Case;
use super::failure::{Kind, Problem, Suspect};

/// The output folder.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/differential")
}

/// A minimised case.
pub(crate) struct MinimisedCase {
    /// The case.
    pub(crate) case: Case,
    /// All its problems, from all code generators.
    pub(crate) problems: Vec<Problem>,
}

/// Prints a failure and writes its minimised case to a file, whose name it returns. Without a case,
/// drawing it failed.
pub(crate) fn write(
    options: &DifferentialOptions,
    index: u64,
    case: Option<(&Case, &MinimisedCase)>,
    problem: &Problem,
) -> String {
    let (seed, schedules) = (options.seed, options.schedules.name());
    let head = format!("\n=== pair {index} of seed {seed} with {schedules} schedules: {problem}");
    let command = "cargo run --release -p tensorwright-xtask -- differential";
    let again = format!("{command} --schedules {schedules}");
    let Some((case, small)) = case else {
        let replay = format!("{again} --seed {seed} --from {index} --count 1");
        println!("{head}\n  replay: {replay}\n");
        return String::new();
    };
    let name = format!("{schedules}-seed-{seed}-index-{index}.case");
    let place = match std::fs::write(folder().join(&name), small.case.to_string()) {
        Ok(()) => format!("target/differential/{name}"),
        Err(error) => format!("no file ({error})"),
    };
    let problems: Vec<String> = small.problems.iter().map(ToString::to_string).collect();
    let nest = match (problem.suspect, problem.kind) {
        // Making the nest killed a process.
        (Suspect::Schedule, Kind::Crash | Kind::Hang) => String::new(),
        _ => nest(&small.case),
    };
    println!(
        "{head}\n{case}\n--- made small ({place}):\n{}\n{nest}--- what is wrong with it:\n{}\n  \
         replay: {again} --replay {place}\n",
        small.case,
        problems.join("\n")
    );
    place
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
