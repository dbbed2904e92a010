//! The best schedule of the records, for commands that are given none.

use tensorwright::Schedule;
use tensorwright_outcome::printable;
use tensorwright_records::{Location, open_existing};
use tensorwright_tuner::{Recalled, Remembered, Wanted};

/// The best schedule that the records have for a program, said on standard error; `None` if there is
/// none, or no records.
pub(crate) fn best(wanted: &Wanted<'_>, db: Option<&Location>) -> Option<Schedule> {
    let store = match open_existing(db) {
        Ok(store) => store?,
        Err(error) => {
            // Files that cannot be read are as good as none; a server is there because somebody wants it.
            if matches!(Location::given(db), Ok(Location::Server(_))) {
                eprintln!("tuned: {error}");
            }
            return None;
        }
    };
    let Recalled { found, notes } = Remembered::best(&*store, wanted).ok()?;
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
