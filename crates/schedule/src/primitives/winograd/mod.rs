//! `winograd`: computes a convolution with Winograd's minimal filtering.
//!
//! ```text
//! out: winograd h w by 4
//! out(n,k,h,w) += in(n,c,h+r,w+s) * weight(k,c,r,s)
//!   ->
//! in.tiled(n,y,x,c)            the data, whole tiles, channels innermost
//! in.rows, in.wino(i,j,n,t,c)  BT d B                      } a small matrix along each dimension,
//! weight.wino(i,j,c,k)         G g GT, ahead of all calls  } written out
//! out.wino(i,j,n,t,k)          += in.wino(i,j,n,t,c) * weight.wino(i,j,c,k)
//! out.rows, out(n,k,h,w)       AT M A, tiles put together
//! ```
//!
//! For a 3 x 3 filter and tiles of 4 x 4 results, 36 products replace 144 (Lavin and Gray, "Fast
//! algorithms for convolutional neural networks", 2016). Sums are rounded differently:
//! [`LoopNest::error_growth`] bounds the growth of the error on data of one magnitude. On other
//! data the error of a result is relative to the largest numbers of its tile, and an infinity
//! spreads to the whole tile.

mod estimate;
mod matrices;
mod pattern;
mod stages;
mod transform;

use std::fmt;

pub use self::estimate::winograd_choices;
use self::pattern::Pattern;
use super::find::{find_store, loops_of, store_at};
use super::footprint::{refuse_checked, refuse_scatter};
use super::prepare::hoist;
use super::{ComputeAt, Primitive, Reach, Reorder, Rule, Split, Tail, Unroll, Vectorize};
use crate::nest::{BufferId, LoopNest, Role, StageId};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// The most filtered dimensions.
const MOST_DIMENSIONS: usize = 2;

/// The vector lanes of the weight transform.
const WEIGHT_LANES: i64 = 16;

/// Computes a sliding sum by Winograd's algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Winograd {
    /// The spatial loops that slide.
    pub targets: Vec<String>,
    /// The results of a tile along each of them.
    pub results: i64,
}

impl fmt::Display for Winograd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "winograd {} by {}", self.targets.join(" "), self.results)
    }
}

impl Rule for Winograd {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let mut targets = vec![words.name("the name of a loop over results")?];
        while words.peek() != Some("by") {
            targets.push(words.name("the name of a loop, or `by`")?);
        }
        words.symbol("by")?;
        Ok(Winograd { targets, results: words.number("the number of results of a tile")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        if self.targets.len() > MOST_DIMENSIONS {
            return Err(Refusal::new(format!(
                "`winograd` takes one or two loops, not {}",
                self.targets.len()
            )));
        }
        if self.targets.iter().enumerate().any(|(n, name)| self.targets[..n].contains(name)) {
            return Err(Refusal::new("a loop is named twice"));
        }
        let path = find_store(nest, stage)?;
        refuse_scatter(stage, store_at(nest, &path)?, "computed in tiles of sliding sums")?;
        let pattern = Pattern::of(nest, stage, &self.targets, self.results)?;
        refuse_checked(nest, pattern.store.buffer)?;
        let stages = stages::build(nest, &pattern)?;
        let position = path.first().copied().unwrap_or_default();
        let (weights, nodes): (Vec<BufferId>, Vec<_>) = stages.weights.into_iter().unzip();
        nest.body.splice(position..=position, nodes.into_iter().chain(stages.body));
        write_out_weights(nest, pattern.filters.len(), &weights);
        let weights: Vec<StageId> = weights.into_iter().map(StageId).collect();
        hoist(nest, &weights);
        nest.error_growth *= growth(&pattern);
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { targets: names.own_loops(&self.targets)?, ..self.clone() })
    }
}

/// The error bound of a result relative to that of the direct sum, for data of one magnitude: the
/// sum of absolute values times the roundings of each, divided by the same for the direct sum.
fn growth(pattern: &Pattern) -> f64 {
    let product = |all: &mut dyn Iterator<Item = f64>| all.product::<f64>();
    let terms = pattern.loops.iter().filter(|l| l.role == Role::Reduce).map(|l| l.extent as f64);
    let terms: f64 = terms.product();
    let filters = &pattern.filters;
    let sums = terms / product(&mut filters.iter().map(|tap| tap.r.extent as f64));
    let roundings = sums + filters.iter().map(|tap| tap.filter.roundings()).sum::<f64>();
    let amplification = product(&mut filters.iter().map(|tap| tap.filter.amplification()));
    (amplification * roundings / terms).max(1.0)
}

/// Vectorizes the innermost dimension of the weights, unrolls the products, and keeps temporaries
/// in registers: no other code schedules the preparation, and unscheduled it would take longer than
/// many calls. If a step is refused, the preparation stays slow.
fn write_out_weights(nest: &mut LoopNest, filters: usize, weights: &[BufferId]) {
    let Some((last, rows)) = weights.split_last() else { return };
    let stage = nest.buffer(*last).name.clone();
    let names = |nest: &LoopNest, stage: &str| -> Vec<String> {
        loops_of(nest, stage).iter().map(|l| nest.var_name(l.var).to_owned()).collect()
    };
    let loops = names(nest, &stage);
    let (products, others) = loops.split_at(filters);
    let Some((lane, others)) = others.split_last() else { return };
    let (outer, inner) = (format!("{lane}.0"), format!("{lane}.1"));
    let mut order = others.to_vec();
    order.push(outer.clone());
    order.extend(products.iter().cloned());
    order.push(inner.clone());
    let split = Split::new(lane, &[WEIGHT_LANES]).tail(Tail::Guard);
    let mut steps: Vec<(String, Primitive)> =
        vec![(stage.clone(), split.into()), (stage.clone(), Reorder { order }.into())];
    for rows in rows {
        let rows = nest.buffer(*rows).name.clone();
        let at = ComputeAt { consumer: stage.clone(), at: outer.clone() };
        let written = names(nest, &rows).into_iter().take(filters);
        let unroll = written.map(|target| (rows.clone(), Unroll { target }.into()));
        steps.push((rows.clone(), at.into()));
        steps.extend(unroll);
        steps.push((rows, Vectorize { target: lane.clone() }.into()));
    }
    let unroll = products.iter().cloned().map(|target| (stage.clone(), Unroll { target }.into()));
    steps.extend(unroll);
    steps.push((stage.clone(), Vectorize { target: inner }.into()));
    let mut written = nest.clone();
    if steps.iter().all(|(stage, step)| step.apply(stage, &mut written).is_ok()) {
        *nest = written;
    }
}
