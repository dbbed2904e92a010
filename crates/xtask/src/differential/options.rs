//! Options of the differential fuzzer.

use std::path::PathBuf;
use std::thread::available_parallelism;

use super::draw::SCHEDULES;
use super::failure::Suspect;
use super::programs::Programs;
use super::schedules::Kind;
use crate::arguments::{self, number};

/// Pairs per process: enough to amortise its start.
const CHUNK: u64 = 256;

/// Pairs per process with sanitizers, which compile slowly.
const SANITIZED_CHUNK: u64 = 16;

/// The options of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DifferentialOptions {
    /// The number of pairs.
    pub(crate) count: u64,
    /// The seed.
    pub(crate) seed: u64,
    /// The first index.
    pub(crate) from: u64,
    /// The number of parallel processes.
    pub(crate) jobs: usize,
    /// The code generators.
    pub(crate) emitters: Vec<Suspect>,
    /// The kind of schedules.
    pub(crate) schedules: Kind,
    /// The only source of programs; all by default.
    pub(crate) programs: Option<String>,
    /// The OpenCL device.
    pub(crate) device: String,
    /// One program in this many is compiled as C, which takes longer than the rest.
    pub(crate) c_every: u64,
    /// Whether to run only the renaming test.
    pub(crate) renamed: bool,
    /// Whether C is compiled with sanitizers.
    pub(crate) sanitize: bool,
    /// The number of failures to stop at.
    pub(crate) max_failures: usize,
    /// A case to replay instead.
    pub(crate) replay: Option<PathBuf>,
    /// The output file of the summary.
    pub(crate) summary: Option<PathBuf>,
    /// Whether this process runs the pairs itself.
    pub(crate) is_child: bool,
    /// Indices that have killed a process.
    pub(crate) skip: Vec<u64>,
}

impl DifferentialOptions {
    /// Reads the arguments after the command's name.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            count: 2000,
            seed: 0,
            from: 0,
            jobs: available_parallelism().map_or(1, usize::from),
            emitters: vec![Suspect::Llvm, Suspect::C],
            schedules: Kind::Random,
            programs: None,
            device: "opencl:0".to_owned(),
            c_every: 1,
            renamed: false,
            sanitize: false,
            max_failures: 20,
            replay: None,
            summary: None,
            is_child: false,
            skip: Vec::new(),
        };
        let flags = ["--child", "--sanitize", "--renamed"];
        arguments::read(arguments, &flags, |name, value| options.set(name, value))?;
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--child" => self.is_child = true,
            "--sanitize" => self.sanitize = true,
            "--renamed" => self.renamed = true,
            "--count" => self.count = number(name, value)?,
            "--seed" => self.seed = number(name, value)?,
            "--from" => self.from = number(name, value)?,
            "--jobs" => self.jobs = number::<usize>(name, value)?.clamp(1, 256),
            "--max-failures" => self.max_failures = number::<usize>(name, value)?.max(1),
            "--skip" => self.skip.push(number(name, value)?),
            "--replay" => self.replay = Some(PathBuf::from(value)),
            "--summary" => self.summary = Some(PathBuf::from(value)),
            "--c-every" => self.c_every = number::<u64>(name, value)?.max(1),
            "--device" => self.device = value.to_owned(),
            "--schedules" => {
                self.schedules = Kind::named(value).ok_or_else(|| {
                    let names: Vec<&str> = Kind::names().collect();
                    format!("no schedules `{value}`; there are {}", names.join(", "))
                })?;
            }
            "--programs" => {
                let value = value.replace('-', " ");
                if !Programs::names().any(|name| name == value) {
                    let names: Vec<&str> = Programs::names().collect();
                    return Err(format!("no programs `{value}`; there are {}", names.join(", ")));
                }
                self.programs = Some(value);
            }
            "--emitters" => {
                let emitter = |name: &str| match Suspect::named(name) {
                    Some(emitter) if emitter != Suspect::Schedule => Ok(emitter),
                    _ => Err(format!(
                        "no emitter `{name}`; there are `llvm`, `c`, `aarch64`, `cuda` and `opencl`"
                    )),
                };
                self.emitters = value.split(',').map(emitter).collect::<Result<_, _>>()?;
            }
            _ => return Err(arguments::unknown(name)),
        }
        Ok(())
    }

    /// The pairs per process.
    pub(crate) fn chunk(&self) -> u64 {
        let chunk = if self.sanitize { SANITIZED_CHUNK } else { CHUNK };
        chunk.min(self.count.div_ceil(self.jobs as u64)).max(1).next_multiple_of(SCHEDULES)
    }

    /// Whether the pair of an index is compiled as C.
    pub(crate) fn makes_c(&self, index: u64) -> bool {
        self.emitters.contains(&Suspect::C) && (index / SCHEDULES).is_multiple_of(self.c_every)
    }

    /// The arguments for a child process with these pairs.
    pub(crate) fn for_child(&self) -> Vec<String> {
        let Self { count, seed, from, .. } = self;
        let emitters: Vec<&str> = self.emitters.iter().map(|emitter| emitter.name()).collect();
        let text = format!(
            "--child --count {count} --seed {seed} --from {from} --emitters {} --schedules {} \
             --c-every {} --device {}",
            emitters.join(","),
            self.schedules.name(),
            self.c_every,
            self.device
        );
        let mut arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        arguments.extend(self.sanitize.then(|| "--sanitize".to_owned()));
        arguments.extend(self.renamed.then(|| "--renamed".to_owned()));
        arguments.extend(self.skip.iter().flat_map(|index| ["--skip".into(), index.to_string()]));
        if let Some(programs) = &self.programs {
            arguments.extend(["--programs".to_owned(), programs.replace(' ', "-")]);
        }
        if let Some(file) = &self.replay {
            arguments.extend(["--replay".to_owned(), file.display().to_string()]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DifferentialOptions, String> {
        let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        DifferentialOptions::parse(&arguments)
    }

    #[test]
    fn the_child_gets_what_matters() {
        let parent = "--count 1_000 --seed 7 --from 3 --emitters c --sanitize --renamed --skip 4 --skip 9 \
                      --schedules space --programs odd-sizes --c-every 3";
        let options = parse(parent).unwrap();
        let child = DifferentialOptions::parse(&options.for_child()).unwrap();
        assert_eq!(child, DifferentialOptions { is_child: true, ..options });
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse("--count").unwrap_err(), "--count needs a value");
        assert_eq!(parse("--cuont 1").unwrap_err(), "no option --cuont");
        let expected = "no emitter `metal`; there are `llvm`, `c`, `aarch64`, `cuda` and `opencl`";
        assert_eq!(parse("--emitters llvm,metal").unwrap_err(), expected);
    }
}
