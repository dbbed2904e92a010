//! Builds a [`Report`] from the records.

mod fastest;
mod key_statistics;
mod section;
mod space;

use std::collections::BTreeMap;

use tensorwright_records::{Key, KeySummary, Result, RunFilter, RunSummary, Store};

use crate::model::{Report, Selection};
use section::section;

/// The most keys of a page.
const MOST_SECTIONS: usize = 40;

/// The most runs of a key: the latest.
const MOST_RUNS: usize = 400;

/// Size limits of each section, which keep the page small enough to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Candidates in plots.
    pub(crate) dots: usize,
    /// Curves of a strategy.
    pub(crate) curves: usize,
    /// Steps of a curve.
    pub(crate) steps: usize,
}

impl Limits {
    /// The limits for a page with this many sections.
    fn of(sections: usize) -> Self {
        let share =
            |of: usize, least: usize, most: usize| (of / sections.max(1)).clamp(least, most);
        Self {
            dots: share(24_000, 400, 4000),
            curves: share(64, 2, 12),
            steps: share(1600, 32, 160),
        }
    }
}

impl Report {
    /// Gathers the contents of a page. A selection without matches gives a report without sections.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn from_store(store: &dyn Store, selection: &Selection) -> Result<Self> {
        let mut keys: BTreeMap<Key, Vec<RunSummary>> = BTreeMap::new();
        let filter = RunFilter { id: selection.run.clone(), ..RunFilter::default() };
        for run in store.runs(&filter)? {
            if selection.program.as_ref().is_none_or(|program| *program == run.key.program) {
                keys.entry(run.key.clone()).or_default().push(run);
            }
        }
        let mut chosen: Vec<(KeySummary, Vec<RunSummary>)> = store
            .keys()?
            .into_iter()
            .filter_map(|summary| keys.remove(&summary.key).map(|runs| (summary, runs)))
            .collect();
        let left_out = keep_latest(&mut chosen);
        chosen.sort_by(|(a, _), (b, _)| {
            let order = |one: &KeySummary| (one.program.def.clone(), one.program.sizes.clone());
            order(a).cmp(&order(b)).then_with(|| a.key.threads.cmp(&b.key.threads))
        });
        let limits = Limits::of(chosen.len());
        let whole = selection.run.is_none();
        let sections = chosen
            .into_iter()
            .map(|(summary, runs)| section(store, summary, runs, whole, limits))
            .collect::<Result<_>>()?;
        Ok(Self { made: None, sections, left_out })
    }
}

/// Drops the keys whose last run is the oldest; returns how many.
fn keep_latest(keys: &mut Vec<(KeySummary, Vec<RunSummary>)>) -> usize {
    let last = |runs: &[RunSummary]| runs.iter().map(|run| run.info.started).max();
    let mut moments: Vec<_> = keys.iter().map(|(_, runs)| last(runs)).collect();
    moments.sort_unstable_by(|a, b| b.cmp(a));
    let Some(oldest) = moments.get(MOST_SECTIONS - 1).copied() else { return 0 };
    let before = keys.len();
    keys.retain(|(_, runs)| last(runs) >= oldest);
    keys.truncate(MOST_SECTIONS);
    before - keys.len()
}
