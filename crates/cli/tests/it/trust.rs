//! Foreign records cannot crash the command or change results.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const GEMM: [&str; 5] = ["examples/kernels/gemm.tc", "--def", "gemm", "--size", "M=13,N=17,K=11"];
const DENSE: [&str; 5] =
    ["examples/kernels/fcrelu.tc", "--def", "fc_bias_relu", "--size", "B=4,I=3,O=5"];

/// A directory with a file of records, removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("tensorwright-records-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tensorwright"))
            .args(args)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .env("NO_COLOR", "1")
            .env("TENSORWRIGHT_THREADS", "1")
            .env("TENSORWRIGHT_DB", self.0.join("records.sqlite3"))
            .output()
            .unwrap()
    }

    /// Changes the database behind the command's back.
    fn change(&self, sql: &str) {
        let database = rusqlite::Connection::open(self.0.join("records.sqlite3")).unwrap();
        database.execute_batch(sql).unwrap();
    }

    /// Imports a supposedly very fast schedule, under the key of this machine.
    fn plant(&self, program: &[&str], run: &str, schedule: &str) {
        let best = self.run(&[&["db", "best"], program, &["--format", "json"]].concat());
        let best: Value = serde_json::from_slice(&best.stdout).unwrap();
        let key = &best["key"];
        let lines = [
            json!({"program": {"hash": key["program"], "family": key["family"], "def": program[2],
                "sizes": {}, "text": "", "flops": 1.0, "bytes": 1.0}}),
            json!({"run": {"key": key, "info": {"id": run, "strategy": "random", "seed": 0,
                "space": "s", "meta": null, "started": 1}}}),
            json!({"trial": {"run": run, "trial": {"number": 0, "origin": "random", "point": [],
                "schedule": schedule, "elapsed": 1.0, "outcome": {"outcome": "measured",
                "seconds": 1e-9, "raw_seconds": 1e-9, "spread": 0.0, "runs": 9,
                "roofline": null, "cut": false}}}}),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let file = self.0.join(format!("{run}.jsonl"));
        std::fs::write(&file, text).unwrap();
        let imported = self.run(&["db", "import", file.to_str().unwrap()]);
        assert!(imported.status.success(), "{}", errors(&imported));
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_record_with_a_schedule_that_is_too_large_is_left_out() {
    let schedules = [
        format!("C: split m {}\n", "1 ".repeat(5000)),
        "C: split m 2147483647 -> a b\nC: split k 2147483647 -> c d\n".to_owned(),
        "C: split m 1 -> a b\n".to_owned() + &"C: reorder a b\n".repeat(10_000),
    ];
    for (number, schedule) in schedules.iter().enumerate() {
        let scratch = Scratch::new(&format!("large-{number}"));
        scratch.plant(&GEMM, "planted", schedule);
        for command in [&["run"][..], &["schedule"], &["compile", "--emit", "loops"]] {
            let start = Instant::now();
            let output = scratch.run(&[command, &GEMM[..]].concat());
            assert!(output.status.success(), "{number}: {}", errors(&output));
            let says = "tuned: the schedule of trial 0 of run planted no longer applies";
            assert!(errors(&output).contains(says), "{number}: {}", errors(&output));
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        }
    }
}

#[test]
fn a_record_that_is_wrong_is_not_used() {
    let scratch = Scratch::new("wrong");
    // The initial value of a sum is computed inside the sum's own loop: whether rejected or
    // detected by comparison, `run` must not print its result.
    scratch.plant(&DENSE, "planted", "out.0: compute_at out.1 i\n");
    for _ in 0..2 {
        let output = scratch.run(&[&["run"], &DENSE[..], &["--verify"]].concat());
        assert!(output.status.success(), "{}\n{}", words(&output), errors(&output));
        assert!(!errors(&output).contains("--untuned for the default one"), "{}", errors(&output));
    }
}

#[test]
fn the_next_best_takes_the_place_of_one_that_is_left_out() {
    let scratch = Scratch::new("next");
    scratch.plant(&GEMM, "large", "C: split m 2147483647\n");
    scratch.plant(&GEMM, "good", "C: split n 8\nC: reorder m n.0 k n.1\nC: vectorize n.1\n");
    let output = scratch.run(&[&["run"], &GEMM[..], &["--verify"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let says = "tuned: the schedule of trial 0 of run good, 1.00 ns; --untuned for the default one";
    assert!(errors(&output).contains(says), "{}", errors(&output));
}

#[test]
fn a_damaged_record_is_told_and_left_out() {
    let scratch = Scratch::new("damaged");
    scratch.plant(&GEMM, "damaged", "C: split n 8\n");
    scratch.change("UPDATE texts SET text = 'C: split n 9\n' WHERE text = 'C: split n 8\n'");
    for command in [&["run"][..], &["db", "best"]] {
        let output = scratch.run(&[command, &GEMM[..]].concat());
        let says = "trial 0 of run damaged is left out: ";
        assert!(errors(&output).contains(says), "{command:?}: {}", errors(&output));
        assert!(errors(&output).contains("is not the one that was written"), "{command:?}");
    }
    let output = scratch.run(&["db", "ls"]);
    assert!(output.status.success() && errors(&output).contains("is left out"));
}

#[test]
fn names_in_a_database_cannot_talk_to_the_terminal() {
    let scratch = Scratch::new("names");
    scratch.plant(&GEMM, "named", "C: split n 8\n");
    // Such a file bypasses the command.
    scratch.change(
        "UPDATE programs SET def = def || char(27) || '[2J' || char(155);
         UPDATE runs SET strategy = 'a' || char(27) || ']0;b' || char(7), status = char(27), ended = 1",
    );
    let looks: [&[&str]; 5] = [
        &["db", "ls"],
        &["db", "ls", "--runs"],
        &["db", "show", "named"],
        &["db", "show", "named", "--trial", "0"],
        &[&["db", "best"], &GEMM[..]].concat(),
    ];
    for look in looks {
        let output = scratch.run(look);
        assert!(output.status.success(), "{look:?}: {}", errors(&output));
        let text = words(&output) + &errors(&output);
        let obeyed = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(obeyed), "{look:?}: {text:?}");
    }
    assert!(words(&scratch.run(&["db", "ls"])).contains("gemm\\u{1b}[2J\\u{9b}"));
}

#[test]
fn records_cannot_talk_to_the_terminal() {
    let scratch = Scratch::new("terminal");
    let lines = [
        json!({"program": {"hash": "h", "family": "f", "def": "gemm\u{1b}[2J", "sizes": {},
            "text": "", "flops": 1.0, "bytes": 1.0}}),
        json!({"program": {"hash": "h", "family": "f", "def": "gemm", "sizes": {},
            "text": "\u{1b}[2J", "flops": 1.0, "bytes": -1.0}}),
        json!({"surprise\u{1b}[2J": 1}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = scratch.0.join("lines.jsonl");
    std::fs::write(&file, text).unwrap();
    let imported = scratch.run(&["db", "import", file.to_str().unwrap()]);
    let says = errors(&imported);
    assert_eq!(imported.status.code(), Some(1), "{says}");
    assert!(says.contains("lines.jsonl:1: def has a control character"), "{says}");
    assert!(says.contains("lines.jsonl:2: bytes is not a finite, non-negative number"), "{says}");
    assert!(!says.contains('\u{1b}'), "{says}");
}
