//! Linking with the system's C compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tensorwright::{Code, Diagnostic, Diagnostics, Source};

use crate::files;

/// A directory for files in between, which goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Diagnostics> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tensorwright-link-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).map_err(|error| {
            let message = format!("{} cannot be made: {error}", path.display());
            let diagnostic = Diagnostic::without_place(Code::InvalidFile, message);
            Diagnostics::new(Source::new("temporary files", ""), vec![diagnostic])
        })?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind is in the way of nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes a shared library of an object and of C source that belongs to it.
pub(super) fn shared(
    cc: &Path,
    output: &Path,
    wrapper: &str,
    object: &[u8],
) -> Result<(), Diagnostics> {
    let scratch = Scratch::new()?;
    let (c, o) = (scratch.0.join("call.c"), scratch.0.join("kernel.o"));
    files::write_bytes(&c, wrapper.as_bytes())?;
    files::write_bytes(&o, object)?;
    let mut command = Command::new(cc);
    command
        .args(["-shared", "-fPIC", "-O2", "-std=c99", "-o"])
        .arg(output)
        .args([&c, &o])
        .arg("-lm");
    let name = cc.display();
    let result = command.output().map_err(|error| {
        failed(format!("the C compiler `{name}` cannot be started: {error}"))
            .help("install one, such as gcc or clang, or name another one with --cc")
    });
    let result = result.map_err(told)?;
    if result.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&result.stderr);
    let first: Vec<&str> = errors.lines().take(8).collect();
    let diagnostic = failed(format!("the C compiler `{name}` failed: {}", result.status))
        .note(first.join("\n"))
        .help(
            "for another machine, name its C compiler with --cc, or link an object (--emit object)",
        );
    Err(told(diagnostic))
}

fn failed(message: String) -> Diagnostic {
    Diagnostic::without_place(Code::ToolFailed, message)
}

fn told(diagnostic: Diagnostic) -> Diagnostics {
    Diagnostics::new(Source::new("--emit shared", ""), vec![diagnostic])
}
