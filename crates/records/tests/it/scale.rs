//! Many records; `examples/ten_million.rs` does the same with more.

use crate::support;
use crate::support::{Scratch, synthetic};

support::on_every_database! { fifty_thousand_records_are_small_and_found_by_index }

fn fifty_thousand_records_are_small_and_found_by_index(scratch: &Scratch) {
    let mut store = scratch.store();
    let runs = 50_000 / synthetic::TRIALS;
    for run in 0..runs {
        store.apply(&synthetic::run(run)).unwrap();
    }
    if scratch.is_on_server() {
        scratch.execute("ANALYZE trials");
    }
    let plan = store.plan_of_best().unwrap();
    if scratch.is_on_server() {
        assert!(plan.contains("Index Scan using trials_best on trials"), "{plan}");
    } else {
        assert_eq!(plan, "SEARCH trials USING INDEX trials_best (key_id=?)");
    }

    let per_record = store.bytes().unwrap() as f64 / 50_000.0;
    // PostgreSQL adds 24 bytes to each row, and 16 to each index entry.
    let most = if scratch.is_on_server() { 600.0 } else { 300.0 };
    assert!(per_record < most, "{per_record} bytes per record");

    for number in 0..runs / synthetic::RUNS {
        let (_, key) = synthetic::key(number);
        let best = store.best(&key).unwrap().unwrap();
        let mut fastest = f64::INFINITY;
        let filter = tensorwright_records::RunFilter { key: Some(key), ..Default::default() };
        store
            .each_trial(&filter, &mut |_, trial| {
                let whole = trial.outcome.timing().filter(|timing| !timing.cut);
                fastest = whole.map_or(fastest, |timing| fastest.min(timing.seconds));
                Ok(())
            })
            .unwrap();
        assert_eq!(best.seconds, fastest);
    }
}
