//! Footprints: the part of a tensor that a loop reads.
//!
//! The footprint of a tensor in a loop is a box: for each dimension the first element, as an index
//! expression of the enclosing loops, and a constant extent. It is a superset of the elements that
//! are read.

use tensorwright_lang::program::{Atom, Index, Read};

use super::find::{find_loop, loop_at, loops_on, ranges_on, store_at, store_paths};
use super::reduction_init::{OpenReductions, refuse_late};
use crate::nest::{
    Buffer, BufferId, LoopKind, LoopNest, Owner, Ranges, StageId, Store, Use, Var, extreme,
    for_each_store,
};
use crate::refusal::Refusal;

/// One dimension of a footprint.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    /// The first element, as a function of the enclosing loops.
    pub(crate) first: Index,
    /// The number of elements.
    pub(crate) count: i64,
}

/// An unscheduled stage, whose loops can be rebuilt elsewhere.
pub(crate) struct Producer {
    pub(crate) buffer: BufferId,
    /// The variable of each dimension, and the first element that the stage computes.
    pub(crate) dims: Vec<(Var, i64)>,
}

impl Producer {
    /// The stage whose store is at a path; `what` describes the transformation, for messages.
    pub(crate) fn of(
        nest: &LoopNest,
        stage: &str,
        path: &[usize],
        what: &str,
    ) -> Result<Self, Refusal> {
        let store = store_at(nest, path)?;
        if nest.buffer(store.buffer).owner == Owner::Output {
            return Err(Refusal::new(format!(
                "`{stage}` is a result of the program and cannot be {what}"
            )));
        }
        Self::of_any(nest, stage, path, what)
    }

    /// The same, but also accepts a result of the program.
    pub(crate) fn of_any(
        nest: &LoopNest,
        stage: &str,
        path: &[usize],
        what: &str,
    ) -> Result<Self, Refusal> {
        let store = store_at(nest, path)?;
        let buffer = nest.buffer(store.buffer);
        refuse_recurrence(stage, store, what)?;
        refuse_scatter(stage, store, what)?;
        if writers(nest, store.buffer) > 1 {
            return Err(Refusal::new(format!(
                "`{stage}` keeps elements of an earlier version of its tensor and cannot be {what}"
            )));
        }
        let scheduled = || {
            Refusal::new(format!("the loops of `{stage}` are scheduled already"))
                .help("place a stage first, then schedule its loops")
        };
        let chain = loops_on(nest, path);
        let is_plain = chain.iter().all(|l| {
            l.kind == LoopKind::Serial
                && l.body.len() == 1
                && l.locals.is_empty()
                && l.stage == Some(store.stage())
        });
        let dim = |subscript: &Index| match subscript.terms() {
            [term] if term.coefficient == 1 => match term.atom {
                Atom::Axis(var) => Some((var, subscript.constant_term())),
                _ => None,
            },
            _ => None,
        };
        let dims: Option<Vec<(Var, i64)>> = store.subscripts.iter().map(dim).collect();
        // Bounds by sizes are a part of the stage.
        let is_whole = store.domain.iter().all(|bound| nest.is_sized(&bound.index));
        match dims {
            Some(dims) if is_plain && is_whole && buffer.layout.is_none() => {
                Ok(Self { buffer: store.buffer, dims })
            }
            _ => Err(scheduled()),
        }
    }
}

/// The number of statements that write to a buffer.
pub(crate) fn writers(nest: &LoopNest, buffer: BufferId) -> usize {
    let mut writers = 0;
    for_each_store(&nest.body, &mut |store| writers += usize::from(store.buffer == buffer));
    writers
}

/// Refuses a recurrence: its elements depend on each other, so they stay in place and in order.
pub(crate) fn refuse_recurrence(stage: &str, store: &Store, what: &str) -> Result<(), Refusal> {
    if !store.is_recurrence() {
        return Ok(());
    }
    Err(Refusal::new(format!("`{stage}` is a recurrence and cannot be {what}"))
        .help("schedule its own loops"))
}

/// Refuses a scatter: terms decide at run time which elements they go to.
pub(crate) fn refuse_scatter(stage: &str, store: &Store, what: &str) -> Result<(), Refusal> {
    if !store.is_scatter() {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "`{stage}` is a scatter, whose terms may go to any element, and cannot be {what}"
    ))
    .help("schedule its own loops, and give workers copies of their own with `privatize`"))
}

/// Refuses a tensor that is read at positions from data: such reads are checked against the whole
/// tensor.
pub(crate) fn refuse_checked(nest: &LoopNest, buffer: BufferId) -> Result<(), Refusal> {
    let mut gathered = false;
    for_each_store(&nest.body, &mut |store| {
        // The stage's own gathers are checked wherever it is computed, for every element: moving
        // the stage would change which elements are checked.
        let concerned = |read: &Read| read.tensor == buffer || store.buffer == buffer;
        let is_checked = |read: &Read| !read.checked.is_empty() && concerned(read);
        gathered |= store.reads().into_iter().any(|(_, read)| is_checked(read));
    });
    if gathered {
        let name = &nest.buffer(buffer).name;
        return Err(Refusal::new(format!(
            "`{name}` is gathered at positions that are computed from data, which are checked \
             against all of it"
        )));
    }
    Ok(())
}

/// The loop in which something is computed, checked to be a valid host.
pub(crate) fn find_host(nest: &LoopNest, stage: &str, name: &str) -> Result<Vec<usize>, Refusal> {
    let path = find_loop(nest, stage, name)?;
    for l in loops_on(nest, &path) {
        if l.kind == LoopKind::Vectorized {
            return Err(Refusal::new(format!(
                "loop `{}` of `{stage}` is vectorized, and lanes cannot hold loops or buffers",
                nest.var_name(l.var)
            )));
        }
    }
    Ok(path)
}

/// The footprint of a buffer in the loop at a path: the reads of its stores, other than those to
/// the buffer itself, while the loop runs.
pub(crate) fn footprint(
    nest: &LoopNest,
    host: &[usize],
    buffer: BufferId,
) -> Result<Vec<Extent>, Refusal> {
    footprint_for(nest, host, buffer, None)
}

/// The same for the reads of one stage only, if given.
pub(crate) fn footprint_for(
    nest: &LoopNest,
    host: &[usize],
    buffer: BufferId,
    only: Option<StageId>,
) -> Result<Vec<Extent>, Refusal> {
    let mut around: Vec<Var> = loops_on(nest, host).iter().map(|l| l.var).collect();
    around.extend(nest.numbers.iter().map(|number| number.var));
    let shape = nest.buffer(buffer).shape.clone();
    let mut outer = ranges_on(nest, host);
    outer.know(known(nest, host, buffer));
    let open = OpenReductions::at(nest, host);
    let mut boxes: Vec<Option<Extent>> = vec![None; shape.len()];
    let mut found = false;
    for path in store_paths(&nest.body).iter().filter(|path| path.starts_with(host)) {
        let store = store_at(nest, path)?;
        if store.buffer == buffer || only.is_some_and(|only| store.stage() != only) {
            continue;
        }
        let region = Region { ranges: &ranges_on(nest, path), around: &around };
        for read in open.inside(store).filter(|read| read.tensor == buffer) {
            found = true;
            for (dimension, subscript) in read.subscripts.iter().enumerate() {
                let whole = Extent { first: Index::constant(0), count: shape[dimension] };
                let settled = |extent: Extent| {
                    let first = outer.simplify(&extent.first)?;
                    Some(Extent { first, ..extent })
                };
                let one = region.of(subscript).and_then(settled).unwrap_or_else(|| whole.clone());
                let joined = match boxes[dimension].take() {
                    None => Some(one),
                    Some(other) => union(&other, &one, &outer),
                };
                let fits = joined.filter(|extent| extent.count < shape[dimension]);
                boxes[dimension] = Some(fits.unwrap_or(whole));
            }
        }
    }
    if !found {
        refuse_late(nest, host, buffer, &[Use::Start, Use::Place], "copied")?;
        let l = loop_at(nest, host)?;
        let who = only.map_or("nothing".to_owned(), |only| {
            format!("no statement of `{}`", nest.buffer(only.0).name)
        });
        return Err(Refusal::new(format!(
            "{who} in loop `{}` reads `{}`",
            nest.var_name(l.var),
            nest.buffer(buffer).name
        )));
    }
    let settle = |extent: Option<Extent>| {
        let extent = extent.unwrap_or(Extent { first: Index::constant(0), count: 1 });
        let first = outer.simplify(&extent.first).ok_or_else(Refusal::overflow)?;
        Ok(Extent { first, ..extent })
    };
    boxes.into_iter().map(settle).collect()
}

/// The conditions on sizes that hold in iterations of a loop in which a buffer is read.
fn known(nest: &LoopNest, host: &[usize], buffer: BufferId) -> Vec<Index> {
    let mut shared: Option<Vec<Index>> = None;
    if nest.numbers.is_empty() {
        return Vec::new();
    }
    for path in store_paths(&nest.body).iter().filter(|path| path.starts_with(host)) {
        let Ok(store) = store_at(nest, path) else { continue };
        if store.buffer == buffer || !store.does_read(buffer) {
            continue;
        }
        let inner: Vec<(Var, i64)> = loops_on(nest, path)[loops_on(nest, host).len()..]
            .iter()
            .map(|l| (l.var, l.extent))
            .collect();
        let domain = store.domain.iter().map(|bound| &bound.index);
        let sized = domain.filter(|index| nest.is_sized(index));
        let own: Vec<Index> = sized.filter_map(|index| extreme(index, &inner, true)).collect();
        shared = Some(match shared {
            Some(shared) => shared.into_iter().filter(|fact| own.contains(fact)).collect(),
            None => own,
        });
    }
    shared.unwrap_or_default()
}

/// A box that contains two others, for all iterations of the enclosing loops; the smallest one if
/// their distance is constant.
///
/// Clamps are monotone and do not increase distances, so boxes of `clamp(y - 1, 0, H)` and `clamp(y
/// + 1, 0, H)` are at most two apart although their distance is not constant.
fn union(a: &Extent, b: &Extent, outer: &Ranges) -> Option<Extent> {
    let distance = outer.distance(&a.first, &b.first)?;
    let (least, most) = (i64::try_from(distance.lo).ok()?, i64::try_from(distance.hi).ok()?);
    let first = match () {
        () if least >= 0 => a.first.clone(),
        () if most <= 0 => b.first.clone(),
        () => a.first.clone().min(b.first.clone()),
    };
    // The extent is a convex function of the distance.
    let count =
        |distance: i64| a.count.max(distance.checked_add(b.count)?).checked_sub(distance.min(0));
    Some(Extent { first, count: count(least)?.max(count(most)?) })
}

/// The values of an index while enclosing loops are fixed and inner ones run.
struct Region<'a> {
    ranges: &'a Ranges,
    around: &'a [Var],
}

impl Region<'_> {
    fn of(&self, index: &Index) -> Option<Extent> {
        let mut first = Index::constant(index.constant_term());
        let mut count = 1i64;
        for term in index.terms() {
            let part = self.atom(&term.atom)?;
            let reach = part.count.checked_sub(1)?.checked_mul(term.coefficient)?;
            let start = part.first.scale(term.coefficient)?;
            // A negative multiple starts at its far end.
            let start = start.add(&Index::constant(reach.min(0)))?;
            first = first.add(&start)?;
            count = count.checked_add(reach.checked_abs()?)?;
        }
        Some(Extent { first, count })
    }

    fn atom(&self, atom: &Atom) -> Option<Extent> {
        let whole = Index::atom(atom.clone());
        if !whole.has_value() && !whole.mentions(&|var| !self.around.contains(&var)) {
            return Some(Extent { first: whole, count: 1 });
        }
        match atom {
            Atom::Axis(var) => {
                Some(Extent { first: Index::constant(0), count: self.ranges.extent(*var)? })
            }
            Atom::Div(inner, divisor) => {
                let inner = self.of(inner)?;
                let count = (inner.count - 1).checked_add(divisor - 1)? / divisor + 1;
                Some(Extent { first: inner.first.div(*divisor)?, count })
            }
            Atom::Mod(_, divisor) => {
                let range = self.ranges.interval(&whole);
                let lo = i64::try_from(range.lo).ok()?;
                let count = i64::try_from(range.hi - range.lo + 1).ok()?.min(*divisor);
                Some(Extent { first: Index::constant(lo), count })
            }
            Atom::Min(a, b) | Atom::Max(a, b) => {
                let (a, b) = (self.of(a)?, self.of(b)?);
                let is_min = matches!(atom, Atom::Min(..));
                let first = if is_min { a.first.min(b.first) } else { a.first.max(b.first) };
                Some(Extent { first, count: a.count.max(b.count) })
            }
            Atom::Product(..) | Atom::Value(_) => None,
        }
    }
}

/// The conditions for an element of a footprint to be in `lo..hi`, without those that always hold;
/// `None` on overflow.
pub(crate) fn clip(element: &Index, lo: i64, hi: &Index, ranges: &Ranges) -> Option<Vec<Index>> {
    let above = element.sub(&Index::constant(lo))?;
    let below = hi.sub(element)?.add(&Index::constant(-1))?;
    Some([above, below].into_iter().filter(|condition| !ranges.always(condition)).collect())
}

/// The position in a loop's body before the first node that reads a buffer.
pub(crate) fn before_reader(body: &[crate::nest::Node], buffer: BufferId) -> usize {
    let reader = |node: &crate::nest::Node| {
        let mut found = false;
        for_each_store(std::slice::from_ref(node), &mut |store| found |= store.does_read(buffer));
        found
    };
    body.iter().position(reader).unwrap_or(0)
}

/// Whether a layout or a footprint may still change a buffer.
pub(crate) fn is_temporary(buffer: &Buffer) -> bool {
    buffer.owner.is_kernel()
}
