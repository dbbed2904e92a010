//! The best schedule that records have for a program, where none was given.

use std::collections::BTreeMap;
use std::fmt;

use tensorwright::printable;
use tensorwright::{Schedule, VectorIsa};
use tensorwright_machine::fingerprint_features;
use tensorwright_outcome::Seconds;
use tensorwright_records::{Best, Key, Miss, Near, Part, Store, TrialId};

use crate::identity::key_of;
use crate::names::RecordNames;
use crate::schedule_query::ScheduleQuery;
use crate::verifier::ScheduleVerifier;

/// The keys that are looked at beside the program's own.
const NEIGHBOURS: usize = 8;

/// The schedules of the program's own key that are looked at, the best first.
const RANKED: usize = 8;

/// What records say about a program; its `Display` says it to a person.
#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleLookup {
    /// Nothing.
    Nothing,
    /// Schedules of other circumstances alone, which do not serve here: what differs, of the nearest.
    Elsewhere(Vec<Miss>),
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

/// What records say about a program, and what somebody ought to know about the records.
#[derive(Debug, Clone, PartialEq)]
pub struct LookupReport {
    /// The answer.
    pub found: ScheduleLookup,
    /// Records that are damaged or wrong, and were left out; a line each.
    pub notes: Vec<String>,
}

impl ScheduleLookup {
    /// Asks records for the best schedule: of this very key, or else of the nearest one of the same
    /// program for vectors of the same kind. No schedule is trusted that this installation has not
    /// compared with the reference, on random inputs; what it has, the records remember. One that is
    /// wrong is never used, and the next best takes its place.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn best(
        store: &dyn Store,
        query: &ScheduleQuery<'_>,
    ) -> tensorwright_records::Result<LookupReport> {
        let key = key_of(query.program, query.goal);
        let mut verifier = ScheduleVerifier::new(store, query, &key);
        let names = RecordNames::of_store(query.program, store);
        let mut found = query.own(&mut verifier, &names, store.ranked(&key, RANKED)?);
        if found == Self::Nothing {
            let near = store.nearest(&key, &BTreeMap::new(), NEIGHBOURS)?;
            let near = near.into_iter().find(|near| query.suits(&key, near));
            found = near.map_or(Self::Nothing, |near| query.near(&mut verifier, &names, near));
        }
        if found == Self::Nothing {
            found = Self::elsewhere(store.why_miss(&key)?);
        }
        let mut notes = verifier.notes;
        notes.extend(store.damage().iter().map(ToString::to_string));
        let notes = notes.iter().map(|note| printable(note).replace('\n', " ")).collect();
        Ok(LookupReport { found, notes })
    }

    /// What differs where something similar was tuned.
    fn elsewhere(misses: Vec<Miss>) -> Self {
        let is_similar = |miss: &Miss| miss.part.is_some_and(|part| part != Part::Program);
        let is_known = !misses.is_empty() && misses.iter().all(is_similar);
        if is_known { Self::Elsewhere(misses) } else { Self::Nothing }
    }

    /// Whether something similar was tuned, for another number of threads alone.
    #[must_use]
    pub fn is_for_other_threads(&self) -> bool {
        matches!(self, Self::Elsewhere(misses)
            if misses.iter().all(|miss| miss.part == Some(Part::Threads)))
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

impl fmt::Display for ScheduleLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing was tuned yet"),
            Self::Elsewhere(misses) => {
                let differs: Vec<&str> = misses.iter().map(|miss| miss.message.as_str()).collect();
                f.write_str(&differs.join(", and "))?;
                misses.first().map_or(Ok(()), |miss| write!(f, "; {}", miss.help))
            }
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

impl ScheduleQuery<'_> {
    /// Whether a schedule of another key is worth a try.
    fn suits(&self, key: &Key, near: &Near) -> bool {
        near.needs_only_verification()
            && self.goal.precision.allows(near.key.precision)
            && near.key.threads == key.threads
            && (!near.differs.contains(&Part::Target)
                || self
                    .goal
                    .target
                    .cpu()
                    .is_some_and(|cpu| has_vectors_of(cpu.isa(), &key.target, &near.key.target)))
    }

    /// The best of the very key that can be used and is right.
    fn own(
        &self,
        verifier: &mut ScheduleVerifier<'_>,
        names: &RecordNames<'_>,
        ranked: Vec<Best>,
    ) -> ScheduleLookup {
        let mut unusable = None;
        for best in ranked {
            let (trial, seconds) = (best.id.clone(), best.seconds);
            match self.usable(names, &best) {
                Some((schedule, _)) if !self.goal.precision.allows(schedule.precision()) => {
                    unusable = unusable.or(Some(ScheduleLookup::Inexact(trial)));
                }
                Some((schedule, text)) if verifier.trusts(&schedule, &text, &whose(&trial)) => {
                    return ScheduleLookup::Best { schedule, trial, seconds };
                }
                Some(_) => {}
                None => unusable = unusable.or(Some(ScheduleLookup::Stale(trial))),
            }
        }
        unusable.unwrap_or(ScheduleLookup::Nothing)
    }

    fn near(
        &self,
        verifier: &mut ScheduleVerifier<'_>,
        names: &RecordNames<'_>,
        near: Near,
    ) -> ScheduleLookup {
        let (trial, differs) = (near.best.id.clone(), near.differs);
        let Some((schedule, text)) = self.usable(names, &near.best) else {
            return ScheduleLookup::Stale(trial);
        };
        if !self.goal.precision.allows(schedule.precision()) {
            return ScheduleLookup::Inexact(trial);
        }
        let whose = whose(&trial);
        if verifier.trusts(&schedule, &text, &whose) {
            return ScheduleLookup::Near { schedule, trial, differs };
        }
        // The answer says it, in one line.
        verifier.notes.retain(|note| !note.starts_with(&whose));
        ScheduleLookup::Unfit(differs)
    }
}

/// Whether a machine with such vectors has those that schedules of another machine were made for. On
/// AArch64, where the vectors are the same for all, it has to have the other instructions on vectors, too,
/// that the other machine had: halves and products of small integers take another time without them.
fn has_vectors_of(isa: VectorIsa, here: &str, there: &str) -> bool {
    let (here, there) = (fingerprint_features(here), fingerprint_features(there));
    VectorIsa::of_features(|name| there.contains(name)) == isa
        && (isa != VectorIsa::Neon || there.is_subset(&here))
}

fn whose(trial: &TrialId) -> String {
    format!("the schedule of {trial}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_machines_of_both_kinds_are_told_apart() {
        let has = |isa, here, there| has_vectors_of(isa, here, there);
        let (avx2, avx512) = ("A [avx2 fma]", "B [avx2 avx512bw avx512dq avx512f avx512vl fma]");
        assert!(has(VectorIsa::Avx2, avx2, "C [avx avx2 f16c fma]"));
        assert!(!has(VectorIsa::Avx2, avx2, avx512) && !has(VectorIsa::Avx512, avx512, avx2));
        assert!(has(VectorIsa::Sse, "A as sse []", "B [sse4.2]"));

        let (plain, new) = ("A [neon]", "B [bf16 dotprod fp16 i8mm neon]");
        assert!(has(VectorIsa::Neon, plain, "C [neon]"));
        assert!(has(VectorIsa::Neon, new, plain), "all that is asked for is here");
        assert!(!has(VectorIsa::Neon, plain, new), "it may count on what is not here");
        assert!(!has(VectorIsa::Neon, "A [dotprod neon]", "B [neon sve]"));
        // Neither kind takes what was made for the other.
        assert!(!has(VectorIsa::Sse, "A as sse []", plain) && !has(VectorIsa::Neon, plain, avx2));
    }
}
