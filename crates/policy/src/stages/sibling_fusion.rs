//! Sibling fusion: stages that share row loops without depending on each other.
//!
//! The gradient of a norm has an output with rows and outputs that are summed over rows. All of
//! them need the statistics of a row:
//!
//! ```text
//! for n { mean(n) = ..; }                           for n {
//! for n, d { dx(n,d) = .. mean(n) ..; }               mean = ..;
//! for d { for n { dg(d) += .. mean(n) ..; } }   ->    for d { dx(n,d) = .. mean ..; }
//!                                                     for d { dg(d) += .. mean ..; }
//!                                                   }
//! ```
//!
//! Workers must not add to the same elements, so each adds to private copies, which are summed at
//! the end.

use std::collections::BTreeSet;

use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{BufferId, LoopNest, Owner, Role, for_each_store};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{ComputeWith, Privatize, Reorder, Split, stages};
use tensorwright_schedule::{ScheduleError, ScheduleState};

/// The maximum number of copies per worker.
const MOST_COPIES: i64 = 8;

/// A stage that shares the row loops of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sibling {
    pub(crate) stage: String,
    /// Its own row loops, outermost first.
    pub(crate) rows: Vec<String>,
    /// Whether it is a sum over rows.
    pub(crate) adds_up: bool,
    /// The bytes that it needs while rows are computed.
    pub(crate) bytes: i64,
}

/// A partition of rows among workers; each share has a private copy of the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowShares {
    /// The iterations of the outermost row loop per copy.
    pub(crate) each: i64,
}

impl RowShares {
    /// Shares of equal size, at least one per worker; `None` if there is no such partition.
    pub(crate) fn of(extent: i64, workers: i64) -> Option<Self> {
        let most = workers.saturating_mul(MOST_COPIES).min(extent);
        let copies = (workers.max(1)..=most).find(|copies| extent % copies == 0)?;
        Some(Self { each: extent / copies })
    }
}

impl Sibling {
    /// A stage whose first spatial loops, or whose reduction loops, have the extents of the root's
    /// row loops.
    fn of(draft: &ScheduleState, stage: &str, rows: &[&Axis]) -> Option<Self> {
        let accesses = Accesses::of(&draft.nest, stage)?;
        let buffer = draft.nest.buffer(accesses.write.buffer);
        if buffer.owner != Owner::Output {
            return None;
        }
        let results: Vec<&Axis> = accesses.of_role(Role::Spatial).collect();
        let terms: Vec<&Axis> = accesses.of_role(Role::Reduce).collect();
        let fits = |own: &[&Axis]| {
            own.len() == rows.len()
                && own.iter().zip(rows).all(|(own, row)| own.extent == row.extent)
        };
        let adds_up = !terms.is_empty();
        let own = if adds_up { terms } else { results.iter().copied().take(rows.len()).collect() };
        // The remaining loops are a row.
        let has_row = results.iter().any(|axis| {
            axis.extent > 1
                && !own.iter().any(|own| own.var == axis.var)
                && accesses.write.stride(axis) == Some(1)
        });
        if !fits(&own) || !has_row {
            return None;
        }
        let rows = own.iter().map(|axis| axis.name.clone()).collect();
        let bytes = if adds_up { buffer.bytes() } else { 0 };
        Some(Self { stage: stage.to_owned(), rows, adds_up, bytes })
    }

    /// Gives each share of rows a copy of the sums, in a stage of its own; returns its name.
    ///
    /// # Errors
    /// If a step is refused.
    pub(crate) fn privatize(
        &self,
        draft: &mut ScheduleState,
        shares: RowShares,
    ) -> Result<String, ScheduleError> {
        let names = self.rows_of_copy();
        let block = names.first().cloned().unwrap_or_default();
        let mut split = Split::new(self.rows.first().cloned().unwrap_or_default(), &[shares.each]);
        split.names = names.into_iter().take(2).collect();
        draft.apply(&self.stage, split)?;
        draft.apply(&self.stage, Privatize { target: block })?;
        Ok(self.copy())
    }

    /// The stage of the private copies.
    pub(crate) fn copy(&self) -> String {
        format!("{}.part", self.stage)
    }

    /// Its row loops, the first of which is in shares.
    pub(crate) fn rows_of_copy(&self) -> Vec<String> {
        let first = self.rows.iter().take(1);
        let shares = first.flat_map(|row| [format!("{row}.block"), format!("{row}.row")]);
        shares.chain(self.rows.iter().skip(1).cloned()).collect()
    }

    /// Fuses it into the row loops of a root, up to `at`; returns whether that succeeded.
    fn join(&self, draft: &mut ScheduleState, root: &str, at: &str) -> bool {
        let mut order = self.rows.clone();
        let own = draft.loop_names(&self.stage).into_iter();
        order.extend(own.filter(|name| !self.rows.contains(name)));
        draft.step(&self.stage, Reorder { order })
            && draft.step(&self.stage, ComputeWith { other: root.to_owned(), at: at.to_owned() })
    }
}

/// Fuses outputs of the program that need the same data into the row loops of a root, as far as
/// workers can share them.
pub(super) fn join(
    draft: &mut ScheduleState,
    root: &str,
    rows: &[&Axis],
    workers: i64,
    may_join: impl Fn(&str) -> bool,
) -> Vec<Sibling> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Vec::new() };
    let can_share = workers <= 1 || RowShares::of(first.extent, workers).is_some();
    let is_result = |buffer: BufferId| draft.nest.buffer(buffer).owner == Owner::Output;
    if !store_of(&draft.nest, root).is_some_and(|store| is_result(store.buffer)) {
        return Vec::new();
    }
    let mut needed = needs(&draft.nest, root);
    let mut joined: Vec<(Sibling, BufferId)> = Vec::new();
    for stage in stages(&draft.nest) {
        if stage == root || !may_join(&stage) {
            continue;
        }
        let Some(found) = Sibling::of(draft, &stage, rows) else { continue };
        let Some(store) = store_of(&draft.nest, &stage) else { continue };
        let (buffer, own) = (store.buffer, needs(&draft.nest, &stage));
        let needs_sum = joined.iter().any(|(by, made)| by.adds_up && own.contains(made));
        if needs_sum || needed.contains(&buffer) {
            continue;
        }
        if own.is_disjoint(&needed) || (found.adds_up && !can_share) {
            continue;
        }
        if draft.steps(|draft| found.join(draft, root, &last.name)) {
            needed.extend(own);
            joined.push((found, buffer));
        }
    }
    joined.into_iter().map(|(stage, _)| stage).collect()
}

/// The transitive inputs of a stage.
fn needs(nest: &LoopNest, stage: &str) -> BTreeSet<BufferId> {
    let mut made: Vec<(BufferId, Vec<BufferId>)> = Vec::new();
    for_each_store(&nest.body, &mut |store| {
        let reads = store.reads().iter().map(|(_, read)| read.tensor).collect();
        made.push((store.buffer, reads));
    });
    let mut found = BTreeSet::new();
    let mut open: Vec<BufferId> =
        store_of(nest, stage).map(|store| store.buffer).into_iter().collect();
    while let Some(next) = open.pop() {
        let reads = made.iter().filter(|(buffer, _)| *buffer == next).flat_map(|(_, reads)| reads);
        open.extend(reads.filter(|read| found.insert(**read)));
    }
    found
}
