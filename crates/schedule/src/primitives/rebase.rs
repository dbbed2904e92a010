//! `rebase`: computes a softmax with block-wise maxima (online softmax).
//!
//! ```text
//! top: rebase s 512                          for l, b { for s in 0..512 { top.block(l, b) max= x(l, 512*b + s); } }
//! for l { for s { top(l) max= x(l, s); } }   for l { for b { top(l) max= top.block(l, b); } }
//! for l, s {                            ->   for l, b { top.scale(l, b) = exp(top.block(l, b) - top(l)); }
//!   w(l, s) = exp(x(l, s) - top(l));         for l, s { w(l, s) = exp(x(l, s) - top.block(l, s / 512)); }
//! }                                          for l { for s { t(l) += w(l, s) * top.scale(l, s / 512); } }
//! for l { for s { t(l) += w(l, s); } }
//! ```
//!
//! A softmax reads its row twice: for the maximum, and for the exponentials relative to it. With a
//! maximum per block, a block of exponentials does not depend on later blocks:
//! [`factor`](super::Factor) moves the scale of a block out of the sums over it, and blocks of
//! scores, exponentials and sums stay in the cache together. That is the online softmax (Milakov
//! and Gimelshein, 2018) of FlashAttention, with the rescaling at the end instead of at every
//! block.
//!
//! One subtraction and one exponential become two of each and a product. The subtractions add up to
//! the original one (`x - block` and `block - top` have the same sign), so the relative error of an
//! exponential is at most three times the original one.

use std::fmt;

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, ReductionOp};
use tensorwright_lang::program::{Expr, Index, Read, Rewrite, Scalar};

use super::Rule;
use super::find::{fresh_name, loops_on, node_at_mut, ranges_on, store_at, store_paths};
use super::footprint::{refuse_checked, writers};
use super::plain::{Plain, Renamed, is_zero, own_loops};
use super::prepare::chain;
use crate::canonical::{element, neutral};
use crate::nest::{
    Buffer, BufferId, LoopNest, Node, Owner, Role, Store, Var, rewrite_nodes, rewrite_store,
};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// The factor by which the error of an exponential grows.
const GROWTH: f64 = 3.0;

/// The most elements of the block maxima.
const MAX_ELEMENTS: i64 = 1 << 40;

/// Computes exponentials relative to block maxima.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebase {
    /// The reduction loop of the maximum.
    pub target: String,
    /// The terms of a block.
    pub by: i64,
}

impl fmt::Display for Rebase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rebase {} {}", self.target, self.by)
    }
}

impl Rule for Rebase {
    fn is_exact(&self) -> bool {
        false
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let target = words.name("the name of a loop of the maximum")?;
        Ok(Rebase { target, by: words.number("the terms of a block")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let maximum = Maximum::of(nest, stage, self)?;
        let found = maximum.exponentials(nest)?;
        if found.is_empty() {
            return Err(Refusal::new(format!(
                "nothing computes exponentials of the terms of `{stage}` below it"
            ))
            .help("it takes a stage `w(l,s) = exp(x(l,s) - top(l))` under the condition of the maximum, if it has one"));
        }
        let (blocks, scales) = maximum.add_buffers(nest, stage)?;
        for exponential in &found {
            exponential.rewrite(nest, &maximum, (blocks, scales))?;
        }
        maximum.replace(nest, (blocks, scales))?;
        nest.error_growth *= GROWTH;
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { target: names.own_loop(&self.target)?, ..self.clone() })
    }
}

/// The maximum of each row.
struct Maximum {
    plain: Plain,
    /// The buffer, and the variable of each of its dimensions.
    buffer: BufferId,
    dims: Vec<Var>,
    /// The loop that is split into blocks, and the terms of a block.
    var: Var,
    extent: i64,
    by: i64,
    /// The condition of its terms, and the terms.
    condition: Option<Expr>,
    term: Expr,
}

impl Maximum {
    fn of(nest: &LoopNest, stage: &str, rebase: &Rebase) -> Result<Self, Refusal> {
        let plain = Plain::of(nest, stage)?;
        let store = &plain.store;
        let dtype = nest.dtype(store.buffer);
        let starts = store.init == Some(neutral(ReductionOp::Max, dtype));
        let dims: Option<Vec<Var>> = store.subscripts.iter().map(Index::as_axis).collect();
        let is_computed = dtype.is_float() && !dtype.is_storage_only();
        let is_whole = is_computed && starts && store.domain.is_empty();
        let is_whole = is_whole && writers(nest, store.buffer) == 1;
        let (true, Some(ReductionOp::Max), Some(dims)) = (is_whole, store.combine, dims) else {
            return Err(Refusal::new(format!(
                "`{stage}` is not a maximum of all terms of all of its rows"
            ))
            .help("it takes a statement `top(l) max=! x(l,s)` of floats that starts with the first row"));
        };
        let number = plain.find(nest, stage, &rebase.target, Role::Reduce)?;
        let (var, extent, _) = plain.loops[number];
        let by = rebase.by;
        if by < 1 || extent % by != 0 {
            return Err(Refusal::new(format!(
                "loop `{}` of `{stage}` has {extent} iterations, which are not blocks of {by}",
                rebase.target
            ))
            .help("blocks have a number of terms that divides all of them"));
        }
        let (condition, term) = match &store.value {
            Expr::Select(condition, term, other) if **other == neutral(ReductionOp::Max, dtype) => {
                (Some((**condition).clone()), (**term).clone())
            }
            value => (None, value.clone()),
        };
        Ok(Self { buffer: store.buffer, dims, var, extent, by, condition, term, plain })
    }

    /// The exponentials of its terms, relative to it.
    fn exponentials(&self, nest: &LoopNest) -> Result<Vec<Exponential>, Refusal> {
        let mut found = Vec::new();
        for path in store_paths(&nest.body) {
            let store = store_at(nest, &path)?;
            let loops = loops_on(nest, &path);
            let candidates = loops.iter().filter(|l| l.extent == self.extent).map(|l| l.var);
            let Some((condition, read)) = below(&store.value, self.buffer) else { continue };
            // A condition may guard the row, but readers of the exponential do not have it.
            let ranges = ranges_on(nest, &path);
            let is_inside = nest.buffer(self.buffer).is_inside(&read.subscripts, &ranges);
            if !read.checked.is_empty() || !is_inside {
                continue;
            }
            let is_it = |along: &Var| self.is_below(condition, &store.value, read, *along);
            let Some(along) = candidates.into_iter().find(is_it) else { continue };
            let place = match store.combine {
                None if is_own(nest, store.buffer) => {
                    refuse_checked(nest, store.buffer)?;
                    let dims: Option<Vec<Var>> =
                        store.subscripts.iter().map(Index::as_axis).collect();
                    let Some(dims) = dims.filter(|dims| dims.contains(&along)) else { continue };
                    ExponentialSite::Stage(dims)
                }
                Some(ReductionOp::Sum) => ExponentialSite::Sum,
                _ => continue,
            };
            let rows = read.subscripts.clone();
            found.push(Exponential { path, buffer: store.buffer, rows, along, place });
        }
        Ok(found)
    }

    /// Whether an expression is the exponential of a term relative to the maximum, with another
    /// loop in place of the blocked one.
    fn is_below(&self, condition: Option<&Expr>, value: &Expr, read: &Read, along: Var) -> bool {
        let Some(term) = exponent(value) else { return false };
        let mut there = LoopMap { from: self, rows: &read.subscripts, along };
        let mut same = |own: &Expr, other: &Expr| own.rewrite(&mut there).as_ref() == Some(other);
        let is_seen = match &self.condition {
            Some(own) => condition.is_some_and(|condition| same(own, condition)),
            None => true,
        };
        is_seen && same(&self.term, term)
    }

    fn add_buffers(
        &self,
        nest: &mut LoopNest,
        stage: &str,
    ) -> Result<(BufferId, BufferId), Refusal> {
        let own = nest.buffer(self.buffer).clone();
        let mut shape = own.shape;
        shape.push(self.extent / self.by);
        let elements = shape.iter().try_fold(1i64, |product, extent| product.checked_mul(*extent));
        if elements.is_none_or(|elements| elements > MAX_ELEMENTS) {
            return Err(
                Refusal::new("there are more than 2^40 maxima of blocks").help("use larger blocks")
            );
        }
        let mut add = |suffix: &str| {
            let name = fresh_name(nest, &format!("{stage}.{suffix}"));
            nest.add_buffer(Buffer::new(name, own.dtype, shape.clone(), Owner::Intermediate))
        };
        Ok((add("block"), add("scale")))
    }

    /// Replaces the maximum by block maxima, their maximum and the scales.
    fn replace(
        self,
        nest: &mut LoopNest,
        (blocks, scales): (BufferId, BufferId),
    ) -> Result<(), Refusal> {
        let count = self.extent / self.by;
        let dtype = nest.dtype(self.buffer);
        let rows = self.plain.loops.iter().filter(|(.., role)| *role == Role::Spatial);
        let rows: Vec<(Var, i64, Role)> = rows.copied().collect();
        let block_name = format!("{}.block", nest.var_name(self.var));

        // The block maxima take over the loops, with new variables.
        let block = nest.add_var(block_name.clone());
        let mut renamed = Renamed(Vec::new());
        let mut loops: Vec<(Var, i64, Role)> = Vec::new();
        let mut terms: Vec<(Var, i64, Role)> = Vec::new();
        for (var, extent, role) in &self.plain.loops {
            let new = nest.add_var(nest.var_name(*var).to_owned());
            let is_cut = *var == self.var;
            let first = Index::axis(block).scale(self.by).ok_or_else(Refusal::overflow)?;
            let at = if is_cut { first.add(&Index::axis(new)) } else { Some(Index::axis(new)) };
            renamed.0.push((*var, at.ok_or_else(Refusal::overflow)?));
            let extent = if is_cut { self.by } else { *extent };
            let list = if *role == Role::Spatial { &mut loops } else { &mut terms };
            list.push((new, extent, *role));
        }
        loops.push((block, count, Role::Spatial));
        loops.extend(terms);
        let mut maxima = self.plain.store.clone();
        rewrite_store(&mut maxima, &mut renamed).ok_or_else(Refusal::overflow)?;
        maxima.buffer = blocks;
        maxima.subscripts.push(Index::axis(block));
        let maxima = chain(&loops, maxima);

        let own = |nest: &mut LoopNest, extra: Role| {
            let (mut loops, renamed) = own_loops(nest, rows.iter().copied());
            let block = nest.add_var(block_name.clone());
            loops.push((block, count, extra));
            let at = |dim: &Var| {
                renamed.0.iter().find(|(old, _)| old == dim).map(|(_, new)| new.clone())
            };
            let dims: Vec<Index> = self.dims.iter().filter_map(at).collect();
            (loops, dims, Index::axis(block))
        };
        let with =
            |dims: &[Index], block: Index| dims.iter().cloned().chain([block]).collect::<Vec<_>>();
        let (loops, dims, block) = own(nest, Role::Reduce);
        let mut whole = Store::new(self.buffer, dims.clone(), element(blocks, with(&dims, block)));
        whole.combine = Some(ReductionOp::Max);
        whole.init = Some(neutral(ReductionOp::Max, dtype));
        let whole = chain(&loops, whole);

        let (loops, dims, block) = own(nest, Role::Spatial);
        let at = with(&dims, block);
        let distance = minus(
            finite(element(blocks, at.clone()), dtype),
            finite(element(self.buffer, dims), dtype),
        );
        let scale = chain(&loops, Store::new(scales, at, Expr::Call(Builtin::Exp, vec![distance])));
        self.plain.exchange(nest, vec![maxima, whole, scale]);
        Ok(())
    }
}

/// An exponential relative to a maximum.
struct Exponential {
    path: Vec<usize>,
    buffer: BufferId,
    /// The row of the maximum.
    rows: Vec<Index>,
    /// The loop along the row.
    along: Var,
    place: ExponentialSite,
}

/// The node that computes an exponential.
enum ExponentialSite {
    /// A separate stage with these dimensions: its readers apply the scale.
    Stage(Vec<Var>),
    /// A sum.
    Sum,
}

impl Exponential {
    fn rewrite(
        &self,
        nest: &mut LoopNest,
        maximum: &Maximum,
        (blocks, scales): (BufferId, BufferId),
    ) -> Result<(), Refusal> {
        let dtype = nest.dtype(maximum.buffer);
        let block = Index::axis(self.along).div(maximum.by).ok_or_else(Refusal::overflow)?;
        let at: Vec<Index> = self.rows.iter().cloned().chain([block]).collect();
        let Some(Node::Store(store)) = node_at_mut(&mut nest.body, &self.path) else {
            return Ok(());
        };
        let top = finite(element(blocks, at.clone()), dtype);
        let scale = matches!(self.place, ExponentialSite::Sum).then(|| element(scales, at.clone()));
        store.value = rebased(&store.value, &top, scale.as_ref());
        if let ExponentialSite::Stage(dims) = &self.place {
            let mut rules = Scaled { buffer: self.buffer, dims, scales, at: &at };
            rewrite_nodes(&mut nest.body, &mut rules).ok_or_else(Refusal::overflow)?;
        }
        Ok(())
    }
}

/// Whether one stage writes an intermediate buffer, of a type that stores values unrounded.
fn is_own(nest: &LoopNest, id: BufferId) -> bool {
    let buffer = nest.buffer(id);
    let is_plain = buffer.owner == Owner::Intermediate && !buffer.dtype.is_storage_only();
    is_plain && writers(nest, id) == 1
}

/// The condition of an exponential relative to a maximum, if any, and the maximum.
fn below(value: &Expr, buffer: BufferId) -> Option<(Option<&Expr>, &Read)> {
    match value {
        Expr::Select(condition, then, other) => match &**other {
            Expr::Const(scalar) if is_zero(*scalar) => below(then, buffer)
                .filter(|(inner, _)| inner.is_none())
                .map(|(_, read)| (Some(&**condition), read)),
            _ => None,
        },
        Expr::Call(Builtin::Exp, arguments) => match arguments.as_slice() {
            [Expr::Arith(ArithOp::Sub, _, top)] => match &**top {
                Expr::Read(read) if read.tensor == buffer => Some((None, read)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The argument of an exponential relative to a maximum.
fn exponent(value: &Expr) -> Option<&Expr> {
    match value {
        Expr::Select(_, then, _) => exponent(then),
        Expr::Call(Builtin::Exp, arguments) => match arguments.as_slice() {
            [Expr::Arith(ArithOp::Sub, term, _)] => Some(term),
            _ => None,
        },
        _ => None,
    }
}

/// An exponential relative to another maximum, times an optional scale.
fn rebased(value: &Expr, top: &Expr, scale: Option<&Expr>) -> Expr {
    if let Expr::Select(condition, then, other) = value {
        let then = Box::new(rebased(then, top, scale));
        return Expr::Select(condition.clone(), then, other.clone());
    }
    let term = exponent(value).cloned().unwrap_or_else(|| value.clone());
    let exponential = Expr::Call(Builtin::Exp, vec![minus(term, top.clone())]);
    match scale {
        Some(scale) => Expr::Arith(ArithOp::Mul, Box::new(exponential), Box::new(scale.clone())),
        None => exponential,
    }
}

fn minus(a: Expr, b: Expr) -> Expr {
    Expr::Arith(ArithOp::Sub, Box::new(a), Box::new(b))
}

/// A maximum that is finite: an empty one, or one of negative infinities only, becomes a number, so
/// that differences are defined.
fn finite(top: Expr, dtype: DType) -> Expr {
    let least = if dtype.bytes() > 4 { f64::MIN } else { f64::from(f32::MIN) };
    Expr::Call(Builtin::Max, vec![top, Expr::Const(Scalar::float(dtype, least))])
}

/// Maps the loops of a maximum to those that recompute its terms.
struct LoopMap<'a> {
    from: &'a Maximum,
    rows: &'a [Index],
    along: Var,
}

impl Rewrite for LoopMap<'_> {
    fn axis(&mut self, axis: Var) -> Option<Index> {
        if axis == self.from.var {
            return Some(Index::axis(self.along));
        }
        let dim = self.from.dims.iter().position(|var| *var == axis)?;
        self.rows.get(dim).cloned()
    }
}

/// Multiplies reads of exponentials by the scale of their block.
struct Scaled<'a> {
    buffer: BufferId,
    dims: &'a [Var],
    scales: BufferId,
    /// The scale of an element, as a function of the dimensions.
    at: &'a [Index],
}

impl Rewrite for Scaled<'_> {
    fn read(&mut self, read: Read) -> Option<Expr> {
        if read.tensor != self.buffer {
            return Some(Expr::Read(read));
        }
        let values = self.dims.iter().copied().zip(read.subscripts.iter().cloned());
        let mut renamed = Renamed(values.collect());
        let at: Option<Vec<Index>> = self.at.iter().map(|at| at.rewrite(&mut renamed)).collect();
        let scale = element(self.scales, at?);
        Some(Expr::Arith(ArithOp::Mul, Box::new(Expr::Read(read)), Box::new(scale)))
    }
}
