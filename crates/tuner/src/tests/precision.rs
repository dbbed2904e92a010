//! Which recorded precision can serve which query.

use std::collections::BTreeMap;

use crate::{ScheduleLookup, ScheduleQuery, key_of, program_info};
use tensorwright::{Goal, Module, Precision, Program, Target};
use tensorwright_outcome::{Outcome, Timing};
use tensorwright_records::{Part, RunInfo, SqliteStore, Store, StoreOptions, Trial};

const CONV: &str = "def conv(float(C,H,W) in, float(K,C,R,S) weight) -> (out) {
  out(k,h,w) +=! in(c,h+r,w+s) * weight(k,c,r,s)
}";

const WINOGRAD: &str = "out: winograd h w by 2\n";
const DIRECT: &str = "out: split k 2\n";

fn program() -> Program {
    let sizes = [("C", 3), ("H", 8), ("W", 8), ("K", 4), ("R", 3), ("S", 3)];
    Module::parse("conv.tc", CONV).unwrap().def("conv").unwrap().bind(sizes).unwrap()
}

/// The lookup result for a precision, in records with these bests.
fn remembered(bests: &[(Precision, &str)], precision: Precision) -> ScheduleLookup {
    let program = program();
    let goal = |precision| Goal::new(Target::native().unwrap()).with_precision(precision);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("records.sqlite3");
    let mut store = SqliteStore::open(&path, StoreOptions::default()).unwrap();
    for (precision, schedule) in bests {
        let key = key_of(&program, &goal(*precision));
        let info = program_info(&program, BTreeMap::new());
        let run = store.begin_run(&key, &info, &RunInfo::new("random", 0)).unwrap();
        let timing = Timing { seconds: 1e-6, runs: 3, ..Timing::default() };
        let outcome = Outcome::Measured(timing);
        store.insert(&run, &Trial { outcome, ..Trial::new(0, vec![], schedule) }).unwrap();
    }
    let goal = goal(precision);
    let wanted = ScheduleQuery { program: &program, goal: &goal };
    ScheduleLookup::best(&store, &wanted).unwrap().found
}

#[test]
fn what_is_not_exact_is_refused_whatever_its_key_says() {
    let found = remembered(&[(Precision::Exact, WINOGRAD)], Precision::Exact);
    let ScheduleLookup::Inexact(trial) = &found else { panic!("{found:?}") };
    assert_eq!(found.schedule(), None);
    assert_eq!(
        found.to_string(),
        format!(
            "the schedule of {trial} uses an algebraic rewrite that rounds differently and is not used; \
             --precision fast allows it, `tensorwright tune` finds an exact one"
        )
    );
}

#[test]
fn exact_serves_fast_and_never_the_other_way_round() {
    let found = remembered(&[(Precision::Exact, DIRECT)], Precision::Fast);
    let ScheduleLookup::Near { schedule, differs, .. } = &found else { panic!("{found:?}") };
    assert_eq!(
        (schedule.to_string().as_str(), differs.as_slice()),
        (DIRECT, &[Part::Precision][..])
    );
    assert!(found.to_string().contains("made for another precision and verified again"), "{found}");
    for schedule in [WINOGRAD, DIRECT] {
        let found = remembered(&[(Precision::Fast, schedule)], Precision::Exact);
        assert_eq!(
            (found.schedule(), found.to_string().as_str()),
            (
                None,
                "it has been tuned with --precision fast, not with exact; tune it with --precision exact"
            )
        );
    }
    let both = [(Precision::Exact, DIRECT), (Precision::Fast, WINOGRAD)];
    for (precision, schedule) in both {
        let found = remembered(&both, precision);
        assert_eq!(found.schedule().unwrap().to_string(), schedule, "{found:?}");
    }
}

#[test]
fn what_was_tuned_for_other_threads_is_named() {
    let program = program();
    let goal = |threads| Goal::new(Target::native().unwrap()).with_threads(threads);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("records.sqlite3");
    let mut store = SqliteStore::open(&path, StoreOptions::default()).unwrap();
    let look = |store: &SqliteStore, threads| {
        let goal = goal(threads);
        ScheduleLookup::best(store, &ScheduleQuery { program: &program, goal: &goal })
            .unwrap()
            .found
    };
    assert_eq!(look(&store, 2), ScheduleLookup::Nothing);
    for stored in [1, 4] {
        let key = key_of(&program, &goal(stored));
        let info = program_info(&program, BTreeMap::new());
        let run = store.begin_run(&key, &info, &RunInfo::new("random", 0)).unwrap();
        let timing = Timing { seconds: 1e-6, runs: 3, ..Timing::default() };
        let outcome = Outcome::Measured(timing);
        store.insert(&run, &Trial { outcome, ..Trial::new(0, vec![], DIRECT) }).unwrap();
        let found = look(&store, 2);
        assert!(found.is_for_other_threads() && found.schedule().is_none(), "{found:?}");
        let wanted = match stored {
            1 => {
                "it has been tuned for 1 thread, not for 2; run it so (`--threads 1`, in Python `threads=1`), \
                 or tune it for 2"
            }
            _ => {
                "it has been tuned for 1, 4 threads, not for 2; run it so (`--threads N`, in Python \
                 `threads=N`), or tune it for 2"
            }
        };
        assert_eq!(found.to_string(), wanted);
    }
    assert!(look(&store, 1).schedule().is_some());
}
