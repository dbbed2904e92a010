//! [`DeviceError`]: what went wrong on a device, where, and what to do about it.

use std::fmt;

use std::time::Duration;

use tensorwright_machine::GpuApi;

use crate::BuildLog;

/// What went wrong on a device. [`DeviceError::help`] says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceError {
    /// The library of an API is not on this machine.
    NoRuntime {
        /// The API.
        api: GpuApi,
        /// What was tried, and what the system said to that.
        tried: Vec<String>,
        /// How to install it.
        install: &'static str,
    },
    /// The library of an API is there, but lacks a function.
    OldRuntime {
        /// The API.
        api: GpuApi,
        /// The function.
        missing: String,
    },
    /// The library is there, but it knows no device.
    NoDevices {
        /// The API.
        api: GpuApi,
        /// How to install what knows one.
        install: &'static str,
    },
    /// A name that no device has.
    NoSuchDevice {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The compiler of the device refuses the text.
    Build {
        /// The device.
        device: String,
        /// What it said.
        log: BuildLog,
    },
    /// A program asks for more than the device has.
    Limit {
        /// The device.
        device: String,
        /// What is too large: `the block of kernel gemm`.
        what: String,
        /// What it asks for.
        asked: String,
        /// What there is at most.
        most: String,
    },
    /// The text and the description of a program contradict each other, or a call does not fit them.
    Mismatch {
        /// The device.
        device: String,
        /// How.
        reason: String,
    },
    /// There is not so much memory.
    OutOfMemory {
        /// The device.
        device: String,
        /// The bytes that were asked for.
        bytes: u64,
    },
    /// A launch was refused, or did not end well.
    Launch {
        /// The device.
        device: String,
        /// The kernel.
        kernel: String,
        /// What the runtime said.
        status: Status,
    },
    /// A kernel did not end before the [deadline](crate::deadline()). It has the device of this process from then on.
    Late {
        /// The device.
        device: String,
        /// The kernel.
        kernel: String,
        /// How long it was waited for.
        deadline: Duration,
    },
    /// Somebody did not want to wait for a kernel any longer. It has the device of this process from then on.
    Interrupted {
        /// The device.
        device: String,
        /// The kernel.
        kernel: String,
    },
    /// A kernel wrote memory beside that of a tensor.
    Overrun {
        /// The device.
        device: String,
        /// The memory: tensor `out`, the workspace.
        what: String,
        /// How much was written, as far as it is watched.
        overrun: Overrun,
    },
    /// The device went away: nothing works on it any more.
    Lost {
        /// The device.
        device: String,
        /// What the runtime said, and to what.
        status: Status,
    },
    /// A read whose subscript is checked when a program runs was out of bounds.
    FailedRead {
        /// What the program reported ([`Interface::failed_read`](tensorwright_schedule::Interface::failed_read)).
        status: i32,
    },
    /// A tool of the vendor's cannot be run or understood.
    Tool {
        /// The tool.
        tool: String,
        /// What is wrong.
        reason: String,
    },
    /// Anything else that the runtime refuses.
    Runtime {
        /// The device, or the API if there is none yet.
        device: String,
        /// What the runtime said, and to what.
        status: Status,
    },
}

/// What a runtime answered to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The function that was called.
    pub call: &'static str,
    /// The number that it returned.
    pub code: i32,
    /// The name of the number; empty if it has none.
    pub name: String,
}

/// How many bytes of guards were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overrun {
    /// Before the start of the memory.
    pub before: u64,
    /// After its end.
    pub after: u64,
}

impl DeviceError {
    /// The same, if it is a failure of the launch of a kernel and not of the device.
    pub(crate) fn in_launch(self, kernel: &str) -> Self {
        match self {
            Self::Runtime { device, status } => {
                Self::Launch { device, kernel: kernel.to_owned(), status }
            }
            other => other,
        }
    }

    /// What somebody who meets it can do.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::NoRuntime { install, .. } | Self::NoDevices { install, .. } => {
                (*install).to_owned()
            }
            Self::OldRuntime { api, .. } => format!("install a newer runtime of {api}"),
            Self::NoSuchDevice { known, .. } if known.is_empty() => {
                "there is none: `tensorwright machine` says what is missing".to_owned()
            }
            Self::NoSuchDevice { known, .. } => format!("the devices are {}", known.join(", ")),
            Self::Build { log, .. } => match log.first_error() {
                Some(error) => format!("line {} of the text is `{}`", error.line, error.source),
                None => "the log has no line that is known as an error: read all of it".to_owned(),
            },
            Self::Limit { .. } => {
                "use smaller sizes or blocks, or keep less in shared memory".to_owned()
            }
            Self::Mismatch { .. } => {
                "a program has to be launched as whoever made it says".to_owned()
            }
            Self::OutOfMemory { .. } => {
                "choose smaller sizes, or end what else uses the device".to_owned()
            }
            Self::Launch { .. } => {
                "kernels that access memory beyond their tensors end like this".to_owned()
            }
            Self::Late { .. } => {
                "use smaller sizes or another schedule, or allow more time: the setting is \
                 `device.deadline` (docs/configuration.md). This process can use the device no more"
                    .to_owned()
            }
            Self::Interrupted { .. } => {
                "the kernel goes on; start a new process to use the device again".to_owned()
            }
            Self::Overrun { .. } => {
                "please report this with the program, its sizes and its schedule".to_owned()
            }
            Self::Lost { .. } => {
                "open the device again in a new process; what its memory held is gone".to_owned()
            }
            Self::FailedRead { .. } => "look at the values of the tensors of subscripts".to_owned(),
            Self::Tool { .. } => "install it anew, or go without what it tells".to_owned(),
            Self::Runtime { .. } => {
                "the documentation of the function says what its answers mean".to_owned()
            }
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, code, name } = self;
        match name.is_empty() {
            true => write!(f, "`{call}` answered {code}"),
            false => write!(f, "`{call}` answered {name} ({code})"),
        }
    }
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.before, self.after) {
            (before, 0) => write!(f, "{before} bytes before the start"),
            (0, after) => write!(f, "{after} bytes after the end"),
            (before, after) => {
                write!(f, "{before} bytes before the start and {after} bytes after the end")
            }
        }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRuntime { api, tried, .. } => {
                write!(f, "there is no {api} on this machine: {}", tried.join("; "))
            }
            Self::OldRuntime { api, missing } => {
                write!(f, "the {api} of this machine has no function `{missing}`")
            }
            Self::NoDevices { api, .. } => write!(f, "{api} is installed but finds no device"),
            Self::NoSuchDevice { name, .. } => write!(f, "there is no device `{name}`"),
            Self::Build { device, log } => match log.first_error() {
                Some(error) => write!(
                    f,
                    "{device} cannot compile the program: line {}: {}",
                    error.line, error.message
                ),
                None => write!(f, "{device} cannot compile the program:\n{}", log.text()),
            },
            Self::Limit { device, what, asked, most } => {
                write!(f, "{what} is {asked}, and {device} has at most {most}")
            }
            Self::Mismatch { device, reason } => write!(f, "{device}: {reason}"),
            Self::OutOfMemory { device, bytes } => {
                write!(f, "{device} cannot allocate {bytes} bytes")
            }
            Self::Launch { device, kernel, status } => {
                write!(f, "kernel `{kernel}` failed on {device}: {status}")
            }
            Self::Late { device, kernel, deadline } => {
                write!(f, "kernel `{kernel}` did not end on {device} within {deadline:?}")
            }
            Self::Interrupted { device, kernel } => {
                write!(f, "interrupted while kernel `{kernel}` ran on {device}")
            }
            Self::Overrun { device, what, overrun } => {
                write!(f, "the kernel wrote {overrun} of {what} on {device}")
            }
            Self::Lost { device, status } => write!(f, "{device} went away: {status}"),
            Self::FailedRead { status } => {
                write!(f, "the program reports a failed read (status {status})")
            }
            Self::Tool { tool, reason } => write!(f, "`{tool}`: {reason}"),
            Self::Runtime { device, status } => write!(f, "{device}: {status}"),
        }
    }
}

impl std::error::Error for DeviceError {}
