//! Control characters from files and arguments never reach the terminal.
//!
//! The same holds for direction changes and invisible characters.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use tensorwright_lang::text::is_obeyed;

/// Colours, a title, a cleared screen, a direction change and two invisible characters.
const ESCAPES: &str = "\u{1b}[31m\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}1m\u{202e}\u{200b}\u{e0041}";

/// A folder with hostile file names and contents.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let header = format!("{{'descr': '{ESCAPES}', 'fortran_order': False, 'shape': (4,), }}");
        let length = u16::try_from(header.len() + 1).unwrap().to_le_bytes();
        let npy = [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), b"\n"].concat();
        std::fs::write(folder.0.path().join("bad.npy"), npy).unwrap();
        let quoted: String = ESCAPES.chars().map(|c| format!("\\U{:08x}", c as u32)).collect();
        let manifest = format!("[[operator]]\nfile = \"{quoted}\"\ndef = \"{quoted}\"\n");
        for (name, text) in [
            ("good.tc", "def f(float(N) x) -> (y) { y(i) = 2 * x(i) }\n".to_owned()),
            (
                "bad.tc",
                format!("def f(float(N) x) -> (y) {{ y(i) = {ESCAPES}x(i) }} # {ESCAPES}\n"),
            ),
            ("comment.tc", format!("# {ESCAPES}\ndef f(float(N) x) -> (y) {{ y(i) = z(i) }}\n")),
            (&format!("{ESCAPES}.tc"), "def f(float(N) x) -> (y) { y(i) = z(i) }\n".to_owned()),
            ("bad.sched", format!("y: {ESCAPES}split i 4\n")),
            ("bad.toml", format!("[[operator]]\n{ESCAPES} = 1\n")),
            ("names.toml", manifest),
            ("text.toml", format!("strategy = \"{quoted}\"\n")),
            ("bad.jsonl", format!("{{\"program\": \"{ESCAPES}\"}}\n{ESCAPES}\n")),
            ("bad.land", format!("{ESCAPES}\n")),
        ] {
            std::fs::write(folder.0.path().join(name), text).unwrap();
        }
        folder
    }

    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let home: &Path = self.0.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
        command.args(args).current_dir(home).env("NO_COLOR", "1").env("HOME", home);
        command.env("XDG_CONFIG_HOME", home).env("XDG_DATA_HOME", home).env("XDG_CACHE_HOME", home);
        command.env("TENSORWRIGHT_DB", home.join("records.sqlite3"));
        command.envs(variables.iter().copied()).output().unwrap()
    }

    fn check(&self, args: &[&str], variables: &[(&str, &str)]) {
        let output = self.run(args, variables);
        assert!(output.status.code().is_some(), "{args:?} ended by a signal");
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            let text = String::from_utf8(bytes.clone()).unwrap();
            assert!(!text.contains("panicked"), "{args:?}: {text}");
            let obeyed = text.chars().find(|c| is_obeyed(*c));
            assert_eq!(obeyed, None, "{args:?}: {name}: {text:?}");
        }
        assert!(output.stdout.len() + output.stderr.len() < 100_000, "{args:?} says too much");
    }
}

#[test]
fn no_command_passes_on_what_a_terminal_obeys() {
    let folder = Folder::new();
    let own = format!("{ESCAPES}.tc");
    let sized = format!("{ESCAPES}=3");
    let input = format!("{ESCAPES}=bad.npy");
    for command in ["check", "list", "explain", "grad", "run", "schedule", "space", "tune"] {
        for file in ["bad.tc", "comment.tc", own.as_str(), ESCAPES] {
            folder.check(&[command, file], &[]);
            if command != "check" {
                folder.check(&[command, file, "--format", "json"], &[]);
            }
        }
    }
    folder.check(&["check", "--format", "json", "bad.tc", &own], &[]);
    for args in [
        &["compile", "bad.tc", "--emit", "loops"][..],
        &["compile", "good.tc", "--size", "N=4", "--emit", "loops", "--target", ESCAPES],
        &["compile", "good.tc", "--size", "N=4", "--emit", "object", "-o", "no/such/\u{1b}[31m.o"],
        &["run", "good.tc", "--size", "N=4", "--schedule", "bad.sched"],
        &["run", "good.tc", "--size", "N=4", "--schedule", ESCAPES],
        &["run", "good.tc", "--input", "x=bad.npy"],
        &["run", "good.tc", "--size", "N=4", "--input", &input],
        &["run", "good.tc", "--size", &sized],
        &["run", "good.tc", "--def", ESCAPES],
        &["run", "good.tc", "--size", "N=4", "--db", ESCAPES],
        &["run", "good.tc", ESCAPES],
        &["package", "bad.toml", "-o", "made"],
        &["package", "names.toml", "-o", "made"],
        &["tune", "--manifest", "bad.toml"],
        &["tune", "--manifest", "names.toml"],
        &["landscape", "info", "bad.land"],
        &["compare", "bad.land"],
        &["db", "import", "bad.jsonl"],
        &["db", "import", "bad.jsonl", "--format", "json"],
        &["db", "ls", "--db", "bad.toml"],
        &["db", "export", "--run", ESCAPES],
        &["db", "show", ESCAPES],
        &["report", "--db", "bad.toml", "-o", "report.html"],
        &["grad", "good.tc", "--wrt", ESCAPES],
        &[ESCAPES],
        &["run", &format!("--{ESCAPES}")],
    ] {
        folder.check(args, &[]);
    }
}

#[test]
fn neither_do_settings_and_logs() {
    let folder = Folder::new();
    let own = format!("{ESCAPES}.tc");
    folder.check(&["-vv", "check", &own], &[]);
    folder.check(&["-vvv", "run", "bad.tc", "--size", "N=4"], &[]);
    folder.check(&["check", "good.tc"], &[("TENSORWRIGHT_LOG", ESCAPES)]);
    folder.check(&["run", "good.tc", "--size", "N=4"], &[("TENSORWRIGHT_DB", ESCAPES)]);
    for name in ["tensorwright/config.toml", "tensorwright.toml"] {
        let path = folder.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(folder.0.path().join("text.toml"), path).unwrap();
    }
    for args in [&["config"][..], &["doctor"], &["run", "good.tc", "--size", "N=4"]] {
        folder.check(args, &[]);
    }
}

#[test]
fn json_has_names_as_they_are() {
    let folder = Folder::new();
    let own = format!("{ESCAPES}.tc");
    let output = folder.run(&["check", "--format", "json", &own], &[]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["diagnostics"][0]["file"], own.as_str());
}

#[test]
fn a_name_without_end_is_cut() {
    let folder = Folder::new();
    let name = "q".repeat(3_900_000);
    let text = format!("def f(float(N) x) -> (y) {{ y(i) = x(i) + {name} }}\n");
    std::fs::write(folder.0.path().join("long.tc"), text).unwrap();
    for args in [&["check", "long.tc"][..], &["check", "--format", "json", "long.tc"]] {
        let output = folder.run(args, &[]);
        assert_eq!(output.status.code(), Some(1));
        let said = output.stdout.len() + output.stderr.len();
        assert!(said < 10_000, "{args:?}: {said} bytes");
    }
}
