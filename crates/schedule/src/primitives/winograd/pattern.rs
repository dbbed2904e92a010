//! The pattern that `winograd` matches: a convolution.
//!
//! It is a sum of products in which spatial loops and loops over taps move one tensor together.

use tensorwright_lang::ops::{ArithOp, ReductionOp};
use tensorwright_lang::program::{Expr, Index, Read};

use super::matrices::{Filter, MOST_PRODUCTS};
use crate::access::Axis;
use crate::nest::{LoopNest, Role, Store, Var};
use crate::primitives::find::{find_loop, loop_at};
use crate::primitives::plain::Plain;
use crate::refusal::Refusal;

/// A stage `out(.., y, ..) += data(.., y + r, ..) * weight(.., r, ..)`.
pub(super) struct Pattern {
    pub(super) store: Store,
    /// The loops of the stage, outermost first.
    pub(super) loops: Vec<Axis>,
    pub(super) data: Read,
    pub(super) weight: Read,
    /// The filtered dimensions.
    pub(super) filters: Vec<FilteredAxis>,
    /// The dimension of the data that only a reduction loop moves (the channel). It becomes the
    /// innermost one.
    pub(super) channel: Option<usize>,
    /// The spatial loop that only the weights depend on: the innermost one of the products.
    pub(super) lane: Option<Var>,
}

/// A filtered dimension.
pub(super) struct FilteredAxis {
    /// The spatial loop.
    pub(super) y: Axis,
    /// The loop over taps.
    pub(super) r: Axis,
    /// The dimension of the data that both move.
    pub(super) data_dim: usize,
    /// The dimension of the weights that the taps move.
    pub(super) weight_dim: usize,
    /// The position in the data of result 0 and tap 0.
    pub(super) start: i64,
    /// The algorithm.
    pub(super) filter: Filter,
}

impl FilteredAxis {
    /// The number of tiles.
    pub(super) fn tiles(&self) -> i64 {
        let results = self.filter.results as i64;
        (self.y.extent + results - 1) / results
    }
}

impl Pattern {
    /// Matches a stage, given the loops to filter and the results of a tile.
    pub(super) fn of(
        nest: &LoopNest,
        stage: &str,
        names: &[String],
        results: i64,
    ) -> Result<Self, Refusal> {
        let Plain { loops, store, .. } = Plain::of(nest, stage)?;
        check_sum(stage, &store)?;
        let axis = |(var, extent, role): (Var, i64, Role)| Axis {
            name: nest.var_name(var).to_owned(),
            var,
            extent,
            role,
        };
        let loops: Vec<Axis> = loops.into_iter().map(axis).collect();
        let (first, second) = factors(nest, stage, &store)?;
        let mut filters = Vec::new();
        let (mut data, mut weight) = (first, second);
        for name in names {
            let var = loop_at(nest, &find_loop(nest, stage, name)?)?.var;
            let y = loops.iter().find(|l| l.var == var && l.role == Role::Spatial);
            let y = y.ok_or_else(|| {
                Refusal::new(format!("loop `{name}` of `{stage}` does not go over results"))
            })?;
            if moves(&weight, y.var) {
                std::mem::swap(&mut data, &mut weight);
            }
            filters.push(tap(nest, stage, &loops, &data, &weight, y, results)?);
        }
        let data_moves_alone = |subscript: &Index| {
            let axis = loops.iter().find(|l| subscript.as_axis() == Some(l.var));
            axis.is_some_and(|l| l.role == Role::Reduce && filters.iter().all(|f| f.r.var != l.var))
        };
        let channel = data.subscripts.iter().rposition(data_moves_alone);
        let is_lane = |l: &&Axis| {
            l.role == Role::Spatial
                && !moves(&data, l.var)
                && weight.subscripts.iter().any(|s| s.as_axis() == Some(l.var))
        };
        let lane = loops.iter().filter(is_lane).max_by_key(|l| l.extent).map(|l| l.var);
        Ok(Self { store, loops, data, weight, filters, channel, lane })
    }

    /// The unfiltered spatial loops; those that only the weights depend on come last.
    pub(super) fn results(&self) -> Vec<Axis> {
        let kept = |l: &&Axis| {
            l.role == Role::Spatial
                && Some(l.var) != self.lane
                && self.filters.iter().all(|f| f.y.var != l.var)
        };
        self.loops.iter().filter(kept).cloned().collect()
    }

    /// The innermost spatial loop.
    pub(super) fn lane_axis(&self) -> Option<Axis> {
        self.loops.iter().find(|l| Some(l.var) == self.lane).cloned()
    }

    /// The reduction loops that are not taps.
    pub(super) fn terms(&self) -> Vec<Axis> {
        let kept =
            |l: &&Axis| l.role == Role::Reduce && self.filters.iter().all(|f| f.r.var != l.var);
        self.loops.iter().filter(kept).cloned().collect()
    }
}

fn check_sum(stage: &str, store: &Store) -> Result<(), Refusal> {
    if !store.domain.is_empty() {
        return Err(Refusal::new(format!("the loops of `{stage}` are scheduled already"))
            .help("rewrite a stage first, then schedule its loops"));
    }
    if store.combine != Some(ReductionOp::Sum) {
        return Err(Refusal::new(format!("`{stage}` is not a sum")));
    }
    Ok(())
}

/// The two tensors whose products are summed.
fn factors(nest: &LoopNest, stage: &str, store: &Store) -> Result<(Read, Read), Refusal> {
    let dtype = nest.dtype(store.buffer);
    match &store.value {
        Expr::Arith(ArithOp::Mul, a, b) => match (&**a, &**b) {
            (Expr::Read(a), Expr::Read(b))
                if dtype.is_float()
                    && a.tensor != b.tensor
                    && [a, b].iter().all(|read| {
                        nest.dtype(read.tensor) == dtype && read.checked.is_empty()
                    })
                    && nest.buffer(a.tensor).layout.is_none()
                    && nest.buffer(b.tensor).layout.is_none() =>
            {
                Ok((a.clone(), b.clone()))
            }
            _ => Err(not_products(stage)),
        },
        _ => Err(not_products(stage)),
    }
}

fn not_products(stage: &str) -> Refusal {
    Refusal::new(format!(
        "the terms of `{stage}` are not products of elements of two tensors of its own type"
    ))
    .help("guards around the product can be moved to a padded copy with `pad`")
}

fn moves(read: &Read, var: Var) -> bool {
    read.subscripts.iter().any(|s| s.coefficient_of(var) != Some(0))
}

/// The dimensions of a read that a loop moves.
fn moved(read: &Read, var: Var) -> Vec<usize> {
    let dims = read.subscripts.iter().enumerate();
    dims.filter(|(_, s)| s.coefficient_of(var) != Some(0)).map(|(dim, _)| dim).collect()
}

fn tap(
    nest: &LoopNest,
    stage: &str,
    loops: &[Axis],
    data: &Read,
    weight: &Read,
    y: &Axis,
    results: i64,
) -> Result<FilteredAxis, Refusal> {
    let (data_name, weight_name) =
        (&nest.buffer(data.tensor).name, &nest.buffer(weight.tensor).name);
    let refused = || {
        Refusal::new(format!(
            "loop `{}` of `{stage}` does not slide over `{data_name}`: there is no loop over terms \
             that moves the same dimension by one and a dimension of `{weight_name}` by itself",
            y.name
        ))
    };
    let slides = |r: &&Axis| {
        let (in_data, in_weight) = (moved(data, r.var), moved(weight, r.var));
        let ([data_dim], [weight_dim]) = (in_data.as_slice(), in_weight.as_slice()) else {
            return false;
        };
        let subscript = &data.subscripts[*data_dim];
        r.role == Role::Reduce
            && moved(data, y.var) == [*data_dim]
            && subscript.terms().len() == 2
            && subscript.coefficient_of(y.var) == Some(1)
            && subscript.coefficient_of(r.var) == Some(1)
            && weight.subscripts[*weight_dim].as_axis() == Some(r.var)
    };
    let r = loops.iter().find(slides).filter(|_| !moves(weight, y.var)).ok_or_else(refused)?;
    let data_dim = moved(data, r.var).first().copied().ok_or_else(refused)?;
    let weight_dim = moved(weight, r.var).first().copied().ok_or_else(refused)?;
    let algorithm = usize::try_from(results).ok().zip(usize::try_from(r.extent).ok());
    let filter = algorithm.and_then(|(results, taps)| Filter::new(results.min(64), taps));
    let filter = filter.ok_or_else(|| {
        Refusal::new(format!(
            "there is no algorithm for {results} results of {} taps: tiles have at least two \
             results, filters two taps, and results plus taps are at most {}",
            r.extent,
            MOST_PRODUCTS + 1
        ))
    })?;
    let start = data.subscripts[data_dim].constant_term();
    Ok(FilteredAxis { y: y.clone(), r: r.clone(), data_dim, weight_dim, start, filter })
}
