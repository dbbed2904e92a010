//! Untuned schedules and predicted cycles of all programs, kept as text.
//!
//! `plans` writes `tests/plans/TARGET/SUITE.txt`; `plans --check` reports what differs from them.
//!
//! | file | contents |
//! | --- | --- |
//! | `programs.rs` | the suites of programs: one line each |
//! | `plan.rs` | the targets, and the plan of a program |
//! | `text.rs` | plans as text |
//! | `compare.rs`, `loops.rs` | the report of a check |

mod compare;
mod loops;
mod plan;
mod programs;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use compare::Comparison;
use plan::{Plan, PlanTarget};
use programs::Case;

use crate::arguments;

/// Where plans are kept.
const FOLDER: &str = "tests/plans";

/// The stack of a thread: large programs nest deeply.
const STACK: usize = 256 << 20;

/// The options of the command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlansOptions {
    /// Compare instead of writing.
    check: bool,
    /// The only suite.
    only: Option<String>,
}

impl PlansOptions {
    /// Reads the arguments after the command's name.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        arguments::read(arguments, &["--check"], |name, value| {
            match name {
                "--check" => options.check = true,
                "--only" => options.only = Some(value.to_owned()),
                _ => return Err(arguments::unknown(name)),
            }
            Ok(())
        })?;
        Ok(options)
    }
}

/// A file of plans.
struct PlanFile {
    suite: &'static str,
    target: &'static str,
    plans: Vec<Plan>,
}

impl PlanFile {
    fn path(&self) -> PathBuf {
        Path::new(self.target).join(self.suite).with_extension("txt")
    }
}

/// Writes or checks the plans.
pub(crate) fn run(options: &PlansOptions) -> Result<ExitCode, String> {
    let started = Instant::now();
    let cases = programs::cases(options.only.as_deref())?;
    let targets = plan::targets()?;
    let files = files(&cases, &targets)?;
    let folder = programs::root().join(FOLDER);
    let unused = match options.only {
        None => unused(&folder, &files),
        Some(_) => Vec::new(),
    };
    let count: usize = files.iter().map(|file| file.plans.len()).sum();
    let about = format!("{count} of {} programs", cases.len());
    if options.check {
        let is_same = check(&folder, &files, &unused, &cases)?;
        println!("plans: {about} in {} s", started.elapsed().as_secs());
        return Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let bytes = write(&folder, &files, &unused)?;
    let seconds = started.elapsed().as_secs();
    println!("plans: {about} in {seconds} s; {} KiB in {FOLDER}", bytes >> 10);
    Ok(ExitCode::SUCCESS)
}

/// The plans of all cases on all targets, computed by as many threads as there are processors.
fn files(cases: &[Case], targets: &[PlanTarget]) -> Result<Vec<PlanFile>, String> {
    let jobs = (0..cases.len()).flat_map(|case| (0..targets.len()).map(move |t| (case, t)));
    let mut jobs: Vec<(usize, usize)> =
        jobs.filter(|(case, target)| targets[*target].has(cases[*case].suite)).collect();
    // The longest first, so that no thread ends much later than the others.
    jobs.sort_by_key(|(case, _)| std::cmp::Reverse(cases[*case].program.stages.len()));
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(&(case, target)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Case { name, source, program, .. } = &cases[case];
            let plan = targets[target].plan(name, source, program);
            if let Ok(mut made) = made.lock() {
                made.push(((case, target), plan));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, work).map_err(|error| error.to_string())?;
        }
        Ok::<(), String>(())
    })?;
    let mut made = made.into_inner().map_err(|error| error.to_string())?;
    made.sort_by_key(|(job, _)| *job);
    let mut files: Vec<PlanFile> = Vec::new();
    for ((case, target), plan) in made {
        let (suite, target) = (cases[case].suite, targets[target].folder);
        match files.iter_mut().find(|file| (file.suite, file.target) == (suite, target)) {
            Some(file) => file.plans.push(plan),
            None => files.push(PlanFile { suite, target, plans: vec![plan] }),
        }
    }
    Ok(files)
}

/// Kept files that no suite writes.
fn unused(folder: &Path, files: &[PlanFile]) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>()
    };
    let targets = entries(folder).into_iter().filter(|path| path.is_dir());
    let kept = targets.flat_map(|target| entries(&target));
    let is_used = |path: &PathBuf| files.iter().any(|file| folder.join(file.path()) == *path);
    kept.filter(|path| !is_used(path)).collect()
}

/// Writes all files and returns their bytes.
fn write(folder: &Path, files: &[PlanFile], unused: &[PathBuf]) -> Result<usize, String> {
    let wrong = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let mut bytes = 0;
    for file in files {
        let path = folder.join(file.path());
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| wrong(parent, error))?;
        let text = text::print(&file.plans);
        bytes += text.len();
        fs::write(&path, text).map_err(|error| wrong(&path, error))?;
    }
    for path in unused {
        fs::remove_file(path).map_err(|error| wrong(path, error))?;
    }
    Ok(bytes)
}

/// Reports all differences; whether there are none.
fn check(
    folder: &Path,
    files: &[PlanFile],
    unused: &[PathBuf],
    cases: &[Case],
) -> Result<bool, String> {
    let mut comparisons = Vec::new();
    for file in files {
        let path = folder.join(file.path());
        // A new suite has no file yet.
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let kept = text::parse(&kept).map_err(|error| format!("{}: {error}", path.display()))?;
        let title = format!("{} on {}", file.suite, file.target);
        let programs = file.plans.iter().map(|plan| {
            let made = |case: &&Case| case.suite == file.suite && plan.source == case.source;
            cases.iter().find(made).map(|case| &case.program)
        });
        let programs: Vec<_> = programs.collect();
        comparisons.push(Comparison::new(title, &kept, &file.plans, &programs));
    }
    for found in &comparisons {
        print!("{}", found.report);
    }
    for path in unused {
        println!("{}: no suite has these plans", path.display());
    }
    print!("{}", compare::summary(&comparisons));
    let is_same = unused.is_empty() && comparisons.iter().all(Comparison::is_same);
    if !is_same {
        println!("plans differ from {FOLDER}; `cargo xtask plans` writes them anew");
    }
    Ok(is_same)
}
