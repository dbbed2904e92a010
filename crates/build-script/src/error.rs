//! [`Error`]: why kernels could not be compiled.

use std::fmt;

use tensorwright::{Code, Diagnostic, Diagnostics, Source};

/// Why kernels could not be compiled: located diagnostics, rendered as by the command.
///
/// `Debug` shows the same text, because that is what Cargo prints of an error that `main` returns.
#[derive(Clone)]
pub struct Error {
    diagnostics: Diagnostics,
}

impl Error {
    pub(crate) fn of(diagnostics: Diagnostics) -> Self {
        Self { diagnostics }
    }

    /// A problem without a source location.
    pub(crate) fn new(message: String) -> Self {
        let diagnostic = Diagnostic::without_place(Code::InvalidFile, message);
        Self::of(Diagnostics::new(Source::new("build script", ""), vec![diagnostic]))
    }

    /// The problems.
    #[must_use]
    pub fn into_diagnostics(self) -> Diagnostics {
        self.diagnostics
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.diagnostics.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernels cannot be compiled\n{}", self.diagnostics)
    }
}

impl std::error::Error for Error {}
