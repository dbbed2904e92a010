//! Long, resumable runs of all fuzzers.
//!
//! Divides its time among all kinds of tests, in slices of a minute, and keeps its state in a file,
//! so that sessions add up and can be interrupted at any time.

mod kinds;
mod options;
mod page;
mod state;

use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::summary::Summary;
use kinds::{KINDS, Kind};
pub(crate) use options::CampaignOptions;
use state::{Done, KeptFailure, State};

/// The target duration of a slice.
const SLICE: Duration = Duration::from_secs(60);

/// The inputs in the first slice of a kind, before its speed is known.
const FIRST: u64 = 256;

/// Runs the campaign, or writes its page.
pub(crate) fn run(options: &CampaignOptions) -> Result<ExitCode, String> {
    let mut state = match State::read(&options.state)? {
        Some(state) if options.goes_on() => state,
        Some(_) => {
            return Err(format!(
                "{} is there already: go on with --resume, or name another file with --state",
                options.state.display()
            ));
        }
        None => State::new(options.seed.unwrap_or(0), commit()),
    };
    if options.seed.is_some_and(|seed| seed != state.seed) {
        return Err(format!("the seed of {} is {}", options.state.display(), state.seed));
    }
    let started = Instant::now();
    let time = Duration::from_secs_f64(options.hours * 3600.0);
    // Writing the page alone tests no commit.
    if options.hours > 0.0 || options.recheck {
        state.commits.extend(Some(commit()).filter(|commit| state.commits.last() != Some(commit)));
    }
    if let Some(file) = &options.full {
        let line = std::fs::read_to_string(file);
        let line = line.map_err(|error| format!("{}: {error}", file.display()))?;
        line.trim().clone_into(&mut state.full);
    }
    // Also makes the folder of the file.
    state.write(&options.state)?;
    let wanted: Vec<&Kind> = KINDS.iter().filter(|kind| options.wants(kind.name)).collect();
    while started.elapsed() < time {
        // The kind furthest below its share comes next.
        let next = wanted.iter().min_by(|one, other| {
            let had = |kind: &Kind| state.done(kind.name).seconds / f64::from(kind.share);
            had(one).total_cmp(&had(other))
        });
        let Some(kind) = next else { return Err("no such kind".to_owned()) };
        let left = time.saturating_sub(started.elapsed());
        slice(&mut state, kind, left, &options.state.with_extension("log"))?;
        state.write(&options.state)?;
        println!("campaign: {:.0} min left; {}", left.as_secs_f64() / 60.0, progress(&state, kind));
    }
    if options.recheck {
        recheck(&mut state)?;
        state.write(&options.state)?;
    }
    println!("{}", page::table(&state));
    if let Some(file) = &options.page {
        let text = page::page(&state);
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("campaign: wrote {}", file.display());
    }
    Ok(if state.open() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a slice of a kind.
fn slice(state: &mut State, kind: &Kind, left: Duration, log: &Path) -> Result<(), String> {
    let done = state.done(kind.name);
    let rate = if done.seconds > 0.0 { done.tried as f64 / done.seconds } else { 0.0 };
    let seconds = SLICE.min(left.max(Duration::from_secs(5))).as_secs_f64();
    let count = if rate > 0.0 { ((rate * seconds) as u64).max(1) } else { FIRST };
    // Four pairs share a program.
    let count = count.next_multiple_of(4);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let summary = folder.path().join("summary.json");
    let started = Instant::now();
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .args(kind.arguments.split_whitespace())
        .arg("--summary")
        .arg(&summary)
        .stdin(Stdio::null());
    for (name, value) in [("--seed", state.seed), ("--from", done.next), ("--count", count)] {
        command.args([name.to_owned(), value.to_string()]);
    }
    // The full output goes to a file.
    let log = File::options().create(true).append(true).open(log);
    let log = log.map_err(|error| error.to_string())?;
    command.stdout(log.try_clone().map_err(|error| error.to_string())?).stderr(log);
    let status = command.status().map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(&summary)
        .map_err(|_| format!("{}: ended without a summary: {status}", kind.name))?;
    let summary: Summary = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let failures = summary.failures.into_iter().map(|failure| keep(kind, failure));
    state.add(
        kind.name,
        &Done {
            // Inputs skipped after too many failures are not tried again.
            next: done.next + summary.tried.max(1),
            tried: summary.tried,
            skipped: summary.skipped,
            seconds: started.elapsed().as_secs_f64(),
            repeated: summary.repeated,
            failures: failures.collect(),
        },
    );
    Ok(())
}

fn keep(kind: &Kind, failure: crate::summary::Failure) -> KeptFailure {
    let crate::summary::Failure { index, title, file } = failure;
    println!("campaign: {} found: {title} ({file})", kind.name);
    KeptFailure { index, title, file, is_open: true }
}

/// Replays all failures and closes those that pass.
fn recheck(state: &mut State) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for kind in KINDS {
        let seed = state.seed.to_string();
        for known in state.failures_mut(kind.name) {
            let mut command = Command::new(&program);
            command.args(kind.arguments.split_whitespace()).stdout(Stdio::null());
            command.args(["--seed", &seed, "--from", &known.index.to_string(), "--count", "1"]);
            // The file is on the machine that found it; elsewhere, the seed draws the same case.
            let file = root.join(&known.file);
            if file.is_file() {
                command.arg("--replay").arg(file);
            }
            let status = command.status().map_err(|error| error.to_string())?;
            known.is_open = !status.success();
        }
    }
    Ok(())
}

fn progress(state: &State, kind: &Kind) -> String {
    let done = state.done(kind.name);
    format!(
        "{}: {} tried, {} skipped, {} failures, {:.0}/s",
        kind.name,
        done.tried,
        done.skipped,
        done.failures.len(),
        done.tried as f64 / done.seconds.max(1e-9)
    )
}

/// The commit of the sources, and whether they have local changes.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let folder = env!("CARGO_MANIFEST_DIR");
        let output = Command::new("git").args(["-C", folder]).args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let hash = git(&["rev-parse", "--short=12", "HEAD"]).filter(|hash| !hash.is_empty());
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let changed = changed.is_some_and(|changes| !changes.is_empty());
    hash.unwrap_or_else(|| "unknown".to_owned()) + if changed { " with changes" } else { "" }
}
