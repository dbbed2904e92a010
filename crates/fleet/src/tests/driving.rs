//! Tests of drivers, finals, normalised times and status.

use std::time::Duration;

use crate::tests::support::{CLASS, LIMIT, Place, completion, item, join, measured, run};
use crate::{
    Completion, CompletionStatus, Declaration, DriverStatus, Fleet, Item, PastItem, finals_of,
    finals_text,
};
use tensorwright_outcome::Outcome;
use tensorwright_records::{Error, Origin, TrialId};

const MINUTE: Duration = Duration::from_secs(60);

fn refusal<T>(result: Result<T, Error>) -> String {
    let says = result.err().unwrap().to_string();
    says.rsplit_once(": ").map_or(says.clone(), |(_, words)| words.to_owned())
}

#[test]
fn a_run_has_one_driver() {
    let Some(place) = Place::new() else { return };
    let mut fleet = place.fleet();
    let run = run(64);
    fleet.begin_run(&run).unwrap();
    assert_eq!(fleet.unfinished(&run.key, &run.info).unwrap(), None, "nobody has left it");
    let first = fleet.drive(&run.info.id, MINUTE, false).unwrap();
    assert_eq!(fleet.add(&first, &[item(0), item(1)]).unwrap(), 2);
    assert_eq!(
        refusal(fleet.drive(&run.info.id, MINUTE, false)),
        "another process goes on with the run"
    );
    assert_eq!(
        refusal(fleet.enqueue(&run.info.id, &[item(2)])),
        "the run was taken over by another process"
    );
    let second = fleet.drive(&run.info.id, MINUTE, true).unwrap();
    for refused in [
        refusal(fleet.add(&first, &[item(2)])),
        refusal(fleet.hold(&first, MINUTE, None)),
        refusal(fleet.finish(&first, "finished")),
    ] {
        assert_eq!(refused, "the run was taken over by another process");
    }
    // The first driver's items are there, with their outcomes.
    let worker = join(&mut fleet, "w");
    let leased = fleet.lease(worker, 1, MINUTE).unwrap().remove(0);
    assert_eq!(leased.best, None);
    fleet.complete(worker, &[completion(&leased.lease, 0.5)]).unwrap();
    let history = fleet.history(&run.info.id).unwrap();
    let items: Vec<&Item> = history.iter().map(|past| &past.item).collect();
    assert_eq!(items, [&item(0), &item(1)]);
    let known: Vec<Option<Outcome>> =
        history.iter().map(|past| past.outcome.as_ref().map(|one| one.outcome.clone())).collect();
    assert_eq!(known, [Some(measured(0.5)), None]);
    let held = fleet.hold(&second, MINUTE, Some(0.5)).unwrap();
    assert_eq!(held, DriverStatus { workers: 1, ..DriverStatus::default() });
    assert_eq!(fleet.lease(worker, 1, MINUTE).unwrap()[0].best, Some(0.5), "workers are told");
    // An interrupted run can be resumed; a finished one is over.
    fleet.finish(&second, "interrupted").unwrap();
    assert_eq!(fleet.unfinished(&run.key, &run.info).unwrap(), Some(run.info.id.clone()));
    let third = fleet.drive(&run.info.id, MINUTE, false).unwrap();
    fleet.finish(&third, "finished").unwrap();
    assert_eq!(fleet.unfinished(&run.key, &run.info).unwrap(), None);
    assert_eq!(refusal(fleet.drive(&run.info.id, MINUTE, true)), "the run is over");
    assert_eq!(refusal(fleet.add(&third, &[item(2)])), "the run is over");
    assert!(fleet.history(&tensorwright_records::RunId::named("other")).unwrap().is_empty());
}

#[test]
fn finals_are_no_trials_and_come_first() {
    let Some(place) = Place::new() else { return };
    let mut fleet = place.fleet();
    let run = run(64);
    fleet.begin_run(&run).unwrap();
    let driver = fleet.drive(&run.info.id, MINUTE, false).unwrap();
    fleet.add(&driver, &[item(0)]).unwrap();
    let schedule = finals_text(Duration::from_secs(1), &["".to_owned(), "x\n".to_owned()]);
    let finals = Item { origin: Origin::from("finals"), schedule, ..item(1) };
    fleet.add_finals(&driver, &finals).unwrap();
    assert_eq!(fleet.final_result(&run.info.id, 1).unwrap(), None, "not yet");
    let worker = join(&mut fleet, "w");
    let leased = fleet.lease(worker, 1, MINUTE).unwrap().remove(0);
    assert!(leased.is_finals);
    assert_eq!(finals_of(&leased.schedule).unwrap().1, ["", "x\n"]);
    // Completing it as a trial is fenced.
    let wrong = fleet.complete(worker, &[completion(&leased.lease, 1.0)]).unwrap();
    assert_eq!(wrong, [CompletionStatus::Fenced]);
    let timed = vec![(measured(0.5), vec![0.5, 0.6]), (measured(0.4), vec![0.4, 0.5])];
    let complete =
        |fleet: &mut Fleet| fleet.complete_finals(worker, &leased.lease, &timed).unwrap();
    assert_eq!(complete(&mut fleet), CompletionStatus::Stored);
    assert_eq!(complete(&mut fleet), CompletionStatus::Again);
    assert_eq!(fleet.final_result(&run.info.id, 1).unwrap(), Some(Some(timed)));
    // A trial cannot be completed as finals.
    let leased = fleet.lease(worker, 1, MINUTE).unwrap().remove(0);
    assert_eq!(
        fleet.complete_finals(worker, &leased.lease, &[]).unwrap(),
        CompletionStatus::Fenced
    );
    fleet.complete(worker, &[completion(&leased.lease, 0.4)]).unwrap();
    assert_eq!(place.count("SELECT count(*) FROM trials"), 1);
    let finals = |past: &PastItem| past.is_finals;
    assert_eq!(
        fleet.history(&run.info.id).unwrap().iter().map(finals).collect::<Vec<_>>(),
        [false, true]
    );

    // The declared winner is replaced only by one that was measured with it.
    let best = |number, replaces| Declaration {
        number,
        seconds: 0.4,
        against: serde_json::json!({ "finalists": [0.4] }),
        replaces,
    };
    assert_eq!(fleet.declared(&run.info.id).unwrap(), None);
    assert_eq!(
        refusal(fleet.declare(&driver, &best(1, None))),
        "there is no such trial of the run that was measured"
    );
    fleet.declare(&driver, &best(0, None)).unwrap();
    fleet.declare(&driver, &best(0, None)).unwrap();
    let declared = fleet.declared(&run.info.id).unwrap().unwrap();
    let trial = TrialId { run: run.info.id.clone(), number: 0 };
    assert_eq!((&declared.trial, &declared.item), (&trial, &item(0)));
    fleet.add(&driver, &[item(2)]).unwrap();
    let leased = fleet.lease(worker, 1, MINUTE).unwrap().remove(0);
    fleet.complete(worker, &[completion(&leased.lease, 0.3)]).unwrap();
    assert_eq!(fleet.declare(&driver, &best(2, None)), Err(Error::Outrun(trial.clone())));
    fleet.declare(&driver, &best(2, Some(trial))).unwrap();
    let store = place.store();
    assert_eq!(store.best(&run.key).unwrap().unwrap().id.number, 2);
    assert_eq!(store.damage(), []);
}

/// Times of a slower machine are normalised to the first machine that tried the program; raw times
/// are kept.
#[test]
fn times_are_told_for_one_machine() {
    let Some(place) = Place::new() else { return };
    let first = place.run_with(0..4);
    let mut fleet = place.fleet();
    let mut tell = |name: &str, roof: f64| {
        let worker = join(&mut fleet, name);
        let leased = fleet.lease(worker, 1, MINUTE).unwrap().remove(0);
        fleet.report_roof(worker, leased.lease.run, roof, (100.0, 10.0)).unwrap();
        fleet.complete(worker, &[completion(&leased.lease, 1.0)]).unwrap();
        let known = fleet.outcomes(&first.info.id, &[leased.lease.number]).unwrap().remove(0);
        let timing = *known.outcome.timing().unwrap();
        assert!((timing.raw_seconds - 1.1).abs() < 1e-9);
        timing.seconds
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    close(tell("first", 0.10), 1.0);
    close(tell("slower", 0.125), 0.8);
    close(tell("faster", 0.08), 1.25);
    // No worker of a class may differ by this much, so its probe is not believed.
    close(tell("odd", 10.0), 0.7);
    // A later run of the same program is normalised to the same machine.
    let second = run(64);
    fleet.begin_run(&second).unwrap();
    fleet.enqueue(&second.info.id, &[item(0)]).unwrap();
    let worker = join(&mut fleet, "slower");
    let leased = fleet.lease(worker, 1, MINUTE).unwrap().remove(0);
    fleet.report_roof(worker, leased.lease.run, 0.125, (100.0, 10.0)).unwrap();
    fleet.complete(worker, &[completion(&leased.lease, 1.0)]).unwrap();
    let known = fleet.outcomes(&second.info.id, &[0]).unwrap().remove(0);
    close(known.outcome.timing().unwrap().seconds, 0.8);
}

/// A worker stays with a run it has prepared, but not forever.
#[test]
fn workers_stay_with_a_run_for_a_while() {
    let Some(place) = Place::new() else { return };
    let mut fleet = place.fleet();
    let worker = join(&mut fleet, "w");
    let runs = [run(64), run(65)];
    for run in &runs {
        fleet.begin_run(run).unwrap();
        fleet.enqueue(&run.info.id, &(0..200).map(item).collect::<Vec<_>>()).unwrap();
    }
    let mut take = |preferred: Option<i64>| {
        let leased = fleet.lease_of(worker, 8, MINUTE, preferred).unwrap();
        let run = leased[0].lease.run;
        assert!(leased.iter().all(|one| one.lease.run == run), "one run at a time");
        let done: Vec<Completion> = leased.iter().map(|one| completion(&one.lease, 1.0)).collect();
        fleet.complete(worker, &done).unwrap();
        (run, leased.len())
    };
    let (first, count) = take(None);
    assert_eq!(count, 8);
    let mut stayed = 8;
    loop {
        let (run, count) = take(Some(first));
        if run != first {
            break;
        }
        stayed += count;
    }
    assert!((64..=80).contains(&stayed), "{stayed}");
}

#[test]
fn what_is_going_on_is_counted_and_seen() {
    let Some(place) = Place::new() else { return };
    let run = place.run_with(0..5);
    let mut fleet = place.fleet();
    let worker_id = join(&mut fleet, "w");
    let leased = fleet.lease(worker_id, 4, MINUTE).unwrap();
    let done: Vec<Completion> = leased
        .iter()
        .take(3)
        .map(|one| match one.lease.number {
            2 => Completion {
                lease: one.lease.clone(),
                outcome: Outcome::BuildFailed { reason: "x".into() },
            },
            number => completion(&one.lease, 1.0 / (number + 1) as f64),
        })
        .collect();
    fleet.complete(worker_id, &done).unwrap();
    fleet.complete(worker_id, &done).unwrap();
    let status = fleet.status().unwrap().remove(0);
    assert_eq!((status.ready, status.leased, status.done, status.runs), (1, 1, 3, 1));
    assert_eq!(status.kinds, [2, 0, 1, 0, 0, 0, 0], "twice is once");
    let worker = fleet.workers().unwrap().remove(0);
    assert_eq!((worker.name.as_str(), worker.state.as_str(), worker.held), ("w", "busy", 1));
    assert_eq!(worker.kinds, status.kinds);
    let seen = fleet.runs(10).unwrap().remove(0);
    assert_eq!(
        (seen.run.as_str(), seen.done(), seen.status.as_str()),
        (run.info.id.as_str(), 3, "running")
    );
    let curve: Vec<f64> =
        fleet.curve(&seen.run).unwrap().into_iter().map(|(_, seconds)| seconds).collect();
    assert_eq!(curve, [1.0, 0.5]);
    fleet.sweep().unwrap();
    fleet.sweep().unwrap();
    let samples = fleet.samples(60.0).unwrap();
    assert_eq!(samples.len(), 1, "at most every ten seconds");
    assert_eq!(
        (samples[0].done, samples[0].ready, samples[0].leased, samples[0].workers),
        (3, 1, 1, 1)
    );
    fleet.cancel(&run.info.id).unwrap();
    let seen = fleet.runs(10).unwrap().remove(0);
    assert_eq!((seen.done(), seen.dropped, seen.status.as_str()), (3, 1, "cancelled"));
    // The queue's data of an ended run can be removed; its trials stay.
    assert_eq!(fleet.forget(Duration::ZERO).unwrap(), 0, "somebody still holds an item of it");
    fleet.complete(worker_id, &[completion(&leased[3].lease, 1.0)]).unwrap();
    fleet.sweep().unwrap();
    assert_eq!(fleet.forget(Duration::from_secs(3600)).unwrap(), 0, "too young");
    assert_eq!(fleet.forget(Duration::ZERO).unwrap(), 5);
    assert_eq!(place.count("SELECT count(*) FROM trials"), 4);
    assert_eq!(place.count("SELECT count(*) FROM items"), 0);
    // A worker that changes class leaves its counts with the old class.
    fleet.add_class("other").unwrap();
    fleet.permit("postgres", "other").unwrap();
    fleet.join("w", "other", "a test").unwrap();
    let status = fleet.status().unwrap();
    let done: Vec<(&str, u64)> = status.iter().map(|one| (one.class.as_str(), one.done)).collect();
    assert_eq!(done, [(CLASS, 4), ("other", 0)]);
}

/// A queue of the first version is upgraded and keeps working.
#[test]
fn a_queue_of_version_1_is_brought_up_to_date() {
    let Some(place) = Place::new() else { return };
    let run = place.run_with(0..3);
    let mut fleet = place.fleet();
    let worker = join(&mut fleet, "w");
    let leased = fleet.lease(worker, 1, MINUTE).unwrap().remove(0);
    fleet.complete(worker, &[completion(&leased.lease, 1.0)]).unwrap();
    let older = "DROP TABLE finals, benches, samples; ALTER TABLE items DROP COLUMN finals;
        ALTER TABLE classes DROP COLUMN kinds; ALTER TABLE workers DROP COLUMN kinds, DROP COLUMN odd;
        ALTER TABLE fleet_runs DROP COLUMN dropped, DROP COLUMN driver, DROP COLUMN held, DROP COLUMN best, DROP COLUMN roof,
          DROP COLUMN gflops, DROP COLUMN gbps;
        DROP INDEX ready_run; CREATE INDEX ready_run ON ready (run_id);
        UPDATE meta SET value = '1' WHERE name = 'fleet-schema'";
    place.client().batch(older, LIMIT).unwrap();
    let mut fleet = Fleet::install(&place.url()).unwrap();
    assert_eq!(fleet.status().unwrap()[0].done, 1, "what was done is counted");
    let leased = fleet.lease(worker, 8, MINUTE).unwrap();
    let done: Vec<Completion> = leased.iter().map(|one| completion(&one.lease, 1.0)).collect();
    assert_eq!(fleet.complete(worker, &done).unwrap(), [CompletionStatus::Stored; 2]);
    place.assert_settled(3);
    assert_eq!(fleet.status().unwrap()[0].done, 3);
    assert_eq!(fleet.history(&run.info.id).unwrap().len(), 3);
}
