//! [`Refusal`]: the reason why a primitive cannot be applied.

use std::fmt;

/// The reason why a primitive cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The problem: the stage, the loop and the reason.
    pub message: String,
    /// A suggestion.
    pub help: Option<String>,
}

impl Refusal {
    /// A refusal with its reason.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// Adds a suggestion.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Index arithmetic overflows 64 bits.
    pub(crate) fn overflow() -> Self {
        Self::new("index arithmetic leaves 64 bits").help("use smaller factors")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " (help: {help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}
