//! Concurrent processes, and processes that are killed.
#![allow(clippy::print_stdout, reason = "a failed expectation is how a test speaks")]

use crate::support;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Scratch, key, measured, program, quick};
use tensorwright_records::{
    Error, Journal, Kept, Location, RunFilter, RunInfo, StoreOptions, open_at,
};

/// The environment variable with a child's task and place.
const TASK: &str = "TENSORWRIGHT_TEST_TASK";
const DATABASE: &str = "TENSORWRIGHT_TEST_DATABASE";

/// Starts this test program again as another process.
fn child(task: &str, database: &Location) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child_process", "--nocapture"])
        .env(TASK, task)
        .env(DATABASE, database.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The body of child processes; does nothing in other processes.
#[test]
fn child_process() {
    let (Ok(task), Some(path)) = (std::env::var(TASK), std::env::var_os(DATABASE)) else { return };
    let place = Location::from(path);
    match (task.as_str(), &place) {
        ("write", _) => write(&place, 0..250),
        ("write forever", _) => write(&place, 0..u64::MAX >> 1),
        (_, Location::File(path)) => hold(path),
        _ => unreachable!("{task}"),
    }
}

/// Writes trials and prints the number of each when it is written.
fn write(place: &Location, numbers: std::ops::Range<u64>) {
    let program = program(64);
    let mut store = open_at(place, quick()).unwrap();
    let run = store.begin_run(&key(&program), &program, &RunInfo::new("random", 1)).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "\nrun {run}").unwrap();
    for number in numbers {
        store.insert(&run, &measured(number, 1.0 + number as f64)).unwrap();
        writeln!(out, "wrote {number}").unwrap();
    }
}

/// Locks the database until told to end.
fn hold(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    println!("\nlocked");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn wait_for(child: &mut Child, word: &str) -> BufReader<std::process::ChildStdout> {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with(word) {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the process ended without `{word}`");
    }
    out
}

support::on_every_database! { several_processes_write_at_once, what_was_written_outlasts_a_kill }

fn several_processes_write_at_once(scratch: &Scratch) {
    // They also all create the database.
    let children: Vec<Child> = (0..4).map(|_| child("write", scratch.location())).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let store = scratch.store();
    let runs = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        let trials = store.trials(&run.info.id, None, 1000).unwrap();
        let expected: Vec<_> = (0..250).map(|n| measured(n, 1.0 + n as f64)).collect();
        assert_eq!(trials, expected);
    }
    assert_eq!(store.keys().unwrap().len(), 1);
}

fn what_was_written_outlasts_a_kill(scratch: &Scratch) {
    let mut child = child("write forever", scratch.location());
    let mut out = wait_for(&mut child, "wrote 40");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let said = rest.lines().filter_map(|line| line.strip_prefix("wrote ")?.parse().ok()).max();
    let said: u64 = said.unwrap_or(40);
    let mut store = scratch.store();
    let run = store.runs(&RunFilter::default()).unwrap().remove(0);
    let trials = store.trials(&run.info.id, None, 1_000_000).unwrap();
    let numbers: Vec<u64> = trials.iter().map(|trial| trial.number).collect();
    assert!(numbers.len() as u64 > said, "{said} was written and is gone");
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(run.end, None);
    // And the next process continues where it ended.
    let next = numbers.len() as u64;
    store.insert(&run.info.id, &measured(next, 1.0)).unwrap();
}

#[test]
fn a_process_that_holds_a_lock_is_named() {
    let scratch = Scratch::new();
    let program = program(64);
    drop(scratch.store());
    let mut child = child("hold", scratch.location());
    let _out = wait_for(&mut child, "locked");
    let options = StoreOptions { busy_timeout: std::time::Duration::from_millis(20), ..quick() };
    let mut journal = Journal::new(scratch.location().clone(), options).unwrap();
    let info = RunInfo::new("random", 1);
    assert_eq!(journal.begin_run(&key(&program), &program, &info), Ok(Kept::Waiting));
    let error = journal.trouble().unwrap().clone();
    let Error::Busy { holders, .. } = &error else { panic!("{error:?}") };
    if Path::new("/proc/locks").exists() {
        assert!(
            holders.iter().any(|holder| holder.starts_with(&child.id().to_string())),
            "{error}"
        );
    }
    // A lock ends with its process.
    child.kill().unwrap();
    child.wait().unwrap();
    journal.flush().unwrap();
    assert_eq!(journal.store().unwrap().runs(&RunFilter::default()).unwrap().len(), 1);
}
