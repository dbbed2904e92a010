//! Builds, checks and times candidates in sandboxed child processes.
//!
//! No candidate can crash, hang or fool the tuner.
//!
//! [`Measurer`] is the parent's side: schedules in, [`Outcome`](tensorwright_outcome::Outcome)s
//! out. [`serve`] is the children's side, called by the executable of [`WorkerCommand`].
//!
//! ```no_run
//! use std::time::Duration;
//! use tensorwright::{Target, Module, Schedule};
//! use tensorwright_measure::{Config, Measurer, WorkerCommand};
//!
//! let text = "def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }";
//! let program = Module::parse("twice.tc", text)?.def("twice")?.bind([("N", 1000)])?;
//! let worker = WorkerCommand::new("tensorwright").arg("worker");
//! let mut measurer = Measurer::start(&program, Config::new(worker, Target::native()?))?;
//! measurer.submit(1, &Schedule::parse("B: split i 8\nB: vectorize i.1")?);
//! while let Some(finished) = measurer.next(Duration::from_secs(60)) {
//!     println!("{}: {:?}", finished.id, finished.outcome);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Children
//!
//! *Builders* apply schedules, lower and compile. *The runner* links objects, checks their results
//! and times them; it is a sandbox without files, network or new processes, and with limits on
//! memory and time. Both are reused, and replaced when a deadline passes, the process ends, or it
//! sends a malformed message. They always end with their parent.
//!
//! A candidate is blamed for the end of a runner only if the runner was new, or if it happens again
//! in a new one: an earlier candidate may have caused the damage.
//!
//! If the target is a device ([`Target::Gpu`](tensorwright::Target)), the runner opens it and
//! compiles the [programs](tensorwright_device::DeviceProgram) that it receives
//! ([`Measurer::submit_program`]). The device's runtime needs files, so only memory is limited.
//! Whatever a kernel does to the process or the device is an outcome of that kernel: a missed
//! deadline, a signal, a failed launch, a lost device.
//!
//! The first builder computes inputs and expected results once, into a memory file that is then
//! sealed. Runners copy inputs to read-only pages between inaccessible ones; a device that shares
//! memory with the process works on such pages too, other devices on memory whose end is watched.
//! Before the checked call, outputs hold the complement of the expected values, so that a kernel
//! that writes nothing is wrong. Every element is compared, after the first call and after the
//! last.
//!
//! # Times
//!
//! Samples alternate with a probe of the nearer roof of the [`Roofline`]. A time is the median of
//! the samples, corrected by the probe's slowdown against its best rate, but never below the
//! fastest sample. On a device, the device's clock counts, and the probe runs there too.
//! [`TimingPlan`] says when to stop. If there are too few processors for the kernel and the
//! builders, they take turns.
//!
//! # Protocol
//!
//! A socket pair, separate from the standard streams, connects parent and child. A message is `ff
//! 54 57 31`, the number of the request (8 bytes), the lengths of a JSON part (at most 16 MiB) and
//! of a binary part (at most 256 MiB; 4 bytes each), all little-endian, and the two parts.
//!
//! | to | message | bytes | answers |
//! | --- | --- | --- | --- |
//! | both | setup: program, its hash, target, device, threads, processors, limits | | `Ready` |
//! | builder | `Expect` | | `Expected` once the shared file is filled, or `Failed` |
//! | builder | `Build`: schedule | | `Built`: how to call it, and the object as bytes; `Illegal`; `Failed` |
//! | runner | `Run`: how to call it, the best time, the plan | object, or program for a device | `Loaded` if it had to be compiled, `Prepared`, `Checked` when the result is right, then `Timed`; or `Timed` at once with why not |
//! | runner | `Compare`: candidates, for how long | objects or programs | `Compared` |
//!
//! A child answers one request at a time. Anything but the answer to its current request counts as
//! garbage, and the child is replaced.

mod child;
mod config;
mod error;
mod measurer;
mod protocol;
mod roofline;
mod shared;
mod system;
mod worker;

pub use config::{Config, TimingPlan, WorkerCommand};
pub use error::MeasureError;
pub use measurer::{Finalist, Measurer, StepTimes, TrialResult};
pub use roofline::{Roof, Roofline};
pub use worker::serve;
