//! Special files and low memory: errors instead of hanging or aborting.

use std::path::Path;
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_tensorwright");

const PROGRAM: &str = "def f(float(N) A) -> (B, C, D, E) { B(i) = A(i) + 1
  C(i) = A(i) * 2
  D(i) = B(N-1-i)
  E(i) = C(N-1-i) + D(i) }
";

/// A command line of a shell in a folder, where `$T` is the command.
fn shell(folder: &Path, line: &str) -> Command {
    let mut command = Command::new("bash");
    command.arg("-c").arg(line).current_dir(folder);
    command.env("NO_COLOR", "1").env("T", BINARY).env("TENSORWRIGHT_DB", folder.join("none.db"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A folder with a program, a FIFO, and unreadable files.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.tc"), PROGRAM).unwrap();
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    folder
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_pipe_that_nobody_writes_to_is_refused() {
    let folder = folder();
    let lines = [
        "$T check pipe",
        "$T run f.tc --size N=4 --schedule pipe",
        "$T run f.tc --untuned --input A=pipe",
        "$T tune --manifest pipe",
        "$T run f.tc --size N=4 --db pipe",
        "$T db ls --db pipe",
        "TENSORWRIGHT_CONFIG=pipe $T check f.tc",
    ];
    // All commands wait at the same time.
    let line =
        |line: &&str| shell(folder.path(), &format!("timeout 100 env {line}")).spawn().unwrap();
    let children: Vec<_> = lines.iter().map(line).collect();
    for (child, line) in children.into_iter().zip(lines) {
        let output = child.wait_with_output().unwrap();
        let errors = errors(&output);
        assert!(output.status.code().is_some_and(|code| code != 124), "{line}: {errors}");
        assert!(!output.status.success(), "{line}");
        assert!(errors.contains("it is a pipe"), "{line}: {errors}");
    }
}

#[test]
fn what_a_pipe_says_is_refused_whole() {
    let folder = folder();
    let output = shell(folder.path(), "$T check pipe").output().unwrap();
    assert_eq!(
        errors(&output),
        "[E0806] Error: pipe cannot be read: it is a pipe that nobody writes to\n   \
         Help: name a file, or a pipe that is written to\n\n"
    );
}

#[test]
fn a_pipe_that_somebody_writes_to_is_read() {
    let folder = folder();
    let line = "$T check <(cat f.tc) && $T run <(sleep 6; cat f.tc) --size N=4 \
                --schedule <(echo 'B: vectorize i') --output B=b.npy && \
                $T run f.tc --untuned --input A=<(cat b.npy)";
    let output = shell(folder.path(), line).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("waiting for /dev/fd/"), "{}", errors(&output));
    // A FIFO whose writer starts a little later.
    let output = shell(folder.path(), "(sleep 1; cat f.tc > pipe) & $T check pipe").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", errors(&output));
}

#[test]
fn an_input_without_end_is_not_read_beyond_its_header() {
    let folder = folder();
    let line = "ulimit -v 2000000; $T run f.tc --untuned --input A=/dev/zero";
    let output = shell(folder.path(), line).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        errors(&output),
        "[E0806] Error: /dev/zero cannot be used: this is not a .npy file: it does not start with NumPy's magic bytes\n   \
         Help: write it with numpy.save\n\n"
    );
    // A header with too much data after it.
    let header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }\n";
    let mut head = b"\x93NUMPY\x01\x00".to_vec();
    head.extend((header.len() as u16).to_le_bytes());
    head.extend(header);
    std::fs::write(folder.path().join("head"), head).unwrap();
    let line = "ulimit -v 2000000; $T run f.tc --untuned --input A=<(cat head /dev/zero)";
    let output = shell(folder.path(), line).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("more bytes follow than the header says"),
        "{}",
        errors(&output)
    );
}

/// A failed allocation is an error message, never an abort.
#[test]
fn memory_that_there_is_not_is_an_error() {
    let folder = folder();
    let mut refused = String::new();
    // The tensors have 40 MB each; the first limits are too low for some.
    for megabytes in (300..=900).step_by(75) {
        let line = format!("ulimit -v {megabytes}000; $T run f.tc --size N=10000000 --untuned");
        let output = shell(folder.path(), &line).output().unwrap();
        let errors = errors(&output);
        match output.status.code() {
            Some(0) => break,
            Some(1) => {
                assert!(errors.contains("E0705"), "{megabytes} MB: {errors}");
                refused += &errors;
            }
            code => panic!("{megabytes} MB: {code:?}, {errors}"),
        }
    }
    assert!(refused.contains("cannot allocate 40000000 bytes"), "{refused}");
}
