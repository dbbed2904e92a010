//! The system's C compiler, run in a private temporary directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tensorwright::{Code, Diagnostic, Diagnostics, Source};

/// A C compiler with a temporary directory, which is private and unpredictable, and removed on
/// drop.
#[derive(Debug)]
pub struct Compiler {
    program: PathBuf,
    folder: TempDir,
}

impl Compiler {
    /// The compiler with a name or path.
    ///
    /// # Errors
    /// If there is no writable temporary directory.
    pub fn new(program: &Path) -> Result<Self, Diagnostics> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("tensorwright-cc-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir().map_err(|error| {
            let message = format!("there is no place for temporary files: {error}");
            told(
                Diagnostic::without_place(Code::InvalidFile, message)
                    .help("name a folder that you may write to in the variable TMPDIR"),
            )
        })?;
        // A name is looked up; a path must be valid from another directory.
        let is_path = program.components().count() > 1;
        let whole = is_path.then(|| std::path::absolute(program).ok()).flatten();
        Ok(Self { program: whole.unwrap_or_else(|| program.to_owned()), folder })
    }

    /// Writes a file into the temporary directory.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn file(&self, name: &str, content: &[u8]) -> Result<(), Diagnostics> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).map_err(|error| {
            let message = format!("{} cannot be written: {error}", path.display());
            told(Diagnostic::without_place(Code::InvalidFile, message))
        })
    }

    /// Runs the compiler in the temporary directory and returns its output file. File names have no
    /// folders, so that the result does not depend on the directory.
    ///
    /// # Errors
    /// If it cannot be started or fails.
    pub fn run(&self, args: &[&str], output: &str) -> Result<Vec<u8>, Diagnostics> {
        let name = self.program.display();
        let mut command = Command::new(&self.program);
        command.args(args).args(["-o", output]).current_dir(self.folder.path());
        let result = command.output().map_err(|error| {
            let message = format!("the C compiler `{name}` cannot be started: {error}");
            told(
                failed(message)
                    .help("install one, such as gcc or clang, or name another one with --cc"),
            )
        })?;
        if !result.status.success() {
            let errors = String::from_utf8_lossy(&result.stderr);
            let first: Vec<&str> = errors.lines().take(8).collect();
            let message = format!("the C compiler `{name}` failed: {}", result.status);
            return Err(told(failed(message).note(first.join("\n")).help(
                "for another machine, name its C compiler with --cc, or link an object (--emit object)",
            )));
        }
        let path = self.folder.path().join(output);
        std::fs::read(&path).map_err(|error| {
            told(failed(format!("the C compiler `{name}` wrote nothing: {error}")))
        })
    }
}

fn failed(message: String) -> Diagnostic {
    Diagnostic::without_place(Code::ToolFailed, message)
}

fn told(diagnostic: Diagnostic) -> Diagnostics {
    Diagnostics::new(Source::new("the C compiler", ""), vec![diagnostic])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_write_where_the_compiler_works() {
        use std::os::unix::fs::PermissionsExt;

        let (first, second) =
            (Compiler::new(Path::new("cc")).unwrap(), Compiler::new(Path::new("cc")).unwrap());
        first.file("a.c", b"int a;").unwrap();
        let folder = first.folder.path().to_owned();
        assert_ne!(folder, second.folder.path());
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        assert!(!name.contains(&std::process::id().to_string()), "{name} can be foreseen");
        drop(first);
        assert!(!folder.exists());
    }
}
