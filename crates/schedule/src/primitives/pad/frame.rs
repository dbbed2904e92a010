//! The box of positions that a padded copy covers.

use tensorwright_lang::ops::{CompareOp, LogicOp, UnaryOp};
use tensorwright_lang::program::{Atom, Expr, Index, Read, Rewrite, Scalar};

use super::super::find::fresh_name;
use super::super::prepare::chain;
use super::Site;
use crate::canonical::element;
use crate::nest::{
    Buffer, BufferId, LoopNest, Node, Owner, Ranges, Role, Simplify, Store, Var, rewrite_store,
};
use crate::refusal::Refusal;

/// The most elements of a padded copy.
const MAX_ELEMENTS: i64 = 1 << 40;

/// One dimension of a copy.
struct Side {
    /// The variable of the loop that computes it.
    var: Var,
    /// The position in the tensor of its first element.
    first: i64,
    /// The number of elements.
    count: i64,
    /// The number of elements of the tensor.
    extent: i64,
}

/// The box of positions that a copy covers.
pub(super) struct Frame {
    tensor: BufferId,
    sides: Vec<Side>,
    ranges: Ranges,
}

impl Frame {
    /// The smallest box that contains all sites.
    pub(super) fn around(
        nest: &mut LoopNest,
        tensor: BufferId,
        sites: &[Site],
        ranges: &Ranges,
    ) -> Result<Self, Refusal> {
        if nest.buffer(tensor).is_sized() {
            let name = &nest.buffer(tensor).name;
            return Err(Refusal::new(format!("the extents of `{name}` vary between calls"))
                .help("a tensor of fixed extents can be padded"));
        }
        let shape = nest.buffer(tensor).shape.clone();
        let mut frame = Self { tensor, sides: Vec::new(), ranges: nest.ranges() };
        let mut elements = 1i64;
        for (dimension, extent) in shape.into_iter().enumerate() {
            let subscripts = sites.iter().filter_map(|site| site.subscripts.get(dimension));
            let reach = subscripts.map(|subscript| ranges.interval(subscript));
            let (lo, hi) = reach.fold((i128::MAX, i128::MIN), |(lo, hi), interval| {
                (lo.min(interval.lo), hi.max(interval.hi))
            });
            let count = hi.checked_sub(lo).and_then(|last| i64::try_from(last + 1).ok());
            let size = count.and_then(|count| elements.checked_mul(count));
            let (Some(count), Some(size), Ok(first)) = (count, size, i64::try_from(lo)) else {
                return Err(too_large());
            };
            elements = size;
            let var = nest.add_var(format!("d{dimension}"));
            frame.ranges.insert(var, count);
            frame.sides.push(Side { var, first, count, extent });
        }
        if elements <= MAX_ELEMENTS { Ok(frame) } else { Err(too_large()) }
    }

    /// The condition of a site in terms of elements of the copy; `None` if it always holds.
    pub(super) fn condition(&self, site: &Site) -> Result<Option<Expr>, Refusal> {
        let mut all = Vec::new();
        for condition in &site.conditions {
            let moved = self.moved(site, condition).ok_or_else(|| {
                Refusal::new(
                    "the condition around the read is not one on the position that is read",
                )
                .help("a copy can be padded where `h+kh-1 >= 0` guards `in(.., h+kh-1)`")
            })?;
            conjuncts(moved, &mut all);
        }
        let outside = self.outside(&all).ok_or_else(Refusal::overflow)?;
        all.extend(outside);
        let both = |a, b| Expr::Logic(LogicOp::And, Box::new(a), Box::new(b));
        let Some(condition) = all.into_iter().reduce(both) else { return Ok(None) };
        let simple =
            condition.rewrite(&mut Simplify(&self.ranges)).ok_or_else(Refusal::overflow)?;
        Ok(match simple {
            Expr::Const(scalar) if scalar.as_integer() != 0 => None,
            condition => Some(condition),
        })
    }

    /// Shifts reads of the copy to start at its first element; `None` on overflow.
    pub(super) fn shift(&self, store: &mut Store, copy: BufferId) -> Option<()> {
        struct Shift<'a>(&'a Frame, BufferId);
        impl Rewrite for Shift<'_> {
            fn read(&mut self, mut read: Read) -> Option<Expr> {
                if read.tensor == self.1 {
                    for (subscript, side) in read.subscripts.iter_mut().zip(&self.0.sides) {
                        *subscript = subscript.sub(&Index::constant(side.first))?;
                    }
                }
                Some(Expr::Read(read))
            }
        }
        rewrite_store(store, &mut Shift(self, copy))
    }

    /// Adds the copy and the stage that computes it to the nest.
    pub(super) fn make(
        self,
        nest: &mut LoopNest,
        condition: Option<Expr>,
        fill: Scalar,
    ) -> Result<Node, Refusal> {
        let source = nest.buffer(self.tensor).clone();
        let name = fresh_name(nest, &format!("{}.pad", source.name));
        let shape = self.sides.iter().map(|side| side.count).collect();
        let copy = Buffer::new(name, source.dtype, shape, Owner::Intermediate);
        let copy = nest.add_buffer(copy);
        let positions: Option<Vec<Index>> = self.sides.iter().map(Side::position).collect();
        let read = element(self.tensor, positions.ok_or_else(Refusal::overflow)?);
        let value = match condition {
            Some(condition) => {
                Expr::Select(Box::new(condition), Box::new(read), Box::new(Expr::Const(fill)))
            }
            None => read,
        };
        let subscripts = self.sides.iter().map(|side| Index::axis(side.var)).collect();
        let loops: Vec<(Var, i64, Role)> =
            self.sides.iter().map(|side| (side.var, side.count, Role::Spatial)).collect();
        Ok(chain(&loops, Store::new(copy, subscripts, value)))
    }

    /// A condition on positions, in terms of elements of the copy.
    fn moved(&self, site: &Site, condition: &Expr) -> Option<Expr> {
        let again = |condition: &Expr| self.moved(site, condition).map(Box::new);
        Some(match condition {
            Expr::CompareIndex(op, a, b) => compare(*op, &self.moved_index(site, &a.sub(b)?)?)?,
            Expr::Logic(op, a, b) => Expr::Logic(*op, again(a)?, again(b)?),
            Expr::Unary(UnaryOp::Not, a) => Expr::Unary(UnaryOp::Not, again(a)?),
            _ => return None,
        })
    }

    /// An index as a function of the position that a site reads, if it is one.
    fn moved_index(&self, site: &Site, index: &Index) -> Option<Index> {
        let pairs = || site.subscripts.iter().zip(&self.sides);
        // Usually one scaled and shifted subscript; otherwise a sum of several.
        let alone = pairs().find_map(|(subscript, side)| {
            let (factor, rest) = eliminate(index, subscript)?;
            let rest = Index::constant(rest.as_constant()?);
            side.position()?.scale(factor)?.add(&rest)
        });
        if alone.is_some() {
            return alone;
        }
        let (mut sum, mut rest) = (Index::constant(0), index.clone());
        for (subscript, side) in pairs() {
            if let Some((factor, left)) = eliminate(&rest, subscript) {
                sum = sum.add(&side.position()?.scale(factor)?)?;
                rest = left;
            }
        }
        sum = sum.add(&Index::constant(rest.constant_term()))?;
        for term in rest.terms() {
            let atom = match &term.atom {
                Atom::Div(inner, by) => self.moved_index(site, inner)?.div(*by)?,
                Atom::Mod(inner, by) => self.moved_index(site, inner)?.rem(*by),
                _ => return None,
            };
            sum = sum.add(&atom.scale(term.coefficient)?)?;
        }
        Some(sum)
    }

    /// The bounds of the tensor that other conditions do not imply: the box may contain positions
    /// that no iteration reads. `None` on overflow.
    fn outside(&self, conditions: &[Expr]) -> Option<Vec<Expr>> {
        let mut missing = Vec::new();
        for side in &self.sides {
            let (mut lo, mut hi) = (0, i128::from(side.count) - 1);
            for condition in conditions {
                let (from, to) = limits(condition, side.var);
                (lo, hi) = (lo.max(from), hi.min(to));
            }
            let position = side.position()?;
            if lo + i128::from(side.first) < 0 {
                missing.push(compare(CompareOp::Ge, &position)?);
            }
            if hi + i128::from(side.first) >= i128::from(side.extent) {
                let beyond = position.sub(&Index::constant(side.extent))?;
                missing.push(compare(CompareOp::Lt, &beyond)?);
            }
        }
        Some(missing)
    }
}

impl Side {
    /// The position in the tensor of the current element of the loop.
    fn position(&self) -> Option<Index> {
        Index::axis(self.var).add(&Index::constant(self.first))
    }
}

/// `index = factor * subscript + rest`, where the first atom of the subscript is not in the rest.
fn eliminate(index: &Index, subscript: &Index) -> Option<(i64, Index)> {
    let pivot = subscript.terms().first()?;
    let term = index.terms().iter().find(|term| term.atom == pivot.atom)?;
    if term.coefficient.checked_rem(pivot.coefficient)? != 0 {
        return None;
    }
    let factor = term.coefficient.checked_div(pivot.coefficient)?;
    Some((factor, index.sub(&subscript.scale(factor)?)?))
}

/// The comparison of an index with zero, with the constant on the right and without a factor of a
/// single variable: `2*d0 - 3 >= 0` is `d0 >= 2`.
fn compare(op: CompareOp, index: &Index) -> Option<Expr> {
    let constant = index.constant_term();
    let limit = constant.checked_neg()?;
    let [term] = index.terms() else {
        let rest = index.sub(&Index::constant(constant))?;
        return Some(Expr::CompareIndex(op, rest, Index::constant(limit)));
    };
    let (op, limit, factor) = match term.coefficient {
        factor if factor < 0 => (flipped(op), limit.checked_neg()?, factor.checked_neg()?),
        factor => (op, limit, factor),
    };
    let up = |number: i64| number.div_euclid(factor) + i64::from(number.rem_euclid(factor) != 0);
    let (op, limit) = match op {
        CompareOp::Ge => (CompareOp::Ge, up(limit)),
        CompareOp::Gt => (CompareOp::Ge, up(limit.checked_add(1)?)),
        CompareOp::Lt => (CompareOp::Lt, up(limit)),
        CompareOp::Le => (CompareOp::Lt, up(limit.checked_add(1)?)),
        CompareOp::Eq | CompareOp::Ne => {
            let scaled = Index::atom(term.atom.clone()).scale(factor)?;
            return Some(Expr::CompareIndex(op, scaled, Index::constant(limit)));
        }
    };
    Some(Expr::CompareIndex(op, Index::atom(term.atom.clone()), Index::constant(limit)))
}

/// The comparison with both sides negated.
fn flipped(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        CompareOp::Eq | CompareOp::Ne => op,
    }
}

fn conjuncts(condition: Expr, all: &mut Vec<Expr>) {
    match condition {
        Expr::Logic(LogicOp::And, a, b) => {
            conjuncts(*a, all);
            conjuncts(*b, all);
        }
        other if all.contains(&other) => {}
        other => all.push(other),
    }
}

/// The values of a variable that a condition allows, if they are easy to derive.
fn limits(condition: &Expr, var: Var) -> (i128, i128) {
    let any = (i128::MIN, i128::MAX);
    let Expr::CompareIndex(op, a, b) = condition else { return any };
    let (true, Some(limit)) = (a.as_axis() == Some(var), b.as_constant()) else { return any };
    let limit = i128::from(limit);
    match op {
        CompareOp::Ge => (limit, i128::MAX),
        CompareOp::Gt => (limit + 1, i128::MAX),
        CompareOp::Le => (i128::MIN, limit),
        CompareOp::Lt => (i128::MIN, limit - 1),
        CompareOp::Eq => (limit, limit),
        CompareOp::Ne => any,
    }
}

fn too_large() -> Refusal {
    Refusal::new("the padded copy has more than 2^40 elements")
}
