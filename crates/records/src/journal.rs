//! [`Journal`]: a writer that loses nothing while the database cannot be written.
//!
//! A tuner that has paid for an outcome must not lose it because somebody holds a lock, the disk is
//! full, the file is damaged or the server is gone. What cannot be written waits in memory and in a file
//! beside the database, `records.sqlite3.pending.jsonl`, or for a server in the user's data directory. It is
//! written at the next chance: with the next outcome, at the end, or by the next process that opens the
//! journal. Since applying an event twice is the same as once, it does no harm that two of them do so, nor
//! that nobody knows whether a commit succeeded whose connection was lost.

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

/// How long a write waits for others once there is trouble: a search must not stand still for it.
const IMPATIENCE: Duration = Duration::from_millis(100);

/// How long after a failed attempt the next one is made.
const RETRY: Duration = Duration::from_secs(1);

/// The same at most, after many attempts to reach a server.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long a server may take to accept a connection once there is trouble.
const IMPATIENT_CONNECT: Duration = Duration::from_secs(1);

/// Files of candidates that show a defect of the compiler: more say nothing new.
const MOST_CASES: usize = 100;

/// Where an event was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// In the database.
    Database,
    /// In memory, and in the file beside the database if that can be written.
    Waiting,
}

/// A writer that loses nothing while the database cannot be written.
pub struct Journal {
    location: Location,
    /// What files of this machine that belong to the records are named after.
    path: PathBuf,
    options: StoreOptions,
    store: Option<AnyStore>,
    /// What could not be written, in order.
    waiting: Vec<Event>,
    /// How many of them are in the file as well.
    saved: usize,
    /// Lines of the file that no database takes.
    rejected: u64,
    trouble: Option<Error>,
    attempted: Option<Instant>,
    /// How long after that the next attempt is made.
    pause: Duration,
}

impl Journal {
    /// A journal of the records at a path or at the usual place. The database need not be usable
    /// yet; what other processes left waiting is written if it is.
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
        // The failure is kept in `trouble`, for whoever asks.
        let _ = journal.flush();
        Ok(journal)
    }

    /// Where the records are.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Notes that a run begins.
    ///
    /// # Errors
    /// If it cannot be kept in any database.
    pub fn begin_run(&mut self, key: &Key, program: &ProgramInfo, run: &RunInfo) -> Result<Kept> {
        let begin = Event::Run { key: key.clone(), info: run.clone() };
        self.keep(vec![Event::Program(program.clone()), begin])
    }

    /// Keeps the outcome of a trial.
    ///
    /// # Errors
    /// If it cannot be kept in any database.
    pub fn insert(&mut self, run: &RunId, trial: &Trial) -> Result<Kept> {
        self.keep(vec![Event::Trial { run: run.clone(), trial: trial.clone() }])
    }

    /// Notes that a run ended.
    ///
    /// # Errors
    /// If it cannot be kept in any database.
    pub fn end_run(&mut self, run: &RunId, end: &RunEnd) -> Result<Kept> {
        self.keep(vec![Event::End { run: run.clone(), end: end.clone() }])
    }

    /// Declares a winner.
    ///
    /// # Errors
    /// If it cannot be kept in any database.
    pub fn declare_best(&mut self, key: &Key, best: &Declared) -> Result<Kept> {
        self.keep(vec![Event::Best { key: key.clone(), best: best.clone() }])
    }

    /// The records that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Those of them that would be lost with this process, because the file beside the database
    /// cannot be written either.
    #[must_use]
    pub fn unsaved(&self) -> usize {
        self.waiting.len() - self.saved
    }

    /// How many lines that waited no database takes, because they are damaged or contradict others. They are
    /// in the file [`Journal::rejected_path`].
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Why records wait, or why the database cannot be used.
    #[must_use]
    pub fn trouble(&self) -> Option<&Error> {
        self.trouble.as_ref()
    }

    /// The folder beside the database with candidates that show a defect of the compiler.
    #[must_use]
    pub fn case_folder(&self) -> PathBuf {
        self.beside(".cases")
    }

    /// Keeps the text of such a candidate under a name; where, or `None` if the folder is full.
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

    /// The path of the database with more at its end.
    fn beside(&self, end: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    }

    /// The file where records wait; empty or absent if none do.
    #[must_use]
    pub fn pending_path(&self) -> PathBuf {
        self.beside(".pending.jsonl")
    }

    /// Which runs are alive.
    #[must_use]
    pub fn claims(&self) -> Claims {
        Claims::of(self.beside(".runs"))
    }

    /// The file of lines that waited and that no database takes: nothing is thrown away.
    #[must_use]
    pub fn rejected_path(&self) -> PathBuf {
        self.beside(".rejected.jsonl")
    }

    /// The store, to ask it questions. It does not know of records that wait.
    ///
    /// # Errors
    /// If the database cannot be opened.
    pub fn store(&mut self) -> Result<&mut dyn Store> {
        if self.store.is_none() {
            let mut options = self.options.clone();
            if self.trouble.is_some() {
                // A server that does not answer must not stop a search, attempt after attempt.
                options.busy_timeout = options.busy_timeout.min(IMPATIENT_CONNECT);
            }
            self.store = Some(open_at(&self.location, options)?);
        }
        match &mut self.store {
            Some(store) => Ok(&mut **store),
            None => Err(Error::NoDataDirectory),
        }
    }

    /// Tries now to write all that waits, of this process and of others that have ended.
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

    /// Remembers how an attempt went.
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
                // A damaged or replaced file is opened anew, and so is a connection that was lost.
                if !matches!(error, Error::Busy { .. } | Error::Full { .. }) {
                    self.store = None;
                }
                IMPATIENCE.min(self.options.busy_timeout)
            }
        };
        if let Some(store) = &mut self.store {
            // How long the next attempt waits is not worth losing the result of this one.
            let _ = store.set_patience(patience);
        }
        result
    }

    fn wait_for(&mut self, events: Vec<Event>) {
        self.waiting.extend(events);
        let path = self.pending_path();
        if let Some(directory) = path.parent() {
            // The records of a server have no file here before something waits for them.
            let _ = std::fs::create_dir_all(directory);
        }
        // What cannot be saved now is saved with the next one, or stays in memory.
        if append(&path, &self.waiting[self.saved..]).is_ok() {
            self.saved = self.waiting.len();
        }
    }

    /// Writes what is in memory. Returns how many events were refused that are not in the file of those
    /// that wait as well, where they will be refused again.
    fn write_waiting(&mut self) -> Result<u64> {
        let events = std::mem::take(&mut self.waiting);
        match self.store().and_then(|store| store.apply(&events)) {
            Ok(applied) => {
                let saved = std::mem::take(&mut self.saved);
                let unsaved = events.into_iter().zip(applied).skip(saved);
                let refused = unsaved.filter(|(_, one)| matches!(one, Applied::Refused(_)));
                let refused: Vec<Event> = refused.map(|(event, _)| event).collect();
                if !refused.is_empty() {
                    // What cannot be set aside either is counted all the same.
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

    /// Writes what is in the file, and empties it. The file is not removed: another process may
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
            // What still cannot be written is in the file for the next process.
            let _ = self.flush();
        }
    }
}

/// Copies the lines that could not be used to a file of their own. If there are more than were listed, all
/// lines go there.
fn set_aside(file: &mut File, imported: &Imported, rejected: &Path) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let listed = imported.bad == imported.bad_lines.len() as u64;
    let is_bad = |line: u64| !listed || imported.bad_lines.iter().any(|bad| bad.line == line);
    let mut aside = OpenOptions::new().create(true).append(true).open(rejected)?;
    copy_lines(&mut BufReader::new(file), &mut aside, is_bad)?;
    aside.sync_data()
}

/// Copies the lines of some numbers, counted from one, piece by piece: a damaged line may be as long as the
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
            // The last line may have no end.
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

/// Adds events to the file of those that wait.
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
        // A process was killed while it wrote its last line.
        lines.insert(0, b'\n');
    }
    let written = file.write_all(&lines).and_then(|()| file.sync_data());
    if written.is_err() {
        // Half of a line on a full disk is worse than none.
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

    /// Keeps what is written, and the most that was written at once.
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
