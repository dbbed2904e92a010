//! Tuning over a fleet, with real processes.
//!
//! `TENSORWRIGHT_FLEET_ITEMS=10000 cargo nextest run -p tensorwright-cli --features fleet killed` kills a run with more candidates.
#![allow(clippy::print_stdout, reason = "a failed expectation is how a test speaks")]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tensorwright::Target;
use tensorwright_fleet::{Completion, Fleet, Role, finals_of};
use tensorwright_outcome::{Outcome, Timing};
use tensorwright_records::postgres::{Client, Settings};
use tensorwright_records::{Location, RunFilter, StoreOptions, Url, open_at};
use tensorwright_testkit::postgres::Server;
use tensorwright_tuner::class_of;

const LIMIT: Duration = Duration::from_secs(60);

/// A server with a queue, a class for machines like this one, and a directory for files.
struct Place {
    server: Server,
    files: tempfile::TempDir,
    class: String,
}

impl Place {
    fn new() -> Option<Self> {
        let files = tempfile::tempdir().unwrap();
        let server = Server::start(files.path())?;
        let class = class_of(&Target::native().unwrap(), 1);
        let place = Self { server, files, class };
        let mut fleet = Fleet::install(&place.url()).unwrap();
        fleet.add_class(&place.class).unwrap();
        fleet.permit("postgres", &place.class).unwrap();
        Some(place)
    }

    fn url(&self) -> Url {
        let Ok(Location::Server(url)) = self.server.url().parse() else { unreachable!() };
        url
    }

    fn fleet(&self) -> Fleet {
        Fleet::connect(&self.url()).unwrap()
    }

    fn count(&self, sql: &str) -> i64 {
        let client = Client::connect(&Settings::of(&self.url()).unwrap(), LIMIT).unwrap();
        client.query(sql, &[], LIMIT).unwrap()[0].get(0)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn gemm(&self) -> PathBuf {
        let text = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
        self.write("gemm.tc", text)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
        command.args(args).args(["--db", self.server.url()]);
        // Files of the journal, beside those of the test.
        command
            .env("XDG_DATA_HOME", self.files.path())
            .env("NO_COLOR", "1")
            .env("TENSORWRIGHT_THREADS", "1");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn tune(&self, more: &[&str]) -> Child {
        let gemm = self.gemm();
        let size = if more.contains(&"--size") { "" } else { "M=64,N=64,K=64" };
        let mut command = self.command(&["tune", gemm.to_str().unwrap(), "--fleet"]);
        if !size.is_empty() {
            command.args(["--size", size]);
        }
        command.args(["--format", "json"]).args(more).spawn().unwrap()
    }

    fn worker(&self, name: &str) -> Child {
        self.command(&["worker", "--name", name]).spawn().unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Ends a process with SIGTERM.
fn end(mut child: Child) -> String {
    let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() && begun.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    said(&child.wait_with_output().unwrap())
}

#[test]
fn workers_tune_for_a_run_with_any_strategy() {
    let Some(place) = Place::new() else { return };
    let workers = [place.worker("w0"), place.worker("w1")];
    for strategy in ["random", "opevo", "g-bfs", "portfolio"] {
        let tuned = json(
            &place.tune(&["--trials", "12", "--strategy", strategy]).wait_with_output().unwrap(),
        );
        assert_eq!(tuned["status"], "finished", "{tuned}");
        assert!(tuned["trials"].as_u64().unwrap() >= 12, "{tuned}");
        assert!(tuned["seconds"].as_f64().unwrap() > 0.0);
        assert!(tuned["peak_gflops"].as_f64().unwrap() > 0.0, "the roof is that of a worker");
        assert!(tuned["defects"]["count"] == 0, "{tuned}");
    }
    // No candidate of a run was measured twice, and each has one outcome.
    let twice = "SELECT count(*) FROM (SELECT run_id, schedule FROM items WHERE NOT finals GROUP BY run_id, schedule HAVING count(*) > 1) t";
    assert_eq!(place.count(twice), 0);
    let counts =
        "SELECT (SELECT count(*) FROM items WHERE NOT finals) - (SELECT count(*) FROM trials)";
    assert_eq!(place.count(counts), 0);
    // Finals came from one machine, in rounds; a winner is declared, and `run` uses it.
    assert!(place.count("SELECT count(*) FROM finals WHERE result LIKE '%measured%'") >= 4);
    let store = open_at(&Location::Server(place.url()), StoreOptions::default()).unwrap();
    let runs = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.len(), 4);
    let best = store.declared().unwrap();
    assert_eq!(best.len(), 1, "{best:?}");
    let gemm = place.gemm();
    let ran = place
        .command(&["run", gemm.to_str().unwrap(), "--size", "M=64,N=64,K=64", "--verify"])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", said(&ran));
    for worker in workers {
        let says = end(worker);
        assert!(says.contains(" stored, 0 fenced"), "{says}");
    }
}

#[test]
fn several_operators_are_tuned_at_the_same_time() {
    let Some(place) = Place::new() else { return };
    let file = place.write(
        "several.tc",
        "def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }
         def sum(float(N,M) A) -> (B) { B(i) +=! A(i,j) }
         def both(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }",
    );
    let worker = place.worker("w");
    let mut command =
        place.command(&["tune", "--all", file.to_str().unwrap(), "--size", "N=512,M=64"]);
    let output = command.args(["--fleet", "--trials", "18", "--format", "json"]).output().unwrap();
    let all = json(&output);
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|one| one["def"].as_str().unwrap()).collect();
    assert_eq!(names, ["twice", "sum", "both"]);
    for one in all.as_array().unwrap() {
        assert!(one["trials"].as_u64().unwrap() >= 6, "{one}");
    }
    let overlap = "SELECT count(*) FROM runs a JOIN runs b ON a.id < b.id AND a.started < b.ended AND b.started < a.ended";
    assert_eq!(place.count(overlap), 3);
    end(worker);
}

/// Users who may only call functions can do everything they need.
#[test]
fn roles_suffice() {
    let Some(place) = Place::new() else { return };
    let client = Client::connect(&Settings::of(&place.url()).unwrap(), LIMIT).unwrap();
    client
        .batch("CREATE ROLE ann LOGIN; CREATE ROLE rack LOGIN; CREATE ROLE board LOGIN", LIMIT)
        .unwrap();
    let mut fleet = place.fleet();
    fleet.admit("ann", Role::Tune).unwrap();
    fleet.admit("rack", Role::Work).unwrap();
    fleet.permit("rack", &place.class).unwrap();
    fleet.admit("board", Role::Read).unwrap();
    let as_user = |user: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
        let url = place.server.url().replace("postgres@", &format!("{user}@"));
        command.args(args).args(["--db", &url]).env("XDG_DATA_HOME", place.files.path());
        command
            .env("NO_COLOR", "1")
            .env("TENSORWRIGHT_THREADS", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let worker = as_user("rack", &["worker", "--name", "w"]).spawn().unwrap();
    let gemm = place.gemm();
    let tune =
        ["tune", gemm.to_str().unwrap(), "--size", "M=64,N=64,K=64", "--trials", "6", "--fleet"];
    for _ in 0..2 {
        let tuned = as_user("ann", &tune).output().unwrap();
        assert!(tuned.status.success(), "{}", said(&tuned));
        assert!(String::from_utf8_lossy(&tuned.stdout).contains("6 trials in"), "{tuned:?}");
        assert!(said(&tuned).contains("; --resume continues it"), "{}", said(&tuned));
    }
    assert_eq!(place.count("SELECT count(*) FROM bests"), 1);
    assert!(place.count("SELECT count(*) FROM trials") >= 12);
    let top = as_user("board", &["fleet", "top"]).output().unwrap();
    assert!(String::from_utf8_lossy(&top.stdout).contains("gemm K=64,M=64,N=64"), "{top:?}");
    for (user, args) in [("ann", "fleet top"), ("rack", "fleet status"), ("board", "fleet drain w")]
    {
        let args: Vec<&str> = args.split(' ').collect();
        let refused = as_user(user, &args).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{user}");
        assert!(said(&refused).contains("permission denied"), "{}", said(&refused));
    }
    let refused = as_user("board", &tune).output().unwrap();
    assert!(said(&refused).contains("permission denied"), "{}", said(&refused));
    end(worker);
}

/// Stops others on drop.
struct Stopping<'s>(&'s AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A fake worker: after a delay, returns a time that depends only on the schedule.
fn pretend(url: &Url, name: &str, class: &str, moment: Duration, stop: &AtomicBool) {
    let mut fleet = Fleet::connect(url).unwrap();
    let worker = fleet.join(name, class, "a test").unwrap();
    let outcome = |schedule: &str| {
        let sum = schedule.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        let seconds = 1e-3 + (sum % 1000) as f64 * 1e-6;
        Outcome::Measured(Timing {
            seconds,
            raw_seconds: seconds,
            spread: 0.01,
            runs: 9,
            ..Timing::default()
        })
    };
    while !stop.load(Ordering::Relaxed) {
        let leased = fleet.lease(worker, 16, Duration::from_secs(2)).unwrap();
        std::thread::sleep(moment);
        let mut done = Vec::new();
        for one in leased {
            if one.is_finals {
                let (_, schedules) = finals_of(&one.schedule).unwrap();
                let timed = |text: &String| {
                    let outcome = outcome(text);
                    let rounds = vec![outcome.cost().unwrap(); 24];
                    (outcome, rounds)
                };
                let finalists: Vec<_> = schedules.iter().map(timed).collect();
                fleet.complete_finals(worker, &one.lease, &finalists).unwrap();
            } else {
                done.push(Completion { lease: one.lease, outcome: outcome(&one.schedule) });
            }
        }
        fleet.complete(worker, &done).unwrap();
        fleet.sweep().unwrap();
    }
}

#[test]
fn a_run_that_is_killed_is_gone_on_with_and_nothing_is_tried_twice() {
    let Some(place) = Place::new() else { return };
    let items = std::env::var("TENSORWRIGHT_FLEET_ITEMS").ok();
    // More candidates than a search draws in vain before it gives up: repeating its first numbers
    // would end it here.
    let items: u64 = items.and_then(|text| text.parse().ok()).unwrap_or(2000);
    let trials = items.to_string();
    let size = "M=1024,N=1024,K=1024";
    let options = ["--trials", &trials, "--size", size, "--strategy", "random", "--seed", "5"];
    let stop = AtomicBool::new(false);
    let (deaths, tuned) = std::thread::scope(|scope| {
        // Also on failure: workers must not keep running.
        let _stopping = Stopping(&stop);
        for number in 0..4 {
            let (url, class, stop) = (place.url(), &place.class, &stop);
            scope.spawn(move || {
                pretend(&url, &format!("p{number}"), class, Duration::from_millis(10), stop);
            });
        }
        // Killed after every fifth of the work, and resumed by name and by the same command in
        // turns.
        let mut fleet = place.fleet();
        let mut deaths = 0;
        for part in 1..5 {
            let runs = fleet.runs(1).unwrap();
            let name = runs.first().map(|run| run.run.clone()).unwrap_or_default();
            let by_name: &[&str] = if part % 2 == 0 { &["--resume", &name] } else { &[] };
            if part > 1 && by_name.is_empty() {
                // A heartbeat timeout takes 20 s; the test does not wait for it.
                place.count("WITH u AS (UPDATE fleet_runs SET held = '-infinity' RETURNING 1) SELECT count(*) FROM u");
            }
            let mut run = place.tune(&[&options[..], by_name].concat());
            let begun = Instant::now();
            let wanted = (items * part / 5).cast_signed();
            while place.count("SELECT count(*) FROM trials") < wanted {
                if run.try_wait().unwrap().is_some() {
                    break;
                }
                assert!(
                    begun.elapsed() < LIMIT + Duration::from_secs(items / 20),
                    "it stands still"
                );
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(
                run.try_wait().unwrap().is_none(),
                "{}",
                said(&run.wait_with_output().unwrap())
            );
            run.kill().unwrap();
            run.wait().unwrap();
            deaths += 1;
        }
        let name = fleet.runs(1).unwrap()[0].run.clone();
        let last = place.tune(&[&options[..], &["--resume", &name]].concat());
        let tuned = json(&last.wait_with_output().unwrap());
        (deaths, tuned)
    });
    assert_eq!((deaths, tuned["trials"].as_u64()), (4, Some(items)), "{tuned}");
    assert_eq!(tuned["status"], "finished");
    println!("{items} candidates, {deaths} deaths of the run");
    assert_eq!(place.count("SELECT count(*) FROM runs"), 1, "one run, however often it died");
    assert_eq!(place.count("SELECT count(*) FROM trials"), items.cast_signed());
    assert_eq!(place.count("SELECT count(*) FROM items WHERE NOT finals"), items.cast_signed());
    assert_eq!(
        place.count("SELECT count(DISTINCT schedule) FROM trials"),
        items.cast_signed(),
        "nothing twice"
    );
    let without = "SELECT count(*) FROM items i LEFT JOIN trials t USING (run_id, number) LEFT JOIN done d USING (run_id, number)
                   WHERE (t.id IS NULL) <> i.finals OR d.lease IS NULL";
    assert_eq!(place.count(without), 0);
    assert_eq!(
        place.count("SELECT (SELECT count(*) FROM ready) + (SELECT count(*) FROM leased)"),
        0
    );
    assert_eq!(place.count("SELECT count(*) FROM bests"), 1);
}

#[test]
fn a_process_whose_run_was_taken_over_ends() {
    let Some(place) = Place::new() else { return };
    let first = place.tune(&["--trials", "50"]);
    let mut fleet = place.fleet();
    let begun = Instant::now();
    let name = loop {
        if let Some(run) = fleet.runs(1).unwrap().first().filter(|run| run.waiting > 0) {
            break run.run.clone();
        }
        assert!(begun.elapsed() < LIMIT, "it does not begin");
        std::thread::sleep(Duration::from_millis(50));
    };
    let second = place.tune(&["--trials", "50", "--resume", &name]);
    let output = first.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let says = said(&output) + &String::from_utf8_lossy(&output.stdout);
    assert!(says.contains("the run was taken over by another process"), "{says}");
    fleet.cancel(&tensorwright_records::RunId::named(&name)).unwrap();
    let output = second.wait_with_output().unwrap();
    let says = said(&output) + &String::from_utf8_lossy(&output.stdout);
    assert!(
        says.contains(&format!("run {name} cannot continue")) && says.contains("is over"),
        "{says}"
    );
}

#[test]
fn what_is_wrong_is_said() {
    let Some(place) = Place::new() else { return };
    let gemm = place.gemm();
    let says = |more: &[&str], db: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
        let output = command
            .args(["tune", gemm.to_str().unwrap(), "--size", "M=64,N=64,K=64", "--db", db])
            .args(more)
            .env("XDG_DATA_HOME", place.files.path())
            .env("NO_COLOR", "1")
            .env("TENSORWRIGHT_THREADS", "1")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        said(&output)
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let file = place.files.path().join("records.sqlite3");
    let says_file = says(&["--fleet"], file.to_str().unwrap());
    assert!(
        says_file.contains("a fleet needs the server of its queue")
            && says_file
                .contains("name it with --db postgres://USER@HOST/DATABASE, or TENSORWRIGHT_DB"),
        "{says_file}"
    );
    let says_class = says(&["--fleet", "--class", "other"], place.server.url());
    assert!(
        says_class.contains("cannot continue: ")
            && says_class.contains("there is no class \"other\""),
        "{says_class}"
    );
    assert!(says_class.contains("`tensorwright fleet status` shows classes"), "{says_class}");
    let says_run = says(&["--fleet", "--resume", "nobody"], place.server.url());
    assert!(says_run.contains("run nobody cannot continue: "), "{says_run}");
    assert!(says_run.contains("there is no such run of yours"), "{says_run}");
}
