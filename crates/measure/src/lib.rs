//! Builds, checks and times candidates in child processes, so that none can crash, hang or fool the
//! tuner.
//!
//! [`Measurer`] is the parent's side: schedules in, [`Outcome`](tensorwright_outcome::Outcome)s out.
//! [`serve`] is the children's side, which an executable calls that [`WorkerCommand`] names.
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
//!     // `finished.outcome` says what became of candidate `finished.id`.
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Children
//!
//! *Builders* apply schedules, lower and compile. *The runner* links objects, checks what they compute
//! and times them; it is a sandbox without files, network or new processes, and with limits on memory
//! and time. Both live as long as nothing happens to them, and are replaced when something does: a
//! deadline passes, the process ends, or it writes what is no message. They end with their parent,
//! whatever becomes of it, and none is left behind.
//!
//! A candidate is blamed for the end of a runner only if the runner was new, or if it happens again in
//! a new one: the damage may be of an earlier candidate.
//!
//! If the target is a device ([`Target::Gpu`](tensorwright::Target)), the runner opens it and compiles the
//! [programs](tensorwright_device::DeviceProgram) that it is given ([`Measurer::submit_program`]). Its runtime needs files, so
//! that only memory is limited. Whatever a kernel does to the process or the device is an outcome of that kernel: a
//! deadline that passes, a signal, a failed launch, a device that goes away.
//!
//! Inputs and expected results are computed once, by the first builder, into a file in memory that is
//! then sealed. Runners copy inputs to pages that cannot be written and that inaccessible pages
//! surround; a device that shares memory with the process works on such pages too, and another one on memory whose end is
//! watched. Before the checked call, outputs hold the complement of what is expected, so that a kernel
//! that writes nothing is wrong. Every element is compared, after the first call and after the last.
//!
//! # Times
//!
//! Samples are taken in turns with a probe of the nearer roof of the [`Roofline`]. A time is the median
//! of the samples, corrected by how slow the probe was compared with the best it has been, but never
//! below the fastest sample. On a device, its own clock counts, and the probe runs there too.
//! [`TimingPlan`] says when to stop. Where the kernel and the builders cannot have processors of their
//! own, they take turns.
//!
//! # Protocol
//!
//! Parent and child are connected by a pair of sockets that is neither's standard stream. A message is
//! `ff 54 57 31`, the number of the request (8 bytes), the lengths of a JSON part (at most 16 MiB) and
//! of a part of bytes (at most 256 MiB; 4 bytes each), all with the least significant byte first, and
//! the two parts.
//!
//! | to | message | bytes | answers |
//! | --- | --- | --- | --- |
//! | both | setup: program, its hash, target, device, threads, processors, limits | | `Ready` |
//! | builder | `Expect` | | `Expected` once the shared file is filled, or `Failed` |
//! | builder | `Build`: schedule | | `Built`: how to call it, and the object as bytes; `Illegal`; `Failed` |
//! | runner | `Run`: how to call it, the best time, the plan | object, or program for a device | `Loaded` if it had to be compiled, `Prepared`, `Checked` when the result is right, then `Timed`; or `Timed` at once with why not |
//! | runner | `Compare`: candidates, for how long | objects or programs | `Compared` |
//!
//! Requests are answered one at a time. What is not the answer to the request that a child works on
//! counts as garbage, and the child is replaced.

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
