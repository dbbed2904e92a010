//! Lookup of the best recorded schedule.

use tensorwright::{Code, Diagnostic, Diagnostics, Schedule, Source, printable};
use tensorwright_records::{Error, Location, Part, Result, open_existing};
use tensorwright_tuner::{LookupReport, ScheduleLookup, ScheduleQuery};

/// The best recorded schedule of a program, reported on standard error; `None` without one.
///
/// # Errors
/// If records named on the command line can never be read. Other problems are notes, because the
/// default schedule computes the same results.
pub(crate) fn best(
    query: &ScheduleQuery<'_>,
    db: Option<&Location>,
) -> Result<Option<Schedule>, Diagnostics> {
    match recall(query, db) {
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

fn recall(query: &ScheduleQuery<'_>, db: Option<&Location>) -> Result<Option<Schedule>> {
    let Some(store) = open_existing(db)? else {
        if let Some(place) = db {
            eprintln!("tuned: there are no records at {}", printable(&place.to_string()));
        }
        return Ok(None);
    };
    let LookupReport { found, notes } = ScheduleLookup::best(&*store, query)?;
    notes.iter().for_each(|note| eprintln!("tuned: {note}"));
    let words = found.to_string();
    match &found {
        ScheduleLookup::Nothing => {}
        // Records of other sizes are common.
        ScheduleLookup::Elsewhere(misses) if misses.iter().any(|m| m.part == Some(Part::Sizes)) => {
        }
        ScheduleLookup::Elsewhere(_) => eprintln!("not tuned: {}", printable(&words)),
        ScheduleLookup::Best { .. } => {
            eprintln!("tuned: {}; --untuned for the default one", printable(&words));
        }
        _ => eprintln!("tuned: {}", printable(&words)),
    }
    Ok(found.schedule().cloned())
}
