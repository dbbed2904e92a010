//! The best schedule of the records, for commands that are given none.

use std::path::Path;

use tensorwright::Schedule;
use tensorwright_records::open_existing;
use tensorwright_tuner::{Remembered, Wanted};

/// The best schedule that the records have for a program, said on standard error; `None` if there is
/// none, or no records.
pub(crate) fn best(wanted: &Wanted<'_>, db: Option<&Path>) -> Option<Schedule> {
    let store = open_existing(db).ok()??;
    let remembered = Remembered::best(&store, wanted).ok()?;
    match &remembered {
        Remembered::Nothing => {}
        Remembered::Best { .. } => eprintln!("tuned: {remembered}; --untuned for the default one"),
        _ => eprintln!("tuned: {remembered}"),
    }
    remembered.schedule().cloned()
}
