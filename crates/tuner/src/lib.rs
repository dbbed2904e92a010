//! The tuner: a search proposes, measurement checks and times, records remember.
//!
//! ```text
//! ScheduleSpace --SearchStrategy--> Point --decode--> Schedule --Measurer--> Outcome --> Record
//!                     ^                                                         |
//!                     +-------------------------- observe ----------------------+
//! ```
//!
//! Beside the space stands a search over pipelines, which proposes whole schedules; a [`Mode`] says how much is measured.
//! [`Tuner::run`] is that loop. What cannot happen in it: a candidate that crashes, hangs or computes
//! something else ends the run; a run ends without a valid answer (the default schedule is candidate
//! zero); an outcome is lost (each is committed before the search is told); noise picks the winner
//! (finalists are measured again in turns).

mod afar;
mod allocation;
mod arms;
mod best;
mod budget;
mod candidates;
mod crew;
mod defects;
mod error;
mod event;
mod extent;
mod identity;
mod landscape;
mod line;
mod manifest;
mod mode;
mod names;
mod pipelines;
mod session;
mod short;
mod source;
#[cfg(test)]
mod tests;
mod trust;
mod tuner;
mod wanted;
mod warm;

pub use afar::Afar;
pub use allocation::Allocation;
pub use best::{Recalled, Remembered};
pub use budget::Budget;
pub use defects::Defects;
pub use error::TuneError;
pub use event::{Event, Gain, Phases, Progress, Status, Tuned, Winner};
pub use extent::{Extent, SizeRange};
pub use identity::{COMPILER, class_of, key_of, program_info};
pub use landscape::{LandscapePlan, record_landscape};
pub use manifest::{Common, Manifest, Operator, Packaging, parse_duration};
pub use mode::{Mode, UnknownMode};
pub use names::{RecordNames, described};
pub use tuner::Tuner;
pub use wanted::Wanted;
