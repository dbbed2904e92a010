//! Options of the fuzzer.

use std::path::PathBuf;
use std::thread::available_parallelism;

use super::targets::{TARGETS, Target};
use crate::arguments::{self, number};

/// The options of a run.
#[derive(Clone)]
pub(crate) struct FuzzOptions {
    /// The fuzz target.
    pub(crate) target: &'static Target,
    /// The number of inputs.
    pub(crate) count: u64,
    /// The seed.
    pub(crate) seed: u64,
    /// The first index.
    pub(crate) from: u64,
    /// The number of threads.
    pub(crate) jobs: usize,
    /// The length limit of inputs.
    pub(crate) max_bytes: usize,
    /// Bytes that replace the first input.
    pub(crate) replay: Option<PathBuf>,
    /// The output file of the summary.
    pub(crate) summary: Option<PathBuf>,
    /// Whether this process runs the inputs itself.
    pub(crate) is_child: bool,
}

impl FuzzOptions {
    /// Reads the arguments after the command's name.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            target: &TARGETS[0],
            replay: None,
            summary: None,
            count: 100_000,
            seed: 0,
            from: 0,
            jobs: available_parallelism().map_or(1, usize::from),
            max_bytes: 200_000,
            is_child: false,
        };
        arguments::read(arguments, &["--child"], |name, value| {
            match name {
                "--child" => options.is_child = true,
                "--count" => options.count = number(name, value)?,
                "--seed" => options.seed = number(name, value)?,
                "--from" => options.from = number(name, value)?,
                "--jobs" => options.jobs = number::<usize>(name, value)?.clamp(1, 256),
                "--replay" => options.replay = Some(PathBuf::from(value)),
                "--summary" => options.summary = Some(PathBuf::from(value)),
                "--target" => {
                    options.target = Target::named(value).ok_or_else(|| {
                        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
                        format!("no target `{value}`; there are {}", names.join(", "))
                    })?;
                }
                "--max-bytes" => options.max_bytes = number(name, value)?,
                _ => return Err(arguments::unknown(name)),
            }
            Ok(())
        })?;
        Ok(options)
    }

    /// The arguments for a child process with these inputs.
    pub(crate) fn for_child(&self) -> Vec<String> {
        let Self { count, seed, from, jobs, max_bytes, target, .. } = self;
        let text = format!(
            "--child --count {count} --seed {seed} --from {from} --jobs {jobs} \
             --max-bytes {max_bytes} --target {}",
            target.name
        );
        let mut arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if let Some(file) = &self.replay {
            arguments.extend(["--replay".to_owned(), file.display().to_string()]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FuzzOptions, String> {
        let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        FuzzOptions::parse(&arguments)
    }

    #[test]
    fn the_child_gets_what_the_parent_got() {
        let text = "--count 1_000 --seed 7 --from 3 --jobs 2 --max-bytes 99 --target npy";
        let options = parse(text).unwrap();
        let child = FuzzOptions::parse(&options.for_child()).unwrap();
        assert!(child.is_child && !options.is_child);
        assert_eq!(child.for_child(), options.for_child());
        assert_eq!((child.target.name, child.count, child.from), ("npy", 1000, 3));
    }

    #[test]
    fn mistakes_are_named() {
        let mistake = |text: &str| parse(text).err().unwrap();
        assert_eq!(mistake("--count"), "--count needs a value");
        assert_eq!(mistake("--count x"), "--count needs a number, not `x`");
        assert_eq!(mistake("--cuont 1"), "no option --cuont");
        let targets = "texts, schedules, imports, databases, npy, manifests, lsp";
        let expected = format!("no target `c`; there are {targets}");
        assert_eq!(mistake("--target c"), expected);
    }
}
