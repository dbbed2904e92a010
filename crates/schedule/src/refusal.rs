//! [`Refusal`]: why a primitive is not applied.

use std::fmt;

/// Why a primitive is not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong: names the stage, the loop and the reason.
    pub message: String,
    /// What to do instead.
    pub help: Option<String>,
}

impl Refusal {
    /// A refusal with its reason.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// With a way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Index arithmetic that leaves 64 bits.
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
