//! `tensorwright tune` on the command line: complete, interrupted and killed runs, and damaged
//! records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const GEMM: [&str; 5] = ["examples/kernels/gemm.tc", "--def", "gemm", "--size", "M=64,N=64,K=64"];

/// A directory with a file of records, removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("tensorwright-tune-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
        command
            .args(args)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .env("NO_COLOR", "1")
            .env("TENSORWRIGHT_THREADS", "1")
            .env("TENSORWRIGHT_DB", self.file("records.sqlite3"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// A run without an end, once it has recorded some trials.
    fn endless(&self) -> Endless {
        let args = [&["tune"], &GEMM[..], &["--trials", "1000000", "--format", "json"]].concat();
        let child =
            self.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let child = Endless(Some(child));
        let begun = Instant::now();
        while self.trials() < 5 {
            assert!(begun.elapsed() < Duration::from_secs(120), "no trials were recorded");
            std::thread::sleep(Duration::from_millis(100));
        }
        child
    }

    /// The trials that are recorded.
    fn trials(&self) -> u64 {
        if !self.file("records.sqlite3").exists() {
            return 0;
        }
        let output = self.run(&["db", "ls", "--format", "json"]);
        let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let keys = list["keys"].as_array();
        keys.map_or(0, |keys| keys.iter().filter_map(|key| key["trials"].as_u64()).sum())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An endless run that is killed at the end of the test.
struct Endless(Option<Child>);

impl Endless {
    fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }

    fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn tune<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    [&["tune"], &GEMM[..], rest, &["--format", "json"]].concat()
}

/// Orphaned children of a dead process, and zombies, by their command lines.
fn left_behind(parent: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(" worker ") && command.trim_end().ends_with(&format!(" {parent}")) {
            found.push(command);
        }
    }
    found
}

#[test]
fn the_next_run_finds_the_winner() {
    let scratch = Scratch::new("winner");
    let tuned = scratch.json(&tune(&["--trials", "12", "--seed", "3"]));
    assert_eq!(tuned["status"], "finished");
    assert_eq!(tuned["trials"], 12);
    let outcomes = &tuned["outcomes"];
    assert!(outcomes["measured"].as_u64().unwrap() >= 1, "{outcomes}");
    assert!(outcomes["wrong-result"].is_null() && outcomes["crashed"].is_null(), "{outcomes}");
    // Measured in turns with the default schedule, the winner is faster or the default schedule itself.
    let speedup = tuned["speedup"].as_f64().unwrap();
    match tuned["origin"].as_str() {
        Some("default") => assert_eq!((speedup, &tuned["gain"]), (1.0, &Value::from("none"))),
        _ => assert!(speedup > 1.0 && tuned["gain"]["significant"].is_object(), "{tuned}"),
    }
    assert!(tuned["roofline"].as_f64().unwrap() > 0.0);

    let run = scratch.run(&[&["run"], &GEMM[..], &["--verify"]].concat());
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    assert!(errors.contains("tuned: the schedule of trial"), "{errors}");
    let schedule = scratch.run(&[&["schedule"], &GEMM[..]].concat());
    assert_eq!(String::from_utf8_lossy(&schedule.stdout), tuned["schedule"].as_str().unwrap());
    let untuned = scratch.run(&[&["schedule"], &GEMM[..], &["--untuned"]].concat());
    assert!(untuned.stderr.is_empty());

    // Other sizes are other programs; their search starts from these records.
    let other = ["tune", "examples/kernels/gemm.tc", "--def", "gemm", "--size", "M=96,N=64,K=80"];
    let other = scratch.json(&[&other[..], &["--trials", "4", "--format", "json"]].concat());
    assert_eq!(other["status"], "finished");
}

#[test]
fn an_interrupted_run_keeps_everything_and_goes_on() {
    let scratch = Scratch::new("interrupted");
    let child = scratch.endless();
    let pid = child.id();
    assert!(Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap().success());
    let output = child.output();
    assert!(output.status.success());
    let tuned: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(tuned["status"], "interrupted");
    assert!(!tuned["schedule"].as_str().unwrap().is_empty());
    assert_eq!(left_behind(pid), Vec::<String>::new());
    let before = scratch.trials();
    let built = tuned["trials"].as_u64().unwrap();
    let more = (built + 5).to_string();
    let resumed = scratch.json(&tune(&["--trials", &more]));
    assert_eq!(resumed["run"], tuned["run"]);
    assert_eq!(resumed["trials"].as_u64().unwrap(), built + 5);
    assert!(scratch.trials() >= before + 5);
}

#[test]
fn runs_at_the_same_time_have_records_of_their_own() {
    let scratch = Scratch::new("together");
    let args = tune(&["--trials", "15", "--strategy", "random"]);
    let start = || Endless(Some(scratch.command(&args).stdout(Stdio::piped()).spawn().unwrap()));
    let both = [start(), start()].map(|child| {
        let output = child.output();
        assert!(output.status.success());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    });
    assert_ne!(both[0]["run"], both[1]["run"]);
    let runs = scratch.json(&["db", "ls", "--runs", "--format", "json"]);
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for tuned in &both {
        // All outcomes, and the winner once more if it comes from the other run.
        let outcomes = tuned["outcomes"].as_object().unwrap();
        let outcomes: u64 = outcomes.values().filter_map(Value::as_u64).sum();
        let run = runs.iter().find(|run| run["id"] == tuned["run"]).unwrap();
        let kept = run["trials"].as_u64().unwrap();
        assert!(kept == outcomes || kept == outcomes + 1, "{kept} of {outcomes}: {run}");
    }
    // The run that ended last has measured its winner against that of the other.
    let ended = |tuned: &&Value| {
        let run = runs.iter().find(|run| run["id"] == tuned["run"]).unwrap();
        run["end"]["ended"].as_i64().unwrap()
    };
    let last = both.iter().max_by_key(ended).unwrap();
    let best = scratch.json(&[&["db", "best"], &GEMM[..], &["--format", "json"]].concat());
    assert_eq!(best["best"]["trial"]["schedule"], last["schedule"], "{both:?}");
}

#[test]
fn a_run_that_knows_nothing_measures_beside_the_best() {
    let scratch = Scratch::new("fresh");
    scratch.json(&tune(&["--trials", "25"]));
    let best = || scratch.json(&[&["db", "best"], &GEMM[..], &["--format", "json"]].concat());
    let before = best()["best"]["id"].clone();
    // Its only candidate is the default schedule. Two schedules of similar speed may change places
    // between processes, but only after being measured against each other.
    let fresh = scratch.json(&tune(&["--trials", "1", "--fresh", "--seed", "9"]));
    let after = best()["best"].clone();
    match fresh["gain"] == "none" {
        true => assert_eq!(after["id"], before, "{fresh}"),
        false => assert_eq!(after["declared"]["replaces"], before, "{fresh}"),
    }
}

#[test]
fn a_killed_run_leaves_nothing_behind_but_its_records() {
    let scratch = Scratch::new("killed");
    let child = scratch.endless();
    let pid = child.id();
    child.kill();
    let begun = Instant::now();
    while !left_behind(pid).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", left_behind(pid));
        std::thread::sleep(Duration::from_millis(50));
    }
    let before = scratch.trials();
    assert!(before >= 5);
    let resumed = scratch.json(&tune(&["--trials", &(before + 4).to_string()]));
    assert_eq!(resumed["status"], "finished");
    assert!(scratch.trials() > before);
}

#[test]
fn records_that_cannot_be_written_do_not_stop_a_run() {
    let scratch = Scratch::new("damaged");
    std::fs::write(scratch.file("records.sqlite3"), b"this is no database, but it is long enough")
        .unwrap();
    let tuned = scratch.json(&tune(&["--trials", "3"]));
    assert_eq!(tuned["status"], "finished");
    assert!(tuned["records_waiting"].as_u64().unwrap() >= 3, "{tuned}");
    assert!(scratch.file("records.sqlite3.pending.jsonl").exists());
    // After removing the damaged file, the pending records are written.
    std::fs::remove_file(scratch.file("records.sqlite3")).unwrap();
    let again = scratch.json(&tune(&["--trials", "1", "--fresh"]));
    assert_eq!(again["records_waiting"], 0);
    assert!(scratch.trials() >= 3);
}

#[test]
fn many_operators_share_a_budget() {
    let scratch = Scratch::new("manifest");
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels");
    let text = format!(
        "[tune]\ntrials = 84\n\n[[operator]]\nfile = {0:?}\ndef = \"gemm\"\n\
         sizes = {{ M = 32, N = 32, K = 32 }}\nweight = 3\n\n[[operator]]\nfile = {1:?}\n\
         def = \"relu\"\nsizes = {{ M = 16, N = 64 }}\n",
        kernels.join("gemm.tc"),
        kernels.join("activation.tc")
    );
    let manifest = scratch.file("operators.toml");
    std::fs::write(&manifest, text).unwrap();
    let path = manifest.to_str().unwrap();
    let tuned = scratch.json(&["tune", "--manifest", path, "--format", "json"]);
    let names: Vec<&str> =
        tuned.as_array().unwrap().iter().map(|t| t["def"].as_str().unwrap()).collect();
    assert_eq!(names, ["gemm", "relu"]);
    std::fs::write(&manifest, "[tune]\ntrails = 3\n").unwrap();
    let output = scratch.run(&["tune", "--manifest", path]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("unknown field `trails`"), "{errors}");
}

/// A manifest of three operators.
fn three_operators(scratch: &Scratch, budget: &str) -> String {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels");
    let gemm = |size: u32| {
        let file = kernels.join("gemm.tc");
        let sizes = format!("{{ M = {size}, N = {size}, K = {size} }}");
        format!("[[operator]]\nfile = {file:?}\ndef = \"gemm\"\nsizes = {sizes}\n")
    };
    let manifest = scratch.file("three.toml");
    let text = format!("[tune]\n{budget}\n\n{}{}{}", gemm(16), gemm(24), gemm(32));
    std::fs::write(&manifest, text).unwrap();
    manifest.to_str().unwrap().to_owned()
}

#[test]
fn a_summary_names_every_operator() {
    let scratch = Scratch::new("named");
    let path = three_operators(&scratch, "trials = 2");
    let output = scratch.run(&["tune", "--manifest", &path]);
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((lines.len(), output.status.code()), (3, Some(1)), "{said}");
    for (line, size) in lines.iter().zip([16, 24]) {
        assert!(line.starts_with(&format!("gemm K={size},M={size},N={size}: ")), "{said}");
        assert!(line.ends_with("(1 trial)"), "{said}");
    }
    assert_eq!(
        lines[2],
        "gemm K=32,M=32,N=32: not tuned: there was no trial for it; 3 would reach all operators"
    );

    // The same with no time left.
    let path = three_operators(&scratch, "time = \"1ms\"");
    let output = scratch.run(&["tune", "--manifest", &path]);
    let said = String::from_utf8(output.stdout).unwrap();
    let wanted = |size: u32| {
        format!(
            "gemm K={size},M={size},N={size}: not tuned: there was no time for it; 6 s would reach all \
             operators"
        )
    };
    assert_eq!(said.lines().collect::<Vec<_>>(), [16, 24, 32].map(wanted));
    assert_eq!(output.status.code(), Some(1));
    let output = scratch.run(&["tune", "--manifest", &path, "--format", "json"]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&said[2]["def"], &said[2]["sizes"]["K"]), (&"gemm".into(), &32.into()));
    assert_eq!(said[2]["status"], "not-tuned");
}

#[test]
fn the_progress_is_no_wider_than_the_terminal() {
    let scratch = Scratch::new("columns");
    for columns in [40, 80, 140] {
        let tune = format!(
            "stty cols {columns}; exec {} tune {} --trials 5 --fresh",
            env!("CARGO_BIN_EXE_tensorwright"),
            GEMM.join(" ")
        );
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        // A pseudo terminal for the command.
        let output = Command::new("script")
            .args(["-qec", &tune, "/dev/null"])
            .current_dir(root)
            .stdin(Stdio::null())
            .env("TENSORWRIGHT_THREADS", "1")
            .env("TENSORWRIGHT_DB", scratch.file("records.sqlite3"))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let updates: Vec<&str> =
            said.split("\r\u{1b}[K").filter(|piece| !piece.contains('\n')).collect();
        assert!(updates.iter().any(|update| update.contains("/5 trials")), "{said}");
        assert!(updates.iter().all(|update| update.chars().count() < columns), "{said}");
        assert!(
            said.contains("search space: ") && said.contains(" schedules; lower bound"),
            "{said}"
        );
    }
}

#[test]
fn the_report_counts_and_measures_as_the_command() {
    let scratch = Scratch::new("report");
    let page = scratch.file("report.html");
    let report = || {
        let args = ["report", "-o", page.to_str().unwrap(), "--format", "json"];
        scratch.json(&args)["report"]["sections"][0].clone()
    };
    let mut trials = 0;
    // The second run measures the best of the first one again.
    for seed in ["1", "2"] {
        let tuned = scratch.json(&tune(&["--trials", "9", "--seed", seed]));
        trials += tuned["trials"].as_u64().unwrap();
        let headline = &report()["headline"];
        assert_eq!(headline["trials"], trials, "{headline}");
        assert_eq!(headline["seconds"], tuned["seconds"], "{headline} {tuned}");
    }
}

#[test]
fn a_time_that_is_over_before_the_first_trial_is_an_error() {
    let scratch = Scratch::new("no-time");
    let output = scratch.run(&[&["tune"], &GEMM[..], &["--time", "1ms"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "[E1009] Error: no trial ended within 0.001 s: they include the start, which computes the results that \
         kernels are checked against and asks the machine what it can do\n   Help: give it more time, or a \
         number of trials instead\n\n"
    );
}

#[test]
fn a_time_is_kept() {
    let scratch = Scratch::new("time");
    let begun = Instant::now();
    let tuned = scratch.json(&tune(&["--time", "6s"]));
    assert_eq!(tuned["status"], "finished");
    // A wide limit: the machine may be busy.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let seconds = |name: &str| tuned[name].as_f64().unwrap();
    let phases = ["start_seconds", "search_seconds", "finals_seconds"].map(seconds);
    assert!((phases.iter().sum::<f64>() - seconds("elapsed")).abs() < 0.1, "{tuned}");
    assert!(seconds("elapsed") > 3.0, "{tuned}");
}

#[test]
fn mistakes_are_explained() {
    let scratch = Scratch::new("mistakes");
    let output = scratch.run(&["tune", "examples/kernels/gemm.tc", "--def", "gemm"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("E0701"));
    let output = scratch.run(&[&["tune"], &GEMM[..], &["--strategy", "magic"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("[possible values: random, exhaustive,")
    );
    let output = scratch.run(&[&["tune"], &GEMM[..], &["--mode", "best"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("[possible values: one-shot, top5, autotune]"), "{errors}");
    let both = ["--mode", "top5", "--strategy", "random"];
    let output = scratch.run(&[&["tune"], &GEMM[..], &both[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("takes the choice of the cost model and has no search strategy"),
        "{errors}"
    );
    let output = scratch.run(&[&["tune"], &GEMM[..], &["--time", "soon"]].concat());
    assert!(String::from_utf8_lossy(&output.stderr).contains("write 90s, 10m or 2h"));
}

#[test]
fn a_space_is_shown_and_has_the_papers_size() {
    let scratch = Scratch::new("space");
    let sizes = ["484000", "899756", "1589952"];
    for (extent, size) in [512, 1024, 2048].into_iter().zip(sizes) {
        let extents = format!("M={extent},N={extent},K={extent}");
        let gemm = ["space", "examples/kernels/gemm.tc", "--def", "gemm", "--size", &extents];
        let space = scratch.json(&[&gemm[..], &["--preset", "gbfs", "--format", "json"]].concat());
        assert_eq!(space["size"].to_string(), size);
        // Every rule was counted by enumeration, starting with all points.
        assert_eq!(space["rules"][0]["left"].to_string(), size);
    }
    // A layer of YOLO has more than a billion schedules.
    let layer = "B=1,IP=256,OP=512,H=28,W=28,KH=3,KW=3,s=1,p=1";
    let conv = ["space", "examples/kernels/conv2d.tc", "--def", "conv2d_padded", "--size", layer];
    let space = scratch.json(&[&conv[..], &["--format", "json"]].concat());
    assert!(space["log10"].as_f64().unwrap() > 9.0, "{space}");
    assert!(space["samples"][0]["schedule"].as_str().unwrap().contains("out: split"));
}

/// A field of all records of an export that have it.
fn lines_of(text: &str, field: &str) -> Vec<String> {
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| Some(line.pointer(field)?.as_str()?.to_owned())).collect()
}

const BLUR: [&str; 5] = ["examples/kernels/blur.tc", "--def", "blur3x3", "--size", "H=60,W=130"];

#[test]
fn in_one_shot_the_model_chooses() {
    let scratch = Scratch::new("one-shot");
    let tune = |of: &[&str], mode: &str| {
        scratch.json(&[&["tune"], of, &["--mode", mode, "--format", "json"]].concat())
    };
    let chosen = tune(&BLUR, "one-shot");
    assert_eq!((&chosen["trials"], &chosen["status"]), (&1.into(), &"exhausted".into()));
    assert_eq!(
        (&chosen["origin"], &chosen["outcomes"]["measured"]),
        (&"pipeline".into(), &1.into())
    );
    assert_eq!(chosen["pipelines"]["outcomes"]["measured"], 1);
    // It is verified and used, whatever its time.
    let run = scratch.run(&[&["run"], &BLUR[..], &["--verify"]].concat());
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && errors.contains("tuned: the schedule of trial"), "{errors}");
    let schedule = || {
        let printed = scratch.run(&[&["schedule"], &BLUR[..]].concat());
        String::from_utf8(printed.stdout).unwrap()
    };
    assert_eq!(schedule(), chosen["schedule"].as_str().unwrap());
    // The same choice again changes nothing, and a search starts from it.
    assert_eq!(tune(&BLUR, "one-shot")["schedule"], chosen["schedule"]);
    let top5 = tune(&BLUR, "top5");
    assert!(top5["trials"].as_u64().unwrap() <= 6, "{top5}");
    assert_eq!(schedule(), top5["schedule"].as_str().unwrap());
    assert!(top5["gain"] == "none" || top5["gain"]["significant"].is_object(), "{top5}");
    // A single stage has the default schedule.
    let untuned = scratch.run(&[&["schedule"], &GEMM[..], &["--untuned"]].concat());
    let gemm = tune(&GEMM, "one-shot");
    assert_eq!((&gemm["origin"], &gemm["trials"]), (&"default".into(), &1.into()));
    assert_eq!(gemm["schedule"].as_str().unwrap(), String::from_utf8_lossy(&untuned.stdout));
}

#[test]
fn five_are_measured_and_the_fastest_wins() {
    let scratch = Scratch::new("top5");
    let tune = |of: &[&str]| {
        scratch.json(&[&["tune"], of, &["--mode", "top5", "--format", "json"]].concat())
    };
    for (of, origin) in [(&BLUR, "pipeline"), (&GEMM, "ranked")] {
        let tuned = tune(of);
        assert_eq!(
            (&tuned["status"], &tuned["trials"]),
            (&"exhausted".into(), &6.into()),
            "{tuned}"
        );
        match tuned["origin"].as_str().unwrap() {
            "default" => assert_eq!(tuned["gain"], "none"),
            found => assert!(found == origin && tuned["gain"]["significant"].is_object()),
        }
        // The results of the same choice are known, unless it was cut short.
        assert!(tune(of)["trials"].as_u64().unwrap() <= 6);
    }
}

#[test]
fn autotuning_tries_pipelines_and_never_ends_with_less_than_the_default_schedule() {
    let scratch = Scratch::new("pipelines");
    let tuned =
        scratch.json(&[&["tune"], &BLUR[..], &["--trials", "24", "--format", "json"]].concat());
    let pipelines = &tuned["pipelines"]["outcomes"];
    assert!(pipelines["measured"].as_u64().unwrap() >= 5, "{pipelines}");
    assert!(pipelines["wrong-result"].is_null() && pipelines["crashed"].is_null(), "{pipelines}");
    match tuned["gain"] == "none" {
        true => assert_eq!(tuned["origin"], "default", "{tuned}"),
        false => assert!(tuned["speedup"].as_f64().unwrap() > 1.0, "{tuned}"),
    }
    let exported = scratch.file("exported.jsonl");
    scratch.run(&["db", "export", "-o", exported.to_str().unwrap()]);
    let text = std::fs::read_to_string(&exported).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let trials = lines.filter_map(|line| line.pointer("/trial/trial").cloned());
    let found: Vec<Value> = trials.filter(|trial| trial["origin"] == "pipeline").collect();
    assert!(found.len() >= 5);
    for trial in found {
        assert_eq!(
            (&trial["algorithm"], &trial["point"]),
            (&"as written".into(), &Value::Array(vec![]))
        );
    }
    // A space of tiles only cannot contain them.
    let tiles = ["--preset", "tiles", "--trials", "4", "--fresh", "--format", "json"];
    let tiles = scratch.json(&[&["tune"], &BLUR[..], &tiles[..]].concat());
    assert_eq!(tiles["pipelines"]["outcomes"], serde_json::json!({}));
}

#[test]
fn a_search_over_many_stages_keeps_the_time() {
    let scratch = Scratch::new("stages");
    let chain = ["tune", "examples/kernels/stencil_chain.tc", "--def", "stencil_chain"];
    let chain = [&chain[..], &["--size", "H=24,W=40"]].concat();
    let begun = Instant::now();
    let tuned = scratch.json(&[&chain[..], &["--time", "8s", "--format", "json"]].concat());
    assert_eq!(tuned["status"], "finished");
    // A wide limit: the machine may be busy.
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
}

const CONV: [&str; 5] =
    ["examples/kernels/conv2d.tc", "--def", "conv2d", "--size", "B=1,IP=4,OP=4,H=8,W=8,KH=3,KW=3"];

#[test]
fn trials_say_which_algorithm_they_belong_to_and_who_proposed_them() {
    let scratch = Scratch::new("origins");
    let fast = ["--precision", "fast", "--trials", "40", "--format", "json"];
    let sizes = ["--size", "B=1,IP=64,OP=64,H=30,W=30,KH=3,KW=3"];
    scratch.json(&[&["tune"], &CONV[..3], &sizes, &fast[..]].concat());
    let exported = scratch.file("exported.jsonl");
    scratch.run(&["db", "export", "-o", exported.to_str().unwrap()]);
    let text = std::fs::read_to_string(&exported).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let trials: Vec<Value> =
        lines.filter_map(|line| line.pointer("/trial/trial").cloned()).collect();
    let words = |name: &str| -> BTreeSet<String> {
        trials.iter().map(|trial| trial[name].as_str().unwrap().to_owned()).collect()
    };
    let algorithms = words("algorithm");
    assert!(algorithms.contains("as written"), "{algorithms:?}");
    assert!(algorithms.iter().any(|word| word.contains("winograd")), "{algorithms:?}");
    assert_eq!(trials[0]["origin"], "default");
    // Searches start from points that the cost model prefers; later ones come from the portfolio's
    // members.
    let origins = words("origin");
    assert!(origins.contains("ranked") && origins.len() > 2, "{origins:?}");
    let known = |word: &String| {
        ["default", "ranked", "start"].contains(&word.as_str())
            || tensorwright_search::find(word).is_some()
    };
    assert!(origins.iter().all(known), "{origins:?}");
    // The list of trials shows both.
    let run = &lines_of(&text, "/run/info/id")[0];
    let shown = scratch.json(&["db", "show", run, "--format", "json"]);
    let counts = shown["origins"].as_object().unwrap();
    let all: u64 = counts.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((all, counts.len()), (trials.len() as u64, origins.len()), "{shown}");
    let shown = scratch.run(&["db", "show", run]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("origins   ") && shown.contains(" ranked"), "{shown}");
    // Which of them is fastest depends on the machine. Names are those of the text.
    assert!(shown.contains("algorithm") && shown.contains("  out: winograd h w by "), "{shown}");
    // A program of other sizes starts from these results.
    let sizes = ["--size", "B=1,IP=64,OP=64,H=28,W=28,KH=3,KW=3"];
    scratch.json(
        &[&["tune"], &CONV[..3], &sizes, &fast[..2], &["--trials", "4", "--format", "json"]]
            .concat(),
    );
    scratch.run(&["db", "export", "-o", exported.to_str().unwrap()]);
    let text = std::fs::read_to_string(&exported).unwrap();
    let origins = lines_of(&text, "/trial/trial/origin");
    assert!(origins.iter().any(|origin| origin == "near"), "{origins:?}");
}

#[test]
fn an_imported_record_that_is_not_exact_is_used_only_where_that_is_allowed() {
    let scratch = Scratch::new("precision");
    scratch.json(&[&["tune"], &CONV[..], &["--trials", "1", "--format", "json"]].concat());
    let exported = scratch.file("exported.jsonl");
    scratch.run(&["db", "export", "-o", exported.to_str().unwrap()]);
    let change = |line: &str| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        if let Some(trial) = event.pointer_mut("/trial/trial/schedule") {
            *trial = "out: winograd h w by 2\n".into();
        }
        event.to_string() + "\n"
    };
    let text = std::fs::read_to_string(&exported).unwrap();
    std::fs::write(&exported, text.lines().map(change).collect::<String>()).unwrap();
    std::fs::remove_file(scratch.file("records.sqlite3")).unwrap();
    scratch.run(&["db", "import", exported.to_str().unwrap()]);

    let run = |more: &[&str]| {
        let output = scratch.run(&[&["run"], &CONV[..], &["--verify"], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let rounding = "rounding: the schedule uses rewrites that round differently";
    for exact in [&[][..], &["--precision", "exact"], &["--exact"]] {
        let (out, err) = run(exact);
        assert!(err.contains("uses an algebraic rewrite that rounds differently and is not used"));
        assert!(!out.contains(rounding), "{out}");
    }
    // Results for `exact` serve `fast`, after another verification.
    let (out, err) = run(&["--precision", "fast"]);
    assert!(err.contains("made for another precision and verified again"), "{err}");
    assert!(out.contains(rounding) && out.contains("verified: agrees"), "{out}");
    // A user's schedule may use anything.
    let schedule = scratch.file("w.sched");
    std::fs::write(&schedule, "out: winograd h w by 4\n").unwrap();
    let (out, err) = run(&["--schedule", schedule.to_str().unwrap()]);
    assert!(out.contains(rounding) && err.is_empty(), "{out}{err}");
}

/// The messages of all commands for a missing device.
#[test]
fn devices_that_are_not_here_are_refused_as_by_run() {
    let scratch = Scratch::new("target");
    let said = |command: &str| {
        let args = [&[command], &GEMM[..], &["--target", "cuda:4294967295"]].concat();
        let output = scratch.run(&args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let by_tune = said("tune");
    assert!(by_tune.contains("[E1004]"), "{by_tune}");
    assert_eq!((&by_tune, &by_tune), (&said("run"), &said("space")));
}
