//! The best schedule that records have for a program, where none was given.

use std::collections::BTreeMap;
use std::fmt;

use tensorwright_kernel::{CpuTarget, Precision, Program, Schedule, VectorIsa};
use tensorwright_outcome::Seconds;
use tensorwright_records::{Best, Key, Near, Part, Store, TrialId, fingerprint_features};

use crate::identity::key_of;

/// The keys that are looked at beside the program's own.
const NEIGHBOURS: usize = 8;

/// What records say about a program; its `Display` says it to a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Remembered {
    /// Nothing.
    Nothing,
    /// A schedule, made for this very key.
    Best {
        /// The schedule.
        schedule: Schedule,
        /// Where it comes from.
        trial: TrialId,
        /// The seconds of a call.
        seconds: f64,
    },
    /// A schedule that was made elsewhere, and computes the right thing here too.
    Near {
        /// The schedule.
        schedule: Schedule,
        /// Where it comes from.
        trial: TrialId,
        /// What is different here.
        differs: Vec<Part>,
    },
    /// A schedule that can no longer be applied.
    Stale(TrialId),
    /// A schedule that computes with other numbers than the program names, where that is not allowed.
    Inexact(TrialId),
    /// A schedule that was made elsewhere, and does not compute the right thing here.
    Unfit(Vec<Part>),
}

/// For what a schedule is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The program.
    pub program: &'a Program,
    /// The threads of parallel loops.
    pub threads: usize,
    /// The processor.
    pub target: &'a CpuTarget,
    /// With which numbers sums may be computed.
    pub precision: Precision,
}

impl Remembered {
    /// Asks records for the best schedule: of this very key, or else of the nearest one of the same
    /// program for vectors of the same kind. A schedule of another compiler or machine is not trusted:
    /// its result is compared first, on random inputs.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn best(store: &dyn Store, wanted: &Wanted<'_>) -> tensorwright_records::Result<Self> {
        let threads = u32::try_from(wanted.threads).unwrap_or(u32::MAX);
        let key = key_of(wanted.program, threads, wanted.target, wanted.precision);
        if let Some(best) = store.best(&key)? {
            let trial = best.id.clone();
            return Ok(match wanted.usable(&best) {
                Some(schedule) if wanted.forbids(&schedule) => Self::Inexact(trial),
                Some(schedule) => Self::Best { schedule, trial, seconds: best.seconds },
                None => Self::Stale(trial),
            });
        }
        let near = store.nearest(&key, &BTreeMap::new(), NEIGHBOURS)?;
        let near = near.into_iter().find(|near| wanted.suits(&key, near));
        Ok(near.map_or(Self::Nothing, |near| wanted.verified(near)))
    }

    /// The schedule, if there is one to use.
    #[must_use]
    pub fn schedule(&self) -> Option<&Schedule> {
        match self {
            Self::Best { schedule, .. } | Self::Near { schedule, .. } => Some(schedule),
            _ => None,
        }
    }
}

impl fmt::Display for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing was tuned yet"),
            Self::Best { trial, seconds, .. } => {
                write!(f, "the schedule of {trial}, {:.2}", Seconds(*seconds))
            }
            Self::Near { trial, differs, .. } => write!(
                f,
                "the schedule of {trial}, made for another {} and verified again; run `tensorwright \
                 tune` for this one",
                listed(differs)
            ),
            Self::Unfit(differs) => write!(
                f,
                "a schedule of another {} does not hold here; run `tensorwright tune`",
                listed(differs)
            ),
            Self::Inexact(trial) => write!(
                f,
                "the schedule of {trial} computes with other numbers than the program names and is not \
                 used; --precision fast allows it, `tensorwright tune` finds one that does not"
            ),
            Self::Stale(trial) => {
                write!(f, "the schedule of {trial} no longer applies; run `tensorwright tune`")
            }
        }
    }
}

fn listed(differs: &[Part]) -> String {
    let differs: Vec<String> = differs.iter().map(ToString::to_string).collect();
    differs.join(" and ")
}

impl Wanted<'_> {
    /// Whether a schedule of another key is worth a try.
    fn suits(&self, key: &Key, near: &Near) -> bool {
        let same_vectors = || {
            let features = fingerprint_features(&near.key.target);
            VectorIsa::of_x86(|name| features.contains(name)) == self.target.isa()
        };
        near.needs_only_verification()
            && self.precision.allows(near.key.precision)
            && near.key.threads == key.threads
            && (!near.differs.contains(&Part::Target) || same_vectors())
    }

    /// The schedule of a record, if it can be read and applied.
    fn usable(&self, best: &Best) -> Option<Schedule> {
        let schedule = Schedule::parse(&best.trial.schedule).ok()?;
        self.program.compile().schedule(schedule.clone()).lower().ok().map(|_| schedule)
    }

    /// Whether a schedule computes with numbers that are not allowed, whatever its record says.
    fn forbids(&self, schedule: &Schedule) -> bool {
        self.precision == Precision::Exact && !schedule.is_exact()
    }

    fn verified(&self, near: Near) -> Remembered {
        let (trial, differs) = (near.best.id.clone(), near.differs);
        let Some(schedule) = self.usable(&near.best) else { return Remembered::Stale(trial) };
        if self.forbids(&schedule) {
            return Remembered::Inexact(trial);
        }
        match self.verifies(&schedule) {
            true => Remembered::Near { schedule, trial, differs },
            false => Remembered::Unfit(differs),
        }
    }

    /// Whether a kernel of this schedule computes what the program says, on random inputs.
    fn verifies(&self, schedule: &Schedule) -> bool {
        let Ok(inputs) = self.program.random_inputs(0) else { return false };
        let builder = self.program.compile().target(self.target.clone()).threads(self.threads);
        let Ok(kernel) = builder.schedule(schedule.clone()).build() else { return false };
        let Ok(outputs) = kernel.run(&inputs) else { return false };
        kernel.verify(&inputs, &outputs).is_ok_and(|verified| verified.passed())
    }
}
