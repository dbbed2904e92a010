//! `tensorwright db` on the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// A directory with a file of records, removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("tensorwright-db-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn db(&self, args: &[&str]) -> Output {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Command::new(env!("CARGO_BIN_EXE_tensorwright"))
            .arg("db")
            .args(args)
            .current_dir(root)
            .env("NO_COLOR", "1")
            .env("TENSORWRIGHT_THREADS", "1")
            .env("TENSORWRIGHT_DB", self.file("records.sqlite3"))
            .output()
            .unwrap()
    }

    fn stdout(&self, args: &[&str]) -> String {
        let output = self.db(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The standard error of a command that fails.
    fn stderr(&self, args: &[&str]) -> String {
        let output = self.db(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const GEMM: [&str; 5] = ["examples/kernels/gemm.tc", "--def", "gemm", "--size", "M=64,N=64,K=64"];

fn with<'a>(first: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&[first], &GEMM[..], rest].concat()
}

/// Lines of a run with three trials, for the key that `best` looks for.
fn records(scratch: &Scratch) -> String {
    let output = scratch.db(&with("best", &["--format", "json"]));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let key = &found["key"];
    let program = json!({"program": {
        "hash": key["program"], "family": key["family"], "def": "gemm",
        "sizes": {"K": 64, "M": 64, "N": 64}, "text": "def gemm() -> () {}",
        "flops": 524288.0, "bytes": 49152.0,
    }});
    let run = json!({"run": {"key": key, "info": {
        "id": "abc123", "strategy": "opevo", "seed": 1, "space": "", "meta": null, "started": 0,
    }}});
    let trial = |number: u64, outcome: Value| {
        json!({"trial": {"run": "abc123", "trial": {
            "number": number, "origin": "opevo", "point": [1, 2], "schedule": "C: split m 8\n",
            "outcome": outcome, "elapsed": 0.5,
        }}})
    };
    let lines = [
        program,
        run,
        trial(0, json!({"outcome": "measured", "seconds": 0.002})),
        trial(1, json!({"outcome": "measured", "seconds": 0.001})),
        trial(2, json!({"outcome": "illegal", "rule": "registers", "reason": "too many"})),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

fn imported(scratch: &Scratch) {
    let file = scratch.file("records.jsonl");
    std::fs::write(&file, records(scratch)).unwrap();
    let said = scratch.stdout(&["import", &file]);
    assert_eq!(said, format!("{file}: 5 added, 0 known already, 0 bad lines\n"));
}

#[test]
fn looking_makes_no_files() {
    let scratch = Scratch::new("looking");
    let says = scratch.stderr(&["ls"]);
    assert!(says.contains("there are no records at"), "{says}");
    let says = scratch.stderr(&with("best", &[]));
    assert!(says.starts_with("there is no best schedule:\nthere are no records at"), "{says}");
    assert!(!Path::new(&scratch.file("records.sqlite3")).exists());
}

#[test]
fn what_is_imported_is_found() {
    let scratch = Scratch::new("found");
    imported(&scratch);
    let best = scratch.stdout(&with("best", &[]));
    assert!(best.starts_with("gemm K=64,M=64,N=64, 1 thread, "), "{best}");
    assert!(best.contains("1.000 ms, 0.5 GFLOP/s: the fastest trial"), "{best}");
    assert_eq!(scratch.stdout(&with("best", &["--schedule"])), "C: split m 8\n");
    let best: Value =
        serde_json::from_str(&scratch.stdout(&with("best", &["--format", "json"]))).unwrap();
    assert_eq!(best["best"]["id"], json!({"run": "abc123", "number": 1}));
    assert!(scratch.stdout(&with("why-miss", &[])).starts_with("nothing is missing:"));

    let says = scratch.stderr(&with("best", &["--threads", "2"]));
    assert!(says.contains("threads: it has been tuned for 1 thread, not for 2"), "{says}");
    let other = ["--def", "gemm", "--size", "M=32,N=64,K=64"];
    let says = scratch.stdout(&[&["why-miss", GEMM[0]], &other[..]].concat());
    assert!(
        says.contains("sizes: it has been tuned with other sizes only: K=64,M=64,N=64"),
        "{says}"
    );
}

#[test]
fn records_are_listed_and_shown() {
    let scratch = Scratch::new("listed");
    imported(&scratch);
    let list = scratch.stdout(&["ls"]);
    let rows: Vec<&str> = list.lines().collect();
    assert!(
        rows[0].starts_with("def   sizes           threads  trials      best  GFLOP/s"),
        "{list}"
    );
    assert!(
        rows[1].starts_with("gemm  K=64,M=64,N=64        1       3  1.000 ms      0.5"),
        "{list}"
    );
    let runs = scratch.stdout(&["ls", "--runs"]);
    assert!(runs.contains("abc123  1970-01-01 00:00  gemm"), "{runs}");
    let list: Value = serde_json::from_str(&scratch.stdout(&["ls", "--format", "json"])).unwrap();
    assert_eq!(list["keys"][0]["trials"], 3);

    let run = scratch.stdout(&["show", "abc"]);
    assert!(run.contains("trials    3 (1 illegal, 2 measured)"), "{run}");
    assert!(
        run.ends_with("    1  1.000 ms    0.5 s  opevo\n    0  2.000 ms    0.5 s  opevo\n"),
        "{run}"
    );
    let trial = scratch.stdout(&["show", "abc", "--trial", "2"]);
    assert!(trial.starts_with("outcome   illegal: registers: too many\n"), "{trial}");
    assert!(scratch.stderr(&["show", "abc", "--trial", "9"]).contains("there is no trial 9"));
    assert!(scratch.stderr(&["show", "xyz"]).contains("there is no run xyz"));
}

#[test]
fn records_move_and_are_cleaned() {
    let scratch = Scratch::new("moved");
    imported(&scratch);
    let out = scratch.file("out.jsonl");
    scratch.stdout(&["export", "-o", &out]);
    let exported = std::fs::read_to_string(&out).unwrap();
    assert_eq!(exported, scratch.stdout(&["export"]));
    assert_eq!(exported.lines().count(), 5);
    let elsewhere = scratch.file("other.sqlite3");
    scratch.stdout(&["import", &out, "--db", &elsewhere]);
    assert_eq!(scratch.stdout(&["export", "--db", &elsewhere]), exported);
    assert_eq!(
        scratch
            .stdout(&["export", "--as", "csv"])
            .lines()
            .filter(|l| l.starts_with("gemm,"))
            .count(),
        3
    );

    let database = scratch.file("records.sqlite3");
    let says = scratch.stderr(&["export", "-o", &database]);
    assert!(says.contains("is the file of the records itself"), "{says}");

    let said = scratch.stdout(&["gc", "--keep", "1", "--dry-run"]);
    assert!(said.starts_with("2 trials of 1 key would be removed, 1 kept\n"), "{said}");
    let said = scratch.stdout(&["gc", "--keep", "1"]);
    assert!(said.starts_with("2 trials of 1 key removed, 1 kept\n"), "{said}");
    assert!(scratch.stdout(&["ls"]).contains(" 3  1.000 ms"));
}

#[test]
fn bad_files_are_problems_with_advice() {
    let scratch = Scratch::new("bad");
    let file = scratch.file("bad.jsonl");
    std::fs::write(&file, format!("{}oops\n", records(&scratch))).unwrap();
    let output = scratch.db(&["import", &file]);
    assert_eq!(output.status.code(), Some(1));
    let says = String::from_utf8(output.stderr).unwrap();
    assert!(says.starts_with(&format!("{file}:6: is not a record: ")), "{says}");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("{file}: 5 added, 0 known already, 1 bad line\n")
    );
    let says = scratch.stderr(&["ls", "--db", &file]);
    assert!(says.contains("is not a database of records"), "{says}");
    assert!(says.contains("TENSORWRIGHT_DB"), "{says}");
    let says = scratch.stderr(&["import", "missing.jsonl"]);
    assert!(says.contains("missing.jsonl cannot be used: "), "{says}");
}
