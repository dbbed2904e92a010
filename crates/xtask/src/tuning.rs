//! Tunes every example at odd sizes; any defect is a failure.
//!
//! Runs the command as a user would: no candidate may be wrong, crash or fail to build.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use serde_json::Value;
use tensorwright_testkit::Rng;

use crate::arguments::{self, number};
use crate::differential::programs::Example;
use crate::differential::programs::examples::Examples;

/// The options of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TuningOptions {
    /// The `tensorwright` executable.
    command: PathBuf,
    /// The number of sizes per example.
    sizes: u64,
    /// The trials per run.
    trials: u64,
    /// The strategy.
    strategy: String,
    /// The seed of the sizes and of the search.
    seed: u64,
    /// The first example.
    from: usize,
    /// The target device; the processor by default.
    target: Option<String>,
}

impl TuningOptions {
    /// Reads the arguments after the command's name.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let command =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/tensorwright");
        let strategy = "random".to_owned();
        let mut options =
            Self { command, sizes: 3, trials: 50, strategy, seed: 0, from: 0, target: None };
        arguments::read(arguments, &[], |name, value| {
            match name {
                "--command" => options.command = PathBuf::from(value),
                "--sizes" => options.sizes = number(name, value)?,
                "--trials" => options.trials = number(name, value)?,
                "--strategy" => value.clone_into(&mut options.strategy),
                "--seed" => options.seed = number(name, value)?,
                "--from" => options.from = number(name, value)?,
                "--target" => options.target = Some(value.to_owned()),
                _ => return Err(arguments::unknown(name)),
            }
            Ok(())
        })?;
        Ok(options)
    }
}

/// Tunes all examples and counts the outcomes.
pub(crate) fn run(options: &TuningOptions) -> Result<ExitCode, String> {
    let examples = Examples::load()?;
    let definitions = examples.definitions();
    let folder = tempfile::Builder::new().prefix("tensorwright-odd-").tempdir();
    let mut folder = folder.map_err(|error| error.to_string())?;
    let started = Instant::now();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut failures = 0;
    for (number, golden) in definitions.iter().enumerate().skip(options.from) {
        for index in 0..options.sizes {
            let mut rng = Rng::of(options.seed, number as u64 * options.sizes + index);
            // Some examples are valid only at few sizes.
            let odd = Examples::at_odd_sizes(golden, &mut rng);
            let example = odd.unwrap_or_else(|| (*golden).clone());
            match tune(options, &example, folder.path())? {
                Ok(outcomes) => {
                    for (kind, count) in outcomes {
                        *counts.entry(kind).or_default() += count;
                    }
                }
                Err(why) => {
                    failures += 1;
                    println!("tune: {} at {}: {why}", example.def, sizes(&example));
                }
            }
        }
        eprintln!(
            "tune: {} of {} examples in {} s, {failures} failed",
            number + 1,
            definitions.len(),
            started.elapsed().as_secs()
        );
    }
    if failures > 0 {
        // The cases of the defects are next to the records.
        folder.disable_cleanup(true);
    }
    let counts: Vec<String> = counts.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    println!(
        "tune: {} examples at {} sizes each in {} s: {}; {failures} failed",
        definitions.len().saturating_sub(options.from),
        options.sizes,
        started.elapsed().as_secs(),
        counts.join(", ")
    );
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The outcomes of an example by kind, or an error.
fn tune(
    options: &TuningOptions,
    example: &Example,
    folder: &Path,
) -> Result<Result<BTreeMap<String, u64>, String>, String> {
    let file = folder.join("example.tc");
    std::fs::write(&file, &example.text).map_err(|error| error.to_string())?;
    let mut command = Command::new(&options.command);
    command.arg("tune").arg(&file).args(["--def", &example.def, "--deny-defects"]);
    command.args(["--strategy", &options.strategy, "--format", "json", "--fresh"]);
    command.args(["--trials", &options.trials.to_string(), "--seed", &options.seed.to_string()]);
    command.arg("--db").arg(folder.join("records.sqlite3"));
    if let Some(target) = &options.target {
        command.args(["--target", target]);
    }
    if !example.sizes.is_empty() {
        command.args(["--size", &sizes(example)]);
    }
    let output =
        command.output().map_err(|error| format!("{}: {error}", options.command.display()))?;
    let tuned: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let outcomes: BTreeMap<String, u64> =
        serde_json::from_value(tuned["outcomes"].clone()).unwrap_or_default();
    let bad = ["wrong-result", "crashed", "build-failed", "device-lost"];
    let is_bad = bad.iter().any(|kind| outcomes.contains_key(*kind));
    if output.status.success() && !is_bad && outcomes.contains_key("measured") {
        return Ok(Ok(outcomes));
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Ok(Err(format!("{}: {outcomes:?}\n{errors}", output.status)))
}

fn sizes(example: &Example) -> String {
    let sizes = example.sizes.iter().map(|(name, value)| format!("{name}={value}"));
    sizes.collect::<Vec<_>>().join(",")
}
