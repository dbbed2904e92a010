//! Studies of the pipeline search.
//!
//! Tables 1 to 3 and figure 7 of Anderson et al. 2021 on the benchmark applications, and scheduling
//! time over the number of stages.
//!
//! | command | what it prints |
//! | --- | --- |
//! | `study states` | table 1: states evaluated with sampling and freezing on and off, and costs |
//! | `study times` | tables 2 and 3: seconds, also with memoization on and off |
//! | `study throughput` | figure 7: run times of the schedules, first and best of five |
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
    /// Which study.
    what: String,
    /// The `tensorwright` executable, whose processes measure schedules.
    command: PathBuf,
    /// Selects applications whose name contains this.
    only: String,
    /// The number of threads of schedules.
    threads: usize,
    /// The time limit of one search.
    longest: Duration,
    /// Searches of each kind, with different seeds.
    seeds: u64,
    /// The output file of the plot.
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

    /// This machine with the selected threads.
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
