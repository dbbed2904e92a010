//! What the records have for a program, for those who want to run it now.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use tensorwright_kernel::{CpuTarget, Program, Schedule};
use tensorwright_outcome::Seconds;
use tensorwright_records::{Best, Store, TrialId, open_existing};

use crate::key_of;

/// What the records have for a program on a machine. Its `Display` says so to a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Recalled {
    /// Nothing, or there are no records.
    Nothing,
    /// The best schedule of exactly this program, compiler and machine.
    Best {
        /// The schedule.
        schedule: Schedule,
        /// Which record it is.
        id: TrialId,
        /// How long a call took.
        seconds: f64,
    },
    /// The best schedule of another compiler version or machine, whose result was compared with the
    /// reference's again.
    Verified {
        /// The schedule.
        schedule: Schedule,
        /// Which record it is.
        id: TrialId,
        /// What was different.
        differs: String,
    },
    /// A schedule of another compiler version or machine, which computes something else here.
    Refuted {
        /// What was different.
        differs: String,
    },
    /// A schedule that cannot be applied any more.
    Stale {
        /// Which record it is.
        id: TrialId,
    },
}

impl Recalled {
    /// The schedule to use, if there is one.
    #[must_use]
    pub fn schedule(&self) -> Option<&Schedule> {
        match self {
            Self::Best { schedule, .. } | Self::Verified { schedule, .. } => Some(schedule),
            Self::Nothing | Self::Refuted { .. } | Self::Stale { .. } => None,
        }
    }
}

impl fmt::Display for Recalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing was tuned yet"),
            Self::Best { id, seconds, .. } => {
                write!(f, "the schedule of {id}, {:.2}", Seconds(*seconds))
            }
            Self::Verified { id, differs, .. } => write!(
                f,
                "the schedule of {id}, made for another {differs} and verified again; run \
                 `tensorwright tune` for this one"
            ),
            Self::Refuted { differs } => write!(
                f,
                "a schedule of another {differs} does not hold here; run `tensorwright tune`"
            ),
            Self::Stale { id } => {
                write!(f, "the schedule of {id} no longer applies; run `tensorwright tune`")
            }
        }
    }
}

/// Looks for the best schedule of a program in the records at a path, or at the usual place. Records
/// that cannot be read are as good as none.
#[must_use]
pub fn recall(
    program: &Program,
    threads: u32,
    target: &CpuTarget,
    exact: bool,
    db: Option<&Path>,
) -> Recalled {
    look(program, threads, target, exact, db).unwrap_or(Recalled::Nothing)
}

fn look(
    program: &Program,
    threads: u32,
    target: &CpuTarget,
    exact: bool,
    db: Option<&Path>,
) -> Option<Recalled> {
    let store = open_existing(db).ok()??;
    let key = key_of(program, threads, target, exact);
    if let Some(best) = store.best(&key).ok()? {
        let (id, seconds) = (best.id.clone(), best.seconds);
        return Some(match applied(program, &best) {
            Some(schedule) => Recalled::Best { schedule, id, seconds },
            None => Recalled::Stale { id },
        });
    }
    // One of another compiler version or machine is not trusted: its result is compared first.
    let near = store.nearest(&key, &BTreeMap::new(), 4).ok()?;
    let near = near
        .into_iter()
        .find(|near| near.needs_only_verification() && near.key.threads == key.threads)?;
    let id = near.best.id.clone();
    let Some(schedule) = applied(program, &near.best) else { return Some(Recalled::Stale { id }) };
    if exact && !schedule.is_exact() {
        return None;
    }
    let differs: Vec<String> = near.differs.iter().map(ToString::to_string).collect();
    let differs = differs.join(" and ");
    if !verifies(program, threads, target, &schedule) {
        return Some(Recalled::Refuted { differs });
    }
    Some(Recalled::Verified { schedule, id, differs })
}

/// The schedule of a record, if it can be read and applied.
fn applied(program: &Program, best: &Best) -> Option<Schedule> {
    let schedule = Schedule::parse(&best.trial.schedule).ok()?;
    program.compile().schedule(schedule.clone()).lower().ok()?;
    Some(schedule)
}

/// Whether a kernel of this schedule computes what the program says, on random inputs.
fn verifies(program: &Program, threads: u32, target: &CpuTarget, schedule: &Schedule) -> bool {
    let Ok(inputs) = program.random_inputs(0) else { return false };
    let builder = program.compile().target(target.clone()).threads(threads as usize);
    let Ok(kernel) = builder.schedule(schedule.clone()).build() else { return false };
    let Ok(outputs) = kernel.run(&inputs) else { return false };
    kernel.verify(&inputs, &outputs).is_ok_and(|verified| verified.passed())
}
