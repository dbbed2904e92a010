//! Stored verifications, and records that were tampered with.

use crate::support;
use crate::support::{Scratch, begin, key, measured, program, quick};
use serde_json::json;
use tensorwright_lang::precision::Precision;
use tensorwright_records::{
    Applied, Declared, Error, Event, Key, Origin, ProgramInfo, RunEnd, RunFilter, RunId,
    SqliteStore, Store, Trial, TrialId, Verification, now,
};

support::on_every_database! {
    what_was_verified_is_known_to_the_installation_that_did_it,
    processes_that_verify_at_the_same_time_do_not_disturb_each_other,
    the_best_come_in_order_and_each_schedule_once,
    a_text_that_is_not_what_was_written_is_left_out_and_told,
    numbers_and_names_that_cannot_be_true_are_refused,
}

fn verification(key: &Key, schedule: &str, installation: &str) -> Verification {
    let (schedule, installation) = (schedule.to_owned(), installation.to_owned());
    Verification { key: key.clone(), schedule, installation }
}

/// Records of one trial, not open anywhere.
fn one_trial(scratch: &Scratch) -> (Key, RunId) {
    let program = program(64);
    let key = key(&program);
    let mut store = scratch.store();
    let run = begin(&mut *store, &key, &program);
    store.insert(&run, &measured(0, 1.0)).unwrap();
    (key, run)
}

fn with_schedule(number: u64, seconds: f64, schedule: &str) -> Trial {
    Trial { schedule: schedule.to_owned(), ..measured(number, seconds) }
}

fn what_was_verified_is_known_to_the_installation_that_did_it(scratch: &Scratch) {
    let store = scratch.store();
    let key = key(&program(64));
    let here = verification(&key, "C: split m 8\n", "here");
    assert_eq!(store.verified(&here).unwrap(), None);
    store.note_verified(&here, true).unwrap();
    store.note_verified(&here, true).unwrap();
    assert_eq!(store.verified(&here).unwrap(), Some(true));
    let others = [
        verification(&key, "C: split m 8\n", "elsewhere"),
        verification(&key, "C: split m 4\n", "here"),
        verification(&Key { threads: 7, ..key.clone() }, "C: split m 8\n", "here"),
        verification(&Key { compiler: "newer".into(), ..key.clone() }, "C: split m 8\n", "here"),
        verification(&Key { target: "other".into(), ..key.clone() }, "C: split m 8\n", "here"),
    ];
    for other in &others {
        assert_eq!(store.verified(other).unwrap(), None, "{other:?}");
    }
    // Another process sees it; a failure stays, whoever writes last.
    let second = scratch.store();
    assert_eq!(second.verified(&here).unwrap(), Some(true));
    second.note_verified(&here, false).unwrap();
    store.note_verified(&here, true).unwrap();
    assert_eq!(store.verified(&here).unwrap(), Some(false));
}

fn processes_that_verify_at_the_same_time_do_not_disturb_each_other(scratch: &Scratch) {
    let key = key(&program(64));
    drop(scratch.store());
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (scratch, key) = (&scratch, &key);
            scope.spawn(move || {
                let store = scratch.store();
                for number in 0..20 {
                    let what = verification(key, &format!("C: split m {number}\n"), "here");
                    let passed = worker != 3 || number % 5 > 0;
                    store.note_verified(&what, passed).unwrap();
                }
            });
        }
    });
    let store = scratch.store();
    for number in 0..20 {
        let what = verification(&key, &format!("C: split m {number}\n"), "here");
        assert_eq!(store.verified(&what).unwrap(), Some(number % 5 > 0));
    }
}

#[test]
fn a_file_of_the_first_schema_is_brought_up_to_date() {
    let scratch = Scratch::new();
    let (key, _) = one_trial(&scratch);
    let old = "DROP TABLE verified; ALTER TABLE bests DROP COLUMN replaces;
               UPDATE meta SET value = '1' WHERE name = 'tensorwright-schema'";
    scratch.execute(SECOND_SCHEMA);
    scratch.execute(old);
    let as_it_is = as_it_is(&scratch);
    assert_eq!(as_it_is.best(&key).unwrap().unwrap().trial, measured(0, 1.0));
    assert_eq!(as_it_is.declared().unwrap(), []);
    let what = verification(&key, "", "here");
    assert_eq!(as_it_is.verified(&what).unwrap(), None);
    drop(as_it_is);
    let store = scratch.store();
    assert_eq!(store.best(&key).unwrap().unwrap().trial, measured(0, 1.0));
    store.note_verified(&what, true).unwrap();
    assert_eq!(scratch.store().verified(&what).unwrap(), Some(true));
}

/// Converts a file to the second schema: the precision ends the compiler's name, and the algorithm
/// is the first number of a point, if there are several.
const SECOND_SCHEMA: &str = "
    CREATE TABLE old_keys (
       id INTEGER PRIMARY KEY,
       program_id BIGINT NOT NULL REFERENCES programs (id),
       target TEXT NOT NULL,
       threads BIGINT NOT NULL,
       compiler TEXT NOT NULL,
       UNIQUE (program_id, target, threads, compiler));
    INSERT INTO old_keys SELECT id, program_id, target, threads,
       CASE WHEN precision = 'exact' THEN compiler || ' exact' ELSE compiler END FROM keys;
    DROP TABLE keys;
    ALTER TABLE old_keys RENAME TO keys;
    CREATE TABLE old_trials (
       id INTEGER PRIMARY KEY,
       run_id BIGINT NOT NULL REFERENCES runs (id),
       number BIGINT NOT NULL,
       key_id BIGINT NOT NULL REFERENCES keys (id),
       origin BIGINT NOT NULL REFERENCES texts (id),
       point BLOB NOT NULL,
       schedule BLOB NOT NULL,
       kind SMALLINT NOT NULL,
       cut SMALLINT NOT NULL,
       seconds DOUBLE PRECISION,
       raw_seconds DOUBLE PRECISION,
       spread DOUBLE PRECISION,
       runs BIGINT,
       roofline DOUBLE PRECISION,
       detail BIGINT REFERENCES texts (id),
       elapsed DOUBLE PRECISION NOT NULL,
       UNIQUE (run_id, number));
    INSERT INTO old_trials SELECT id, run_id, number, key_id, origin, point, schedule, kind, cut,
       seconds, raw_seconds, spread, runs, roofline, detail, elapsed FROM trials;
    DROP TABLE trials;
    ALTER TABLE old_trials RENAME TO trials;
    CREATE INDEX trials_best ON trials (key_id, seconds) WHERE kind = 0 AND cut = 0;
    UPDATE meta SET value = '2' WHERE name = 'tensorwright-schema'";

fn as_it_is(scratch: &Scratch) -> SqliteStore {
    let options = tensorwright_records::StoreOptions::default();
    SqliteStore::open_read_only(&scratch.db(), &options).unwrap()
}

#[test]
fn precisions_of_the_second_schema_get_a_column_and_stay_apart() {
    let scratch = Scratch::new();
    let mut store = scratch.store();
    let program = program(64);
    let exact = key(&program);
    let fast = exact.clone().with_precision(Precision::Fast);
    for (key, seconds) in [(&exact, 2.0), (&fast, 1.0)] {
        let run = begin(&mut *store, key, &program);
        store.insert(&run, &measured(0, seconds)).unwrap();
    }
    drop(store);
    scratch.execute(SECOND_SCHEMA);
    let seconds = |store: &dyn Store, key| store.best(key).unwrap().unwrap().seconds;
    let mut old = as_it_is(&scratch);
    assert_eq!((seconds(&old, &exact), seconds(&old, &fast)), (2.0, 1.0));
    // A file that cannot be migrated is not written either.
    let refused = old.apply(&[Event::Program(program.clone())]).unwrap_err();
    assert!(matches!(refused, Error::ReadOnly { .. }), "{refused}");
    drop(old);
    let mut store = scratch.store();
    assert_eq!((seconds(&*store, &exact), seconds(&*store, &fast)), (2.0, 1.0));
    // The origin of trials was known; their algorithm was not.
    assert_eq!(store.best(&fast).unwrap().unwrap().trial, measured(0, 1.0));
    assert_eq!(store.plan_of_best().unwrap().matches("trials_best").count(), 1);
    // New rows coexist with old ones.
    let run = begin(&mut *store, &exact, &program);
    let algorithm = "as written".to_owned();
    let trial = Trial { algorithm, origin: Origin::Ranked, ..measured(1, 0.5) };
    store.insert(&run, &trial).unwrap();
    assert_eq!(scratch.store().best(&exact).unwrap().unwrap().trial, trial);
    assert_eq!(store.keys().unwrap().len(), 2);
}

fn the_best_come_in_order_and_each_schedule_once(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let key = key(&program);
    let run = begin(&mut *store, &key, &program);
    let times = [(0, 3.0, "a\n"), (1, 1.0, "b\n"), (2, 2.0, "c\n"), (3, 1.5, "b\n")];
    for (number, seconds, schedule) in times {
        store.insert(&run, &with_schedule(number, seconds, schedule)).unwrap();
    }
    let trial = TrialId { run, number: 2 };
    let best = Declared { trial, seconds: 0.5, against: json!(null), declared: 1, replaces: None };
    store.declare_best(&key, &best).unwrap();
    let ranked = |limit| -> Vec<u64> {
        let ranked = store.ranked(&key, limit).unwrap();
        ranked.iter().map(|best| best.id.number).collect()
    };
    assert_eq!(ranked(8), [2, 1, 0]);
    assert_eq!(ranked(2), [2, 1]);
}

fn a_text_that_is_not_what_was_written_is_left_out_and_told(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let key = key(&program);
    let run = begin(&mut *store, &key, &program);
    store.insert(&run, &with_schedule(0, 1.0, "C: split m 8\n")).unwrap();
    store.insert(&run, &with_schedule(1, 2.0, "C: split m 4\n")).unwrap();
    drop(store);
    let damage = "UPDATE texts SET text = 'C: split m 9\n' WHERE text = 'C: split m 8\n'";
    scratch.execute(damage);

    let store = scratch.store();
    assert_eq!(store.best(&key).unwrap().unwrap().id.number, 1);
    let told: Vec<String> = store.damage().iter().map(ToString::to_string).collect();
    let expected = format!(
        "trial 0 of run {run} is left out: {} is damaged: text 2 is not the one that was written",
        scratch.location()
    );
    assert_eq!(told, [expected]);
    assert!(store.damage().is_empty(), "it is told once");
    let numbers: Vec<u64> =
        store.trials(&run, None, 1).unwrap().iter().map(|trial| trial.number).collect();
    assert_eq!(numbers, [1], "a page of damaged rows does not end a list");
    assert_eq!(store.keys().unwrap()[0].best.as_ref().unwrap().id.number, 1);
    assert_eq!(store.damage().len(), 1);
    let mut seen = 0;
    let mut count = |_: &_, _: Trial| {
        seen += 1;
        Ok(())
    };
    store.each_trial(&RunFilter::default(), &mut count).unwrap();
    assert_eq!(seen, 1);
}

#[test]
fn records_that_cannot_be_written_can_be_looked_at() {
    let scratch = Scratch::new();
    let (key, run) = one_trial(&scratch);
    // A name with every character that is special in a URI.
    let place = scratch.path().join("a b%20c?d#e&f.sqlite3");
    std::fs::copy(scratch.db(), &place).unwrap();
    let mut store = SqliteStore::open_read_only(&place, &quick()).unwrap();
    assert_eq!(store.best(&key).unwrap().unwrap().trial, measured(0, 1.0));
    let what = verification(&key, "", "here");
    assert_eq!(store.verified(&what).unwrap(), None);
    assert!(matches!(store.note_verified(&what, true), Err(Error::ReadOnly { .. })));
    assert!(matches!(store.insert(&run, &measured(1, 1.0)), Err(Error::ReadOnly { .. })));
    std::fs::write(&place, "").unwrap();
    assert!(SqliteStore::open_read_only(&place, &quick()).is_err());
}

/// Why an event is refused.
fn refusal(store: &mut dyn Store, event: Event) -> String {
    match store.apply(&[event]).unwrap().pop().unwrap() {
        Applied::Refused(error) => error.to_string(),
        other => format!("{other:?}"),
    }
}

fn numbers_and_names_that_cannot_be_true_are_refused(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let key = key(&program);
    let run = begin(&mut *store, &key, &program);
    let trial = |change: &dyn Fn(&mut Trial)| {
        let mut trial = measured(0, 1.0);
        change(&mut trial);
        Event::Trial { run: run.clone(), trial }
    };
    let says = refusal(&mut *store, trial(&|trial| trial.elapsed = -1.0));
    assert_eq!(says, "elapsed is not a finite, non-negative number");
    let says = refusal(&mut *store, trial(&|trial| trial.origin = "\u{1b}[2J".into()));
    assert_eq!(says, "origin has a control character");
    let info = |change: &dyn Fn(&mut ProgramInfo)| {
        let mut info = ProgramInfo { hash: "other".into(), ..program.clone() };
        change(&mut info);
        Event::Program(info)
    };
    let says = refusal(&mut *store, info(&|info| info.def = "gemm\u{1b}]0;x\u{7}".into()));
    assert_eq!(says, "def has a control character");
    let says = refusal(&mut *store, info(&|info| info.flops = -1.0));
    assert_eq!(says, "flops is not a finite, non-negative number");
    let many = |info: &mut ProgramInfo| {
        info.sizes = (0..1000).map(|size| (format!("N{size}"), size)).collect();
    };
    assert_eq!(refusal(&mut *store, info(&many)), "sizes are more than 256");
    let none = Key { threads: 0, ..key.clone() };
    let begins = tensorwright_records::RunInfo::new("random", 0);
    let says = refusal(&mut *store, Event::Run { key: none, info: begins });
    assert_eq!(says, "threads has to be 1 to 65536");
    let end = RunEnd { ended: i64::MAX, status: "finished".into() };
    let says = refusal(&mut *store, Event::End { run: run.clone(), end });
    assert_eq!(says, "ended is not a date from 1970 to now");
    // A declaration from the future would count for ever.
    store.insert(&run, &measured(1, 1.0)).unwrap();
    let trial = TrialId { run: RunId::named(run.as_str()), number: 1 };
    let declared = now() + 1_000_000_000_000;
    let best = Declared { trial, seconds: 1.0, against: json!(null), declared, replaces: None };
    let says = refusal(&mut *store, Event::Best { key, best });
    assert_eq!(says, "declared is not a date from 1970 to now");
}
