//! Settings, traces, the doctor, the cache and manual pages.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = "def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }\n";

/// A temporary home and project; nothing of the real user is read.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.write("project/.git/HEAD", "");
        home.write("project/twice.tc", PROGRAM);
        home
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn path(&self, path: &str) -> String {
        self.0.path().join(path).to_str().unwrap().to_owned()
    }

    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tensorwright"))
            .args(args)
            .current_dir(self.0.path().join("project"))
            .env_clear()
            .env("HOME", self.0.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("NO_COLOR", "1")
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// The standard output of a command that succeeds, with the home as `~`.
    fn says(&self, args: &[&str]) -> String {
        let output = self.run(args, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        self.without(&output.stdout)
    }

    fn without(&self, text: &[u8]) -> String {
        String::from_utf8_lossy(text).replace(self.0.path().to_str().unwrap(), "~")
    }
}

#[test]
fn without_settings_there_is_a_thread_for_each_core() {
    let home = Home::new();
    let threads = tensorwright_cli::default_threads();
    let config = home.says(&["config"]);
    let row: Vec<&str> = config
        .lines()
        .find(|line| line.starts_with("threads"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(row, ["threads", &threads.to_string(), "default"]);
    let run = home.says(&["run", "twice.tc", "--size", "N=8"]);
    assert!(run.contains(&format!(", {threads} thread")), "{run}");
}

#[test]
fn settings_say_where_they_come_from() {
    let home = Home::new();
    home.write(
        ".config/tensorwright/tensorwright.toml",
        "threads = 2\n[cache]\nlimit = \"1 GB\"\n",
    );
    home.write(
        "project/tensorwright.toml",
        "# ours\ntarget = \"sse\"\ndatabase = \"db/r.sqlite3\"\n",
    );
    // Column widths depend on the home's path, so runs of spaces are collapsed.
    let text = home.says(&["config"]);
    let words: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        words,
        [
            "setting value from",
            "database ~/project/db/r.sqlite3 ~/project/tensorwright.toml:3",
            "threads 2 ~/.config/tensorwright/tensorwright.toml:1",
            "target sse ~/project/tensorwright.toml:2",
            "cache.limit 953 MiB ~/.config/tensorwright/tensorwright.toml:3",
            "device.deadline 60s default",
            "the user's file: ~/.config/tensorwright/tensorwright.toml (read)",
            "the project's file: ~/project/tensorwright.toml (read)",
        ]
    );
    // The settings are used for compilation and for the location of records.
    let run = home.says(&["run", "twice.tc", "--size", "N=8"]);
    assert!(run.contains("compiled for sse") && run.contains("2 threads"), "{run}");
    let run =
        home.says(&["run", "twice.tc", "--size", "N=8", "--threads", "1", "--target", "native"]);
    assert!(run.contains("compiled for native") && run.contains("1 thread,"), "{run}");
    let missing = home.run(&["db", "ls"], &[]);
    let said = home.without(&missing.stderr);
    assert!(said.contains("there are no records at ~/project/db/r.sqlite3"), "{said}");
    // An empty variable disables all files.
    let output = home.run(&["config", "--format", "json"], &[("TENSORWRIGHT_CONFIG", "")]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["files"], serde_json::json!([]));
    assert_eq!(value["settings"][1]["from"]["kind"], "default");
}

#[test]
fn a_wrong_file_stops_commands_but_not_those_that_help() {
    let home = Home::new();
    home.write("project/tensorwright.toml", "thread = 2\n");
    for args in [&["run", "twice.tc", "--size", "N=8"][..], &["config"], &["check", "twice.tc"]] {
        let output = home.run(args, &[]);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = home.without(&output.stderr);
        assert!(said.contains("[E1012] Error: unknown field `thread`"), "{said}");
        assert!(said.contains("tensorwright.toml:1:1"), "{said}");
    }
    let doctor = home.run(&["doctor"], &[]);
    assert!(home.without(&doctor.stdout).contains("tensorwright config shows where"));
    assert!(home.says(&["completions", "bash"]).contains("tensorwright"));
    assert!(home.says(&["--version"]).contains("LLVM"));
}

#[test]
fn traces_open_and_lines_are_as_many_as_are_asked_for() {
    let home = Home::new();
    let args = ["run", "twice.tc", "--size", "N=8", "--trace-file", "trace.json"];
    let output = home.run(&args, &[]);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        home.without(&output.stderr)
    );
    let text = std::fs::read_to_string(home.path("project/trace.json")).unwrap();
    let trace: Vec<Value> = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> = trace.iter().map(|event| event["name"].as_str().unwrap()).collect();
    for name in ["parse", "bind", "lower", "compile", "emit", "passes", "codegen", "load"] {
        assert!(names.contains(&name), "{names:?} has no {name}");
    }
    let lines = |args: &[&str], variables: &[(&str, &str)]| {
        let args = [&["run", "twice.tc", "--size", "N=8"], args].concat();
        home.without(&home.run(&args, variables).stderr)
    };
    assert_eq!(lines(&[], &[]), "");
    let one = lines(&["-v"], &[]);
    assert!(one.contains("compile{def=\"twice\"") && !one.contains("passes"), "{one}");
    assert!(lines(&["-vv"], &[]).contains("passes"));
    let own = lines(&[], &[("TENSORWRIGHT_LOG", "tensorwright_codegen_llvm=debug")]);
    assert!(own.contains("passes") && !own.contains("parse{"), "{own}");
    let wrong = home.run(&["check", "twice.tc"], &[("TENSORWRIGHT_LOG", "tensorwright=loud")]);
    assert_eq!(wrong.status.code(), Some(2));
    insta::assert_snapshot!(home.without(&wrong.stderr));
    let nowhere = home.run(&["check", "twice.tc", "--trace-file", "no/trace.json"], &[]);
    assert_eq!(nowhere.status.code(), Some(2));
    insta::assert_snapshot!(home.without(&nowhere.stderr));
}

#[test]
fn trials_of_a_run_are_in_its_trace_and_limits_are_kept() {
    let home = Home::new();
    home.write("project/tensorwright.toml", "database = \"r.sqlite3\"\n[cache]\nlimit = \"1 B\"\n");
    let args = ["tune", "twice.tc", "--size", "N=64", "--trials", "4", "--trace-file", "t.json"];
    let output = home.run(&args, &[]);
    let said = home.without(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(home.path("project/t.json")).unwrap();
    let trace: Vec<Value> = serde_json::from_str(&text).unwrap();
    let trials: Vec<&Value> =
        trace.iter().filter(|event| event["name"] == "trial" && event["ph"] == "b").collect();
    assert!(!trials.is_empty());
    assert!(trials.iter().any(|trial| trial["args"]["outcome"] == "measured"), "{trials:?}");
    assert!(trials.iter().all(|trial| trial["args"]["build_ms"].is_number()), "{trials:?}");
    let show = home.says(&["cache", "show"]);
    assert!(show.contains("  ~/project/r.sqlite3\n") && show.contains("limit 1 B"), "{show}");
    // The winner stays, whatever the limit, and a message says so.
    let trim = home.run(&["cache", "trim", "--limit", "100"], &[]);
    assert_eq!(trim.status.code(), Some(1));
    assert!(home.without(&trim.stderr).contains("the winners alone take"));
    assert!(home.says(&["cache", "trim", "--limit", "1GB"]).starts_with("0 trials removed"));
    assert!(home.says(&["db", "best", "twice.tc", "--size", "N=64"]).contains("twice"));
    assert!(home.says(&["cache", "clear"]).contains("would be removed; pass --yes to remove"));
    assert!(Path::new(&home.path("project/r.sqlite3")).exists());
    assert!(home.says(&["cache", "clear", "--yes"]).contains("removed"));
    assert!(!Path::new(&home.path("project/r.sqlite3")).exists());
    assert_eq!(home.says(&["cache", "show"]), "0 B in all, limit 1 B\n");
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let home = Home::new();
    home.says(&["man", "man1"]);
    let page =
        |name: &str| std::fs::read_to_string(home.path(&format!("project/man1/{name}.1"))).unwrap();
    assert!(page("tensorwright").contains(".TH tensorwright 1"));
    assert!(page("tensorwright-tune").contains("search strategy"));
    assert!(page("tensorwright-db-gc").contains("dry"));
    assert!(home.says(&["man"]).contains(".TH tensorwright 1"));
    home.write("project/file", "");
    let refused = home.run(&["man", "file"], &[]);
    assert!(home.without(&refused.stderr).contains("name a folder that you may write to"));
}

#[test]
fn the_doctor_looks_at_everything() {
    let home = Home::new();
    let output = home.run(&["doctor", "--format", "json"], &[]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = value["findings"].as_array().unwrap();
    let checks: Vec<&str> = findings.iter().map(|f| f["check"].as_str().unwrap()).collect();
    for check in [
        "processor",
        "frequency",
        "threads",
        "load",
        "huge pages",
        "sandbox",
        "records",
        "OpenCL",
        "CUDA",
    ] {
        assert!(checks.contains(&check), "{checks:?} has no {check}");
    }
    let bad = findings.iter().filter(|finding| finding["verdict"] == "bad").count();
    assert_eq!(
        (value["fit"].as_bool(), output.status.code()),
        (Some(bad == 0), Some(i32::from(bad > 0)))
    );
    for finding in findings {
        let found = finding["found"].as_str().unwrap();
        let is_good = finding["verdict"] == "good";
        assert!(!is_good || !found.contains("not installed"), "{finding}");
        assert!(is_good || finding["advice"].is_string(), "{finding}");
    }
}

#[test]
fn a_file_that_is_not_there_may_be_another() {
    let home = Home::new();
    let said = |path: &str| home.without(&home.run(&["check", path], &[]).stderr);
    assert_eq!(
        said("twise.tc"),
        "[E0806] Error: twise.tc cannot be read: No such file or directory (os error 2)\n   \
         Help: did you mean twice.tc?\n\n"
    );
    assert!(said("other.tc").contains("Help: did you mean twice.tc?"));
    assert!(said("no/twice.tc").contains("Help: there is no folder no\n"));
    assert!(said("twice.txt").contains("Help: name a file that exists\n"));
    assert!(
        said(".").contains("it is a folder\n   Help: name a file, or a pipe that is written to\n")
    );
}
