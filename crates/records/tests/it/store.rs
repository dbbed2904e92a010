//! Stored records come back, and lookups find the right ones.

use crate::support;
use crate::support::{Scratch, begin, key, measured, program, timing};
use serde_json::json;
use tensorwright_outcome::{Outcome, Phase};
use tensorwright_records::{
    Collection, Declared, Error, Key, Part, RunEnd, RunFilter, RunId, RunInfo, Store, Trial,
    TrialId,
};

support::on_every_database! {
    trials_come_back_as_they_were,
    the_best_is_declared_or_else_the_fastest_that_was_timed_in_full,
    another_trial_under_the_same_number_is_refused,
    only_what_was_measured_for_the_key_can_be_declared,
    what_cannot_be_kept_is_refused,
    runs_are_listed_and_end,
    similar_keys_are_found_the_most_similar_first,
    a_miss_is_explained,
    collection_keeps_the_best_and_counts_the_rest,
}

/// One outcome of each kind, with characters and numbers that are easily lost.
fn outcomes() -> Vec<Outcome> {
    let mut cut = timing(0.1 + 0.2);
    (cut.cut, cut.roofline) = (true, Some(1.0 / 3.0));
    vec![
        Outcome::Measured(timing(1e-10)),
        Outcome::Measured(cut),
        Outcome::Illegal { rule: "unroll".into(), reason: "ü, \"quoted\",\nlines".into() },
        Outcome::BuildFailed { reason: String::new() },
        Outcome::WrongResult { reason: "C(0,0) is 1, not 2".into() },
        Outcome::Crashed { reason: "SIGSEGV".into(), stderr: "a\0b".into() },
        Outcome::TimedOut { phase: Phase::Check, limit: 2.5 },
        Outcome::DeviceLost,
    ]
}

fn trials_come_back_as_they_were(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let run = begin(&mut *store, &key(&program), &program);
    let schedules = ["", "one line, no end", "a\n\nb\n", "a\r\nb", "a\n\nb\n", "\n", "é\n", "x"];
    let trials: Vec<Trial> = (0..)
        .zip(outcomes().into_iter().zip(schedules))
        .map(|(number, (outcome, schedule))| Trial {
            outcome,
            origin: "opevo".into(),
            algorithm: if number % 2 == 0 { String::new() } else { "as written".into() },
            elapsed: 1.0 / 3.0,
            ..Trial::new(number, vec![0, 127, 128, u32::MAX], schedule)
        })
        .collect();
    for trial in &trials {
        assert_eq!(store.insert(&run, trial).unwrap().number, trial.number);
    }
    drop(store);
    let store = scratch.store();
    assert_eq!(store.trials(&run, None, 100).unwrap(), trials);
    assert_eq!(store.trials(&run, Some(2), 3).unwrap(), trials[3..6]);
    assert_eq!(store.program("gemm-64").unwrap(), Some(program));
    let mut seen = 0;
    store
        .each_trial(&RunFilter::default(), &mut |_, _| {
            seen += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, trials.len());
}

fn the_best_is_declared_or_else_the_fastest_that_was_timed_in_full(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let key = key(&program);
    assert_eq!(store.best(&key).unwrap(), None);
    let run = begin(&mut *store, &key, &program);
    assert_eq!(store.best(&key).unwrap(), None);
    let mut cut = measured(0, 0.001);
    let Outcome::Measured(timing) = &mut cut.outcome else { unreachable!() };
    timing.cut = true;
    for trial in [cut, measured(1, 0.003), measured(2, 0.002), measured(3, 0.004)] {
        store.insert(&run, &trial).unwrap();
    }
    let best = store.best(&key).unwrap().unwrap();
    assert_eq!((best.id.number, best.seconds, best.declared), (2, 0.002, None));

    let declare = |number, at| Declared {
        trial: TrialId { run: run.clone(), number },
        seconds: 0.0025,
        against: json!({ "default": 0.01 }),
        declared: at,
        replaces: None,
    };
    store.declare_best(&key, &declare(1, 10)).unwrap();
    store.declare_best(&key, &declare(1, 10)).expect("once more is as good as once");
    let best = store.best(&key).unwrap().unwrap();
    assert_eq!(
        (best.id.number, best.seconds),
        (1, 0.0025),
        "a declaration counts, not the fastest"
    );
    assert_eq!(best.trial, measured(1, 0.003));
    assert_eq!(best.declared, Some(declare(1, 10)));

    // Declared later as faster, but never measured against the best.
    let error = store.declare_best(&key, &declare(3, 20)).unwrap_err();
    assert!(!error.may_pass());
    let says = format!("{error}\nhelp: {}", error.help());
    let expected = format!(
        "trial 1 of run {run} is the best, and was not measured beside this one: only what is faster in the \
         same comparison replaces a best\nhelp: tune again: the two are then measured beside each other"
    );
    assert_eq!(says, expected);
    let other = TrialId { run: run.clone(), number: 2 };
    let error = store.declare_best(&key, &Declared { replaces: Some(other), ..declare(3, 20) });
    assert!(matches!(error, Err(Error::Outrun(current)) if current.number == 1));
    let beside = Declared { replaces: Some(best.id), ..declare(3, 20) };
    store.declare_best(&key, &beside).unwrap();
    let best = store.best(&key).unwrap().unwrap();
    assert_eq!((best.id.number, best.declared), (3, Some(beside)));
}

fn another_trial_under_the_same_number_is_refused(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let run = begin(&mut *store, &key(&program), &program);
    store.insert(&run, &measured(0, 0.5)).unwrap();
    store.insert(&run, &measured(0, 0.5)).expect("once more is as good as once");
    let error = store.insert(&run, &measured(0, 0.25)).unwrap_err();
    assert!(!error.may_pass());
    assert_eq!(error.to_string(), format!("there is another trial 0 of run {run} already"));
    assert_eq!(store.trials(&run, None, 10).unwrap(), [measured(0, 0.5)]);
}

fn only_what_was_measured_for_the_key_can_be_declared(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let key = key(&program);
    let run = begin(&mut *store, &key, &program);
    store.insert(&run, &Trial::new(0, vec![], "")).unwrap();
    store.insert(&run, &measured(1, 1.0)).unwrap();
    let declare = |number| Declared {
        trial: TrialId { run: run.clone(), number },
        seconds: 1.0,
        against: json!(null),
        declared: 1,
        replaces: None,
    };
    let says = |result: Result<(), Error>| result.unwrap_err().to_string();
    assert!(says(store.declare_best(&key, &declare(0))).ends_with("was not measured"));
    assert!(says(store.declare_best(&key, &declare(9))).starts_with("there is no trial 9"));
    let other = Key { threads: 2, ..key.clone() };
    assert!(says(store.declare_best(&other, &declare(1))).ends_with("belongs to another key"));
}

fn what_cannot_be_kept_is_refused(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let run = begin(&mut *store, &key(&program), &program);
    let refused = |store: &mut dyn Store, trial: Trial| {
        let error = store.insert(&run, &trial).unwrap_err();
        assert!(!error.may_pass());
        error.to_string()
    };
    for seconds in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e-300, 1e308] {
        let says = refused(&mut *store, measured(0, seconds));
        assert_eq!(says, "seconds is not a time from 1e-10 to 1e7 seconds");
    }
    assert_eq!(refused(&mut *store, Trial::new(0, vec![], "a\0")), "schedule has a NUL character");
    assert_eq!(refused(&mut *store, Trial::new(u64::MAX, vec![], "")), "number is too large");
    let huge = "x".repeat(2 << 20);
    let says = refused(&mut *store, Trial::new(0, vec![], &huge));
    assert_eq!(says, "schedule is longer than 1048576 bytes");
    let unknown = RunId::named("nobody");
    let error = store.insert(&unknown, &measured(0, 1.0)).unwrap_err();
    assert_eq!(error, Error::UnknownRun(unknown));
    assert_eq!(store.trials(&run, None, 10).unwrap(), []);
}

fn runs_are_listed_and_end(scratch: &Scratch) {
    let mut store = scratch.store();
    let program = program(64);
    let key = key(&program);
    let info = RunInfo { seed: u64::MAX, meta: json!({"trials": 5}), ..RunInfo::new("opevo", 0) };
    let run = store.begin_run(&key, &program, &info).unwrap();
    let end = RunEnd { ended: info.started + 5, status: "interrupted".into() };
    store.insert(&run, &measured(0, 1.0)).unwrap();
    let found = |store: &dyn Store| store.runs(&RunFilter::default()).unwrap().remove(0);
    assert_eq!(found(&*store).end, None);
    store.end_run(&run, &end).unwrap();
    let summary = found(&*store);
    assert_eq!((summary.info, summary.end, summary.trials), (info, Some(end), 1));
    let by = |filter: RunFilter| store.runs(&filter).unwrap().len();
    assert_eq!(by(RunFilter { id: Some(run.as_str()[..8].into()), ..RunFilter::default() }), 1);
    assert_eq!(by(RunFilter { id: Some("%".into()), ..RunFilter::default() }), 0);
    assert_eq!(by(RunFilter { def: Some("conv".into()), ..RunFilter::default() }), 0);
    assert_eq!(by(RunFilter { key: Some(key), ..RunFilter::default() }), 1);
}

fn similar_keys_are_found_the_most_similar_first(scratch: &Scratch) {
    let mut store = scratch.store();
    let wanted = key(&program(64));
    let near = [
        key(&program(1024)),
        key(&program(128)),
        Key { target: "Other [avx2]".into(), ..wanted.clone() },
        Key { threads: 2, ..wanted.clone() },
        Key { compiler: "0.0.9 llvm-18".into(), ..wanted.clone() },
    ];
    for (key, m) in near.iter().zip([1024, 128, 64, 64, 64]) {
        let run = begin(&mut *store, key, &program(m));
        store.insert(&run, &measured(0, 1.0)).unwrap();
    }
    // A key without results.
    begin(&mut *store, &Key { threads: 8, ..wanted.clone() }, &program(64));

    let found = store.nearest(&wanted, &program(64).sizes, 10).unwrap();
    let keys: Vec<&Key> = found.iter().map(|near| &near.key).collect();
    assert_eq!(keys, near.iter().rev().collect::<Vec<_>>());
    assert_eq!(found[0].differs, [Part::Compiler]);
    assert!(found[2].needs_only_verification());
    assert_eq!(found[3].differs, [Part::Sizes]);
    assert!(!found[3].needs_only_verification());
    assert_eq!(store.nearest(&wanted, &program(64).sizes, 2).unwrap().len(), 2);
}

fn a_miss_is_explained(scratch: &Scratch) {
    let mut store = scratch.store();
    let wanted = key(&program(64));
    let why = |store: &dyn Store, key: &Key| {
        let misses = store.why_miss(key).unwrap();
        misses
            .iter()
            .map(|miss| miss.to_string().lines().next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let says = why(&*store, &wanted);
    assert_eq!(says, ["program: this program has not been tuned, with any sizes"]);

    begin(&mut *store, &key(&program(128)), &program(128));
    let says = why(&*store, &wanted);
    assert_eq!(says, ["sizes: it has been tuned with other sizes only: M=128,N=64"]);

    let elsewhere = Key { target: "Old [avx2]".into(), threads: 4, ..wanted.clone() };
    begin(&mut *store, &elsewhere, &program(64));
    let says = why(&*store, &wanted);
    let machine = "machine: measured on `Old`, this is `A Processor`; it had no fma, which is here";
    assert_eq!(says, [machine, "threads: it has been tuned for 4 threads, not for 1"]);

    let older = Key { compiler: "0.0.9 llvm-18".into(), ..wanted.clone() };
    begin(&mut *store, &older, &program(64));
    let says = why(&*store, &wanted);
    assert_eq!(says, ["compiler: it has been tuned with 0.0.9 llvm-18, this is 0.1.0 llvm-19"]);

    let run = begin(&mut *store, &wanted, &program(64));
    store.insert(&run, &Trial::new(0, vec![], "")).unwrap();
    let says = why(&*store, &wanted);
    let none = "it has been tuned, but no trial succeeded \
                (1 device-lost; mostly device-lost: the device went away)";
    assert_eq!(says, [none]);

    store.insert(&run, &measured(1, 1.0)).unwrap();
    assert_eq!(why(&*store, &wanted), Vec::<String>::new());
}

fn collection_keeps_the_best_and_counts_the_rest(scratch: &Scratch) {
    let mut store = scratch.store();
    let mut other = scratch.store();
    let program = program(64);
    let key = key(&program);
    let run = begin(&mut *store, &key, &program);
    for number in 0..1000 {
        let trial = match number % 4 {
            0 => Trial::new(number, vec![1], "a line of a trial that fails\n"),
            _ => measured(number, 1.0 + number as f64),
        };
        other.insert(&run, &trial).unwrap();
    }
    let winner = TrialId { run: run.clone(), number: 501 };
    let best =
        Declared { trial: winner, seconds: 0.5, against: json!(null), declared: 1, replaces: None };
    store.declare_best(&key, &best).unwrap();

    let dry = store.collect(Collection { keep: 3, dry_run: true }).unwrap();
    assert_eq!((dry.removed, dry.kept, dry.keys), (996, 4, 1));
    assert_eq!(store.trials(&run, None, 2000).unwrap().len(), 1000, "a dry run removes nothing");

    let real = store.collect(Collection { keep: 3, dry_run: false }).unwrap();
    assert_eq!((real.removed, real.kept, real.texts), (dry.removed, dry.kept, dry.texts));
    // A server keeps its files and reuses the space.
    assert!(real.bytes_after < real.bytes_before || scratch.is_on_server());
    let numbers: Vec<u64> =
        store.trials(&run, None, 10).unwrap().iter().map(|trial| trial.number).collect();
    assert_eq!(numbers, [1, 2, 3, 501]);
    assert_eq!(store.best(&key).unwrap().unwrap().id.number, 501);
    let counts = store.removed().unwrap();
    assert_eq!(counts, [(key, vec![746, 0, 0, 0, 0, 0, 250])]);
    assert_eq!(store.keys().unwrap()[0].removed, 996);

    // The other connection has cached texts that are gone now.
    let again = Trial::new(2000, vec![1], "a line of a trial that fails\n");
    other.insert(&run, &again).unwrap();
    assert_eq!(store.trials(&run, Some(1999), 1).unwrap(), [again]);
    let none = store.collect(Collection { keep: 3, dry_run: false }).unwrap();
    assert_eq!((none.removed, none.kept), (1, 4));
}
