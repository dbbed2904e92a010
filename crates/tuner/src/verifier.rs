//! Verifies recorded schedules before their first use.
//!
//! A record may come from another build of the compiler, from another machine, or from a forged
//! file. So a schedule is compared with the reference once, before its first use, and the verdict
//! is stored beside the records under the name of the [installation](installation): a copied file
//! carries no trust to another machine. The tuner has already compared what it measured here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tensorwright::Schedule;
use tensorwright_records::{Key, Store, Verification};

use crate::identity::installation;
use crate::schedule_query::ScheduleQuery;

/// The most schedules to compare per program: each may take as long as the reference.
const MOST_COMPARED: usize = 3;

/// Verdicts of this process, in case the records cannot store them.
static HERE: Mutex<Option<HashMap<[String; 3], bool>>> = Mutex::new(None);

/// Whether the warning about verdicts that cannot be stored was printed.
static SAID: AtomicBool = AtomicBool::new(false);

/// Verifies recorded schedules of a program.
pub(crate) struct ScheduleVerifier<'a> {
    store: &'a dyn Store,
    query: &'a ScheduleQuery<'a>,
    key: &'a Key,
    compared: usize,
    verify: fn(&ScheduleQuery<'_>, &Schedule) -> bool,
    /// Warnings for the user.
    pub(crate) notes: Vec<String>,
}

impl<'a> ScheduleVerifier<'a> {
    pub(crate) fn new(store: &'a dyn Store, query: &'a ScheduleQuery<'a>, key: &'a Key) -> Self {
        Self {
            store,
            query,
            key,
            compared: 0,
            verify: |query, schedule| query.verifies(schedule),
            notes: Vec::new(),
        }
    }

    /// Whether a schedule computes what the program says, by a stored or a new verdict. `whose`
    /// names it in warnings.
    pub(crate) fn trusts(&mut self, schedule: &Schedule, text: &str, whose: &str) -> bool {
        let what = verification(self.key, text);
        let known = self.store.verified(&what).ok().flatten().or_else(|| recalled(&what));
        if let Some(passed) = known {
            return passed;
        }
        if self.compared == MOST_COMPARED {
            return false;
        }
        self.compared += 1;
        let passed = (self.verify)(self.query, schedule);
        if !passed {
            self.notes.push(format!(
                "{whose} does not compute what the program says, and will not be used here"
            ));
        }
        if let Err(error) = self.store.note_verified(&what, passed) {
            remember(&what, passed);
            if !SAID.swap(true, Ordering::Relaxed) {
                self.notes.push(format!(
                    "what is verified cannot be kept, and is verified again at every start: {error}"
                ));
            }
        }
        passed
    }
}

/// The verification of a schedule for a key by this installation.
pub(crate) fn verification(key: &Key, text: &str) -> Verification {
    let (key, schedule) = (key.clone(), text.to_owned());
    Verification { key, schedule, installation: installation().to_owned() }
}

fn place(what: &Verification) -> [String; 3] {
    let Key { program, target, threads, compiler, .. } = &what.key;
    [program.clone(), format!("{target}\n{threads}\n{compiler}"), what.schedule.clone()]
}

fn recalled(what: &Verification) -> Option<bool> {
    let here = HERE.lock().unwrap_or_else(PoisonError::into_inner);
    here.as_ref()?.get(&place(what)).copied()
}

fn remember(what: &Verification, passed: bool) {
    let mut here = HERE.lock().unwrap_or_else(PoisonError::into_inner);
    here.get_or_insert_default().insert(place(what), passed);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use tensorwright::{Goal, Module, Precision, Program, Target};
    use tensorwright_records::{SqliteStore, StoreOptions};

    use super::*;
    use crate::identity::key_of;

    /// A file of records, removed at the end of the test.
    struct Scratch(tempfile::TempDir);

    impl Scratch {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn store(&self) -> SqliteStore {
            let busy_timeout = Duration::from_millis(50);
            let options = StoreOptions { durable: false, busy_timeout, ..StoreOptions::default() };
            SqliteStore::open(&self.0.path().join("records.sqlite3"), options).unwrap()
        }
    }

    fn program(extent: i64) -> Program {
        let text = "def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }";
        Module::parse("twice.tc", text)
            .unwrap()
            .def("twice")
            .unwrap()
            .bind([("N", extent)])
            .unwrap()
    }

    type Verify = fn(&ScheduleQuery<'_>, &Schedule) -> bool;

    impl Scratch {
        /// The verdict on a schedule if the records are read-only.
        fn judge_read_only(&self, program: &Program, verify: Verify) -> (bool, Vec<String>) {
            let path = self.0.path().join("records.sqlite3");
            let store = SqliteStore::open_read_only(&path, &StoreOptions::default()).unwrap();
            let (judged, notes) = judge(&store, program, &["B: split i 2\n"], verify);
            (judged == [true], notes)
        }
    }

    /// The verdicts on schedules, if comparing them returns `verify`.
    fn judge(
        store: &SqliteStore,
        program: &Program,
        texts: &[&str],
        verify: Verify,
    ) -> (Vec<bool>, Vec<String>) {
        let goal = Goal::new(Target::native().unwrap()).with_precision(Precision::Fast);
        let query = ScheduleQuery { program, goal: &goal };
        let key = key_of(program, &goal);
        let mut verifier = ScheduleVerifier::new(store, &query, &key);
        verifier.verify = verify;
        let judged = texts.iter().map(|text| {
            let schedule = Schedule::parse(text).unwrap();
            verifier.trusts(&schedule, text, "it")
        });
        (judged.collect(), verifier.notes)
    }

    #[test]
    fn what_is_right_is_compared_once() {
        static COMPARED: AtomicUsize = AtomicUsize::new(0);
        let (scratch, program) = (Scratch::new(), program(8));
        let counted: Verify = |query, schedule| {
            COMPARED.fetch_add(1, Ordering::Relaxed);
            query.verifies(schedule)
        };
        for _ in 0..3 {
            let judged = judge(&scratch.store(), &program, &["B: split i 4\n"], counted);
            assert_eq!(judged, (vec![true], Vec::new()));
        }
        assert_eq!(COMPARED.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_is_wrong_is_told_once_and_never_used() {
        static COMPARED: AtomicUsize = AtomicUsize::new(0);
        let (scratch, program) = (Scratch::new(), program(9));
        let wrong: Verify = |_, _| {
            COMPARED.fetch_add(1, Ordering::Relaxed);
            false
        };
        let note = "it does not compute what the program says, and will not be used here";
        let judged = judge(&scratch.store(), &program, &["B: split i 4\n"], wrong);
        assert_eq!(judged, (vec![false], vec![note.to_owned()]));
        let judged = judge(&scratch.store(), &program, &["B: split i 4\n"], wrong);
        assert_eq!(judged, (vec![false], Vec::new()));
        assert_eq!(COMPARED.load(Ordering::Relaxed), 1);
        // After this many wrong schedules the rest are not compared.
        let texts: Vec<String> = (1..8).map(|by| format!("B: split i {by}\n")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (judged, notes) = judge(&scratch.store(), &program, &texts, wrong);
        assert_eq!((judged, notes.len()), (vec![false; 7], MOST_COMPARED));
    }

    #[test]
    fn without_a_place_to_keep_it_a_process_remembers() {
        static COMPARED: AtomicUsize = AtomicUsize::new(0);
        let (scratch, program) = (Scratch::new(), program(10));
        let counted: Verify = |query, schedule| {
            COMPARED.fetch_add(1, Ordering::Relaxed);
            query.verifies(schedule)
        };
        drop(scratch.store());
        let first = scratch.judge_read_only(&program, counted);
        assert!(first.0);
        let note = "what is verified cannot be kept, and is verified again at every start: ";
        assert!(first.1.len() == 1 && first.1[0].starts_with(note), "{:?}", first.1);
        assert_eq!(scratch.judge_read_only(&program, counted), (true, Vec::new()));
        assert_eq!(COMPARED.load(Ordering::Relaxed), 1);
    }
}
