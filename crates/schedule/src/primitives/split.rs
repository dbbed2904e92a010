//! `split`: splits a loop into a nest of loops.
//!
//! ```text
//! C: split n 4 16                    for n.0 in 0..8 {
//!                                      for n.1 in 0..4 {
//! for n in 0..512 { S(n); }     ->       for n.2 in 0..16 { S(64*n.0 + 16*n.1 + n.2); }
//! ```
//!
//! The numbers are the extents of the inner loops. The loops are called `n.0`, `n.1` and so on
//! unless `-> a b c` names them. If the extent is not a multiple of the inner extents, the *tail*
//! strategy handles the last, incomplete iteration of the outer loop:
//!
//! | tail | what happens | where |
//! | --- | --- | --- |
//! | `guard` | a condition masks iterations beyond the end (the default) | anywhere |
//! | `peel` | the last iteration of the outer loop is peeled, the others have no condition | anywhere |
//! | `shift` | the last iteration is shifted inwards and recomputes some elements | spatial loops, with the whole reduction inside |
//! | `round_up` | iterations beyond the end compute padding; only out-of-bounds accesses are masked | spatial loops |
//!
//! The loops of a recurrence keep their order: the parts of its loop stay nested.

use std::fmt;

use tensorwright_lang::program::Index;

use super::find::{
    check_overlaps, expect_fresh, expect_serial, find_loop, loop_at, loop_at_mut, node_at_mut,
    refuse_window, sums_of,
};
use super::{Reach, Rule};
use crate::limits::{MAX_PARTS, exceeded};
use crate::nest::{
    Bound, Loop, LoopNest, Node, Role, Var, for_each_store, for_each_store_mut, substitute,
};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::{Words, without_marks};

/// Splits a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The loop.
    pub target: String,
    /// The extents of the inner loops, outermost first.
    pub factors: Vec<i64>,
    /// The names of the new loops, outermost first; empty for the default names.
    pub names: Vec<String>,
    /// The tail strategy.
    pub tail: Tail,
}

/// The tail strategy: handles an incomplete last iteration of the outer loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tail {
    /// Iterations beyond the end are masked off.
    #[default]
    Guard,
    /// The last iteration is peeled.
    Peel,
    /// It is shifted inwards.
    Shift,
    /// It computes padding.
    RoundUp,
}

impl Tail {
    /// Every tail strategy, with its name in schedules.
    pub const ALL: [(&'static str, Tail); 4] = [
        ("guard", Tail::Guard),
        ("peel", Tail::Peel),
        ("shift", Tail::Shift),
        ("round_up", Tail::RoundUp),
    ];

    /// The name in schedules.
    #[must_use]
    pub fn name(self) -> &'static str {
        Tail::ALL.iter().find(|(_, tail)| *tail == self).map_or("guard", |(name, _)| name)
    }
}

impl Split {
    /// A split with default names and the tail `guard`.
    #[must_use]
    pub fn new(target: impl Into<String>, factors: &[i64]) -> Self {
        let (names, tail) = (Vec::new(), Tail::Guard);
        Self { target: target.into(), factors: factors.to_vec(), names, tail }
    }

    /// The same split with a tail.
    #[must_use]
    pub fn tail(mut self, tail: Tail) -> Self {
        self.tail = tail;
        self
    }

    /// The names of the new loops.
    fn loop_names(&self) -> Vec<String> {
        if self.names.is_empty() {
            let target = without_marks(&self.target).0;
            (0..=self.factors.len()).map(|n| format!("{target}.{n}")).collect()
        } else {
            self.names.clone()
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "split {}", self.target)?;
        self.factors.iter().try_for_each(|factor| write!(f, " {factor}"))?;
        if !self.names.is_empty() {
            write!(f, " -> {}", self.names.join(" "))?;
        }
        match self.tail {
            Tail::Guard => Ok(()),
            tail => write!(f, " [{}]", tail.name()),
        }
    }
}

impl Rule for Split {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let target = words.name("the name of a loop")?;
        let mut factors = vec![words.number("the extent of an inner loop")?];
        while words.at_number() {
            factors.push(words.number("the extent of an inner loop")?);
            expect_few(&factors)?;
        }
        let names = if words.accept("->") { words.names() } else { Vec::new() };
        let mut tail = Tail::Guard;
        if words.accept("[") {
            let name = words.name("a tail")?;
            let found = Tail::ALL.iter().find(|(known, _)| *known == name);
            tail = found.map(|(_, tail)| *tail).ok_or_else(|| {
                Refusal::new(format!("there is no tail `{name}`"))
                    .help("the tails are guard, peel, shift and round_up")
            })?;
            words.symbol("]")?;
        }
        let split = Split { target, factors, names, tail };
        if !split.names.is_empty() && split.names.len() != split.factors.len() + 1 {
            return Err(Refusal::new(format!(
                "{} factors make {} loops, but there are {} names",
                split.factors.len(),
                split.factors.len() + 1,
                split.names.len()
            )));
        }
        Ok(split)
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        expect_few(&self.factors)?;
        if let Some(factor) = self.factors.iter().find(|factor| **factor < 1) {
            return Err(Refusal::new(format!("an inner loop cannot have {factor} iterations")));
        }
        let path = find_loop(nest, stage, &self.target)?;
        let old = loop_at(nest, &path)?;
        expect_serial(nest, old, "split")?;
        let (var, extent, has_locals) = (old.var, old.extent, !old.locals.is_empty());
        let (peeled, overlapping, is_sized) = (old.peel, old.overlaps, old.is_sized);
        let block = self.factors.iter().try_fold(1i64, |product, factor| {
            product.checked_mul(*factor).filter(|product| *product <= i64::from(i32::MAX))
        });
        let block = block.ok_or_else(|| {
            Refusal::new("the inner loops have more than 2147483647 iterations")
                .help("use smaller factors")
        })?;
        self.check_tail((nest, stage), old, block)?;
        refuse_window(nest, stage, old, "split")?;
        if peeled || overlapping {
            return Err(Refusal::new(format!(
                "loop `{}` of `{stage}` ends in a tail that a split would tear apart",
                self.target
            ))
            .help("split the original loop into more loops at once: `split n 4 16`"));
        }
        if has_locals {
            return Err(Refusal::new(format!(
                "loop `{}` of `{stage}` holds buffers of its own",
                self.target
            ))
            .help("split it before other stages are computed in it"));
        }
        let names = self.loop_names();
        expect_fresh(nest, stage, &names)?;
        let vars: Vec<Var> = names.into_iter().map(|name| nest.add_var(name)).collect();
        let value = self.value(&vars, block, extent).ok_or_else(Refusal::overflow)?;
        let sized = bounded_by_size(nest, loop_at(nest, &path)?);
        let Some(Node::Loop(l)) = node_at_mut(&mut nest.body, &path) else { return Ok(()) };
        substitute(&mut l.body, var, &value).ok_or_else(Refusal::overflow)?;
        let cut = extent % block != 0;
        if cut && self.tail != Tail::Shift {
            let end = Index::constant(extent - 1).sub(&value).ok_or_else(Refusal::overflow)?;
            let (padding, shell) = (self.tail == Tail::RoundUp, l.shell());
            let mut sized = sized.into_iter();
            for_each_store_mut(&mut l.body, &mut |store| {
                // A size ends the loop earlier.
                if sized.next().unwrap_or(false) {
                    return;
                }
                let term = shell.reduces(store.stage());
                store.domain.push(Bound { index: end.clone(), padding, term });
            });
        }
        let body = std::mem::take(&mut l.body);
        let mut extents = vec![(extent + block - 1) / block];
        extents.extend(&self.factors);
        let nested = vars.iter().zip(extents).rev().fold(body, |body, (var, extent)| {
            let mut inner = Loop::new(*var, extent, l.role, body);
            inner.stage = l.stage;
            inner.terms_of.clone_from(&l.terms_of);
            vec![Node::Loop(inner)].into()
        });
        if let Some(Node::Loop(mut outer)) = nested.into_iter().next() {
            outer.peel = cut && self.tail == Tail::Peel && !is_sized;
            outer.overlaps = cut && self.tail == Tail::Shift;
            outer.is_sized = is_sized;
            *loop_at_mut(nest, &path)? = outer;
        }
        check_overlaps(nest)
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        let target = names.own_loop(&self.target)?;
        let usual = Self { target, names: Vec::new(), ..self.clone() };
        let wanted = match self.names.as_slice() {
            [] => usual.loop_names(),
            given => Renaming::derived(given, &self.target, &usual.target),
        };
        let free = names.new_loops(wanted)?;
        let is_usual = self.names.is_empty() && free == usual.loop_names();
        Ok(if is_usual { usual } else { Self { names: free, ..usual } })
    }
}

/// Whether the domain of each store of a loop ends it by a size, at its extent at the latest.
fn bounded_by_size(nest: &LoopNest, l: &Loop) -> Vec<bool> {
    let mut found = Vec::new();
    for_each_store(&l.body, &mut |store| {
        found.push(
            l.is_sized
                && store.domain.iter().any(|bound| {
                    bound.index.coefficient_of(l.var) == Some(-1) && nest.is_sized(&bound.index)
                }),
        );
    });
    found
}

fn expect_few(factors: &[i64]) -> Result<(), Refusal> {
    let loops = factors.len() + 1;
    if loops <= MAX_PARTS {
        return Ok(());
    }
    Err(exceeded("splits one loop into", format_args!("{loops} or more"), "loops", MAX_PARTS)
        .help("a loop that is split in three or four already serves registers and caches"))
}

impl Split {
    fn check_tail(
        &self,
        (nest, stage): (&LoopNest, &str),
        old: &Loop,
        block: i64,
    ) -> Result<(), Refusal> {
        let tail = self.tail.name();
        let spatial_only = matches!(self.tail, Tail::Shift | Tail::RoundUp);
        if spatial_only && old.role == Role::Scan && old.extent % block != 0 {
            return Err(Refusal::new(format!(
                "the tail `{tail}` would leave the order of elements of `{stage}`: loop `{}` is a \
                 recurrence of {} steps, which is no multiple of {block}",
                self.target, old.extent
            ))
            .help("use the tail `guard` or `peel`"));
        }
        let sums = match old.role {
            Role::Reduce => Some(format!("`{stage}`")),
            _ => (!old.terms_of.is_empty()).then(|| sums_of(nest, old)),
        };
        if let Some(sums) = sums.filter(|_| spatial_only && old.extent % block != 0) {
            return Err(Refusal::new(format!(
                "the tail `{tail}` would add terms to {sums} that are not there: loop `{}` is a \
                 reduction of {} terms, which is no multiple of {block}",
                self.target, old.extent
            ))
            .help("use the tail `guard` or `peel`"));
        }
        if self.tail == Tail::Shift && old.extent < block {
            return Err(Refusal::new(format!(
                "loop `{}` of `{stage}` has {} iterations and cannot be shifted inwards to make {block}",
                self.target, old.extent
            ))
            .help("use smaller factors or the tail `guard`"));
        }
        Ok(())
    }

    /// The old variable as a function of the new ones.
    fn value(&self, vars: &[Var], block: i64, extent: i64) -> Option<Index> {
        let (outer, inner) = vars.split_first()?;
        let mut value = Index::axis(*outer).scale(block)?;
        if self.tail == Tail::Shift && extent % block != 0 {
            value = value.min(Index::constant(extent - block));
        }
        let mut stride = block;
        for (var, factor) in inner.iter().zip(&self.factors) {
            stride /= factor;
            value = value.add(&Index::axis(*var).scale(stride)?)?;
        }
        Some(value)
    }
}
