//! Every example kernel is tuned end to end with a small budget, on one and on two threads.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is how a test speaks")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn on_one_thread() {
    tune_all(1);
}

#[test]
fn on_two_threads() {
    tune_all(2);
}

fn tune_all(threads: u32) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("examples/golden/cases.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let db =
        std::env::temp_dir().join(format!("tensorwright-all-{threads}-{}", std::process::id()));
    std::fs::create_dir_all(&db).unwrap();
    let mut seen = Vec::new();
    let mut failures = Vec::new();
    for case in &cases {
        let (file, def) = (case["file"].as_str().unwrap(), case["def"].as_str().unwrap());
        if seen.contains(&(file, def)) {
            continue;
        }
        seen.push((file, def));
        let sizes: BTreeMap<String, i64> = serde_json::from_value(case["sizes"].clone()).unwrap();
        let sizes: Vec<String> =
            sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
        let tune = |time: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
            command.arg("tune").arg(format!("examples/kernels/{file}")).args(["--def", def]);
            if !sizes.is_empty() {
                command.arg("--size").arg(sizes.join(","));
            }
            command
                .args(["--trials", "3", "--time", time, "--seed", "1", "--format", "json"])
                .args(["--threads", &threads.to_string()])
                .current_dir(&root)
                .env("TENSORWRIGHT_DB", db.join("records.sqlite3"));
            let output = command.output().unwrap();
            let tuned: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            (output, tuned)
        };
        let (mut output, mut tuned) = tune("4s");
        // Where the time does not suffice for a trial (a hundred stages, a busy machine), the default
        // schedule wins, or the run says so; that is right, but not what is tested here.
        if tuned["outcomes"]["measured"].is_null() {
            (output, tuned) = tune("60s");
        }
        let outcomes = &tuned["outcomes"];
        let bad = ["wrong-result", "crashed", "build-failed", "device-lost"];
        let is_bad = bad.iter().any(|kind| !outcomes[kind].is_null());
        // What is said to be a gain is one.
        let speedup = tuned["speedup"].as_f64();
        let is_gain = tuned["gain"]["significant"].is_object();
        let is_slower = speedup.is_none_or(|speedup| is_gain && speedup <= 1.0);
        if !output.status.success() || is_bad || is_slower || outcomes["measured"].is_null() {
            let errors = String::from_utf8_lossy(&output.stderr);
            // What exposes a defect says how the process ended, and its last words.
            let files = tuned["defects"]["files"].as_array().into_iter().flatten();
            let texts = files.filter_map(|file| std::fs::read_to_string(file.as_str()?).ok());
            let texts = texts.collect::<Vec<_>>().join("\n");
            failures.push(format!("{file} {def} {}: {tuned}\n{errors}\n{texts}", sizes.join(",")));
        }
    }
    let _ = std::fs::remove_dir_all(&db);
    assert!(seen.len() > 100, "only {} kernels", seen.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
