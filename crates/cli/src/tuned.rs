//! The best schedule of the records, for commands that are given none.

use std::path::Path;

use tensorwright::{CpuTarget, Program, Schedule};
use tensorwright_records::{Best, SqliteStore, Store, location};
use tensorwright_tuner::key_of;

/// The best schedule that the records have for a program, said on standard error; `None` if there is
/// none, or no records.
pub(crate) fn best(
    program: &Program,
    threads: u32,
    target: &CpuTarget,
    exact: bool,
    db: Option<&Path>,
) -> Option<Schedule> {
    let path = location(db).ok().filter(|path| path.exists())?;
    let store = SqliteStore::open(&path, tensorwright_records::Options::default()).ok()?;
    let key = key_of(program, threads, target, exact);
    if let Some(best) = store.best(&key).ok()? {
        let schedule = usable(program, &best)?;
        eprintln!(
            "tuned: the schedule of {}, {}; --untuned for the default one",
            best.id,
            time(best.seconds)
        );
        return Some(schedule);
    }
    // One of another compiler version or machine is not trusted: its result is compared first.
    let near = store.nearest(&key, &std::collections::BTreeMap::new(), 4).ok()?;
    let near = near
        .into_iter()
        .find(|near| near.needs_only_verification() && near.key.threads == key.threads)?;
    let schedule = usable(program, &near.best)?;
    if exact && !schedule.is_exact() {
        return None;
    }
    let differs: Vec<String> = near.differs.iter().map(ToString::to_string).collect();
    let differs = differs.join(" and ");
    if !verifies(program, threads, target, &schedule) {
        eprintln!(
            "tuned: a schedule of another {differs} does not hold here; run `tensorwright tune`"
        );
        return None;
    }
    eprintln!(
        "tuned: the schedule of {}, made for another {differs} and verified again; run `tensorwright \
         tune` for this one",
        near.best.id
    );
    Some(schedule)
}

/// The schedule of a record, if it can be read and applied.
fn usable(program: &Program, best: &Best) -> Option<Schedule> {
    let schedule = Schedule::parse(&best.trial.schedule).ok()?;
    let lowered = program.compile().schedule(schedule.clone()).lower();
    match lowered {
        Ok(_) => Some(schedule),
        Err(_) => {
            eprintln!(
                "tuned: the schedule of {} no longer applies; run `tensorwright tune`",
                best.id
            );
            None
        }
    }
}

/// Whether a kernel of this schedule computes what the program says, on random inputs.
fn verifies(program: &Program, threads: u32, target: &CpuTarget, schedule: &Schedule) -> bool {
    let Ok(inputs) = program.random_inputs(0) else { return false };
    let builder = program.compile().target(target.clone()).threads(threads as usize);
    let Ok(kernel) = builder.schedule(schedule.clone()).build() else { return false };
    let Ok(outputs) = kernel.run(&inputs) else { return false };
    kernel.verify(&inputs, &outputs).is_ok_and(|verified| verified.passed())
}

/// A time with its unit.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.2} us", s * 1e6),
        s => format!("{:.0} ns", s * 1e9),
    }
}
