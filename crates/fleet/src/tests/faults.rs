//! Fault tests: every item ends with exactly one outcome.
//!
//! `TENSORWRIGHT_FLEET_ITEMS=10000 cargo nextest run -p tensorwright-fleet faults` does the same with more items.
#![allow(clippy::print_stdout, reason = "a failed expectation is how a test speaks")]

use crate::tests::support;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::tests::support::{LIMIT, Place, completion, item, join, run, url};
use crate::{Completion, CompletionStatus, Fleet, Item};
use tensorwright_random::SplitMix;
use tensorwright_records::{Error, postgres::Settings};
use tensorwright_testkit::postgres::{Proxy, Server, port, shared};

const TASK: &str = "TENSORWRIGHT_TEST_TASK";
const PLACE: &str = "TENSORWRIGHT_TEST_PLACE";

/// The shortest lease, so that a death is detected soon.
const LEASE: Duration = Duration::from_secs(1);

/// How long a worker retries.
const PATIENCE: Duration = Duration::from_secs(120);

/// The number of items.
fn items() -> u64 {
    std::env::var("TENSORWRIGHT_FLEET_ITEMS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

/// Starts this test program again as another process.
fn child(task: &str, place: &Place) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::faults::child_process", "--nocapture"])
        .env(TASK, task)
        .env(PLACE, place.text())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The body of child processes; does nothing in other processes.
#[test]
fn child_process() {
    let (Ok(task), Ok(place)) = (std::env::var(TASK), std::env::var(PLACE)) else { return };
    match task.as_str() {
        "mortal" => mortal(&place),
        _ => slow(&place),
    }
}

/// Kills this process.
fn die() {
    let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
}

/// Works until killed at a random step.
fn mortal(place: &str) {
    let mut random = SplitMix::new(std::process::id().into());
    let mut fleet = Fleet::connect(&url(place)).unwrap();
    let worker = join(&mut fleet, &format!("w{}", std::process::id()));
    loop {
        let fate = random.below(24);
        let leased = fleet.lease(worker, 4, LEASE).unwrap();
        if fate == 0 {
            die();
        }
        let done: Vec<Completion> = leased.iter().map(|one| completion(&one.lease, 1.0)).collect();
        if fate == 1 {
            // In the middle: before, while or after the server commits.
            let wait = Duration::from_micros(random.below(3000));
            std::thread::spawn(move || {
                std::thread::sleep(wait);
                die();
            });
        }
        fleet.complete(worker, &done).unwrap();
        if fate == 2 {
            die();
        }
        if leased.is_empty() {
            fleet.sweep().unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Leases an item, reports it, and completes it when told to.
fn slow(place: &str) {
    let mut fleet = Fleet::connect(&url(place)).unwrap();
    let worker = join(&mut fleet, "slow");
    let leased = fleet.lease(worker, 1, LEASE).unwrap().remove(0);
    println!("\nleased");
    std::thread::sleep(Duration::from_millis(500));
    println!("{:?}", fleet.complete(worker, &[completion(&leased.lease, 7.0)]).unwrap()[0]);
}

#[test]
fn workers_that_are_killed_at_any_step() {
    let Some(place) = Place::new() else { return };
    let count = items();
    place.run_with(0..count);
    let mut fleet = place.fleet();
    let begun = Instant::now();
    let mut deaths = 0;
    let mut children: Vec<Child> = (0..4).map(|_| child("mortal", &place)).collect();
    while !place.is_settled(count) {
        assert!(begun.elapsed() < Duration::from_secs(60 + count / 10), "it does not end");
        for one in &mut children {
            if one.try_wait().unwrap().is_some() {
                *one = child("mortal", &place);
                deaths += 1;
            }
        }
        fleet.sweep().unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    for mut one in children {
        one.kill().unwrap();
        one.wait().unwrap();
    }
    assert!(deaths > 0);
    println!("{count} items, {deaths} deaths, {:?}", begun.elapsed());
    place.assert_settled(count);
}

#[test]
fn a_worker_that_was_stopped_beyond_its_lease() {
    let Some(place) = Place::new() else { return };
    place.run_with(0..1);
    let mut stopped = child("slow", &place);
    let mut lines = BufReader::new(stopped.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "leased"));
    let signal = |name: &str| {
        Command::new("kill").args([name, &stopped.id().to_string()]).status().unwrap();
    };
    signal("-STOP");
    std::thread::sleep(Duration::from_millis(1500));
    let mut fleet = place.fleet();
    assert_eq!(fleet.sweep().unwrap().returned, 1);
    let worker = join(&mut fleet, "quick");
    let leased = fleet.lease(worker, 1, LIMIT).unwrap().remove(0);
    assert_eq!(
        fleet.complete(worker, &[completion(&leased.lease, 1.0)]).unwrap(),
        [CompletionStatus::Stored]
    );
    signal("-CONT");
    assert!(lines.any(|line| line.unwrap() == "Fenced"));
    stopped.wait().unwrap();
    place.assert_settled(1);
    assert_eq!(place.count("SELECT count(*) FROM trials WHERE seconds = 1.0"), 1);
}

/// Works until told to stop, whatever happens to the connection.
fn work(place: &str, name: &str, copies: usize, stop: &AtomicBool) {
    let mut fleet = Fleet::later(&url(place)).unwrap().with_limit(Duration::from_millis(700));
    let worker =
        fleet.insist(PATIENCE, |fleet| fleet.join(name, support::CLASS, "a test")).unwrap();
    while !stop.load(Ordering::Relaxed) {
        let leased = fleet.insist(PATIENCE, |fleet| fleet.lease(worker, 8, LEASE)).unwrap();
        let done: Vec<Completion> = leased.iter().map(|one| completion(&one.lease, 1.0)).collect();
        for _ in 0..copies {
            fleet.insist(PATIENCE, |fleet| fleet.complete(worker, &done)).unwrap();
        }
        if leased.is_empty() {
            fleet.insist(PATIENCE, Fleet::sweep).unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Four workers on a connection with faults, until all items are settled.
fn survive(
    place: &Place,
    way: &str,
    copies: usize,
    count: u64,
    mut happens: impl FnMut(u32) -> bool,
) {
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let stop = &stop;
            scope.spawn(move || work(way, &format!("w{number}"), copies, stop));
        }
        // Meanwhile a run keeps adding items, some of them twice.
        let mut fleet = Fleet::later(&url(way)).unwrap().with_limit(Duration::from_millis(700));
        let run = run(64);
        fleet.insist(PATIENCE, |fleet| fleet.begin_run(&run)).unwrap();
        let all: Vec<Item> = (0..count).map(item).collect();
        let mut round = 0;
        for some in all.chunks(count.div_ceil(20) as usize) {
            fleet.insist(PATIENCE, |fleet| fleet.enqueue(&run.info.id, some)).unwrap();
            happens(round);
            round += 1;
        }
        while happens(round) {
            round += 1;
        }
        let settled = || std::panic::catch_unwind(|| place.is_settled(count)).unwrap_or(false);
        while !settled() {
            let limit = Duration::from_secs(120 + count / 20);
            assert!(begun.elapsed() < limit, "it does not end");
            std::thread::sleep(Duration::from_millis(100));
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!("{count} items in {:?}", begun.elapsed());
    place.assert_settled(count);
}

#[test]
fn completions_that_come_twice() {
    let Some(place) = Place::new() else { return };
    survive(&place, place.text(), 3, items(), |_| false);
}

#[test]
fn a_server_that_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let place = Place::of(server.url());
    let begun = "SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000)::BIGINT";
    let mut starts = vec![place.count(begun)];
    survive(&place, place.text(), 1, items(), |round| {
        if round % 6 == 5 {
            server.kill();
            server.start_again().unwrap();
            starts.push(place.count(begun));
        }
        round < 22
    });
    assert!(starts.len() == 4 && starts.is_sorted() && starts[0] < starts[1], "{starts:?}");
    drop(place);
}

#[test]
fn a_wire_that_is_frozen_and_cut() {
    let Some(shared) = shared() else { return };
    let place = Place::new().unwrap();
    let wire = Proxy::to(port(&shared).unwrap()).unwrap();
    let seconds = if items() >= 10_000 { 30 } else { 2 };
    let way = wire.url(place.text());
    survive(&place, &way, 1, items(), |round| {
        match round {
            4 => wire.cut(),
            12 => wire.freeze(),
            _ => return round < 20,
        }
        std::thread::sleep(Duration::from_secs(seconds));
        wire.mend();
        true
    });
}

/// A preloaded library that keeps files of tables from growing while a marker file exists.
const FULL_DISK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static int is_full(int fd, off_t end) {
  char name[64], path[4096];
  struct stat status;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(name, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  if (!strstr(path, "/data/base/") || fstat(fd, &status) || end <= status.st_size) return 0;
  return access(FLAG, F_OK) == 0;
}
#define WRITE(name) \
  ssize_t name(int fd, const void *bytes, size_t count, off_t at) { \
    static ssize_t (*real)(int, const void *, size_t, off_t); \
    if (!real) real = dlsym(RTLD_NEXT, #name); \
    if (is_full(fd, at + count)) { errno = ENOSPC; return -1; } \
    return real(fd, bytes, count, at); \
  }
WRITE(pwrite)
WRITE(pwrite64)
"#;

#[test]
fn a_disk_that_is_full() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let flag = format!("-DFLAG={:?}", at("full").display().to_string());
    std::fs::write(at("full.c"), FULL_DISK).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", &flag, "-o"])
        .args([at("full.so"), at("full.c"), "-ldl".into()])
        .status()
        .unwrap();
    assert!(compiled.success());
    let Some(server) = Server::start_with(directory.path(), Some(&at("full.so"))) else { return };
    let place = Place::of(server.url());
    let mut refusals = 0;
    let mut probe = place.fleet();
    let probed = run(65);
    probe.begin_run(&probed).unwrap();
    survive(&place, place.text(), 1, items(), |round| {
        if matches!(round, 3 | 10) {
            std::fs::write(at("full"), "").unwrap();
            // Writes that do not fit are refused with a reason, and all clients wait.
            let long = Item { schedule: "x\n".repeat(30_000), ..item(0) };
            for number in 0..2000_u64 {
                let schedule = format!("{number}{}", long.schedule);
                let result =
                    probe.enqueue(&probed.info.id, &[Item { number, schedule, ..item(0) }]);
                if let Err(error) = result {
                    assert!(matches!(error, Error::Full { .. }), "{error}");
                    refusals += 1;
                    break;
                }
            }
            std::thread::sleep(Duration::from_secs(1));
            std::fs::remove_file(at("full")).unwrap();
            // Ignore the probe's own items.
            probe.insist(PATIENCE, |fleet| fleet.cancel(&probed.info.id)).unwrap();
            let sql = "DELETE FROM items WHERE run_id = (SELECT max(run_id) FROM fleet_runs f WHERE f.cancelled)";
            let _ = place.client().batch(sql, LIMIT);
            let again = "UPDATE fleet_runs SET cancelled = false WHERE cancelled";
            let _ = place.client().batch(again, LIMIT);
        }
        round < 20
    });
    assert!(refusals > 0, "the disk was never full");
    assert!(Settings::of(&place.url()).is_ok());
}
