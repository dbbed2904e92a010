//! `compute_with`: fuses the loops of two independent stages (sibling fusion).
//!
//! ```text
//! P: compute_with Q y
//! for y { for x { P(y, x) = A(y, x) + ...; } }          for y {
//! for y { for x { Q(y, x) = A(y, x) * ...; } }    ->      for x { P(y, x) = A(y, x) + ...; }
//!                                                         for x { Q(y, x) = A(y, x) * ...; }
//!                                                       }
//! ```
//!
//! Data that both read comes from memory once, and a stage that both read can be computed inside
//! the shared loops: [`compute_at`](super::ComputeAt) needs all readers of a stage in one loop. One
//! of them may read the other if it only reads elements that the same iteration computed.
//!
//! The shared loops have the same extents in both stages. They belong to `Q` afterwards; the other
//! loops of `P` stay its own. A spatial loop of one stage may be a reduction loop of the other,
//! which is then summed block by block:
//!
//! ```text
//! dB: compute_with dA m
//! for m { for k { dA(m, k) += S(m, n) * B(k, n); } }           for k, n { dB(k, n) = 0; }
//! for k { for n { for m { dB(k, n) += A(m, k) * S(m, n); } } } ->
//!                                                              for m {
//!                                                                for k { dA(m, k) += ...; }
//! (after `dB: reorder m k n`)                                    for k { for n { dB(k, n) += ...; } }
//!                                                              }
//! ```
//!
//! Its reduction starts before that loop, whose iterations can no longer run in parallel.

use std::fmt;

use tensorwright_lang::program::Index;

use super::find::{
    Path, check_overlaps, expect_serial, find_store, loop_at_mut, loops_on, ranges_on,
    refuse_window, store_at, store_paths,
};
use super::footprint::find_host;
use super::reduction_init::refuse_late;
use super::{Reach, Rule};
use crate::nest::{
    BufferId, Loop, LoopNest, Node, Ranges, Role, Store, Use, Var, for_each_store, substitute,
};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Computes a stage in the loops of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputeWith {
    /// The stage whose loops are shared.
    pub other: String,
    /// The innermost loop that is shared.
    pub at: String,
}

impl fmt::Display for ComputeWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compute_with {} {}", self.other, self.at)
    }
}

impl Rule for ComputeWith {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn other_stage(&self) -> Option<&str> {
        Some(&self.other)
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let other = words.name("the name of a stage")?;
        let at = words.name("the name of a loop")?;
        Ok(ComputeWith { other, at })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_store(nest, stage)?;
        let mut host = find_host(nest, &self.other, &self.at)?;
        // Both stages already share as many loops.
        let around = path.iter().zip(&host).take_while(|(own, other)| own == other).count();
        let Some(other) = host.get(around).copied() else {
            return Err(Refusal::new(format!(
                "`{stage}` is computed in loop `{}` of `{}` already",
                self.at, self.other
            ))
            .help("name a loop further in, or leave the step out"));
        };
        let own = path[around];
        let passed = self.check_order(stage, nest, &path[..around], (own, other))?;
        let shared = self.shared(stage, nest, &path, &host, around)?;

        let removed = body_at_mut(nest, &path[..around])?.remove(own);
        if own < other {
            host[around] -= 1;
        }
        let (mut nodes, mut depth) = (vec![removed], around);
        for theirs in &shared {
            let Some(Node::Loop(l)) = nodes.pop() else { return Ok(()) };
            nodes = l.body.into_iter().collect();
            substitute(&mut nodes, l.var, &Index::axis(*theirs)).ok_or_else(Refusal::overflow)?;
            depth += 1;
            let host = loop_at_mut(nest, &host[..depth])?;
            host.peel |= l.peel;
            host.overlaps |= l.overlaps;
            host.adopt(l.locals);
            let of_terms = l.stage.filter(|_| l.role == Role::Reduce);
            host.terms_of.extend(l.terms_of.into_iter().chain(of_terms));
        }
        let body = &mut loop_at_mut(nest, &host)?.body;
        let position = if own < other { 0 } else { body.len() };
        body.splice(position..position, nodes);
        for buffer in passed {
            self.expect_same_iteration(nest, &host, around, &shared, buffer)?;
        }
        check_overlaps(nest)
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        let at = names.loop_of(&self.other, &self.at)?;
        Ok(Self { other: names.stage(&self.other)?, at })
    }
}

impl ComputeWith {
    /// The buffers that the earlier of two stages writes and the later one reads. Refuses other
    /// dependences, and a stage that cannot move past the nodes in between. Both are in the loop at
    /// `path`, at positions `own` and `other`.
    fn check_order(
        &self,
        stage: &str,
        nest: &LoopNest,
        around: &[usize],
        (own, other): (usize, usize),
    ) -> Result<Vec<BufferId>, Refusal> {
        let body = loops_on(nest, around).pop().map_or(&*nest.body, |l| &l.body);
        let moved = Touched::by(&body[own]);
        let (first, last) = (own.min(other), own.max(other));
        let between = &body[first + 1..last];
        if let Some(met) = between.iter().find_map(|node| Touched::by(node).met_by(&moved)) {
            return Err(Refusal::new(format!(
                "`{stage}` cannot move to `{}`: what is computed between them makes or needs `{}`",
                self.other,
                nest.buffer(met).name
            ))
            .help(format!("move the other one: `{}: compute_with {stage} ...`", self.other)));
        }
        let (earlier, later) = (Touched::by(&body[first]), Touched::by(&body[last]));
        let is_made = |id: &&BufferId| later.writes.contains(id);
        if let Some(id) = earlier.reads.iter().chain(&earlier.writes).find(is_made) {
            return Err(Refusal::new(format!(
                "`{stage}` and `{}` cannot share loops: one of them changes `{}`, which the other one needs",
                self.other,
                nest.buffer(*id).name
            ))
            .help("leave them one after the other"));
        }
        let mut passed: Vec<BufferId> = earlier.writes;
        passed.retain(|id| later.reads.contains(id));
        Ok(passed)
    }

    /// Refuses a buffer that is written and read in shared loops if an iteration reads elements of
    /// another one.
    fn expect_same_iteration(
        &self,
        nest: &LoopNest,
        host: &[usize],
        around: usize,
        shared: &[Var],
        buffer: BufferId,
    ) -> Result<(), Refusal> {
        refuse_late(nest, host, buffer, &[Use::Start, Use::Place], "computed")?;
        let refuse = |reader: &Store| {
            let (name, reader) = (&nest.buffer(buffer).name, &nest.buffer(reader.buffer).name);
            Refusal::new(format!(
                "an iteration of loop `{}` of `{}` would make a part of `{name}`, and `{reader}` reads other parts there",
                self.at, self.other
            ))
            .help("share a loop further out, or compute a stage in a loop of its reader with `compute_at`")
        };
        let together = store_paths(&nest.body);
        let together: Vec<&Path> =
            together.iter().filter(|path| path.starts_with(&host[..=around])).collect();
        // The dimension of the written buffer that each shared loop moves, and its stride.
        let mut moved: Vec<Option<(usize, i64)>> = Vec::new();
        for path in &together {
            let (store, ranges) = (store_at(nest, path)?, ranges_on(nest, path));
            if store.buffer == buffer {
                if !path.starts_with(host) {
                    return Err(Refusal::new(format!(
                        "`{}` is not made in loop `{}` of `{}`, in which it would be read",
                        nest.buffer(buffer).name,
                        self.at,
                        self.other
                    ))
                    .help("share a loop further out"));
                }
                let steps = shared.iter().map(|var| {
                    let all = store.subscripts.iter().enumerate();
                    let step = |at: &Index| step(at, *var, shared, &ranges);
                    all.map(|(dimension, at)| Some((dimension, step(at)?))).find(Option::is_some)?
                });
                let steps = steps.collect();
                if !moved.is_empty() && moved != steps {
                    return Err(refuse(store));
                }
                moved = steps;
            }
        }
        for path in together {
            let (store, ranges) = (store_at(nest, path)?, ranges_on(nest, path));
            for (_, read) in store.reads() {
                if read.tensor != buffer {
                    continue;
                }
                let is_same = shared.iter().zip(&moved).all(|(var, moved)| {
                    let at = moved
                        .and_then(|(dimension, by)| Some((read.subscripts.get(dimension)?, by)));
                    ranges.extent(*var) == Some(1)
                        || at.is_some_and(|(at, by)| step(at, *var, shared, &ranges) == Some(by))
                });
                if !is_same || !path.starts_with(host) {
                    return Err(refuse(store));
                }
            }
        }
        Ok(())
    }

    /// The variables of the loops to share, starting with the next one below `around` loops.
    fn shared(
        &self,
        stage: &str,
        nest: &LoopNest,
        path: &[usize],
        host: &[usize],
        around: usize,
    ) -> Result<Vec<Var>, Refusal> {
        let store = store_at(nest, path)?;
        let theirs = loops_on(nest, host).split_off(around);
        let ours = loops_on(nest, path).split_off(around);
        if ours.len() < theirs.len() {
            return Err(Refusal::new(format!(
                "`{stage}` has {} loops to share, and there are {} down to loop `{}` of `{}`",
                ours.len(),
                theirs.len(),
                self.at,
                self.other
            ))
            .help("share a loop further out"));
        }
        for (number, (own, other)) in ours.iter().zip(&theirs).enumerate() {
            let name = nest.var_name(own.var);
            if own.stage != Some(store.stage()) {
                return Err(Refusal::new(format!("loop `{name}` is not one of `{stage}` alone"))
                    .help("let stages share loops first, then compute others in them"));
            }
            expect_shareable(nest, stage, own)?;
            expect_shareable(nest, &self.other, other)?;
            if own.extent != other.extent {
                return Err(Refusal::new(format!(
                    "loop `{name}` of `{stage}` has {} iterations, and loop `{}` of `{}` has {}",
                    own.extent,
                    nest.var_name(other.var),
                    self.other,
                    other.extent
                ))
                .help("split and reorder both stages in the same way first"));
            }
            if number + 1 < theirs.len() && own.body.len() != 1 {
                return Err(Refusal::new(format!(
                    "loop `{name}` of `{stage}` holds more than the next loop"
                ))
                .help("let stages share loops first, then compute others in them"));
            }
        }
        Ok(theirs.iter().map(|l| l.var).collect())
    }
}

/// Refuses a loop whose iterations depend on each other or are not sequential.
fn expect_shareable(nest: &LoopNest, stage: &str, l: &Loop) -> Result<(), Refusal> {
    let name = nest.var_name(l.var);
    expect_serial(nest, l, "share")?;
    refuse_window(nest, stage, l, "shared")?;
    if l.role == Role::Scan {
        return Err(Refusal::new(format!(
            "loop `{name}` of `{stage}` cannot be shared: it goes over the steps of a recurrence"
        ))
        .help("share the loops over results around it"));
    }
    Ok(())
}

/// The buffers that a node accesses.
#[derive(Default)]
struct Touched {
    reads: Vec<BufferId>,
    writes: Vec<BufferId>,
}

impl Touched {
    fn by(node: &Node) -> Self {
        let mut touched = Self::default();
        for_each_store(std::slice::from_ref(node), &mut |store| {
            touched.writes.push(store.buffer);
            store.walk_reads(&mut |_, read| touched.reads.push(read.tensor));
        });
        touched
    }

    /// A buffer that forces both to keep their order.
    fn met_by(&self, other: &Self) -> Option<BufferId> {
        let mut own = self.reads.iter().filter(|id| other.writes.contains(id));
        let met = own.next().copied();
        let both = |id: &&BufferId| other.reads.contains(id) || other.writes.contains(id);
        met.or_else(|| self.writes.iter().find(both).copied())
    }
}

/// The stride of an index in a shared loop, if all other loops together move it by less, and no
/// other shared loop moves it.
fn step(index: &Index, var: Var, shared: &[Var], ranges: &Ranges) -> Option<i64> {
    let index = ranges.simplify(index)?;
    let step = index.coefficient_of(var).filter(|step| *step > 0)?;
    let rest = index.sub(&Index::axis(var).scale(step)?)?;
    if rest.mentions(&|other| shared.contains(&other)) {
        return None;
    }
    let rest = ranges.interval(&rest);
    (rest.lo >= 0 && rest.hi < i128::from(step)).then_some(step)
}

/// The body of the loop at a path, or of the nest.
fn body_at_mut<'a>(nest: &'a mut LoopNest, path: &[usize]) -> Result<&'a mut Vec<Node>, Refusal> {
    if path.is_empty() {
        return Ok(&mut nest.body);
    }
    Ok(&mut loop_at_mut(nest, path)?.body)
}
