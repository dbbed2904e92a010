//! A queue through which many machines tune together.
//!
//! A run puts candidates into a queue on a PostgreSQL server: a program's text, a schedule's text,
//! a seed, and never machine code. Workers lease items for a limited time, build, check and time
//! them, and complete each in the transaction that writes its trial to the
//! [records](tensorwright_records), so that nothing is lost or counted twice. An expired lease goes
//! to another worker, and its former holder gets `CompletionStatus::Fenced`. The queue is a few
//! database functions; roles may call these and touch no table.
//!
//! ```no_run
//! use std::time::Duration;
//! use tensorwright_fleet::{Completion, Fleet};
//! use tensorwright_outcome::Outcome;
//! use tensorwright_records::Location;
//!
//! let Location::Server(url) = "postgres://worker@db.example/tuning".parse()? else { return Ok(()) };
//! let mut fleet = Fleet::connect(&url)?;
//! let worker = fleet.join("rack-3:0", "a processor [avx2] x1", "what it is")?;
//! for leased in fleet.lease(worker, 8, Duration::from_secs(60))? {
//!     let completion = Completion { lease: leased.lease, outcome: Outcome::DeviceLost };
//!     fleet.complete(worker, &[completion])?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | where | what |
//! | --- | --- |
//! | `sql/` | the tables and functions of the queue |
//! | `fleet.rs` | [`Fleet`]: a connection to them |
//! | `driver.rs` | the driver's requests: take over a run, read its history, end it |
//! | `watch.rs` | the status of classes, workers and runs |
//! | `item.rs`, `lease.rs` | items, and their leases |
//! | `row.rs` | validated answers of the server |
//! | `install.rs` | installs tables, roles and permits |

mod driver;
mod fleet;
mod install;
mod item;
mod lease;
mod row;
#[cfg(test)]
mod tests;
mod watch;

pub use driver::{
    Declaration, DeclaredBest, Driver, DriverStatus, Finalist, PastItem, finals_of, finals_text,
};
pub use fleet::{CompletionStatus, Fleet, SweepReport, passes};
pub use install::{Role, VERSION};
pub use item::{Item, Run};
pub use lease::{Assignment, Completion, ItemOutcome, Lease, LeasedItem, WorkerId};
pub use watch::{Kinds, RunStatus, Sample, Status, WorkerStatus};
