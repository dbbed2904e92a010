//! [`TargetError`]: why there is no such target, or not here.

use std::fmt;

use tensorwright_lang::diagnostic::{Code, Diagnostic};

use crate::{Cpu, Target};

/// Why there is no such target, or not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetError {
    /// A name that nothing has.
    Unknown {
        /// The name.
        name: String,
    },
    /// A device that exists, but for which no code can be generated yet.
    Unavailable {
        /// The target.
        name: String,
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
                let planned = Target::names().into_iter().filter(|name| !Cpu::NAMES.contains(name));
                let planned: Vec<&str> = planned.collect();
                let (known, planned) = (Cpu::NAMES.join(", "), planned.join(", "));
                format!("the targets are {known}; not available yet are {planned}")
            }
            Self::Unavailable { .. } => {
                "only processors can be compiled for today, such as native, avx2 or neon".to_owned()
            }
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
                write!(f, "the target `{name}` is not available yet")
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
