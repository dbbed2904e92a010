//! The best schedule of the records, for commands that are given none.

use std::path::Path;

use tensorwright::Schedule;
use tensorwright_records::{Part, open_existing};
use tensorwright_tuner::{Remembered, Wanted};

/// The best schedule that the records have for a program, said on standard error; `None` if there is
/// none, or no records.
pub(crate) fn best(wanted: &Wanted<'_>, db: Option<&Path>) -> Option<Schedule> {
    let store = open_existing(db).ok()??;
    let remembered = Remembered::best(&store, wanted).ok()?;
    match &remembered {
        Remembered::Best { trial, seconds, .. } => eprintln!(
            "tuned: the schedule of {trial}, {}; --untuned for the default one",
            time(*seconds)
        ),
        Remembered::Near { trial, differs, .. } => eprintln!(
            "tuned: the schedule of {trial}, made for another {} and verified again; run `tensorwright \
             tune` for this one",
            listed(differs)
        ),
        Remembered::Unfit(differs) => eprintln!(
            "tuned: a schedule of another {} does not hold here; run `tensorwright tune`",
            listed(differs)
        ),
        Remembered::Stale(trial) => {
            eprintln!("tuned: the schedule of {trial} no longer applies; run `tensorwright tune`");
        }
        Remembered::Nothing => {}
    }
    remembered.schedule().cloned()
}

fn listed(differs: &[Part]) -> String {
    let differs: Vec<String> = differs.iter().map(ToString::to_string).collect();
    differs.join(" and ")
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
