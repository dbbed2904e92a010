//! A directory with files and commands that run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory that is removed at the end of the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("tensorwright-package-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Runs a program here.
    pub(crate) fn output(&self, program: impl AsRef<Path>, args: &[&str]) -> Output {
        let mut command = Command::new(program.as_ref());
        command.args(args).current_dir(&self.0).env("NO_COLOR", "1");
        command.env("TENSORWRIGHT_DB", self.path("no-records.sqlite3"));
        command.output().unwrap()
    }

    /// Runs a program that succeeds; its standard output.
    pub(crate) fn run(&self, program: impl AsRef<Path>, args: &[&str]) -> String {
        let output = self.output(program.as_ref(), args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {args:?}: {errors}", program.as_ref().display());
        String::from_utf8(output.stdout).unwrap()
    }

    /// Builds the package of a manifest.
    pub(crate) fn package(&self, manifest: &str, directory: &str) -> String {
        let args = ["package", manifest, "-o", directory];
        self.run(env!("CARGO_BIN_EXE_tensorwright"), &args)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
