//! Why a command did not succeed.

use tensorwright::Diagnostics;

use crate::args::Format;

/// Why a command did not succeed.
pub(crate) enum Failure {
    /// It was said already.
    Reported,
    /// Problems in the text, the sizes or the inputs, to be shown in this format.
    Diagnostics(Diagnostics, Format),
    /// Standard output cannot be written.
    Output(std::io::Error),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Output(error)
    }
}

/// What a command returns.
pub(crate) type Outcome = Result<(), Failure>;

/// Attaches the format in which a command shows its problems.
pub(crate) trait InFormat<T> {
    /// Shows problems in this format.
    fn in_format(self, format: Format) -> Result<T, Failure>;
}

impl<T> InFormat<T> for Result<T, Diagnostics> {
    fn in_format(self, format: Format) -> Result<T, Failure> {
        self.map_err(|diagnostics| Failure::Diagnostics(diagnostics, format))
    }
}
