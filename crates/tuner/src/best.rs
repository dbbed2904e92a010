//! Looks up the best recorded schedule of a program.

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

/// Similar keys to consider after the program's own.
const NEIGHBOURS: usize = 8;

/// Schedules of the program's own key to consider, the best first.
const RANKED: usize = 8;

/// The result of looking up a program's best schedule; `Display` explains it to users.
#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleLookup {
    /// Nothing.
    Nothing,
    /// Only schedules for other keys, none of which can be used here: the differences of the
    /// nearest.
    Elsewhere(Vec<Miss>),
    /// A schedule tuned for exactly this key.
    Best {
        /// The schedule.
        schedule: Schedule,
        /// Its trial.
        trial: TrialId,
        /// The seconds of a call.
        seconds: f64,
    },
    /// A schedule tuned for another key, verified here.
    Near {
        /// The schedule.
        schedule: Schedule,
        /// Its trial.
        trial: TrialId,
        /// The parts of the key that differ.
        differs: Vec<Part>,
    },
    /// A schedule that no longer applies.
    Stale(TrialId),
    /// A schedule of a rewriting that is not exact, while exact precision is required.
    Inexact(TrialId),
    /// A schedule tuned for another key that computes wrong results here.
    Unfit(Vec<Part>),
}

/// The result of a lookup, and warnings about the records.
#[derive(Debug, Clone, PartialEq)]
pub struct LookupReport {
    /// The answer.
    pub found: ScheduleLookup,
    /// Damaged or wrong records that were skipped; one line each.
    pub notes: Vec<String>,
}

impl ScheduleLookup {
    /// Looks up the best schedule: of exactly this key, or else of the nearest key of the same
    /// program with the same kind of vectors. Every schedule is first compared with the reference
    /// on random inputs, unless this installation has already done so; the records store the
    /// verdict. A wrong schedule is never used; the next best takes its place.
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

    /// `Elsewhere` if the program was tuned under other keys, otherwise `Nothing`.
    fn elsewhere(misses: Vec<Miss>) -> Self {
        let is_similar = |miss: &Miss| miss.part.is_some_and(|part| part != Part::Program);
        let is_known = !misses.is_empty() && misses.iter().all(is_similar);
        if is_known { Self::Elsewhere(misses) } else { Self::Nothing }
    }

    /// Whether the program was tuned, but only for another number of threads.
    #[must_use]
    pub fn is_for_other_threads(&self) -> bool {
        matches!(self, Self::Elsewhere(misses)
            if misses.iter().all(|miss| miss.part == Some(Part::Threads)))
    }

    /// The schedule, if one can be used.
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
                "the schedule for another {} computes wrong results here; run `tensorwright tune`",
                listed(differs)
            ),
            Self::Inexact(trial) => write!(
                f,
                "the schedule of {trial} uses an algebraic rewrite that rounds differently and is not used; \
                 --precision fast allows it, `tensorwright tune` finds an exact one"
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
    /// Whether a schedule of another key is worth verifying.
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

    /// The best usable and verified schedule of the key itself.
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
        // `Unfit` already reports it.
        verifier.notes.retain(|note| !note.starts_with(&whose));
        ScheduleLookup::Unfit(differs)
    }
}

/// Whether the vectors of this machine can run schedules tuned on another machine. On AArch64,
/// where all vectors have the same width, this machine also needs the other's vector extensions:
/// without them, half precision and dot products of small integers take a different time.
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
        // Schedules never move between x86-64 and AArch64.
        assert!(!has(VectorIsa::Sse, "A as sse []", plain) && !has(VectorIsa::Neon, plain, avx2));
    }
}
