//! Renaming a program's tensors and axes does not affect tuning or calls.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const MATMUL: &str = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const CAPTURE: &str = "def blur(float(N) x, float(K) w) -> (y) { y(i) +=! x(i+s) * w(s) }
def f(float(N) x, float(K) w) -> (p) {
  y = blur(x, w)
  s() +=! y(i)
  p(i) = y(i) / s
}";

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, command: &str, file: &Path, args: &[&str]) -> Output {
        let mut it = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
        it.arg(command).arg(file).args(args).env("NO_COLOR", "1");
        it.current_dir(self.0.path()).env("TENSORWRIGHT_DB", self.0.path().join("db.sqlite3"));
        it.output().unwrap()
    }

    fn text(&self, command: &str, file: &Path, args: &[&str]) -> (String, String) {
        let output = self.run(command, file, args);
        let texts = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        let [out, err] = texts;
        assert!(output.status.success(), "{command} {args:?}: {err}");
        (out, err)
    }

    fn tuned(&self, file: &Path, args: &[&str]) -> Value {
        let args = [args, &["--trials", "6", "--format", "json"]].concat();
        serde_json::from_str(&self.text("tune", file, &args).0).unwrap()
    }
}

const SIZES: [&str; 2] = ["--size", "M=96,K=64,N=80"];

#[test]
fn what_was_tuned_is_found_under_other_names() {
    let scratch = Scratch::new();
    let one = scratch.write("one.tc", MATMUL);
    let other = MATMUL.replace('k', "q").replace('C', "out").replace("def f", "def product");
    let other = scratch.write("other.tc", &other);
    let tuned = scratch.tuned(&one, &SIZES);
    let schedule = tuned["schedule"].as_str().unwrap();
    assert!(schedule.contains("C: ") && !schedule.contains("v_2"), "{schedule}");
    assert_eq!(scratch.text("schedule", &one, &SIZES).0, schedule);

    let verify = [&SIZES[..], &["--verify"]].concat();
    let said = scratch.text("run", &other, &verify).1;
    assert!(said.contains("tuned: the schedule of trial"), "{said}");
    assert!(!said.contains("no longer applies"), "{said}");
    // Users read their own names.
    let renamed = scratch.text("schedule", &other, &SIZES).0;
    assert_eq!(renamed.lines().count(), schedule.lines().count());
    assert!(renamed.lines().all(|line| line.starts_with("out")), "{renamed}");
    assert!(!renamed.contains("C:") && !renamed.contains(" k"), "{renamed}");

    // Both names share records: the second run starts from the results of the first.
    let again = scratch.tuned(&other, &[&SIZES[..], &["--seed", "1"]].concat());
    assert_eq!(again["key"]["program"], tuned["key"]["program"]);
    let keys = Command::new(env!("CARGO_BIN_EXE_tensorwright"))
        .args(["db", "ls", "--format", "json"])
        .env("TENSORWRIGHT_DB", scratch.0.path().join("db.sqlite3"))
        .output()
        .unwrap();
    let keys: Value = serde_json::from_slice(&keys.stdout).unwrap();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1, "{keys}");
    // Both find what was tuned last, under either name.
    let both = [&one, &other].map(|file| scratch.text("schedule", file, &SIZES));
    let same = |said: &str| said.lines().find(|line| line.contains("trial")).map(str::to_owned);
    assert!(same(&both[0].1).is_some());
    assert_eq!(same(&both[0].1), same(&both[1].1));
    for said in [&both[0].1, &both[1].1] {
        assert!(!said.contains("no longer applies"), "{said}");
    }
}

#[test]
fn a_call_captures_no_name_when_it_is_tuned() {
    let scratch = Scratch::new();
    let file = scratch.write("capture.tc", CAPTURE);
    let args = ["--def", "f", "--size", "N=4096,K=5"];
    let tuned = scratch.tuned(&file, &args);
    let outcomes = &tuned["outcomes"];
    assert!(outcomes["measured"].as_u64().unwrap() >= 1, "{tuned}");
    assert!(outcomes["wrong-result"].is_null() && outcomes["build-failed"].is_null(), "{tuned}");
    let said = scratch.text("run", &file, &[&args[..], &["--verify"]].concat());
    assert!(said.1.contains("tuned: the schedule of trial"), "{}", said.1);
    let samples = scratch.0.path().join("samples.jsonl");
    let file_given = ["--file", file.to_str().unwrap(), "--schedules", "3", "--format", "json"];
    let args_of_model = [&["measure", samples.to_str().unwrap()], &file_given[..], &args].concat();
    let measured = scratch.text("model", Path::new(args_of_model[0]), &args_of_model[1..]).0;
    let measured: Value = serde_json::from_str(&measured).unwrap();
    assert!(measured["samples"].as_u64().unwrap() >= 1, "{measured}");
    let best = scratch.0.path().join("records.html");
    let page = ["--def", "f", "--size", "N=4096,K=5", "-o", best.to_str().unwrap()];
    scratch.text("report", &file, &page);
    let page = std::fs::read_to_string(best).unwrap();
    assert!(page.contains("s_2"), "the index of the callee has a name of its own");
    // Positional names must not be shown.
    let mut words = page.split(|c: char| !c.is_alphanumeric() && c != '_');
    let by_position = |word: &&str| {
        let number = word.strip_prefix("v_").or_else(|| word.strip_prefix("i_"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    assert_eq!(words.find(by_position), None);
}

#[test]
fn a_record_in_the_names_of_its_text_is_found_under_others() {
    let scratch = Scratch::new();
    let one = scratch.write("one.tc", MATMUL);
    let other = scratch.write("other.tc", &MATMUL.replace("k", "q").replace("m", "x"));
    scratch.tuned(&one, &SIZES);
    // The format of an earlier version: the schedule in the names of the program's text.
    let records = scratch.0.path().join("records.jsonl");
    let db = |args: &[&str], db: &Path| {
        let mut it = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
        let output = it.arg("db").args(args).env("TENSORWRIGHT_DB", db).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let at = scratch.0.path().join("db.sqlite3");
    db(&["export", "-o", records.to_str().unwrap()], &at);
    let text = std::fs::read_to_string(&records).unwrap();
    let names =
        [("v_0", "A"), ("v_1", "B"), ("v_2", "C"), ("i_0", "m"), ("i_1", "n"), ("i_2", "k")];
    let old = names.into_iter().fold(text, |text, (position, name)| text.replace(position, name));
    std::fs::write(&records, old).unwrap();
    std::fs::remove_file(&at).unwrap();
    db(&["import", records.to_str().unwrap()], &at);
    for file in [&one, &other] {
        let said = scratch.text("run", file, &[&SIZES[..], &["--verify"]].concat()).1;
        assert!(said.contains("tuned: the schedule of trial"), "{said}");
        assert!(!said.contains("no longer applies"), "{said}");
    }
}
