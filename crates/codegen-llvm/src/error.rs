//! Errors of code generation.

use std::error;
use std::fmt;

/// The result of a step of code generation.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a step of code generation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Unknown target, or LLVM was built without it, or this machine cannot run it.
    Target(String),
    /// An instruction could not be built: operands of the wrong type, or no insertion point.
    Build(String),
    /// The kernel would be too large to compile in reasonable time.
    TooLarge(String),
    /// The module is not well-formed IR. This is a bug in the emitter.
    Verify(String),
    /// The pass pipeline could not be parsed or run.
    Passes(String),
    /// The code generator of the target refused the module.
    Emit(String),
    /// The object could not be linked into the process, or has no such symbol.
    Link(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, message) = match self {
            Error::Target(message) => ("target", message),
            Error::Build(message) => ("building IR", message),
            Error::TooLarge(message) => ("code size", message),
            Error::Verify(message) => ("invalid IR", message),
            Error::Passes(message) => ("LLVM passes", message),
            Error::Emit(message) => ("machine code", message),
            Error::Link(message) => ("linking", message),
        };
        write!(f, "{step}: {message}")
    }
}

impl error::Error for Error {}

impl From<tensorwright_machine::TargetError> for Error {
    fn from(error: tensorwright_machine::TargetError) -> Self {
        Error::Target(error.to_string())
    }
}

impl From<inkwell::builder::BuilderError> for Error {
    fn from(error: inkwell::builder::BuilderError) -> Self {
        Error::Build(error.to_string())
    }
}
