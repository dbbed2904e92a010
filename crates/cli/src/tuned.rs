//! The best schedule of the records, for commands that are given none.

use std::path::Path;

use tensorwright::Schedule;
use tensorwright_outcome::printable;
use tensorwright_records::open_existing;
use tensorwright_tuner::{Recalled, Remembered, Wanted};

/// The best schedule that the records have for a program, said on standard error; `None` if there is
/// none, or no records.
pub(crate) fn best(wanted: &Wanted<'_>, db: Option<&Path>) -> Option<Schedule> {
    let store = open_existing(db).ok()??;
    let Recalled { found, notes } = Remembered::best(&store, wanted).ok()?;
    notes.iter().for_each(|note| eprintln!("tuned: {note}"));
    let words = found.to_string();
    match &found {
        Remembered::Nothing => {}
        Remembered::Best { .. } => {
            eprintln!("tuned: {}; --untuned for the default one", printable(&words));
        }
        _ => eprintln!("tuned: {}", printable(&words)),
    }
    found.schedule().cloned()
}
