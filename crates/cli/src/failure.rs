//! [`Failure`]: why a command failed.

use tensorwright::{Code, Diagnostic, Diagnostics, Source};

use crate::args::Format;

/// Why a command failed.
pub(crate) enum Failure {
    /// The problem has been printed.
    Reported,
    /// Problems in the text, the sizes or the inputs, with their output format.
    Diagnostics(Diagnostics, Format),
    /// Standard output cannot be written.
    Output(std::io::Error),
}

impl Failure {
    /// A failure without a source location, of what `source` names: records, a fleet, a worker.
    pub(crate) fn without_place(
        source: &str,
        message: impl Into<String>,
        help: &str,
        format: Format,
    ) -> Self {
        let diagnostic = Diagnostic::without_place(Code::InvalidFile, message).help(help);
        Failure::Diagnostics(Diagnostics::new(Source::new(source, ""), vec![diagnostic]), format)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Output(error)
    }
}

/// The result of a command.
pub(crate) type Outcome = Result<(), Failure>;

/// Attaches an output format to diagnostics.
pub(crate) trait InFormat<T> {
    /// Converts the error for this format.
    fn in_format(self, format: Format) -> Result<T, Failure>;
}

impl<T> InFormat<T> for Result<T, Diagnostics> {
    fn in_format(self, format: Format) -> Result<T, Failure> {
        self.map_err(|diagnostics| Failure::Diagnostics(diagnostics, format))
    }
}
