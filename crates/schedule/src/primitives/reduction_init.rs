//! Reduction initial values: which reads happen before a loop runs.
//!
//! A reduction is initialized before its outermost loop, wherever its store is
//! ([`lower`](crate::lower())). Its initial value is read there, and must exist there:
//!
//! ```text
//! for i {                                      C starts here, from P(i, ...)
//!   for k {
//!     for j { C(i, j) += ...; }                a P that is made in loop `j` comes too late
//!   }
//! }
//! ```
//!
//! All primitives that move reads, or the data that they read, use this check.

use tensorwright_lang::program::Read;

use super::find::{Path, find_loop, loops_on, store_at, store_paths};
use crate::nest::{BufferId, Loop, LoopNest, StageId, Store, Use};
use crate::refusal::Refusal;

/// The reductions that are in progress while a loop runs.
pub(crate) struct OpenReductions(Vec<StageId>);

impl OpenReductions {
    /// The open reductions of the loop at a path: the loop is a reduction loop of theirs, or inside
    /// one.
    pub(crate) fn at(nest: &LoopNest, host: &[usize]) -> Self {
        let of_loop = |l: &Loop| {
            let own = l.stage.filter(|stage| l.reduces(*stage));
            own.into_iter().chain(l.terms_of.iter().copied()).collect::<Vec<_>>()
        };
        Self(loops_on(nest, host).into_iter().flat_map(of_loop).collect())
    }

    /// Whether a store in the loop belongs to one of them.
    pub(crate) fn holds(&self, store: &Store) -> bool {
        self.0.contains(&store.stage())
    }

    /// The reads of a store while the loop runs.
    pub(crate) fn inside<'a>(&self, store: &'a Store) -> impl Iterator<Item = &'a Read> + use<'a> {
        let open = self.holds(store);
        let now = move |(what, _): &(Use, &Read)| *what != Use::Start || !open;
        store.reads().into_iter().filter(now).map(|(_, read)| read)
    }

    /// The reads of a store before the loop runs: the initial value of its reduction and its
    /// position.
    pub(crate) fn ahead<'a>(
        &self,
        store: &'a Store,
    ) -> impl Iterator<Item = (Use, &'a Read)> + use<'a> {
        let open = self.holds(store) && store.init.is_some();
        store.reads().into_iter().filter(move |(what, _)| *what != Use::Value && open)
    }
}

/// A store in the loop at a path that reads a buffer before the loop runs, for the given uses.
pub(crate) fn reads_ahead<'a>(
    nest: &'a LoopNest,
    host: &[usize],
    buffer: BufferId,
    uses: &[Use],
) -> Result<Option<&'a Store>, Refusal> {
    let open = OpenReductions::at(nest, host);
    for path in store_paths(&nest.body).iter().filter(|path| path.starts_with(host)) {
        let store = store_at(nest, path)?;
        let mut ahead = open.ahead(store);
        if ahead.any(|(what, read)| read.tensor == buffer && uses.contains(&what)) {
            return Ok(Some(store));
        }
    }
    Ok(None)
}

/// Refuses to compute or copy a tensor in the loop at a path (`made` is the participle for the
/// message) if a reduction around the loop reads it earlier.
pub(crate) fn refuse_late(
    nest: &LoopNest,
    host: &[usize],
    buffer: BufferId,
    uses: &[Use],
    made: &str,
) -> Result<(), Refusal> {
    let Some(store) = reads_ahead(nest, host, buffer, uses)? else { return Ok(()) };
    let loops = loops_on(nest, host);
    let name = |l: &&Loop| nest.var_name(l.var).to_owned();
    let (tensor, reader) = (&nest.buffer(buffer).name, &nest.buffer(store.buffer).name);
    let at = loops.last().map(name).unwrap_or_default();
    let outermost = loops.iter().position(|l| l.reduces(store.stage())).unwrap_or(0);
    let first = loops.get(outermost).map(name).unwrap_or_default();
    let inside = match at == first {
        true => format!("in loop `{at}`"),
        false => format!("in loop `{at}`, which is inside of `{first}`"),
    };
    let way_out = match outermost.checked_sub(1).and_then(|outer| loops.get(outer)).map(name) {
        Some(outer) => format!("place it in a loop around `{first}`, such as `{outer}`"),
        None => format!(
            "no loop is around `{first}`: reorder a loop over results there first, or leave \
             `{tensor}` where it is"
        ),
    };
    Err(Refusal::new(format!(
        "the reduction `{reader}` starts from `{tensor}` before its loop `{first}`, so `{tensor}` \
         cannot be {made} {inside}"
    ))
    .help(way_out))
}

/// The innermost loop in which a tensor may be computed: a loop of its reader or one around it.
/// `None` if a reduction is initialized from the tensor outside of all of them.
pub(crate) fn latest(nest: &LoopNest, buffer: BufferId, reader: &str, at: &str) -> Option<String> {
    let mut host = find_loop(nest, reader, at).ok()?;
    let is_late = |host: &Path| reads_ahead(nest, host, buffer, &[Use::Start, Use::Place]);
    while is_late(&host).ok()?.is_some() {
        host.pop();
    }
    let name = nest.var_name(loops_on(nest, &host).last()?.var).to_owned();
    // An inner loop may have the same name.
    (find_loop(nest, reader, &name).ok()? == host).then_some(name)
}
