//! The child process that runs inputs, and its output.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use tensorwright_runtime::Activity;

use super::FuzzOptions;
use super::report;
use super::worker::HANGS;
use crate::processor::Watchdog;

/// The polling interval; a healthy process prints every second.
const LOOK: Duration = Duration::from_secs(2);

/// The polls without activity after which a process hangs.
const MOST_IDLE: u32 = 60;

/// How many inputs were run, and how far they got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) done: u64,
    pub(super) read: u64,
    pub(super) used: u64,
}

/// The output of a process.
#[derive(Default)]
pub(super) struct ChildReport {
    pub(super) counts: Counts,
    /// What failed, by index.
    pub(super) failed: Vec<(u64, String)>,
    /// Why it ended early.
    pub(super) died: Option<String>,
}

/// Runs inputs in a process. `tell` receives progress.
pub(super) fn run(
    options: &FuzzOptions,
    tell: &mut dyn FnMut(Counts),
) -> Result<ChildReport, String> {
    report::prepare(options).map_err(|error| error.to_string())?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .arg("fuzz")
        .args(options.for_child())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start the process that runs the inputs: {error}"))?;
    let result = listen(&mut child, tell);
    // Leaves no child process behind.
    let _ = child.kill();
    let _ = child.wait();
    result
}

fn listen(child: &mut Child, tell: &mut dyn FnMut(Counts)) -> Result<ChildReport, String> {
    let out = child.stdout.take().ok_or("a process without streams")?;
    let (sender, lines) = channel();
    thread::spawn(move || {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        lines.for_each(|line| drop(sender.send(line)));
    });
    let (mut heard, mut before) = (ChildReport::default(), Counts::default());
    // A process is idle if its counts do not change and it uses no CPU time.
    let mut watchdog = Watchdog::new(f64::INFINITY, MOST_IDLE);
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => take_line(&line, &mut heard),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if heard.counts != before {
            before = heard.counts;
            watchdog.reset();
            tell(before);
        } else if let Some(why) = Activity::of(child.id()).and_then(|now| watchdog.look(now)) {
            heard.died = Some(why);
            return Ok(heard);
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    heard.died = match status.code() {
        Some(0) => None,
        Some(HANGS) => Some("does not end".to_owned()),
        Some(2) => return Err("the process that runs the inputs cannot do so".to_owned()),
        // Probably a stack overflow.
        _ => Some(format!("ends the process: {status}")),
    };
    Ok(heard)
}

fn take_line(line: &str, heard: &mut ChildReport) {
    let mut words = line.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some("fail"), Some(index), Some(reason)) => {
            heard.failed.extend(index.parse().ok().map(|index| (index, reason.to_owned())));
        }
        (Some("counts"), Some(done), Some(others)) => {
            let (read, used) = others.split_once(' ').unwrap_or_default();
            let number = |text: &str| text.parse().unwrap_or(0);
            heard.counts = Counts { done: number(done), read: number(read), used: number(used) };
        }
        _ => {}
    }
}
