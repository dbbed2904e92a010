//! The tuning loop: search, measurement and records.
//!
//! ```text
//! ScheduleSpace --SearchStrategy--> Point --decode--> Schedule --Measurer--> Outcome --> Record
//!                     ^                                                         |
//!                     +-------------------------- observe ----------------------+
//! ```
//!
//! A search over pipelines also proposes whole schedules; a [`Mode`] says how much is measured.
//! [`Tuner::run`] is that loop. Invariants: no candidate that crashes, hangs or computes wrong
//! results ends a run; every run ends with a valid answer (the default schedule is candidate zero);
//! no outcome is lost (each is committed before the search learns of it); noise does not pick the
//! winner (finalists are measured again in turns).

mod allocation;
mod bandit;
mod best;
mod budget;
mod candidates;
mod defects;
mod error;
mod event;
mod executor;
mod extent;
mod identity;
mod landscape;
mod line;
mod manifest;
mod mode;
mod names;
mod nesting;
mod pipelines;
mod remote_workers;
mod schedule_query;
mod session;
mod short;
mod source;
#[cfg(test)]
mod tests;
mod tuner;
mod verifier;
mod warm_start;

pub use allocation::Allocation;
pub use best::{LookupReport, ScheduleLookup};
pub use budget::Budget;
pub use defects::Defects;
pub use error::TuneError;
pub use event::{Event, Gain, Phases, Progress, Status, Tuned, Winner};
pub use extent::{Extent, SizeRange};
pub use identity::{COMPILER, class_of, key_of, program_info};
pub use landscape::{LandscapePlan, record_landscape};
pub use manifest::{Manifest, Operator, PackageSettings, TuneSettings, parse_duration};
pub use mode::{Mode, UnknownMode};
pub use names::{RecordNames, described};
pub use nesting::nested_too_deep;
pub use remote_workers::RemoteWorkers;
pub use schedule_query::ScheduleQuery;
pub use tuner::Tuner;
