//! [`DeviceError`]: errors of devices, with suggestions.

use std::fmt;

use std::time::Duration;

use tensorwright_machine::GpuApi;

use crate::BuildLog;

/// An error of a device. [`DeviceError::help`] suggests a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceError {
    /// The library of an API is not installed.
    NoRuntime {
        /// The API.
        api: GpuApi,
        /// The names that were tried, and the system's messages.
        tried: Vec<String>,
        /// How to install it.
        install: &'static str,
    },
    /// The library of an API lacks a function.
    OldRuntime {
        /// The API.
        api: GpuApi,
        /// The function.
        missing: String,
    },
    /// The library is installed, but finds no device.
    NoDevices {
        /// The API.
        api: GpuApi,
        /// How to install a runtime that supports one.
        install: &'static str,
    },
    /// An unknown device name.
    NoSuchDevice {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The device's compiler rejects the text.
    Build {
        /// The device.
        device: String,
        /// The compiler's messages.
        log: BuildLog,
    },
    /// A program exceeds a limit of the device.
    Limit {
        /// The device.
        device: String,
        /// The quantity: `the block of kernel gemm`.
        what: String,
        /// The requested amount.
        asked: String,
        /// The limit.
        most: String,
    },
    /// The text and description of a program are inconsistent, or a call does not match them.
    Mismatch {
        /// The device.
        device: String,
        /// The reason.
        reason: String,
    },
    /// There is not enough memory.
    OutOfMemory {
        /// The device.
        device: String,
        /// The requested bytes.
        bytes: u64,
    },
    /// A launch was rejected or failed.
    Launch {
        /// The device.
        device: String,
        /// The kernel.
        kernel: String,
        /// The runtime's status.
        status: Status,
    },
    /// A kernel did not end before the [deadline](crate::deadline()). It blocks the device for this
    /// process.
    Late {
        /// The device.
        device: String,
        /// The kernel.
        kernel: String,
        /// The deadline.
        deadline: Duration,
    },
    /// The wait for a kernel was interrupted. It blocks the device for this process.
    Interrupted {
        /// The device.
        device: String,
        /// The kernel.
        kernel: String,
    },
    /// A kernel wrote out of bounds of a tensor.
    Overrun {
        /// The device.
        device: String,
        /// The memory: tensor `out`, the workspace.
        what: String,
        /// The number of bytes written, as far as guards detect it.
        overrun: Overrun,
    },
    /// The device was lost: it is unusable.
    Lost {
        /// The device.
        device: String,
        /// The runtime's status.
        status: Status,
    },
    /// A read that is checked at run time was out of bounds.
    FailedRead {
        /// The status of the program
        /// ([`Interface::failed_read`](tensorwright_schedule::Interface::failed_read)).
        status: i32,
    },
    /// A vendor's tool cannot be run or understood.
    Tool {
        /// The tool.
        tool: String,
        /// The problem.
        reason: String,
    },
    /// Another error of the runtime.
    Runtime {
        /// The device, or the API if there is no device yet.
        device: String,
        /// The runtime's status.
        status: Status,
    },
}

/// The status of a call into a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The function.
    pub call: &'static str,
    /// The status code.
    pub code: i32,
    /// The name of the code; empty if unknown.
    pub name: String,
}

/// The number of guard bytes that were overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overrun {
    /// Before the start of the memory.
    pub before: u64,
    /// After its end.
    pub after: u64,
}

impl DeviceError {
    /// Converts a failure of the device into a failed launch of a kernel, if applicable.
    pub(crate) fn in_launch(self, kernel: &str) -> Self {
        match self {
            Self::Runtime { device, status } => {
                Self::Launch { device, kernel: kernel.to_owned(), status }
            }
            other => other,
        }
    }

    /// A suggestion.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::NoRuntime { install, .. } | Self::NoDevices { install, .. } => {
                (*install).to_owned()
            }
            Self::OldRuntime { api, .. } => format!("install a newer runtime of {api}"),
            Self::NoSuchDevice { known, .. } if known.is_empty() => {
                "no devices were found: `tensorwright machine` lists what is missing".to_owned()
            }
            Self::NoSuchDevice { known, .. } => format!("the devices are {}", known.join(", ")),
            Self::Build { log, .. } => match log.first_error() {
                Some(error) => format!("line {} of the text is `{}`", error.line, error.source),
                None => "no line of the log could be identified as an error: read the whole log"
                    .to_owned(),
            },
            Self::Limit { .. } => {
                "use smaller sizes or blocks, or keep less in shared memory".to_owned()
            }
            Self::Mismatch { .. } => "launch the program as its description specifies".to_owned(),
            Self::OutOfMemory { .. } => {
                "choose smaller sizes, or stop other users of the device".to_owned()
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
            Self::FailedRead { .. } => {
                "check the values of the tensors that are used as subscripts".to_owned()
            }
            Self::Tool { .. } => "reinstall the tool, or continue without its report".to_owned(),
            Self::Runtime { .. } => {
                "see the documentation of the function for the meaning of its status".to_owned()
            }
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, code, name } = self;
        match name.is_empty() {
            true => write!(f, "`{call}` returned {code}"),
            false => write!(f, "`{call}` returned {name} ({code})"),
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
