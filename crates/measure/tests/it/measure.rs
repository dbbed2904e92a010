//! Harmless candidates: measured, illegal, wrong; one and two threads; all types.

use crate::common;
use std::time::{Duration, Instant};

use crate::common::{Processes, assert_well, config, good, matmul, next, program, schedule};
use tensorwright::{DType, Schedule};
use tensorwright_measure::{Config, Finalist, MeasureError, Measurer, TimingPlan, WorkerCommand};
use tensorwright_outcome::Outcome;

#[test]
fn a_right_schedule_is_measured() {
    let mut measurer = Measurer::start(&matmul(64), config()).unwrap();
    measurer.submit(7, &good());
    assert_eq!(measurer.in_flight(), 1);
    let finished = next(&mut measurer);
    assert_eq!(finished.id, 7);
    let Outcome::Measured(timing) = finished.outcome else { panic!("{}", finished.outcome) };
    assert!(timing.seconds > 0.0 && timing.seconds <= timing.raw_seconds, "{timing:?}");
    assert!(timing.runs >= 3 && !timing.cut, "{timing:?}");
    assert!(timing.roofline.is_some_and(|share| share > 0.0), "{timing:?}");
    assert!(finished.spent.build > Duration::ZERO && finished.spent.time > Duration::ZERO);
    assert_eq!(measurer.in_flight(), 0);
    assert!(measurer.next(Duration::from_secs(100)).is_none(), "does not wait for nothing");
    let roofline = measurer.roofline();
    assert!(roofline.seconds > 0.0 && roofline.peak_gflops > 0.0 && roofline.peak_gbps > 0.0);
    assert_eq!(roofline.flops, 2.0 * 64.0 * 64.0 * 64.0);
}

#[test]
fn schedules_that_are_refused_say_by_what() {
    let mut measurer = Measurer::start(&matmul(64), config()).unwrap();
    let cases = [
        ("C: split q 4", "split"),
        ("C: unroll m\nC: unroll n\nC: unroll k", "unroll"),
        ("D: unroll m", "unroll"),
    ];
    for (number, (text, _)) in cases.iter().enumerate() {
        measurer.submit(number as u64, &schedule(text));
    }
    for _ in cases {
        let finished = next(&mut measurer);
        let Outcome::Illegal { rule, reason } = finished.outcome else {
            panic!("{}", finished.outcome)
        };
        assert_eq!(rule, cases[finished.id as usize].1, "{reason}");
        assert!(!reason.is_empty());
    }
    assert_well(&mut measurer);
}

#[test]
fn many_candidates_come_back_each_once() {
    let mut config = config();
    config.builders = 2;
    let mut measurer = Measurer::start(&matmul(32), config).unwrap();
    for id in 0..20 {
        let text = format!("C: split m {}\nC: split n {}", 1 + id % 5, 2 + id % 7);
        measurer.submit(id, &schedule(&text));
    }
    let mut ids: Vec<u64> = (0..20).map(|_| next(&mut measurer).id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
    let processes = Processes::of(&measurer);
    drop(measurer);
    processes.assert_gone();
}

#[test]
fn whoever_has_answered_is_not_late_although_nobody_listened() {
    let mut config = config();
    config.run_deadline = Duration::from_secs(2);
    let mut measurer = Measurer::start(&matmul(16), config).unwrap();
    measurer.submit(1, &good());
    // Wait until it runs; then think for longer than a run may take.
    let _ = measurer.next(Duration::from_millis(1500));
    measurer.submit(2, &schedule("C: split m 4"));
    let _ = measurer.next(Duration::from_millis(50));
    std::thread::sleep(Duration::from_millis(2500));
    while measurer.in_flight() > 0 {
        let finished = next(&mut measurer);
        assert!(matches!(finished.outcome, Outcome::Measured(_)), "{}", finished.outcome);
    }
}

#[test]
fn two_threads() {
    let mut config = config();
    config.threads = 2;
    let mut measurer = Measurer::start(&matmul(64), config).unwrap();
    measurer.submit(1, &schedule("C: split m 8\nC: parallel m.0"));
    let finished = next(&mut measurer);
    assert!(matches!(finished.outcome, Outcome::Measured(_)), "{}", finished.outcome);
    assert_well(&mut measurer);
}

#[test]
fn every_type_and_prepared_layouts() {
    for dtype in DType::ALL {
        let text = format!("def f({dtype}(N) A, {dtype}(N) B) -> (C) {{ C(i) = max(A(i), B(i)) }}");
        let text = match dtype {
            DType::Bool => text.replace("max(A(i), B(i))", "A(i) && B(i)"),
            _ => text,
        };
        let program = program(&text, "f", &[("N", 1500)]);
        let mut measurer = Measurer::start(&program, config()).unwrap();
        measurer.submit(1, &schedule("C: split i 32"));
        let finished = next(&mut measurer);
        assert!(matches!(finished.outcome, Outcome::Measured(_)), "{dtype}: {}", finished.outcome);
    }
    let text = "def fc(float(M,K) A, const float(N,K) W, float s) -> (C) {\n\
                C(m,n) +=! s * A(m,k) * W(n,k) }";
    let program = program(text, "fc", &[("M", 20), ("N", 33), ("K", 17)]);
    let mut measurer = Measurer::start(&program, config()).unwrap();
    measurer.submit(
        1,
        &schedule("W: layout [d0/16, d1, d0%16]\nC: split n 16\nC: reorder m n.0 k n.1"),
    );
    let finished = next(&mut measurer);
    assert!(matches!(finished.outcome, Outcome::Measured(_)), "{}", finished.outcome);
}

#[test]
fn large_programs_are_checked_against_the_default_schedule() {
    // 2.7e7 iterations: more than the interpreter computes in full.
    let mut measurer = Measurer::start(&matmul(300), config()).unwrap();
    assert_well(&mut measurer);
    let wrong = common::object(&matmul(300), "", "((float *)buffers[2])[0] = 1;");
    measurer.submit_object(1, &Schedule::default(), wrong);
    assert_eq!(next(&mut measurer).outcome.kind(), "wrong-result");
}

#[test]
fn slow_candidates_are_cut_short() {
    let mut measurer = Measurer::start(&matmul(128), config()).unwrap();
    measurer.set_best(1e-7);
    measurer.submit(1, &good());
    let finished = next(&mut measurer);
    let Outcome::Measured(timing) = finished.outcome else { panic!("{}", finished.outcome) };
    assert!(timing.cut && timing.raw_seconds > 3e-7, "{timing:?}");
}

#[test]
fn finalists_are_compared_in_turns() {
    let mut measurer = Measurer::start(&matmul(128), config()).unwrap();
    measurer.submit(5, &good());
    let schedules = [good(), schedule("C: split q 4"), Schedule::default()];
    let finalists = measurer.finalists(&schedules, Duration::from_millis(200));
    assert_eq!(finalists[1].outcome.kind(), "illegal");
    let cost = |place: usize| finalists[place].outcome.cost().expect("a time");
    assert!(cost(0) < cost(2), "{finalists:?}");
    let rounds: Vec<usize> = finalists.iter().map(|finalist| finalist.rounds.len()).collect();
    assert!(rounds[0] >= 8 && rounds[1] == 0 && rounds[2] == rounds[0], "{rounds:?}");
    assert_eq!(next(&mut measurer).id, 5, "what was submitted before is not lost");
    assert!(measurer.finalists(&[], Duration::ZERO).is_empty());
}

#[test]
fn finals_end_when_their_time_is_over() {
    let mut measurer = Measurer::start(&matmul(128), config()).unwrap();
    let schedules = [good(), Schedule::default()];
    let late = measurer.finalists_by(&schedules, Duration::from_secs(9), Instant::now());
    let kinds: Vec<(&str, usize)> =
        late.iter().map(|finalist| (finalist.outcome.kind(), finalist.rounds.len())).collect();
    assert_eq!(kinds, [("timed-out", 0), ("timed-out", 0)]);
    // Candidates that were not waited for do not block later ones.
    let finalists = measurer.finalists(&schedules, Duration::from_millis(50));
    assert!(finalists.iter().all(|finalist| finalist.outcome.cost().is_some()), "{finalists:?}");
    // The budget of the rounds is far beyond the deadline.
    let until = Instant::now() + Duration::from_secs(6);
    let finalists = measurer.finalists_by(&schedules, Duration::from_secs(3600), until);
    assert!(Instant::now() < until + Duration::from_secs(30));
    let timed =
        |finalist: &Finalist| finalist.rounds.len() > 2 || finalist.outcome.kind() == "timed-out";
    assert!(finalists.iter().all(timed), "{finalists:?}");
}

#[test]
fn finalists_that_become_wrong_while_they_are_timed_are_found() {
    let program = matmul(32);
    let mut measurer = Measurer::start(&program, config()).unwrap();
    let product = "const float *A = buffers[0], *B = buffers[1]; float *C = buffers[2];
        for (int m = 0; m < 32; m++) for (int n = 0; n < 32; n++) {
            float sum = 0;
            for (int k = 0; k < 32; k++) sum += A[m * 32 + k] * B[k * 32 + n];
            C[m * 32 + n] = sum;
        }";
    // Right for the first ten calls.
    let late = format!("{product}\nif (++calls > 10) C[5] += 1;");
    let late = common::object(&program, "static int calls;", &late);
    let right = common::object(&program, "", product);
    let candidates = [(Schedule::default(), late), (good(), right)];
    let finalists = measurer.finalist_objects(&candidates, Duration::from_millis(100));
    assert_eq!(finalists[0].outcome.kind(), "wrong-result", "{:?}", finalists[0].outcome);
    assert!(finalists[0].rounds.is_empty());
    assert_eq!(finalists[1].outcome.kind(), "measured", "{:?}", finalists[1].outcome);
}

#[test]
fn caches_can_be_emptied_before_samples() {
    let mut config = config();
    config.timing = TimingPlan { flush_caches: true, ..TimingPlan::default() };
    let mut measurer = Measurer::start(&matmul(16), config).unwrap();
    assert_well(&mut measurer);
}

#[test]
fn cancelled_candidates_do_not_come_back() {
    let mut measurer = Measurer::start(&matmul(16), config()).unwrap();
    for id in 0..50 {
        measurer.submit(id, &good());
    }
    measurer.cancel();
    let mut count = 0;
    while measurer.next(common::LONG).is_some() {
        count += 1;
    }
    assert!(count < 50, "{count}");
    assert_well(&mut measurer);
}

#[test]
fn what_cannot_start_is_an_error() {
    let config = |worker| Config::new(worker, tensorwright::Target::native().unwrap());
    let missing = Measurer::start(&matmul(4), config(WorkerCommand::new("/nonexistent/worker")));
    assert!(matches!(missing, Err(MeasureError::Spawn { .. })), "{missing:?}");
    let other = Measurer::start(&matmul(4), config(WorkerCommand::new("true")));
    let text = other.unwrap_err().to_string();
    assert!(text.contains("exit code 0"), "{text}");
}
