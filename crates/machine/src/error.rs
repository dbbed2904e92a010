//! [`TargetError`]: unknown, unavailable or unsupported targets.

use std::fmt;

use tensorwright_lang::diagnostic::{Code, Diagnostic};

use crate::Target;

/// The reason why a target cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetError {
    /// An unknown name.
    Unknown {
        /// The name.
        name: String,
    },
    /// A kind of target without a code generator.
    Unavailable {
        /// The target.
        name: String,
    },
    /// A device that is not available, or whose runtime is not.
    NoDevice {
        /// The target.
        name: String,
        /// The reason.
        reason: String,
        /// How to fix it.
        help: String,
    },
    /// A CPU that differs from this machine's.
    Foreign {
        /// The target.
        name: String,
        /// This machine.
        here: String,
    },
    /// A machine with an unsupported architecture.
    Architecture {
        /// The architecture.
        name: String,
    },
}

impl TargetError {
    /// The error as a diagnostic.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::without_place(Code::UnknownTarget, self.to_string()).help(self.help())
    }

    /// How to fix it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Unknown { .. } => {
                let names = Target::names().join(", ");
                format!("the targets are {names}; `tensorwright machine` lists the devices")
            }
            Self::Unavailable { .. } => {
                "code can be generated for processors, such as native or avx2, and for devices, such as \
                 opencl:0 or cuda:sm_80"
                    .to_owned()
            }
            Self::NoDevice { help, .. } => help.clone(),
            Self::Foreign { .. } => {
                "compile for `native`, or run the code on a machine of that kind".to_owned()
            }
            Self::Architecture { .. } => {
                "name a target that code can be generated for, such as avx2 or neon".to_owned()
            }
        }
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => write!(f, "there is no target `{name}`"),
            Self::Unavailable { name } => {
                write!(f, "no code can be generated for the target `{name}`")
            }
            Self::NoDevice { name, reason, .. } => {
                write!(f, "the target `{name}` is not here: {reason}")
            }
            Self::Foreign { name, here } => {
                write!(f, "this machine (`{here}`) cannot run code for `{name}`")
            }
            Self::Architecture { name } => {
                write!(f, "this machine's architecture, `{name}`, is not supported")
            }
        }
    }
}

impl std::error::Error for TargetError {}
