//! `tensorwright cost-model` on the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A directory that is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("tensorwright-cost-model-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        command.args(args).current_dir(root).env("NO_COLOR", "1").env("TENSORWRIGHT_THREADS", "1");
        command.env("TENSORWRIGHT_DB", self.file("records.sqlite3")).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--format", "json"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The error messages, without the test's directory.
    fn complaint(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        text.replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const BLUR: [&str; 6] =
    ["--file", "examples/kernels/blur.tc", "--def", "blur3x3", "--size", "H=96,W=128"];

#[test]
fn schedules_are_measured_learned_from_judged_and_used() {
    let scratch = Scratch::new("all");
    let (samples, weights) = (scratch.file("samples.jsonl"), scratch.file("weights.json"));
    let measure = ["model", "measure", &samples, "--schedules", "4"];
    let measured = scratch.json(&[&measure[..], &BLUR].concat());
    let count = measured["samples"].as_u64().unwrap();
    assert!((2..=4).contains(&count), "{measured}");
    // Existing samples are not measured again, and a truncated line does no harm.
    let text = std::fs::read_to_string(&samples).unwrap();
    std::fs::write(&samples, text + "{\"program\":\"cut o").unwrap();
    assert_eq!(scratch.json(&[&measure[..], &BLUR].concat())["samples"], 0);
    let trained = ["model", "train", &samples, "--output", &weights, "--epochs", "3"];
    assert_eq!(scratch.json(&trained)["samples"].as_u64(), Some(count));
    let judged = scratch.json(&["model", "eval", &samples, "--weights", &weights]);
    assert_eq!(judged[0]["program"], "blur3x3 H=96,W=128");
    for model in ["learned", "analytical"] {
        assert!(judged[0][model]["first"].as_f64().unwrap() >= 1.0, "{judged}");
    }
    let folded = scratch.json(&["model", "eval", &samples, "--folds", "2"]);
    assert_eq!(folded.as_array().map(Vec::len), Some(1), "{folded}");
    let tune = ["tune", "examples/kernels/blur.tc", "--def", "blur3x3", "--size", "H=96,W=128"];
    let tuned = scratch.run(&[&tune[..], &["--mode", "one-shot", "--model", &weights]].concat());
    assert!(tuned.status.success(), "{}", String::from_utf8_lossy(&tuned.stderr));
}

#[test]
fn mistakes_say_what_to_do() {
    let scratch = Scratch::new("mistakes");
    let file = |name: &str, text: &str| {
        std::fs::write(scratch.0.join(name), text).unwrap();
        scratch.file(name)
    };
    let none = scratch.file("none.jsonl");
    insta::assert_snapshot!("nothing_to_measure", scratch.complaint(&["model", "measure", &none]));
    let broken = file("broken.jsonl", "{}\n");
    insta::assert_snapshot!("no_samples", scratch.complaint(&["model", "eval", &broken]));
    let weights = file("weights.json", "{\"format\": 7}");
    let tune = ["tune", "examples/kernels/blur.tc", "--def", "blur3x3", "--size", "H=8,W=8"];
    let with = [&tune[..], &["--model", &weights]].concat();
    insta::assert_snapshot!("no_weights", scratch.complaint(&with));
    let missing = scratch.file("missing.jsonl");
    insta::assert_snapshot!("no_file", scratch.complaint(&["model", "eval", &missing]));
}
