//! Workers of a fleet, as processes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Output, Stdio};

use tensorwright::{Goal, Module, Target};
use tensorwright_fleet::{Fleet, Item, Run};
use tensorwright_outcome::Outcome;
use tensorwright_records::{Location, Origin, RunInfo, StoreOptions, Url, open_at};
use tensorwright_testkit::postgres::Server;
use tensorwright_tuner::{COMPILER, key_of, program_info};

const TEXT: &str = "def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }";

fn worker(server: &Server, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tensorwright"))
        .args(["worker", "--once", "--db", server.url()])
        .args(more)
        .env("NO_COLOR", "1")
        .env("TENSORWRIGHT_THREADS", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A run of a program with sizes.
fn run(n: i64, class: &str, target: &Target) -> Run {
    let program =
        Module::parse("twice.tc", TEXT).unwrap().def("twice").unwrap().bind([("N", n)]).unwrap();
    let info = program_info(&program, [("N".to_owned(), n)].into());
    let key = key_of(&program, &Goal::new(target.clone()).with_threads(1));
    Run::new(key, info, RunInfo::new("random", 3), class)
}

fn item(number: u64, schedule: &str) -> Item {
    let (origin, algorithm, point) = (Origin::from("random"), String::new(), vec![]);
    Item { number, origin, algorithm, point, schedule: schedule.to_owned() }
}

fn url(server: &Server) -> Url {
    let Ok(Location::Server(url)) = server.url().parse() else { unreachable!() };
    url
}

#[test]
fn workers_try_what_others_enqueue() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let target = Target::native().unwrap();
    let class = format!("{} x1 {COMPILER}", target.fingerprint());
    let admin = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
        command.arg("fleet").args(args).args(["--db", server.url()]);
        let output = command.env("TENSORWRIGHT_THREADS", "1").output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            said(&output),
        )
    };
    assert_eq!(admin(&["init", "--harden"]), (true, "the fleet is ready\n".into(), String::new()));
    assert_eq!(admin(&["init"]).1, "the fleet is ready\n", "twice is once");
    let mut fleet = Fleet::connect(&url(&server)).unwrap();

    let refused = worker(&server, &[]).wait_with_output().unwrap();
    let says = said(&refused);
    assert_eq!(refused.status.code(), Some(1));
    assert!(says.contains(&format!("you may not work for this class: {class}")), "{says}");

    assert_eq!(admin(&["class"]).1, format!("{class}\n"));
    let admitted = admin(&["admit", "postgres", "--as", "work", "--class", &class]);
    assert_eq!(admitted, (true, "postgres is admitted\n".into(), String::new()));
    let runs = [run(1000, &class, &target), run(64, &class, &target)];
    let schedules = [
        "",
        "B: split i 8\nB: vectorize i.1\n",
        "B: split i 16\nB: vectorize i.1\n",
        "B: split i 8\nB: unroll i.1\n",
        "B: split x 8\n",
        "this is no schedule\n",
    ];
    for run in &runs {
        fleet.begin_run(run).unwrap();
        let items: Vec<Item> =
            (0..).zip(schedules).map(|(number, text)| item(number, text)).collect();
        assert_eq!(fleet.enqueue(&run.info.id, &items).unwrap(), 6);
    }
    // A run whose text does not match its hash, and one for another machine.
    let mut forged = run(77, &class, &target);
    forged.program.text = forged.program.text.replace('2', "3");
    let mut elsewhere = run(78, &class, &target);
    elsewhere.key.target = "another machine".into();
    for run in [&forged, &elsewhere] {
        fleet.begin_run(run).unwrap();
        fleet.enqueue(&run.info.id, &[item(0, "")]).unwrap();
    }

    let children: Vec<Child> = (0..4)
        .map(|number| worker(&server, &["--name", &format!("w{number}"), "--batch", "2"]))
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let store = open_at(&Location::Server(url(&server)), StoreOptions::default()).unwrap();
    for run in &runs {
        let known = fleet.outcomes(&run.info.id, &[0, 1, 2, 3, 4, 5]).unwrap();
        assert_eq!(known.len(), 6);
        for one in &known {
            let measured = matches!(one.outcome, Outcome::Measured(_));
            assert_eq!(measured, one.number < 4, "{one:?}");
            assert_eq!(matches!(one.outcome, Outcome::Illegal { .. }), one.number >= 4, "{one:?}");
        }
        assert!(store.best(&run.key).unwrap().is_some());
    }
    let why = |fleet: &mut Fleet, run: &Run| match fleet
        .outcomes(&run.info.id, &[0])
        .unwrap()
        .remove(0)
        .outcome
    {
        Outcome::Illegal { rule, reason } => (rule, reason),
        other => unreachable!("{other:?}"),
    };
    let (rule, reason) = why(&mut fleet, &forged);
    assert_eq!(
        (rule.as_str(), reason.as_str()),
        ("program", "the text is of another program than its hash")
    );
    assert_eq!(why(&mut fleet, &elsewhere).0, "class");
    let status = fleet.status().unwrap().remove(0);
    assert_eq!((status.ready, status.leased, status.done, status.workers), (0, 0, 14, 4));
    let shown = admin(&["status"]).1;
    let last = shown.lines().last().unwrap();
    assert_eq!(
        last.split_whitespace().rev().take(6).collect::<Vec<_>>(),
        ["0", "4", "14", "0", "0", "4"]
    );
    let top = admin(&["top"]).1;
    for part in ["14 done", "8 measured, 6 illegal", "twice N=1000", "w3", "idle"] {
        assert!(top.contains(part), "{part}\n{top}");
    }
    pages(&server);
    let drained = Command::new(env!("CARGO_BIN_EXE_tensorwright"))
        .args(["worker", "--name", "w5", "--db", server.url()])
        .env("TENSORWRIGHT_THREADS", "1")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !admin(&["drain", "w5"]).0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let output = drained.wait_with_output().unwrap();
    assert!(
        output.status.success() && said(&output).contains("this worker is drained"),
        "{}",
        said(&output)
    );
    assert_eq!(admin(&["drain", "w1"]).1, "w1 gets no more candidates\n");
    assert_eq!(admin(&["quarantine", "w1"]).1, "w1 is set aside\n");
    let (done, _, says) = admin(&["quarantine", "w9"]);
    assert!(!done && says.contains("there is no worker w9"), "{says}");
    let output = worker(&server, &["--name", "w1"]).wait_with_output().unwrap();
    assert!(said(&output).contains("the worker is quarantined: by hand"), "{}", said(&output));
    assert_eq!(admin(&["quarantine", "w1", "--lift"]).1, "w1 is taken back\n");
}

/// Requests a page; returns the status and the rest.
fn get(address: &str, request: &str) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(format!("{request}\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    (status, text)
}

/// The live page, its data and Prometheus metrics, with and without the fleet's server.
fn pages(server: &Server) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tensorwright"))
        .args(["fleet", "serve", "--listen", "127.0.0.1:0", "--db", server.url()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    let address = said.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let (status, page) = get(&address, "GET / HTTP/1.1");
    assert!(status == 200 && page.contains("<title>Tensorwright fleet</title>"), "{page}");
    assert!(page.contains("X-Content-Type-Options: nosniff"));
    let (status, data) = get(&address, "GET /data.json HTTP/1.1");
    assert_eq!(status, 200, "{data}");
    let data: serde_json::Value =
        serde_json::from_str(data.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(data["classes"][0]["done"], 14);
    assert_eq!(data["classes"][0]["outcomes"]["measured"], 8);
    assert_eq!(data["workers"].as_array().unwrap().len(), 4);
    let runs = data["runs"].as_array().unwrap();
    let is_first = |run: &&serde_json::Value| run["sizes"]["N"] == 1000;
    let run = runs.iter().find(is_first).unwrap();
    assert_eq!((&run["done"], &run["def"]), (&6.into(), &"twice".into()));
    assert!(!run["curve"].as_array().unwrap().is_empty());
    let (status, text) = get(&address, "GET /metrics HTTP/1.1");
    assert!(status == 200 && text.contains("\ntensorwright_fleet_up 1\n"), "{text}");
    assert!(text.contains("outcome=\"measured\"} 8\n"), "{text}");
    assert_eq!(get(&address, "POST / HTTP/1.1").0, 405);
    assert_eq!(get(&address, "GET /../etc/passwd HTTP/1.1").0, 404);
    // Silent clients do not block others.
    let idle: Vec<_> = (0..20).map(|_| std::net::TcpStream::connect(&address).unwrap()).collect();
    assert_eq!(get(&address, "GET / HTTP/1.1").0, 200);
    drop(idle);
    let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(child.wait().unwrap().success());
}

/// The leases of a killed worker go to others, and each candidate has one outcome.
#[test]
fn a_worker_that_is_killed_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(directory.path()) else { return };
    let target = Target::native().unwrap();
    let class = format!("{} x1 {COMPILER}", target.fingerprint());
    let mut fleet = Fleet::install(&url(&server)).unwrap();
    fleet.add_class(&class).unwrap();
    fleet.permit("postgres", &class).unwrap();
    let run = run(4096, &class, &target);
    fleet.begin_run(&run).unwrap();
    let schedule = |number: u64| format!("B: split i {}\n", number + 2);
    let items: Vec<Item> = (0..40).map(|number| item(number, &schedule(number))).collect();
    fleet.enqueue(&run.info.id, &items).unwrap();
    let numbers: Vec<u64> = (0..40).collect();
    let mut killed = worker(&server, &["--name", "killed", "--batch", "16", "--lease", "2s"]);
    let begun = std::time::Instant::now();
    while fleet.outcomes(&run.info.id, &numbers).unwrap().len() < 3 {
        assert!(begun.elapsed().as_secs() < 60, "it does not begin");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    // The server may still be committing what the worker had sent.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let held = fleet.status().unwrap()[0].leased;
    assert!(held > 0, "it was killed while it held some");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let other = worker(&server, &["--name", "other"]).wait_with_output().unwrap();
    assert!(other.status.success(), "{}", said(&other));
    let known = fleet.outcomes(&run.info.id, &numbers).unwrap();
    assert_eq!(known.len(), 40);
    let again = known.iter().filter(|one| one.attempts == 2).count() as u64;
    assert_eq!(again, held, "those that it held were tried again");
    assert!(known.iter().all(|one| matches!(one.outcome, Outcome::Measured(_))), "{known:?}");
}
