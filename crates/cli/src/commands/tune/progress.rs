//! How far a run is, on standard error: one line that changes where a person looks at a terminal, a
//! line now and then otherwise.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use tensorwright_outcome::Seconds;
use tensorwright_tuner::{Event, Mode, Progress, finalists_line};

/// How often a line is printed where nobody looks at a terminal.
const SELDOM: Duration = Duration::from_secs(10);

/// How often the line changes.
const OFTEN: Duration = Duration::from_millis(100);

/// Shows events.
pub(super) struct Display {
    shows: bool,
    is_terminal: bool,
    /// The operator, where several are tuned at the same time.
    name: Option<String>,
    last: Option<Instant>,
}

impl Display {
    pub(super) fn new(shows: bool) -> Self {
        Self { shows, is_terminal: std::io::stderr().is_terminal(), name: None, last: None }
    }

    /// For one of several operators that are tuned at the same time: now and then a line that begins with its name.
    pub(super) fn of(name: String, shows: bool) -> Self {
        Self { shows, is_terminal: false, name: Some(name), last: None }
    }

    pub(super) fn show(&mut self, event: &Event<'_>) {
        if !self.shows {
            return;
        }
        match event {
            Event::Started { mode, space, resumed, warm, progress, fleet } => {
                let mut line = match mode {
                    Mode::Autotune => format!("{space} points"),
                    mode => format!("{mode}: {}", mode.summary()),
                };
                if *resumed > 0 {
                    line.push_str(&format!(", going on after {resumed} trials"));
                }
                if *warm > 0 {
                    line.push_str(&format!(", {warm} schedules from the records first"));
                }
                if progress.roof_seconds > 0.0 {
                    let roof = Seconds(progress.roof_seconds);
                    line.push_str(&format!(
                        "; no schedule can be faster than about {roof:.2} here"
                    ));
                }
                self.line(&line);
                if let Some(run) = fleet {
                    self.line(&format!("run {run}, which --resume goes on with"));
                }
            }
            Event::Trial { progress, is_best, .. } => {
                let due = if self.is_terminal { OFTEN } else { SELDOM };
                self.update(progress, *is_best && self.is_terminal, due);
            }
            Event::Waiting(progress) => self.update(progress, false, SELDOM.min(OFTEN * 10)),
            Event::Finalists { count, progress } => {
                self.update(progress, true, OFTEN);
                self.line(&finalists_line(*count));
            }
            Event::RecordsWait(why) => {
                self.line(&format!("records wait and will be written later: {why}"));
            }
            Event::RecordRefused(why) => self.line(&format!("a record was not kept: {why}")),
            _ => {}
        }
    }

    /// Ends the line that changes.
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
            eprint!("\r\x1b[K{progress}");
            let _ = std::io::stderr().flush();
        } else {
            self.line(&progress.to_string());
        }
    }
}
