//! [`TargetError`]: why there is no such target, or not here.

use std::fmt;

use tensorwright_lang::diagnostic::{Code, Diagnostic};

use crate::Target;

/// Why there is no such target, or not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetError {
    /// A name that nothing has.
    Unknown {
        /// The name.
        name: String,
    },
    /// A kind of target that no code can be generated for.
    Unavailable {
        /// The target.
        name: String,
    },
    /// A device that is not here, or whose runtime is not.
    NoDevice {
        /// The target.
        name: String,
        /// Why there is none.
        reason: String,
        /// What to do about that.
        help: String,
    },
    /// A processor that this machine is not.
    Foreign {
        /// The target.
        name: String,
        /// This machine.
        here: String,
    },
    /// A machine of an architecture for which no code can be generated.
    Architecture {
        /// The architecture.
        name: String,
    },
}

impl TargetError {
    /// The same as a diagnostic.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::without_place(Code::UnknownTarget, self.to_string()).help(self.help())
    }

    /// What somebody who meets it can do.
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
