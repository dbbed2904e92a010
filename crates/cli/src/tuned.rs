//! The best schedule of the records, for commands that are given none.

use std::path::Path;

use tensorwright::{CpuTarget, Program, Schedule};
use tensorwright_tuner::{Recalled, recall};

/// The best schedule that the records have for a program, said on standard error; `None` if there is
/// none, or no records.
pub(crate) fn best(
    program: &Program,
    threads: u32,
    target: &CpuTarget,
    exact: bool,
    db: Option<&Path>,
) -> Option<Schedule> {
    let recalled = recall(program, threads, target, exact, db);
    match &recalled {
        Recalled::Nothing => {}
        Recalled::Best { .. } => eprintln!("tuned: {recalled}; --untuned for the default one"),
        _ => eprintln!("tuned: {recalled}"),
    }
    recalled.schedule().cloned()
}
