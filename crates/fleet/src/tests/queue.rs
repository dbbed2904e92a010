//! The life of items: added, leased, one outcome each.

use crate::tests::support;
use std::time::Duration;

use crate::tests::support::{CLASS, Place, completion, item, join, measured, run};
use crate::{Completion, CompletionStatus, Fleet, Item, Run, WorkerId};
use tensorwright_outcome::{Outcome, Phase};
use tensorwright_records::{Collection, Error, RunFilter, Trial};

const MINUTE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_secs(1);

fn says<T>(result: Result<T, Error>) -> String {
    result.err().unwrap().to_string()
}

/// The text of a refusal, after its place.
fn refusal<T>(result: Result<T, Error>) -> String {
    let says = says(result);
    says.rsplit_once(": ").map_or(says.clone(), |(_, words)| words.to_owned())
}

#[test]
fn an_item_becomes_a_trial_as_a_store_would_write_it() {
    let Some(place) = Place::new() else { return };
    let mut fleet = place.fleet();
    let run = run(64);
    fleet.begin_run(&run).unwrap();
    fleet.begin_run(&run).unwrap();
    let schedules = ["", "one line, no end", "a\n\nb\n", "a\r\nb", "\n", "é\n", "\n\n", "x\n"];
    let items: Vec<Item> = (0..)
        .zip(schedules)
        .map(|(number, schedule)| Item { schedule: schedule.into(), ..item(number) })
        .collect();
    assert_eq!(fleet.enqueue(&run.info.id, &items).unwrap(), 8);
    assert_eq!(fleet.enqueue(&run.info.id, &items).unwrap(), 0, "twice is once");
    let outcomes = [
        measured(0.5),
        Outcome::Illegal { rule: "unroll".into(), reason: "ü, \"quoted\",\nlines".into() },
        Outcome::BuildFailed { reason: String::new() },
        Outcome::WrongResult { reason: "C(0,0) is 1, not 2".into() },
        Outcome::Crashed { reason: "SIGSEGV".into(), stderr: "a\0b".into() },
        Outcome::TimedOut { phase: Phase::Check, limit: 2.5 },
        Outcome::DeviceLost,
        measured(0.25),
    ];
    let worker = join(&mut fleet, "w");
    let mut leased = fleet.lease(worker, 64, MINUTE).unwrap();
    leased.sort_by_key(|leased| leased.lease.number);
    let got: Vec<&str> = leased.iter().map(|leased| leased.schedule.as_str()).collect();
    assert_eq!(got, schedules);
    let completions: Vec<Completion> = leased
        .iter()
        .zip(&outcomes)
        .map(|(leased, outcome)| Completion {
            lease: leased.lease.clone(),
            outcome: outcome.clone(),
        })
        .collect();
    assert_eq!(fleet.complete(worker, &completions).unwrap(), [CompletionStatus::Stored; 8]);
    assert_eq!(fleet.complete(worker, &completions).unwrap(), [CompletionStatus::Again; 8]);

    let assignment = fleet.assignment(leased[0].lease.run).unwrap().unwrap();
    assert_eq!(
        (assignment.text, assignment.sizes),
        (run.program.text.clone(), run.program.sizes.clone())
    );
    assert_eq!((assignment.run.as_str(), assignment.class.as_str()), (run.info.id.as_str(), CLASS));

    // The store reads the same as it would have written, and accepts it again.
    let mut store = place.store();
    let trials = store.trials(&run.info.id, None, 100).unwrap();
    assert_eq!(trials.len(), 8);
    for ((trial, item), outcome) in trials.iter().zip(&items).zip(&outcomes) {
        let Item { number, origin, algorithm, point, schedule } = item.clone();
        let elapsed = trial.elapsed;
        let expected =
            Trial { number, origin, algorithm, point, schedule, outcome: outcome.clone(), elapsed };
        assert_eq!(*trial, expected);
        store.insert(&run.info.id, trial).unwrap();
    }
    assert_eq!(store.damage(), []);
    assert_eq!(store.best(&run.key).unwrap().unwrap().seconds, 0.25);
    let known = fleet.outcomes(&run.info.id, &[0, 4, 7, 99]).unwrap();
    let known: Vec<(u64, Outcome)> =
        known.into_iter().map(|one| (one.number, one.outcome)).collect();
    assert_eq!(known.len(), 3);
    assert!(known.contains(&(4, outcomes[4].clone())) && known.contains(&(7, outcomes[7].clone())));
    place.assert_settled(8);
}

/// Records keep the first text of a program; each run's schedules use the names of its own text.
#[test]
fn every_run_has_its_own_text() {
    let Some(place) = Place::new() else { return };
    let mut fleet = place.fleet();
    let worker = join(&mut fleet, "w");
    for text in [
        "def gemm(float(64) A) -> (C) { C(m) = A(m) }",
        "def other(float(64) X) -> (Y) { Y(i) = X(i) }",
    ] {
        let mut run = run(64);
        run.program.text = text.into();
        run.program.def = text[4..8].into();
        fleet.begin_run(&run).unwrap();
        fleet.enqueue(&run.info.id, &[item(0)]).unwrap();
        let leased = fleet.lease(worker, 1, MINUTE).unwrap().remove(0);
        let assignment = fleet.assignment(leased.lease.run).unwrap().unwrap();
        assert_eq!((assignment.text.as_str(), assignment.def.as_str()), (text, &text[4..8]));
    }
    let kept = place.store().program("gemm-64").unwrap().unwrap();
    assert!(kept.text.starts_with("def gemm"), "{}", kept.text);
}

#[test]
fn a_lease_that_is_over_is_fenced() {
    let Some(place) = Place::new() else { return };
    place.run_with(0..1);
    let mut fleet = place.fleet();
    let (first, second) = (join(&mut fleet, "first"), join(&mut fleet, "second"));
    let old = fleet.lease(first, 1, MOMENT).unwrap().remove(0);
    assert_eq!(fleet.lease(second, 1, MINUTE).unwrap(), [], "one item, one holder");
    std::thread::sleep(Duration::from_millis(1200));
    // It has expired but is not revoked yet: it still counts, and so does a heartbeat.
    assert_eq!(
        fleet.beat(first, std::slice::from_ref(&old.lease), MOMENT).unwrap(),
        std::slice::from_ref(&old.lease.token)
    );
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(fleet.sweep().unwrap().returned, 1);
    assert_eq!(
        fleet.beat(first, std::slice::from_ref(&old.lease), MINUTE).unwrap(),
        Vec::<String>::new()
    );
    let new = fleet.lease(second, 1, MINUTE).unwrap().remove(0);
    assert_eq!(new.attempts, 2);
    assert_ne!(new.lease.token, old.lease.token);
    assert_eq!(
        fleet.complete(first, &[completion(&old.lease, 1.0)]).unwrap(),
        [CompletionStatus::Fenced]
    );
    // No worker can complete with the lease of another.
    assert_eq!(
        fleet.complete(first, &[completion(&new.lease, 1.0)]).unwrap(),
        [CompletionStatus::Fenced]
    );
    assert_eq!(
        fleet.complete(second, &[completion(&new.lease, 2.0)]).unwrap(),
        [CompletionStatus::Stored]
    );
    assert_eq!(
        fleet.complete(first, &[completion(&old.lease, 1.0)]).unwrap(),
        [CompletionStatus::Fenced]
    );
    assert_eq!(
        fleet.complete(second, &[completion(&new.lease, 2.0)]).unwrap(),
        [CompletionStatus::Again]
    );
    place.assert_settled(1);
}

#[test]
fn an_item_that_loses_three_workers_is_given_up() {
    let Some(place) = Place::new() else { return };
    let run = place.run_with(0..1);
    let mut fleet = place.fleet();
    for attempt in 1..=3 {
        let worker = join(&mut fleet, &format!("w{attempt}"));
        assert_eq!(fleet.lease(worker, 1, MOMENT).unwrap()[0].attempts, attempt);
        std::thread::sleep(Duration::from_millis(1200));
        let swept = fleet.sweep().unwrap();
        assert_eq!((swept.returned, swept.given_up), if attempt < 3 { (1, 0) } else { (0, 1) });
    }
    let known = fleet.outcomes(&run.info.id, &[0]).unwrap().remove(0);
    assert_eq!((known.outcome, known.worker, known.attempts), (Outcome::DeviceLost, None, 3));
    place.assert_settled(1);
}

/// The runs of the items that a worker leases, one at a time, in order.
fn order(fleet: &mut Fleet, worker: WorkerId, most: usize) -> Vec<i64> {
    let mut runs = Vec::new();
    while runs.len() < most {
        let Some(leased) = fleet.lease(worker, 1, MINUTE).unwrap().pop() else { break };
        fleet.complete(worker, &[completion(&leased.lease, 1.0)]).unwrap();
        runs.push(leased.lease.run);
    }
    runs
}

#[test]
fn runs_share_by_weight_and_the_urgent_come_first() {
    let Some(place) = Place::new() else { return };
    let mut fleet = place.fleet();
    let begin = |fleet: &mut Fleet, change: &dyn Fn(&mut Run)| {
        let mut run = run(64);
        change(&mut run);
        fleet.begin_run(&run).unwrap();
        let items: Vec<Item> = (0..60).map(item).collect();
        fleet.enqueue(&run.info.id, &items).unwrap();
    };
    let worker = join(&mut fleet, "w");
    begin(&mut fleet, &|_| ());
    assert_eq!(order(&mut fleet, worker, 20).len(), 20);
    fleet.sweep().unwrap();
    // A later run gets its share at once, here twice as much as the other.
    begin(&mut fleet, &|run| run.weight = 20);
    let runs = order(&mut fleet, worker, 30);
    let later = runs.iter().filter(|run| **run == *runs.iter().max().unwrap()).count();
    assert!((18..=22).contains(&later), "{later} of {runs:?}");
    begin(&mut fleet, &|run| run.priority = 0);
    let runs = order(&mut fleet, worker, 60);
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
}

#[test]
fn a_cancelled_run_is_over() {
    let Some(place) = Place::new() else { return };
    let run = place.run_with(0..10);
    let mut fleet = place.fleet();
    let worker = join(&mut fleet, "w");
    let leased = fleet.lease(worker, 3, MOMENT).unwrap();
    fleet.cancel(&run.info.id).unwrap();
    assert_eq!(fleet.lease(worker, 10, MINUTE).unwrap(), []);
    assert_eq!(refusal(fleet.enqueue(&run.info.id, &[item(99)])), "the run is over");
    // Leased items may be completed; lost ones are not tried again.
    assert_eq!(
        fleet.complete(worker, &[completion(&leased[0].lease, 1.0)]).unwrap(),
        [CompletionStatus::Stored]
    );
    std::thread::sleep(Duration::from_millis(1200));
    let swept = fleet.sweep().unwrap();
    assert_eq!((swept.returned, swept.given_up), (0, 0));
    assert_eq!(fleet.status().unwrap()[0].done, 1);
    assert_eq!((fleet.status().unwrap()[0].ready, fleet.status().unwrap()[0].leased), (0, 0));
    assert_eq!(place.count("SELECT count(*) FROM fleet_runs WHERE closed"), 1);
}

#[test]
fn workers_that_disagree_with_their_class_are_set_aside() {
    let Some(place) = Place::new() else { return };
    place.run_with(0..100);
    let mut fleet = place.fleet();
    for (name, probe) in [("a", 1.0), ("b", 1.05), ("c", 0.95)] {
        let worker = join(&mut fleet, name);
        assert_eq!(fleet.report_probe(worker, probe).unwrap(), None);
    }
    let slow = join(&mut fleet, "slow");
    let leased = fleet.lease(slow, 5, MINUTE).unwrap();
    let reason = "its probe says 0.400, those of its class 1.000";
    // A busy machine may differ once or twice.
    for probe in [0.4, 0.4, 0.9, 0.4, 0.4] {
        assert_eq!(fleet.report_probe(slow, probe).unwrap(), None);
    }
    assert_eq!(fleet.report_probe(slow, 0.4).unwrap().as_deref(), Some(reason));
    // Its items wait for other workers, and its results are rejected.
    assert_eq!(
        fleet.complete(slow, &[completion(&leased[0].lease, 1.0)]).unwrap(),
        [CompletionStatus::Fenced]
    );
    let says = says(fleet.lease(slow, 1, MINUTE));
    assert!(says.ends_with(&format!("the worker is quarantined: {reason}")), "{says}");
    assert_eq!(join(&mut fleet, "slow"), slow, "who joins again is the same");
    assert!(fleet.lease(slow, 1, MINUTE).is_err());
    let a = join(&mut fleet, "a");
    let got = fleet.lease(a, 5, MINUTE).unwrap();
    assert!(got.iter().all(|leased| leased.attempts == 1), "no fault of the items");
    assert_eq!(fleet.quarantine("slow", None).unwrap(), 1);
    assert_eq!(fleet.lease(slow, 1, MINUTE).unwrap().len(), 1);
    assert!(!fleet.is_drained(slow).unwrap());
    assert_eq!(fleet.drain("slow").unwrap(), 1);
    assert!(fleet.is_drained(slow).unwrap());
    assert_eq!(fleet.lease(slow, 1, MINUTE).unwrap(), []);
}

#[test]
fn a_worker_whose_results_are_wrong_is_set_aside() {
    let Some(place) = Place::new() else { return };
    place.run_with(0..200);
    let mut fleet = place.fleet();
    let (good, bad) = (join(&mut fleet, "good"), join(&mut fleet, "bad"));
    let work =
        |fleet: &mut Fleet, worker: WorkerId, wrong: &dyn Fn(usize) -> bool| -> Result<(), Error> {
            let leased = fleet.lease(worker, 30, MINUTE)?;
            for (place, one) in leased.iter().enumerate() {
                let outcome = match wrong(place) {
                    true => Outcome::WrongResult { reason: "C(0) is 1, not 2".into() },
                    false => measured(1.0),
                };
                fleet.complete(worker, &[Completion { lease: one.lease.clone(), outcome }])?;
            }
            Ok(())
        };
    // Without enough results of others, the cause is unknown.
    work(&mut fleet, bad, &|place| place % 2 == 0).unwrap();
    work(&mut fleet, good, &|place| place == 7).unwrap();
    work(&mut fleet, good, &|_| false).unwrap();
    let leased = fleet.lease(bad, 2, MINUTE).unwrap();
    let last: Vec<Completion> = vec![completion(&leased[0].lease, 1.0)];
    assert_eq!(fleet.complete(bad, &last).unwrap(), [CompletionStatus::Stored]);
    assert_eq!(
        fleet.complete(bad, &[completion(&leased[1].lease, 1.0)]).unwrap(),
        [CompletionStatus::Fenced]
    );
    let says = says(fleet.lease(bad, 1, MINUTE));
    let reason = "15 of its 31 results are wrong or crash, of others 1 of 60";
    assert!(says.ends_with(reason), "{says}");
    work(&mut fleet, good, &|_| true).unwrap();
    assert!(fleet.lease(good, 1, MINUTE).is_ok(), "there is nobody to compare it with");
    assert_eq!(fleet.quarantine("bad", None).unwrap(), 1);
    assert!(fleet.lease(bad, 1, MINUTE).is_ok());
}

#[test]
fn nobody_asks_for_more_than_the_quota() {
    let Some(place) = Place::new() else { return };
    let mut fleet = place.fleet();
    place
        .client()
        .batch("UPDATE quotas SET runs = 2, items = 50, waiting = 20, leases = 4", support::LIMIT)
        .unwrap();
    let run = place.run_with(0..20);
    assert_eq!(
        refusal(fleet.enqueue(&run.info.id, &[item(20)])),
        "the quota of the run is used up"
    );
    let worker = join(&mut fleet, "w");
    let leased = fleet.lease(worker, 64, MINUTE).unwrap();
    assert_eq!(leased.len(), 4);
    assert_eq!(fleet.lease(worker, 64, MINUTE).unwrap(), []);
    let done: Vec<Completion> = leased.iter().map(|one| completion(&one.lease, 1.0)).collect();
    fleet.complete(worker, &done).unwrap();
    assert_eq!(fleet.enqueue(&run.info.id, &[item(20)]).unwrap(), 1);
    let more: Vec<Item> = (21..60).map(item).collect();
    assert_eq!(refusal(fleet.enqueue(&run.info.id, &more)), "the quota of the run is used up");
    place.run_with(0..1);
    assert_eq!(refusal(fleet.begin_run(&support::run(65))), "the quota is used up");
}

/// Removing records keeps the texts of waiting items.
#[test]
fn items_keep_their_texts() {
    let Some(place) = Place::new() else { return };
    let run = place.run_with(0..30);
    let mut fleet = place.fleet();
    let worker = join(&mut fleet, "w");
    for round in 0..3 {
        let leased = fleet.lease(worker, 10, MINUTE).unwrap();
        place.store().collect(Collection { keep: 1, dry_run: false }).unwrap();
        for one in leased {
            assert_eq!(one.schedule, item(one.lease.number).schedule);
            let seconds = 1.0 + one.lease.number as f64;
            assert_eq!(
                fleet.complete(worker, &[completion(&one.lease, seconds)]).unwrap(),
                [CompletionStatus::Stored]
            );
        }
        place.store().collect(Collection { keep: 1, dry_run: false }).unwrap();
        let best = place.store().best(&run.key).unwrap().unwrap();
        assert_eq!(best.trial.schedule, item(best.id.number).schedule, "{round}");
    }
    assert_eq!(place.store().runs(&RunFilter::default()).unwrap()[0].trials, 1);
}

/// Only the server's clock counts.
#[test]
fn clocks_of_clients_do_not_count() {
    let Some(place) = Place::new() else { return };
    let mut fleet = place.fleet();
    for started in [0, i64::MAX] {
        let mut run = run(64);
        run.info.started = started;
        fleet.begin_run(&run).unwrap();
        let id = Some(run.info.id.as_str().to_owned());
        let stored =
            place.store().runs(&RunFilter { id, ..RunFilter::default() }).unwrap().remove(0);
        assert!((stored.info.started - tensorwright_records::now()).abs() < 60_000);
    }
}
