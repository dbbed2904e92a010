//! Runs pairs as C: many kernels in one file, because starting a compiler takes longer than
//! compiling a small kernel.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tensorwright_codegen_c::{Options, emit_with, symbol};
use tensorwright_schedule::nest::Scope;

use super::failure::{Kind, Problem, Suspect};
use super::pair::Pair;

const HARNESS: &str = include_str!("harness.c");
const FLAGS: [&str; 4] = ["-std=c99", "-O0", "-ffp-contract=fast", "-w"];
const SANITIZE: [&str; 3] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1"];

/// A directory for the files of a batch; gone when dropped.
pub(crate) struct Workshop {
    directory: PathBuf,
    sanitize: bool,
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // Files that stay behind are overwritten by the next process of that number.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Workshop {
    /// A directory that no other process uses.
    pub(crate) fn new(sanitize: bool) -> Result<Self, String> {
        let directory = super::report::folder().join(format!("c-{}", std::process::id()));
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        Ok(Self { directory, sanitize })
    }

    /// Compiles and runs pairs; calls `report` with the position of each that fails.
    pub(crate) fn check(
        &self,
        pairs: &[&Pair],
        report: &mut dyn FnMut(usize, Problem),
    ) -> Result<(), String> {
        let mut sources = Vec::new();
        for (position, pair) in pairs.iter().enumerate() {
            match emit_with(&pair.nest, Options::poisoned()) {
                Ok(source) => sources.push((position, source.code)),
                Err(error) => report(position, problem(Kind::Compile, error.to_string())),
            }
        }
        if sources.is_empty() {
            return Ok(());
        }
        while let Err(messages) = self.build(pairs, &sources)? {
            let is_named = |position: usize| is_about(&messages, pairs[position]);
            let named = sources.iter().position(|(position, _)| is_named(*position));
            // A message that names no kernel is about all of them.
            let (position, _) = sources.remove(named.unwrap_or(0));
            report(position, problem(Kind::Compile, head(&messages)));
            if sources.is_empty() {
                return Ok(());
            }
        }
        self.run(pairs, &sources, report)
    }

    /// Writes and compiles a batch; the compiler's messages if it fails.
    fn build(
        &self,
        pairs: &[&Pair],
        sources: &[(usize, String)],
    ) -> Result<Result<(), String>, String> {
        let (mut kernels, mut inputs) = (String::new(), Vec::new());
        let mut items = "static const item items[] = {\n".to_owned();
        let mut arrays = String::new();
        for (number, (position, code)) in sources.iter().enumerate() {
            let pair = pairs[*position];
            kernels += &own_names(code, number);
            item(pair, number, inputs.len(), &mut arrays, &mut items);
            pair.contents().into_iter().flatten().for_each(|bytes| inputs.extend(bytes));
        }
        items += "    };\n";
        let text = HARNESS
            .replace("/* KERNELS */", &kernels)
            .replace("/* ITEMS */", &format!("{arrays}    {items}"));
        self.write("batch.c", text.as_bytes())?;
        self.write("batch.in", &inputs)?;
        let mut command = Command::new("cc");
        command.env("LC_ALL", "C").args(FLAGS).args(if self.sanitize {
            &SANITIZE[..]
        } else {
            &[]
        });
        let output = self.start(command.args(["-o", "batch", "batch.c", "-lm"]))?;
        let messages = String::from_utf8_lossy(&output.stderr);
        Ok(if output.status.success() { Ok(()) } else { Err(messages.into_owned()) })
    }

    /// Runs a batch, again without those that die.
    fn run(
        &self,
        pairs: &[&Pair],
        sources: &[(usize, String)],
        report: &mut dyn FnMut(usize, Problem),
    ) -> Result<(), String> {
        let mut dead: Vec<usize> = Vec::new();
        loop {
            let mut command = Command::new(self.directory.join("batch"));
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
            report(*position, problem(Kind::Crash, message));
            dead.push(number);
        }
        let output = std::fs::read(self.directory.join("batch.out"));
        judge(pairs, sources, &output.map_err(|error| error.to_string())?, report)
    }

    fn write(&self, name: &str, contents: &[u8]) -> Result<(), String> {
        std::fs::write(self.directory.join(name), contents)
            .map_err(|error| format!("{name}: {error}"))
    }

    fn start(&self, command: &mut Command) -> Result<Output, String> {
        command.current_dir::<&Path>(&self.directory).output().map_err(|error| error.to_string())
    }
}

fn problem(kind: Kind, message: String) -> Problem {
    Problem::new(Suspect::C, kind, message)
}

/// The first lines of messages.
fn head(messages: &str) -> String {
    messages.lines().take(12).collect::<Vec<_>>().join("\n")
}

/// Whether messages of the compiler name a function of a kernel.
fn is_about(messages: &str, pair: &Pair) -> bool {
    let name = symbol(&pair.nest);
    [format!("'{name}'"), format!("'{name}_")].iter().any(|quoted| messages.contains(quoted))
}

/// The code with helpers that do not clash with those of another kernel in the same file.
fn own_names(code: &str, number: usize) -> String {
    let own = code.replace("tw_", &format!("tw{number}_"));
    let shared = ["pool", "task"];
    shared
        .iter()
        .fold(own, |text, name| text.replace(&format!("tw{number}_{name}"), &format!("tw_{name}")))
}

/// Describes a kernel to the harness.
fn item(pair: &Pair, number: usize, offset: usize, arrays: &mut String, items: &mut String) {
    let (mut bytes, mut roles) = (Vec::new(), Vec::new());
    for (size, scope) in pair.parameters() {
        bytes.push(size.to_string());
        roles.push(match scope {
            Scope::Input => "INPUT",
            Scope::Output => "OUTPUT",
            _ => "PREPARED",
        });
    }
    let name = symbol(&pair.nest);
    let prepare =
        if pair.nest.prepare.is_empty() { "NULL".to_owned() } else { format!("{name}_prepare") };
    let (count, garbage) = (bytes.len(), pair.garbage);
    let parallel = i32::from(pair.has_parallel_loop());
    let (bytes, roles) = (bytes.join(", "), roles.join(", "));
    // Writing to a string cannot fail.
    let _ = writeln!(arrays, "    static const int64_t bytes{number}[] = {{{bytes}}};");
    let _ = writeln!(arrays, "    static const int roles{number}[] = {{{roles}}};");
    let _ = writeln!(
        items,
        "        {{{name}, {prepare}, {name}_workspace_bytes, {garbage}, {parallel}, {count}, \
         bytes{number}, roles{number}, {offset}}},"
    );
}

/// Reads what the harness has written, and compares.
fn judge(
    pairs: &[&Pair],
    sources: &[(usize, String)],
    mut output: &[u8],
    report: &mut dyn FnMut(usize, Problem),
) -> Result<(), String> {
    let mut failed = None;
    while !output.is_empty() {
        let number = take_number(&mut output)?;
        let status = take_number(&mut output)?;
        let source = usize::try_from(number).ok().and_then(|number| sources.get(number));
        let (position, _) = source.ok_or("the harness has lost count")?;
        let pair = pairs[*position];
        let mut outputs = Vec::new();
        for (bytes, _) in pair.parameters().iter().filter(|(_, scope)| *scope == Scope::Output) {
            let (one, rest) = output.split_at_checked(*bytes).ok_or("the output is short")?;
            outputs.push(one.to_vec());
            output = rest;
        }
        if let Err((kind, why)) = pair.judge(status, &outputs)
            && failed.replace(*position) != Some(*position)
        {
            report(*position, problem(kind, why));
        }
    }
    Ok(())
}

fn take_number(output: &mut &[u8]) -> Result<i32, String> {
    let (bytes, rest) = output.split_first_chunk().ok_or("the output is short")?;
    *output = rest;
    Ok(i32::from_ne_bytes(*bytes))
}
