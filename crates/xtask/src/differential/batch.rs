//! Runs pairs in a separate process, many kernels per program.
//!
//! Starting a compiler takes longer than compiling a small kernel.

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tensorwright_schedule::interface::Function;
use tensorwright_schedule::nest::Owner;

use super::failure::{Kind, Problem, Suspect};
use super::pair::Pair;

const HARNESS: &str = include_str!("harness.c");

/// The CPU time limit of a program in seconds; kernels take milliseconds.
const MAX_SECONDS: u32 = 120;

/// The signal at the CPU time limit.
const SIGXCPU: i32 = 24;

/// Builds and runs a program of kernels.
pub(crate) trait Toolchain {
    /// The suspect of a failure.
    fn suspect(&self) -> Suspect;

    /// A kernel for the harness, with a unique number.
    fn translate(&self, pair: &Pair, number: usize) -> Result<Translated, String>;

    /// The command that compiles `batch.c` and the other sources to `batch`.
    fn compiler(&self) -> Command;

    /// The command prefix that runs `./batch`.
    fn runner(&self) -> &[&'static str];
}

/// A kernel in the harness.
pub(crate) struct Translated {
    /// Its C definition or declaration.
    pub(crate) code: String,
    /// The code, if it is not C.
    pub(crate) object: Option<Vec<u8>>,
}

/// A temporary directory for the files of batches.
pub(crate) struct BatchRunner {
    directory: PathBuf,
    toolchain: Box<dyn Toolchain>,
}

impl Drop for BatchRunner {
    fn drop(&mut self) {
        // Leftover files are overwritten by the next process with that number.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl BatchRunner {
    /// A directory that no other process uses.
    pub(crate) fn new(toolchain: impl Toolchain + 'static) -> Result<Self, String> {
        let name = format!("{}-{}", toolchain.suspect().name(), std::process::id());
        let directory = super::report::folder().join(name);
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        Ok(Self { directory, toolchain: Box::new(toolchain) })
    }

    /// The suspect of a failure.
    pub(crate) fn suspect(&self) -> Suspect {
        self.toolchain.suspect()
    }

    /// Compiles and runs pairs; calls `report` with the position of each failure.
    pub(crate) fn check(
        &self,
        pairs: &[&Pair],
        report: &mut dyn FnMut(usize, Problem),
    ) -> Result<(), String> {
        let mut sources = Vec::new();
        for (position, pair) in pairs.iter().enumerate() {
            match self.toolchain.translate(pair, position) {
                Ok(translated) => sources.push((position, translated)),
                Err(error) => report(position, self.problem(Kind::Compile, error)),
            }
        }
        if sources.is_empty() {
            return Ok(());
        }
        while let Err(messages) = self.build(pairs, &sources)? {
            let is_named = |position: usize| is_about(&messages, pairs[position]);
            let named = sources.iter().position(|(position, _)| is_named(*position));
            // A message without a kernel's name is about all of them.
            let (position, _) = sources.remove(named.unwrap_or(0));
            report(position, self.problem(Kind::Compile, head(&messages)));
            if sources.is_empty() {
                return Ok(());
            }
        }
        self.run(pairs, &sources, report)
    }

    /// Writes and compiles a batch; returns the compiler's messages on failure.
    fn build(
        &self,
        pairs: &[&Pair],
        sources: &[(usize, Translated)],
    ) -> Result<Result<(), String>, String> {
        let (mut kernels, mut inputs) = (String::new(), Vec::new());
        let mut items = "static const item items[] = {\n".to_owned();
        let mut arrays = String::new();
        let mut objects = Vec::new();
        for (number, (position, translated)) in sources.iter().enumerate() {
            let pair = pairs[*position];
            kernels += &translated.code;
            if let Some(object) = &translated.object {
                objects.push(format!("{position}.o"));
                self.write(&format!("{position}.o"), object)?;
            }
            item(pair, number, inputs.len(), &mut arrays, &mut items);
            pair.contents().flatten().for_each(|bytes| inputs.extend(bytes));
        }
        items += "    };\n";
        let text = HARNESS
            .replace("/* KERNELS */", &kernels)
            .replace("/* ITEMS */", &format!("{arrays}    {items}"));
        self.write("batch.c", text.as_bytes())?;
        self.write("batch.in", &inputs)?;
        let mut command = self.toolchain.compiler();
        command.env("LC_ALL", "C").args(["-o", "batch", "batch.c"]).args(objects).arg("-lm");
        let output = self.start(&mut command)?;
        let messages = String::from_utf8_lossy(&output.stderr);
        Ok(if output.status.success() { Ok(()) } else { Err(messages.into_owned()) })
    }

    /// Runs a batch, and again without kernels that crash.
    fn run(
        &self,
        pairs: &[&Pair],
        sources: &[(usize, Translated)],
        report: &mut dyn FnMut(usize, Problem),
    ) -> Result<(), String> {
        let mut dead: Vec<usize> = Vec::new();
        loop {
            // Limits CPU time: a busy machine is not a hang.
            let limited = format!("ulimit -t {MAX_SECONDS}; exec \"$@\"");
            let mut command = Command::new("sh");
            command.args(["-c", &limited, "sh"]).args(self.toolchain.runner()).arg("./batch");
            let output = self.start(command.args(dead.iter().map(usize::to_string)))?;
            if output.status.success() {
                break;
            }
            let messages = String::from_utf8_lossy(&output.stderr);
            let number =
                messages.lines().rev().find_map(|line| line.strip_prefix("at ")?.parse().ok());
            let (Some(number), true) = (number, output.status.code() != Some(3)) else {
                return Err(format!("the harness fails: {messages}"));
            };
            let (position, _) = sources.get(number).ok_or("the harness has lost count")?;
            let about: Vec<&str> =
                messages.lines().filter(|line| !line.starts_with("at ")).collect();
            let message = format!("{}: {}", output.status, head(&about.join("\n")));
            let kind = match output.status.signal() {
                Some(SIGXCPU) => Kind::Hang,
                _ => Kind::Crash,
            };
            report(*position, self.problem(kind, message));
            dead.push(number);
        }
        let output = std::fs::read(self.directory.join("batch.out"));
        let output = output.map_err(|error| error.to_string())?;
        let suspect = self.toolchain.suspect();
        judge(pairs, sources, &output, &mut |position, (kind, why)| {
            report(position, Problem::new(suspect, kind, why));
        })
    }

    fn problem(&self, kind: Kind, message: String) -> Problem {
        Problem::new(self.toolchain.suspect(), kind, message)
    }

    fn write(&self, name: &str, contents: &[u8]) -> Result<(), String> {
        std::fs::write(self.directory.join(name), contents)
            .map_err(|error| format!("{name}: {error}"))
    }

    fn start(&self, command: &mut Command) -> Result<Output, String> {
        command.current_dir::<&Path>(&self.directory).output().map_err(|error| error.to_string())
    }
}

/// The first lines of messages.
fn head(messages: &str) -> String {
    messages.lines().take(12).collect::<Vec<_>>().join("\n")
}

/// Whether compiler messages name a function of a kernel.
fn is_about(messages: &str, pair: &Pair) -> bool {
    let name = &pair.interface.symbol;
    [format!("'{name}'"), format!("'{name}_")].iter().any(|quoted| messages.contains(quoted))
}

/// The harness entry of a kernel.
fn item(pair: &Pair, number: usize, offset: usize, arrays: &mut String, items: &mut String) {
    let (mut bytes, mut roles) = (Vec::new(), Vec::new());
    for parameter in &pair.interface.parameters {
        bytes.push(parameter.bytes().max(0).to_string());
        roles.push(match parameter.owner {
            Owner::Input => "INPUT",
            Owner::Output => "OUTPUT",
            _ => "PREPARED",
        });
    }
    let name = &pair.interface.symbol;
    let kernel = pair.interface.function(Function::Compute);
    let prepare = match pair.interface.has_prepare {
        true => pair.interface.function(Function::Prepare),
        false => "NULL".to_owned(),
    };
    let (count, garbage) = (bytes.len(), pair.garbage);
    let parallel = i32::from(pair.has_parallel_loop());
    let (bytes, roles) = (bytes.join(", "), roles.join(", "));
    // Writing to a string cannot fail.
    let _ = writeln!(arrays, "    static const int64_t bytes{number}[] = {{{bytes}}};");
    let _ = writeln!(arrays, "    static const int roles{number}[] = {{{roles}}};");
    let _ = writeln!(
        items,
        "        {{{kernel}, {prepare}, {name}_workspace_bytes, {garbage}, {parallel}, {count}, \
         bytes{number}, roles{number}, {offset}}},"
    );
}

/// Parses and compares the harness's output.
fn judge(
    pairs: &[&Pair],
    sources: &[(usize, Translated)],
    mut output: &[u8],
    report: &mut dyn FnMut(usize, (Kind, String)),
) -> Result<(), String> {
    let mut failed = None;
    while !output.is_empty() {
        let number = take_number(&mut output)?;
        let status = take_number(&mut output)?;
        let source = usize::try_from(number).ok().and_then(|number| sources.get(number));
        let (position, _) = source.ok_or("the harness has lost count")?;
        let pair = pairs[*position];
        let mut outputs = Vec::new();
        let parameters = pair.interface.parameters.iter();
        for parameter in parameters.filter(|parameter| parameter.owner == Owner::Output) {
            let bytes = parameter.bytes().max(0) as usize;
            let (one, rest) = output.split_at_checked(bytes).ok_or("the output is short")?;
            outputs.push(one.to_vec());
            output = rest;
        }
        if let Err(wrong) = pair.judge(status, &outputs)
            && failed.replace(*position) != Some(*position)
        {
            report(*position, wrong);
        }
    }
    Ok(())
}

fn take_number(output: &mut &[u8]) -> Result<i32, String> {
    let (bytes, rest) = output.split_first_chunk().ok_or("the output is short")?;
    *output = rest;
    Ok(i32::from_ne_bytes(*bytes))
}
