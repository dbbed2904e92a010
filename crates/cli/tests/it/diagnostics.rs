//! Snapshot tests of all diagnostics.
//!
//! Runs the command in the first line of each example in `tests/diagnostics/`, and compares its
//! output with `tests/diagnostics/snapshots/`.
//!
//! An example is a program (`.tc`), or a schedule (`.sched`) or a manifest (`.toml`) for the programs
//! in `tests/diagnostics/programs/`; `FILE` in its first line stands for itself.
//!
//! `just bless diagnostics` writes the snapshots
//! anew; the change is then reviewed as a diff.

use std::path::{Path, PathBuf};
use std::process::Command;

use tensorwright_lang::diagnostic::{Code, Severity};

/// What starts the first line of an example.
const DIRECTIVE: &str = "# $ tensorwright ";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/diagnostics")
}

/// The file names of the examples, sorted.
fn examples() -> Vec<String> {
    let entries = std::fs::read_dir(directory()).unwrap();
    let is_example = |path: &PathBuf| {
        let kind = path.extension().and_then(|extension| extension.to_str());
        kind.is_some_and(|kind| ["tc", "sched", "toml"].contains(&kind))
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().path())
        .filter(is_example)
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// The output of the command.
struct Answer {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Answer {
    fn of(args: &[&str], directory: &Path) -> Answer {
        let output = Command::new(env!("CARGO_BIN_EXE_tensorwright"))
            .args(args)
            .current_dir(directory)
            .env("NO_COLOR", "1")
            .env("TENSORWRIGHT_THREADS", "1")
            .env_remove("CLICOLOR_FORCE")
            .output()
            .unwrap();
        // Normalises path separators and line ends.
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        Answer {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    fn of_example(file: &str) -> Answer {
        let bytes = std::fs::read(directory().join(file)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let directive = text.lines().next().and_then(|line| line.strip_prefix(DIRECTIVE));
        let directive = directive.unwrap_or_else(|| panic!("{file} starts with `{DIRECTIVE}...`"));
        let word = |word| if word == "FILE" { file } else { word };
        let args: Vec<&str> = directive.split_whitespace().map(word).collect();
        Answer::of(&args, &directory())
    }

    fn shows(&self, code: Code) -> bool {
        let title = format!("[{}] ", code.id());
        self.stderr.lines().any(|line| line.starts_with(&title))
    }

    /// Errors mean 1, warnings alone mean 0, and nothing ever panics.
    fn check_exit(&self, name: &str) {
        let errors = Code::ALL.iter().any(|c| c.severity() == Severity::Error && self.shows(*c));
        assert_eq!(self.code, Some(i32::from(errors)), "{name}: {}", self.stderr);
        for text in [&self.stdout, &self.stderr] {
            assert!(!text.contains("panicked"), "{name}: {text}");
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.code {
            Some(code) => writeln!(f, "exit code: {code}")?,
            None => writeln!(f, "ended by a signal")?,
        }
        writeln!(f, "----- stdout -----\n{}", self.stdout.trim_end())?;
        write!(f, "----- stderr -----\n{}", self.stderr.trim_end())
    }
}

#[test]
fn every_example_is_answered_as_its_snapshot_says() {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(directory().join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for name in examples() {
        let answer = Answer::of_example(&name);
        answer.check_exit(&name);
        let snapshot = name.split('.').next().unwrap_or_default();
        settings.bind(|| insta::assert_snapshot!(snapshot, answer.to_string()));
    }
}

#[test]
fn an_example_named_after_a_code_shows_it() {
    for name in examples() {
        let answer = Answer::of_example(&name);
        let named = Code::ALL.iter().find(|code| name.starts_with(code.id()));
        match named {
            Some(code) => assert!(answer.shows(*code), "{name}: {}", answer.stderr),
            None => assert!(name.starts_with("multi_"), "{name} is named after no code"),
        }
    }
}

#[test]
fn every_code_has_an_example() {
    let names = examples();
    for code in Code::ALL {
        // The first needs a text too large to keep, and has its own test; the others are compiler
        // defects without a known example.
        if matches!(code, Code::SourceTooLarge | Code::KernelFailed | Code::WrongResult) {
            continue;
        }
        // A kernel timeout needs a device: `crates/device/src/tests/opencl.rs` tests it.
        if matches!(code, Code::DeadlineExceeded) {
            continue;
        }
        let has_example = names.iter().any(|name| name.starts_with(code.id()));
        assert!(has_example, "tests/diagnostics/ has no example for {code}: {}", code.title());
    }
}

#[test]
fn an_input_that_is_missing_is_named() {
    let text = "def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }";
    let module = tensorwright::Module::parse("add.tc", text).unwrap();
    let program = module.def("add").unwrap().bind([("N", 4)]).unwrap();
    let mut inputs = program.random_inputs(0).unwrap();
    inputs.remove("y");
    let error = program.run_reference(&inputs).unwrap_err();
    assert_eq!(error.list()[0].code, Code::MissingInput);
    assert!(error.list()[0].message.contains("`y`"), "{error}");
}

#[test]
fn a_text_that_is_too_large_is_refused() {
    let directory = std::env::temp_dir().join(format!("tensorwright-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let line = "# A comment of exactly sixty-four characters, its end included.\n";
    std::fs::write(directory.join("large.tc"), line.repeat((4 << 20) / line.len() + 1)).unwrap();
    let answer = Answer::of(&["check", "large.tc"], &directory);
    std::fs::remove_dir_all(&directory).unwrap();
    answer.check_exit("large.tc");
    assert!(answer.shows(Code::SourceTooLarge), "{}", answer.stderr);
}
