//! Faults of files: locks, full disks, damage, foreign files.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Scratch, begin, key, measured, program, quick};
use rusqlite::Connection;
use tensorwright_outcome::Outcome;
use tensorwright_random::SplitMix;
use tensorwright_records::{
    Error, Journal, Kept, RunFilter, RunId, RunInfo, SqliteStore, Store, StoreOptions, Trial,
};

fn open(path: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open(path, quick())
}

fn impatient() -> StoreOptions {
    StoreOptions { busy_timeout: Duration::from_millis(50), ..quick() }
}

/// A whole message: the error and its help.
fn message(error: &Error) -> String {
    format!("{error}\nhelp: {}", error.help())
}

/// The error of opening and reading a file.
fn failure(path: &Path) -> Error {
    let read = || {
        let store = open(path)?;
        for run in store.runs(&RunFilter::default())? {
            store.trials(&run.info.id, None, 100_000)?;
        }
        Ok(())
    };
    read().unwrap_err()
}

/// A database with a few pages, closed.
fn filled(scratch: &Scratch) -> RunId {
    let mut store = scratch.store();
    let program = program(64);
    let run = begin(&mut *store, &key(&program), &program);
    for number in 0..2000 {
        store.insert(&run, &measured(number, 1.0)).unwrap();
    }
    run
}

#[test]
fn a_lock_that_is_held_too_long_is_an_error_that_says_so() {
    let scratch = Scratch::new();
    let program = program(64);
    let mut store = SqliteStore::open(&scratch.db(), impatient()).unwrap();
    let run = begin(&mut store, &key(&program), &program);
    let other = Connection::open(scratch.db()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let start = Instant::now();
    let error = store.insert(&run, &measured(0, 1.0)).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(20));
    let expected = format!(
        "{} was locked for more than 0.05 s by another process\nhelp: wait until the other process \
         is done, or stop it; nothing was changed and the same command may be repeated",
        scratch.db().display()
    );
    assert_eq!(message(&error), expected);
    assert!(error.may_pass());
    // Reading goes on meanwhile.
    assert_eq!(store.best(&key(&program)).unwrap(), None);
    other.execute_batch("COMMIT").unwrap();
    store.insert(&run, &measured(0, 1.0)).unwrap();
}

#[test]
fn a_journal_loses_nothing_while_the_database_is_locked() {
    let scratch = Scratch::new();
    let program = program(64);
    let key = key(&program);
    let mut journal = Journal::new(scratch.location().clone(), impatient()).unwrap();
    let info = RunInfo::new("random", 1);
    assert_eq!(journal.begin_run(&key, &program, &info), Ok(Kept::Database));
    assert_eq!(journal.insert(&info.id, &measured(0, 1.0)), Ok(Kept::Database));

    let other = Connection::open(scratch.db()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let start = Instant::now();
    for number in 1..50 {
        assert_eq!(journal.insert(&info.id, &measured(number, 1.0)), Ok(Kept::Waiting));
    }
    assert!(start.elapsed() < Duration::from_secs(30), "a locked database does not stop a search");
    assert_eq!((journal.waiting(), journal.unsaved()), (49, 0));
    assert!(matches!(journal.trouble(), Some(Error::Busy { .. })));
    let pending = fs::read_to_string(journal.pending_path()).unwrap();
    assert_eq!(pending.lines().count(), 49);

    other.execute_batch("ROLLBACK").unwrap();
    let flushed = journal.flush().unwrap();
    assert_eq!((flushed.known, flushed.bad), (49, 0));
    assert_eq!((journal.waiting(), journal.trouble()), (0, None));
    assert_eq!(fs::metadata(journal.pending_path()).unwrap().len(), 0);
    assert_eq!(journal.insert(&info.id, &measured(50, 1.0)), Ok(Kept::Database));
    let trials = journal.store().unwrap().trials(&info.id, None, 100).unwrap();
    assert_eq!(trials, (0..=50).map(|number| measured(number, 1.0)).collect::<Vec<_>>());
}

#[test]
fn what_a_killed_process_left_waiting_is_written_by_the_next() {
    let scratch = Scratch::new();
    let program = program(64);
    let info = RunInfo::new("random", 1);
    let other = {
        drop(scratch.store());
        let other = Connection::open(scratch.db()).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        other
    };
    let mut journal = Journal::new(scratch.location().clone(), impatient()).unwrap();
    // Even the beginning of the run waits.
    assert_eq!(journal.begin_run(&key(&program), &program, &info), Ok(Kept::Waiting));
    assert_eq!(journal.insert(&info.id, &measured(0, 1.0)), Ok(Kept::Waiting));
    assert_eq!(journal.insert(&info.id, &measured(1, 1.0)), Ok(Kept::Waiting));
    // Simulate a kill: no destructor runs, and the last line is half written.
    let pending = journal.pending_path();
    std::mem::forget(journal);
    let mut text = fs::read(&pending).unwrap();
    text.extend_from_slice(b"{\"trial\":{\"run\":");
    fs::write(&pending, text).unwrap();
    // Another process adds to the file.
    let mut second = Journal::new(scratch.location().clone(), impatient()).unwrap();
    assert_eq!(second.insert(&info.id, &measured(2, 1.0)), Ok(Kept::Waiting));
    std::mem::forget(second);
    other.execute_batch("ROLLBACK").unwrap();

    let mut next = Journal::new(scratch.location().clone(), quick()).unwrap();
    assert_eq!(next.trouble(), None);
    let trials = next.store().unwrap().trials(&info.id, None, 10).unwrap();
    assert_eq!(trials, [measured(0, 1.0), measured(1, 1.0), measured(2, 1.0)]);
}

#[test]
fn a_journal_refuses_at_once_what_no_database_keeps() {
    let scratch = Scratch::new();
    let mut journal = Journal::new(scratch.location().clone(), quick()).unwrap();
    let error = journal.insert(&RunId::named("x"), &measured(0, f64::NAN)).unwrap_err();
    assert_eq!(error.to_string(), "seconds is not a time from 1e-10 to 1e7 seconds");
    let unknown = journal.insert(&RunId::named("x"), &measured(0, 1.0)).unwrap_err();
    assert_eq!(unknown, Error::UnknownRun(RunId::named("x")));
    assert_eq!((journal.waiting(), journal.trouble()), (0, None));
}

#[test]
fn a_journal_goes_on_without_any_usable_database() {
    let scratch = Scratch::new();
    fs::write(scratch.db(), b"this is a letter to my grandmother, and quite long enough").unwrap();
    let program = program(64);
    let info = RunInfo::new("random", 1);
    let mut journal = Journal::new(scratch.location().clone(), impatient()).unwrap();
    assert!(matches!(journal.trouble(), Some(Error::NotADatabase { .. })));
    assert_eq!(journal.begin_run(&key(&program), &program, &info), Ok(Kept::Waiting));
    assert_eq!(journal.insert(&info.id, &measured(0, 1.0)), Ok(Kept::Waiting));
    assert_eq!(journal.unsaved(), 0);
    fs::remove_file(scratch.db()).unwrap();
    journal.flush().unwrap();
    assert_eq!(journal.store().unwrap().trials(&info.id, None, 10).unwrap().len(), 1);
}

/// Writes until the database is full, frees space, and goes on.
fn fill_up(scratch: &Scratch, options: StoreOptions, make_room: &dyn Fn()) {
    let program = program(64);
    let info = RunInfo::new("random", 1);
    let mut journal = Journal::new(scratch.location().clone(), options).unwrap();
    journal.begin_run(&key(&program), &program, &info).unwrap();
    let trial = |number: u64| Trial {
        outcome: Outcome::BuildFailed { reason: format!("{number} {}", "long ".repeat(2000)) },
        ..measured(number, 1.0)
    };
    let mut number = 0;
    while journal.insert(&info.id, &trial(number)).unwrap() == Kept::Database {
        number += 1;
        assert!(number < 10_000, "a limit has to be reached");
    }
    let error = journal.trouble().unwrap();
    let expected = format!(
        "no space is left to write {}\nhelp: make room on the disk of {}, or remove old records: \
         tensorwright db gc",
        scratch.db().display(),
        scratch.path().display()
    );
    assert_eq!(message(error), expected);
    journal.insert(&info.id, &trial(number + 1)).unwrap();
    make_room();
    drop(journal);
    let mut journal = Journal::new(scratch.location().clone(), quick()).unwrap();
    journal.flush().unwrap();
    let trials = journal.store().unwrap().trials(&info.id, None, 100_000).unwrap();
    assert_eq!(trials, (0..=number + 1).map(trial).collect::<Vec<_>>());
}

#[test]
fn a_limit_of_size_loses_nothing() {
    let scratch = Scratch::new();
    fill_up(&scratch, StoreOptions { max_bytes: Some(300 << 10), ..quick() }, &|| ());
}

/// The environment variable that makes `inside_a_tiny_disk` do its work.
const TINY_DISK: &str = "TENSORWRIGHT_TEST_TINY_DISK";

/// A really full disk: a file system of 2 MiB in a private mount name space. If the system does not
/// allow that, `a_limit_of_size_loses_nothing` has tested the same with a limit of SQLite's.
#[test]
fn a_full_disk_loses_nothing() {
    let scratch = Scratch::new();
    let allowed = Command::new("unshare").args(["-rm", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        return;
    }
    let script =
        "mount -t tmpfs -o size=2m none \"$1\" && exec \"$2\" --exact faults::inside_a_tiny_disk";
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", script, "sh"])
        .arg(scratch.path())
        .arg(std::env::current_exe().unwrap())
        .env(TINY_DISK, "1")
        .env("TMPDIR", scratch.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[test]
fn inside_a_tiny_disk() {
    if std::env::var_os(TINY_DISK).is_none() {
        return;
    }
    let scratch = Scratch::new();
    // The journal writes to the same disk: events it cannot save stay in memory.
    let ballast = scratch.path().join("ballast");
    fs::write(&ballast, vec![1; 1 << 20]).unwrap();
    fill_up(&scratch, quick(), &|| fs::remove_file(&ballast).unwrap());
}

#[test]
fn a_truncated_file_is_an_error_wherever_it_ends() {
    let scratch = Scratch::new();
    filled(&scratch);
    let whole = fs::read(scratch.db()).unwrap();
    for share in [1, 10, 30, 50, 70, 95] {
        let end = whole.len() * share / 100;
        fs::write(scratch.db(), &whole[..end]).unwrap();
        let error = failure(&scratch.db());
        let damaged = matches!(error, Error::Corrupt { .. } | Error::NotADatabase { .. });
        assert!(damaged, "{share} %: {error:?}");
        assert!(error.to_string().starts_with(scratch.db().to_str().unwrap()));
    }
}

#[test]
fn a_damaged_file_is_an_error_or_right_but_never_a_panic() {
    let scratch = Scratch::new();
    filled(&scratch);
    let whole = fs::read(scratch.db()).unwrap();
    let mut random = SplitMix::new(5);
    for _ in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..50 {
            let place = 100 + random.below(bytes.len() as u64 - 100) as usize;
            bytes[place] = random.below(256) as u8;
        }
        fs::write(scratch.db(), &bytes).unwrap();
        let Ok(store) = open(&scratch.db()) else { continue };
        let _ = store.best(&key(&program(64)));
        let _ = store.why_miss(&key(&program(64)));
        let _ = store.keys();
        for run in store.runs(&RunFilter::default()).unwrap_or_default() {
            let _ = store.trials(&run.info.id, None, 5000);
        }
    }
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let scratch = Scratch::new();
    let letter = "Dear grandmother, ".repeat(100);
    fs::write(scratch.db(), &letter).unwrap();
    let error = open(&scratch.db()).err().unwrap();
    let expected = format!(
        "{} is not a database of records\nhelp: name another file with --db or TENSORWRIGHT_DB; \
         this one was left as it is",
        scratch.db().display()
    );
    assert_eq!(message(&error), expected);
    assert_eq!(fs::read_to_string(scratch.db()).unwrap(), letter);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    for tables in ["CREATE TABLE bookmarks (a)", "CREATE TABLE meta (a, b)"] {
        let scratch = Scratch::new();
        Connection::open(scratch.db()).unwrap().execute_batch(tables).unwrap();
        let before = fs::read(scratch.db()).unwrap();
        let error = open(&scratch.db()).err().unwrap();
        assert_eq!(error, Error::Foreign { at: scratch.location().clone() });
        assert_eq!(fs::read(scratch.db()).unwrap(), before);
    }
}

#[test]
fn a_newer_schema_is_left_alone() {
    let scratch = Scratch::new();
    filled(&scratch);
    let newer = "UPDATE meta SET value = '99' WHERE name = 'tensorwright-schema'";
    Connection::open(scratch.db()).unwrap().execute_batch(newer).unwrap();
    let error = open(&scratch.db()).err().unwrap();
    let expected = format!(
        "{} was made by a newer version (schema 99, this one knows 3)\nhelp: use the newer \
         tensorwright, or name another file with --db or TENSORWRIGHT_DB",
        scratch.db().display()
    );
    assert_eq!(message(&error), expected);
}

#[test]
fn a_place_that_cannot_be_written_is_an_error() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("file"), "").unwrap();
    // Below a file, a directory itself, and where the system denies writing.
    let places = [
        scratch.path().join("file/records.sqlite3"),
        scratch.path().to_owned(),
        "/proc/tensorwright/records.sqlite3".into(),
    ];
    for place in places {
        let error = open(&place).err().unwrap();
        assert!(matches!(error, Error::CannotOpen { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&format!("{} cannot be opened: ", place.display())));
        assert!(error.help().contains("--db"));
    }
}

#[test]
fn a_directory_without_permission_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let closed = scratch.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    // The administrator may write everywhere.
    let may_write = fs::write(closed.join("probe"), "").is_ok();
    let result = open(&closed.join("records.sqlite3"));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    match result {
        Ok(_) => assert!(may_write),
        Err(error) => {
            let refused = matches!(error, Error::CannotOpen { .. } | Error::ReadOnly { .. });
            assert!(refused, "{error:?}");
        }
    }
}
