//! Lookup of the best recorded schedule.

use tensorwright::{Code, Diagnostic, Diagnostics, Schedule, Source, printable};
use tensorwright_records::{Error, Location, Part, Result, open_existing};
use tensorwright_tuner::{Recalled, Remembered, Wanted};

/// The best recorded schedule of a program, reported on standard error; `None` without one.
///
/// # Errors
/// If records named on the command line can never be read. Other problems are notes, because the
/// default schedule computes the same results.
pub(crate) fn best(
    wanted: &Wanted<'_>,
    db: Option<&Location>,
) -> Result<Option<Schedule>, Diagnostics> {
    match recall(wanted, db) {
        Ok(schedule) => Ok(schedule),
        Err(error) if db.is_some() && error.is_lasting() => Err(unusable(&error)),
        // Without a home directory, there are no records to miss.
        Err(Error::NoDataDirectory) => Ok(None),
        Err(error) => {
            eprintln!("tuned: {}; the default schedule is used", printable(&error.to_string()));
            Ok(None)
        }
    }
}

fn unusable(error: &Error) -> Diagnostics {
    let diagnostic = Diagnostic::without_place(Code::InvalidFile, error.to_string());
    Diagnostics::new(Source::new("--db", ""), vec![diagnostic.help(error.help())])
}

fn recall(wanted: &Wanted<'_>, db: Option<&Location>) -> Result<Option<Schedule>> {
    let Some(store) = open_existing(db)? else {
        if let Some(place) = db {
            eprintln!("tuned: there are no records at {}", printable(&place.to_string()));
        }
        return Ok(None);
    };
    let Recalled { found, notes } = Remembered::best(&*store, wanted)?;
    notes.iter().for_each(|note| eprintln!("tuned: {note}"));
    let words = found.to_string();
    match &found {
        Remembered::Nothing => {}
        // Records of other sizes are common.
        Remembered::Elsewhere(misses) if misses.iter().any(|m| m.part == Some(Part::Sizes)) => {}
        Remembered::Elsewhere(_) => eprintln!("not tuned: {}", printable(&words)),
        Remembered::Best { .. } => {
            eprintln!("tuned: {}; --untuned for the default one", printable(&words));
        }
        _ => eprintln!("tuned: {}", printable(&words)),
    }
    Ok(found.schedule().cloned())
}
