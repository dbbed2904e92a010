//! Progress of a run on standard error.
//!
//! On a terminal, one line that is updated in place; otherwise, a line from time to time.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use tensorwright_tuner::{Event, Progress};

/// How often a line is printed without a terminal.
const SELDOM: Duration = Duration::from_secs(10);

/// How often the line is updated.
const OFTEN: Duration = Duration::from_millis(100);

/// The assumed width of a terminal that does not report one.
const COLUMNS: usize = 80;

/// Shows tuning events.
pub(super) struct Display {
    shows: bool,
    is_terminal: bool,
    /// The operator's name, if several are tuned in parallel.
    name: Option<String>,
    last: Option<Instant>,
}

impl Display {
    pub(super) fn new(shows: bool) -> Self {
        Self { shows, is_terminal: std::io::stderr().is_terminal(), name: None, last: None }
    }

    /// For one of several operators tuned in parallel: prints occasional lines that begin with its
    /// name.
    pub(super) fn of(name: String, shows: bool) -> Self {
        Self { shows, is_terminal: false, name: Some(name), last: None }
    }

    pub(super) fn show(&mut self, event: &Event<'_>) {
        if !self.shows {
            return;
        }
        if let Event::Finalists { progress, .. } = event {
            self.update(progress, true, OFTEN);
        }
        if let Some(line) = event.line() {
            self.line(&line);
        }
        match event {
            Event::Started { fleet: Some(run), .. } => {
                self.line(&format!("run {run}; --resume continues it"));
            }
            Event::Trial { progress, is_best, .. } => {
                let due = if self.is_terminal { OFTEN } else { SELDOM };
                self.update(progress, *is_best && self.is_terminal, due);
            }
            Event::Waiting(progress) => self.update(progress, false, SELDOM.min(OFTEN * 10)),
            _ => {}
        }
    }

    /// Ends the progress line.
    pub(super) fn finish(&mut self) {
        if self.shows && self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }

    fn line(&mut self, text: &str) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
        match &self.name {
            Some(name) => eprintln!("{name}: {text}"),
            None => eprintln!("{text}"),
        }
    }

    fn update(&mut self, progress: &Progress, at_once: bool, due: Duration) {
        let due = if self.is_terminal { due } else { SELDOM };
        if !at_once && self.last.is_some_and(|last| last.elapsed() < due) {
            return;
        }
        self.last = Some(Instant::now());
        if self.is_terminal {
            // The last column stays free: some terminals wrap there.
            eprint!("\r\x1b[K{}", progress.line(columns() - 1));
            let _ = std::io::stderr().flush();
        } else {
            self.line(&progress.to_string());
        }
    }
}

/// The width of the terminal; at least one.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    columns.unwrap_or(COLUMNS)
}
