//! Tunes example kernels end to end with a small budget.
//!
//! All of them take a quarter of an hour: `.ci/run full`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Kernels of different kinds: products, convolutions, windows, rows, recurrences, scatters,
/// gathers, narrow types, copies, pipelines.
const KINDS: [&str; 12] = [
    "gemm",
    "conv2d_padded",
    "depthwise_separable",
    "conv2d_transpose",
    "maxpool",
    "layer_norm",
    "attention",
    "iir",
    "scatter_add",
    "embedding_bag",
    "gemm_int8",
    "harris",
];

#[test]
fn twelve_kinds_on_two_threads() {
    assert_eq!(tune(2, |def| KINDS.contains(&def)), KINDS.len());
}

#[test]
fn all_on_one_thread() {
    assert!(tune(1, |_| true) > 100);
}

#[test]
fn all_on_two_threads() {
    assert!(tune(2, |_| true) > 100);
}

/// Tunes definitions; returns how many.
fn tune(threads: u32, is_wanted: impl Fn(&str) -> bool) -> usize {
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
        if !is_wanted(def) || seen.contains(&(file, def)) {
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
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    seen.len()
}
