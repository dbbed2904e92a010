//! [`Journal`]: a writer that loses nothing when the database fails.
//!
//! A tuner must not lose an outcome because of a lock, a full disk, a damaged file or a lost
//! server. Failed writes wait in memory and in a file beside the database,
//! `records.sqlite3.pending.jsonl` (for a server, in the user's data directory). They are retried
//! with the next outcome, at the end, or when the next process opens the journal. Events are
//! idempotent, so it is safe if two processes write the same one, or if a lost connection hides
//! whether a commit succeeded.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::claim::Claims;
use crate::error::{Error, Result};
use crate::event::{Applied, Event};
use crate::key::Key;
use crate::location::Location;
use crate::model::{Declared, RunEnd, RunId, RunInfo, Trial};
use crate::open::{AnyStore, open_at};
use crate::program::ProgramInfo;
use crate::store::{Store, all_accepted};
use crate::store_options::StoreOptions;
use crate::transfer::{Imported, read_lines};

/// The lock timeout after a failure, so that a search does not stand still.
const IMPATIENCE: Duration = Duration::from_millis(100);

/// The first pause after a failed attempt.
const RETRY: Duration = Duration::from_secs(1);

/// The longest pause, after many failed attempts to reach a server.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The connection timeout of a server after a failure.
const IMPATIENT_CONNECT: Duration = Duration::from_secs(1);

/// The most files of compiler defects: more show nothing new.
const MOST_CASES: usize = 100;

/// Where an event was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// In the database.
    Database,
    /// In memory, and in the file beside the database if that can be written.
    Waiting,
}

/// A writer that loses nothing when the database fails.
pub struct Journal {
    location: Location,
    /// The base path of the records' files on this machine.
    path: PathBuf,
    options: StoreOptions,
    store: Option<AnyStore>,
    /// Events that could not be written, in order.
    waiting: Vec<Event>,
    /// How many of them are also in the file.
    saved: usize,
    /// Lines of the file that every database refuses.
    rejected: u64,
    trouble: Option<Error>,
    attempted: Option<Instant>,
    /// The pause until the next attempt.
    pause: Duration,
}

impl Journal {
    /// A journal of the records at a path or at the default place. The database need not be usable
    /// yet; if it is, events that other processes left waiting are written.
    ///
    /// # Errors
    /// If there is no place for records.
    pub fn open(place: Option<&Location>) -> Result<Self> {
        Self::new(Location::given(place)?, StoreOptions::default())
    }

    /// [`Journal::open`] with options.
    ///
    /// # Errors
    /// If there is no place for the files of a server on this machine.
    pub fn new(location: Location, options: StoreOptions) -> Result<Self> {
        let (store, waiting, path) = (None, Vec::new(), location.beside()?);
        let mut journal = Self {
            location,
            path,
            options,
            store,
            waiting,
            saved: 0,
            rejected: 0,
            trouble: None,
            attempted: None,
            pause: RETRY,
        };
        // `trouble` keeps the error for callers who ask.
        let _ = journal.flush();
        Ok(journal)
    }

    /// Where the records are.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Records the start of a run.
    ///
    /// # Errors
    /// If no database could store it.
    pub fn begin_run(&mut self, key: &Key, program: &ProgramInfo, run: &RunInfo) -> Result<Kept> {
        let begin = Event::Run { key: key.clone(), info: run.clone() };
        self.keep(vec![Event::Program(program.clone()), begin])
    }

    /// Stores a trial.
    ///
    /// # Errors
    /// If no database could store it.
    pub fn insert(&mut self, run: &RunId, trial: &Trial) -> Result<Kept> {
        self.keep(vec![Event::Trial { run: run.clone(), trial: trial.clone() }])
    }

    /// Records the end of a run.
    ///
    /// # Errors
    /// If no database could store it.
    pub fn end_run(&mut self, run: &RunId, end: &RunEnd) -> Result<Kept> {
        self.keep(vec![Event::End { run: run.clone(), end: end.clone() }])
    }

    /// Declares a winner.
    ///
    /// # Errors
    /// If no database could store it.
    pub fn declare_best(&mut self, key: &Key, best: &Declared) -> Result<Kept> {
        self.keep(vec![Event::Best { key: key.clone(), best: best.clone() }])
    }

    /// The number of waiting events.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The number of waiting events that this process would take with it, because the file beside
    /// the database cannot be written either.
    #[must_use]
    pub fn unsaved(&self) -> usize {
        self.waiting.len() - self.saved
    }

    /// How many waiting lines every database refuses, because they are damaged or contradict
    /// others. The file [`Journal::rejected_path`] has them.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Why events wait, or why the database cannot be used.
    #[must_use]
    pub fn trouble(&self) -> Option<&Error> {
        self.trouble.as_ref()
    }

    /// The folder beside the database with compiler defects.
    #[must_use]
    pub fn case_folder(&self) -> PathBuf {
        self.beside(".cases")
    }

    /// Stores a compiler defect under a name; returns the path, or `None` if the folder is full.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn keep_case(&self, name: &str, text: &str) -> Result<Option<PathBuf>> {
        let folder = self.case_folder();
        let file = folder.join(name);
        let failed = |error: std::io::Error| Error::file(&file, &error);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        if file.exists() {
            return Ok(Some(file));
        }
        if std::fs::read_dir(&folder).map_err(failed)?.count() >= MOST_CASES {
            return Ok(None);
        }
        std::fs::write(&file, text).map_err(failed)?;
        Ok(Some(file))
    }

    /// The path of the database with a suffix.
    fn beside(&self, end: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    }

    /// The file of waiting events; empty or absent if none wait.
    #[must_use]
    pub fn pending_path(&self) -> PathBuf {
        self.beside(".pending.jsonl")
    }

    /// The claims on runs.
    #[must_use]
    pub fn claims(&self) -> Claims {
        Claims::of(self.beside(".runs"))
    }

    /// The file of waiting lines that every database refuses: nothing is thrown away.
    #[must_use]
    pub fn rejected_path(&self) -> PathBuf {
        self.beside(".rejected.jsonl")
    }

    /// The store, for queries. It does not include waiting events.
    ///
    /// # Errors
    /// If the database cannot be opened.
    pub fn store(&mut self) -> Result<&mut dyn Store> {
        if self.store.is_none() {
            let mut options = self.options.clone();
            if self.trouble.is_some() {
                // A server that does not answer must not block a search with every attempt.
                options.busy_timeout = options.busy_timeout.min(IMPATIENT_CONNECT);
            }
            self.store = Some(open_at(&self.location, options)?);
        }
        match &mut self.store {
            Some(store) => Ok(&mut **store),
            None => Err(Error::NoDataDirectory),
        }
    }

    /// Retries all waiting events now, of this process and of processes that have ended.
    ///
    /// # Errors
    /// If it still cannot be written; nothing is lost.
    pub fn flush(&mut self) -> Result<Imported> {
        let result = self.write_waiting().and_then(|refused| {
            let mut imported = self.take_in()?;
            imported.bad += refused;
            Ok(imported)
        });
        self.note(result)
    }

    fn keep(&mut self, events: Vec<Event>) -> Result<Kept> {
        events.iter().try_for_each(Event::validate)?;
        if self.waiting.is_empty() && self.trouble.is_none() {
            let result = self.store().and_then(|store| store.apply(&events));
            match self.note(result) {
                Ok(applied) => return all_accepted(applied).map(|()| Kept::Database),
                Err(error) if error.may_pass() => {}
                Err(error) => return Err(error),
            }
            self.wait_for(events);
            return Ok(Kept::Waiting);
        }
        self.wait_for(events);
        let due = self.attempted.is_none_or(|time| time.elapsed() >= self.pause);
        if due && self.flush().is_ok() { Ok(Kept::Database) } else { Ok(Kept::Waiting) }
    }

    /// Keeps the result of an attempt.
    fn note<T>(&mut self, result: Result<T>) -> Result<T> {
        let patience = match &result {
            Ok(_) => {
                self.trouble = None;
                self.attempted = None;
                self.pause = RETRY;
                self.options.busy_timeout
            }
            Err(error) => {
                if matches!(error, Error::Unreachable { .. }) && self.trouble.is_some() {
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
                self.trouble = Some(error.clone());
                self.attempted = Some(Instant::now());
                // Reopen a damaged or replaced file, or a lost connection.
                if !matches!(error, Error::Busy { .. } | Error::Full { .. }) {
                    self.store = None;
                }
                IMPATIENCE.min(self.options.busy_timeout)
            }
        };
        if let Some(store) = &mut self.store {
            // A failure to set the next timeout must not lose this result.
            let _ = store.set_patience(patience);
        }
        result
    }

    fn wait_for(&mut self, events: Vec<Event>) {
        self.waiting.extend(events);
        let path = self.pending_path();
        if let Some(directory) = path.parent() {
            // Records on a server have no file here before something waits for them.
            let _ = std::fs::create_dir_all(directory);
        }
        // Events that cannot be saved now are saved with the next one, or stay in memory.
        if append(&path, &self.waiting[self.saved..]).is_ok() {
            self.saved = self.waiting.len();
        }
    }

    /// Writes the events in memory. Returns how many were refused without being in the pending file
    /// too, where they will be refused again.
    fn write_waiting(&mut self) -> Result<u64> {
        let events = std::mem::take(&mut self.waiting);
        match self.store().and_then(|store| store.apply(&events)) {
            Ok(applied) => {
                let saved = std::mem::take(&mut self.saved);
                let unsaved = events.into_iter().zip(applied).skip(saved);
                let refused = unsaved.filter(|(_, one)| matches!(one, Applied::Refused(_)));
                let refused: Vec<Event> = refused.map(|(event, _)| event).collect();
                if !refused.is_empty() {
                    // Count them even if they cannot be set aside.
                    let _ = append(&self.rejected_path(), &refused);
                    self.rejected += refused.len() as u64;
                }
                Ok(refused.len() as u64)
            }
            Err(error) => {
                self.waiting = events;
                Err(error)
            }
        }
    }

    /// Writes the events of the file and empties it. The file is not removed: another process may
    /// hold it open.
    fn take_in(&mut self) -> Result<Imported> {
        let path = self.pending_path();
        let failed = |error: std::io::Error| Error::file(&path, &error);
        let mut file = match OpenOptions::new().read(true).write(true).open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Imported::default());
            }
            other => other.map_err(failed)?,
        };
        if file.metadata().map_err(failed)?.len() == 0 {
            return Ok(Imported::default());
        }
        file.lock().map_err(failed)?;
        let imported = read_lines(self.store()?, &mut BufReader::new(&mut file), &path)?;
        if imported.bad > 0 {
            let rejected = self.rejected_path();
            let failed = |error: std::io::Error| Error::file(&rejected, &error);
            set_aside(&mut file, &imported, &rejected).map_err(failed)?;
            self.rejected += imported.bad;
        }
        file.set_len(0).map_err(failed)?;
        Ok(imported)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.waiting.is_empty() {
            // Events that still cannot be written are in the file for the next process.
            let _ = self.flush();
        }
    }
}

/// Copies unusable lines to a file of their own; all lines, if there are more than were listed.
fn set_aside(file: &mut File, imported: &Imported, rejected: &Path) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let listed = imported.bad == imported.bad_lines.len() as u64;
    let is_bad = |line: u64| !listed || imported.bad_lines.iter().any(|bad| bad.line == line);
    let mut aside = OpenOptions::new().create(true).append(true).open(rejected)?;
    copy_lines(&mut BufReader::new(file), &mut aside, is_bad)?;
    aside.sync_data()
}

/// Copies lines by their numbers, counted from one, in pieces: a damaged line may be as long as the
/// disk is large.
fn copy_lines(
    from: &mut impl BufRead,
    to: &mut impl Write,
    is_wanted: impl Fn(u64) -> bool,
) -> std::io::Result<()> {
    let (mut number, mut wanted, mut is_open) = (1, is_wanted(1), false);
    loop {
        let piece = from.fill_buf()?;
        if piece.is_empty() {
            // The last line may have no newline.
            return if wanted && is_open { to.write_all(b"\n") } else { Ok(()) };
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(piece.len(), |at| at + 1);
        if wanted {
            to.write_all(&piece[..length])?;
        }
        from.consume(length);
        is_open = end.is_none();
        if !is_open {
            number += 1;
            wanted = is_wanted(number);
        }
    }
}

/// Appends events to the pending file.
fn append(path: &Path, events: &[Event]) -> std::io::Result<()> {
    let mut lines = Vec::new();
    for event in events {
        serde_json::to_writer(&mut lines, event)?;
        lines.push(b'\n');
    }
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    file.lock()?;
    let length = file.metadata()?.len();
    if length > 0 && !ends_with_newline(&mut file)? {
        // A killed process left its last line incomplete.
        lines.insert(0, b'\n');
    }
    let written = file.write_all(&lines).and_then(|()| file.sync_data());
    if written.is_err() {
        // Half a line on a full disk is worse than none.
        let _ = file.set_len(length);
    }
    written
}

fn ends_with_newline(file: &mut File) -> std::io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the written bytes, and the size of the largest write.
    #[derive(Default)]
    struct Pieces {
        all: Vec<u8>,
        longest: usize,
    }

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.all.extend_from_slice(bytes);
            self.longest = self.longest.max(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn long_lines_are_set_aside_piece_by_piece() {
        let long = "x".repeat(10_000);
        let text = format!("one\n{long}\n\nfour\nfive");
        let copied = |wanted: &[u64]| {
            let mut pieces = Pieces::default();
            let mut from = BufReader::with_capacity(16, text.as_bytes());
            copy_lines(&mut from, &mut pieces, |line| wanted.contains(&line)).unwrap();
            assert!(pieces.longest <= 16, "{}", pieces.longest);
            String::from_utf8(pieces.all).unwrap()
        };
        assert_eq!(copied(&[2, 4]), format!("{long}\nfour\n"));
        assert_eq!(copied(&[1, 3, 5]), "one\n\nfive\n");
        assert_eq!(copied(&[1, 2, 3, 4, 5]), format!("{text}\n"));
        assert_eq!(copied(&[]), "");
    }
}
