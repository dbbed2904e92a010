//! Child processes and their output.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use tensorwright_runtime::Activity;

use super::DifferentialOptions;
use super::failure::{Kind, Problem, Suspect, in_lines};
use super::tally::Tally;
use crate::processor::Watchdog;

/// The CPU seconds without output after which a child hangs. Compiling a batch of C takes some of
/// them.
const SILENCE: f64 = 240.0;

/// The polling interval for silent children.
const LOOK: Duration = Duration::from_secs(1);

/// The polls without activity after which a child hangs.
const MOST_IDLE: u32 = 300;

/// The output of a child.
#[derive(Debug, Default)]
pub(crate) struct ChildReport {
    /// The cases, as text, by index.
    pub(crate) cases: BTreeMap<u64, String>,
    /// What failed, by index.
    pub(crate) failed: Vec<(u64, Problem)>,
    /// The crash of the child, if any.
    pub(crate) died: Option<(u64, Problem)>,
    /// Its counts.
    pub(crate) tally: Tally,
}

/// Runs a child to its end.
pub(crate) fn run(options: &DifferentialOptions) -> Result<ChildReport, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .arg("differential")
        .args(options.for_child())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start a process: {error}"))?;
    let result = listen(&mut child);
    // Leaves no child process behind.
    let _ = child.kill();
    let _ = child.wait();
    result
}

fn listen(child: &mut Child) -> Result<ChildReport, String> {
    let (Some(out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("a process without streams".to_owned());
    };
    let (sender, lines) = channel();
    thread::spawn(move || {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        lines.for_each(|line| drop(sender.send(line)));
    });
    let messages = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = err.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut heard = ChildReport::default();
    let mut at = (0, Suspect::Schedule);
    let mut watchdog = Watchdog::new(SILENCE, MOST_IDLE);
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => {
                watchdog.reset();
                take_line(&line, &mut heard, &mut at);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let activity = Activity::of(child.id());
                if let Some(message) = activity.and_then(|activity| watchdog.look(activity)) {
                    heard.died = Some((at.0, Problem::new(at.1, Kind::Hang, message)));
                    return Ok(heard);
                }
            }
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        let messages = messages.join().unwrap_or_default();
        let messages: Vec<&str> = messages.lines().take(12).collect();
        let message = format!("{status}: {}", messages.join("\n"));
        if status.code() == Some(2) {
            return Err(message);
        }
        heard.died = Some((at.0, Problem::new(at.1, Kind::Crash, message)));
    }
    Ok(heard)
}

fn take_line(line: &str, heard: &mut ChildReport, at: &mut (u64, Suspect)) {
    // LLVM may print lines of its own; unknown lines are ignored.
    let Some((word, rest)) = line.split_once(' ') else { return };
    let numbered = rest.split_once(' ').and_then(|(n, rest)| Some((n.parse::<u64>().ok()?, rest)));
    match (word, numbered) {
        ("at", Some((index, suspect))) => {
            *at = (index, Suspect::named(suspect).unwrap_or(Suspect::Schedule));
        }
        ("case", Some((index, case))) => {
            heard.cases.insert(index, in_lines(case));
        }
        ("fail", Some((index, problem))) => {
            heard.failed.extend(Problem::parse(problem).map(|problem| (index, problem)));
        }
        ("tally", _) => {
            heard.tally.read_line(rest);
        }
        _ => {}
    }
}
