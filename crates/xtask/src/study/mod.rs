//! What the search over pipelines is worth, and what makes it fast: tables 1 to 3 and figure 7 of Anderson et al. 2021 on the
//! applications of the benchmarks, and how scheduling time grows with the stages of a program.
//!
//! | command | what it prints |
//! | --- | --- |
//! | `study states` | table 1: states that the beam asks about, with sampling and freezing on and off, and the cost of what it finds |
//! | `study times` | tables 2 and 3: seconds, with memoization on and off as well |
//! | `study throughput` | figure 7: what the schedules take that were found, the first and the best of five |
//! | `study growth` | scheduling time of chains of 4 to 256 stencils, and a plot |

mod applications;
mod growth;
mod svg;
mod switches;
mod tables;
mod throughput;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tensorwright_machine::{Goal, Target};

use crate::arguments::{self, number};

/// The options of a study.
#[derive(Debug, Clone)]
pub(crate) struct StudyOptions {
    /// Which one.
    what: String,
    /// The command `tensorwright`, whose processes measure schedules.
    command: PathBuf,
    /// Applications whose name contains this.
    only: String,
    /// The workers that schedules are for.
    threads: usize,
    /// How long one search may take.
    longest: Duration,
    /// Searches of each kind, which differ by their seed.
    seeds: u64,
    /// Where a plot goes.
    plot: Option<PathBuf>,
}

impl StudyOptions {
    /// Reads the arguments after the command's name.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let Some((what, rest)) = arguments.split_first() else {
            return Err("study what? states, times, throughput or growth".to_owned());
        };
        let command =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/tensorwright");
        let mut options = Self {
            what: what.clone(),
            command,
            only: String::new(),
            threads: 1,
            longest: Duration::from_secs(300),
            seeds: 3,
            plot: None,
        };
        arguments::read(rest, &[], |name, value| {
            match name {
                "--command" => options.command = PathBuf::from(value),
                "--only" => value.clone_into(&mut options.only),
                "--threads" => options.threads = number(name, value)?,
                "--longest" => options.longest = Duration::from_secs(number(name, value)?),
                "--seeds" => options.seeds = number(name, value)?,
                "--plot" => options.plot = Some(PathBuf::from(value)),
                _ => return Err(arguments::unknown(name)),
            }
            Ok(())
        })?;
        Ok(options)
    }

    /// This machine, with the workers that schedules are for.
    fn goal(&self) -> Result<Goal, String> {
        let target = Target::native().map_err(|error| error.to_string())?;
        Ok(Goal::new(target).with_threads(self.threads))
    }
}

/// Runs a study.
pub(crate) fn run(options: &StudyOptions) -> Result<ExitCode, String> {
    match options.what.as_str() {
        "states" => tables::states(options)?,
        "times" => tables::times(options)?,
        "throughput" => throughput::run(options)?,
        "growth" => growth::run(options)?,
        other => {
            return Err(format!(
                "no study `{other}`: there are states, times, throughput and growth"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The geometric mean of numbers above zero.
fn mean(numbers: &[f64]) -> f64 {
    let sum: f64 = numbers.iter().map(|number| number.ln()).sum();
    (sum / numbers.len().max(1) as f64).exp()
}
