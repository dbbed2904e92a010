//! Builds the stages that replace a convolution in `winograd`.

use std::collections::BTreeMap;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp, LogicOp, ReductionOp};
use tensorwright_lang::program::{AxisId, Expr, Index, Rewrite};

use super::matrices::Matrix;
use super::pattern::{FilteredAxis, Pattern};
use super::transform::{constant, product};
use crate::access::Axis;
use crate::canonical::{element, neutral};
use crate::nest::{Bound, Buffer, BufferId, LoopNest, Node, Owner, Role, Store, Var};
use crate::primitives::find::fresh_name;
use crate::primitives::prepare::chain;
use crate::refusal::Refusal;

/// The stages that replace the convolution.
pub(super) struct Stages {
    /// The transformed weights; constant if the weights are.
    pub(super) weights: Vec<(BufferId, Node)>,
    /// All other stages, in order.
    pub(super) body: Vec<Node>,
}

/// The loops of a stage under construction.
#[derive(Default)]
struct Loops {
    loops: Vec<(Var, i64, Role)>,
    values: BTreeMap<Var, Index>,
}

impl Rewrite for &Loops {
    fn axis(&mut self, axis: AxisId) -> Option<Index> {
        Some(self.values.get(&axis).cloned().unwrap_or_else(|| Index::axis(axis)))
    }
}

impl Loops {
    fn add(&mut self, nest: &mut LoopNest, name: &str, extent: i64, role: Role) -> Index {
        let var = nest.add_var(name.to_owned());
        self.loops.push((var, extent, role));
        Index::axis(var)
    }

    /// Creates copies of loops of the original stage.
    fn copy(&mut self, nest: &mut LoopNest, axes: &[Axis], role: Role) -> Vec<Index> {
        let mut made = Vec::new();
        for axis in axes {
            let index = self.add(nest, &axis.name, axis.extent, role);
            self.values.insert(axis.var, index.clone());
            made.push(index);
        }
        made
    }

    /// An index of the original stage, as a function of these loops.
    fn index(&self, index: &Index) -> Result<Index, Refusal> {
        index.rewrite(&mut &*self).ok_or_else(Refusal::overflow)
    }

    fn expr(&self, expr: &Expr) -> Result<Expr, Refusal> {
        expr.rewrite(&mut &*self).ok_or_else(Refusal::overflow)
    }
}

/// Builds all stages.
pub(super) fn build(nest: &mut LoopNest, pattern: &Pattern) -> Result<Stages, Refusal> {
    let mut maker = StageBuilder { nest, pattern, body: Vec::new() };
    let tiled = maker.tiled()?;
    let data = maker.data(tiled)?;
    let weights = maker.weights()?;
    let last = weights.last().map_or(pattern.weight.tensor, |(buffer, _)| *buffer);
    let products = maker.products(data, last)?;
    maker.results(products)?;
    Ok(Stages { weights, body: maker.body })
}

struct StageBuilder<'a> {
    nest: &'a mut LoopNest,
    pattern: &'a Pattern,
    body: Vec<Node>,
}

impl StageBuilder<'_> {
    fn dtype(&self) -> DType {
        self.nest.dtype(self.pattern.store.buffer)
    }

    fn tiles(&self) -> i64 {
        self.pattern.filters.iter().map(FilteredAxis::tiles).product()
    }

    fn buffer(
        &mut self,
        of: BufferId,
        suffix: &str,
        shape: &[(Var, i64, Role)],
    ) -> Result<BufferId, Refusal> {
        let shape: Vec<i64> =
            shape.iter().filter(|(.., r)| *r == Role::Spatial).map(|(_, n, _)| *n).collect();
        if shape.iter().try_fold(1i64, |n, e| n.checked_mul(*e)).is_none_or(|n| n > 1 << 40) {
            return Err(Refusal::overflow());
        }
        let name = fresh_name(self.nest, &format!("{}.{suffix}", self.nest.buffer(of).name));
        // One stage writes every element and others read it: it outlives their loops.
        let buffer = Buffer::new(name, self.dtype(), shape, Owner::Intermediate);
        Ok(self.nest.add_buffer(buffer))
    }

    /// A stage that writes every element of a new buffer, whose dimensions are its loops in order.
    fn stage(
        &mut self,
        of: BufferId,
        suffix: &str,
        loops: &Loops,
        value: Expr,
    ) -> Result<(BufferId, Node), Refusal> {
        let buffer = self.buffer(of, suffix, &loops.loops)?;
        let spatial = loops.loops.iter().filter(|(.., role)| *role == Role::Spatial);
        let subscripts = spatial.map(|(var, ..)| Index::axis(*var)).collect();
        Ok((buffer, chain(&loops.loops, Store::new(buffer, subscripts, value))))
    }

    /// The dimensions of the data that are neither filtered nor the channel.
    fn other_dims(&self) -> Vec<usize> {
        let filtered = |dim: &usize| self.pattern.filters.iter().any(|f| f.data_dim == *dim);
        let dims = 0..self.pattern.data.subscripts.len();
        dims.filter(|dim| !filtered(dim) && Some(*dim) != self.pattern.channel).collect()
    }

    /// The data in whole tiles with the channel innermost, `in.tiled`: other dimensions, filtered
    /// dimensions, channel.
    fn tiled(&mut self) -> Result<BufferId, Refusal> {
        let data = self.pattern.data.tensor;
        let shape = self.nest.buffer(data).shape.clone();
        let mut loops = Loops::default();
        let mut places: Vec<Index> = vec![Index::default(); shape.len()];
        for dim in self.other_dims() {
            places[dim] = loops.add(self.nest, &format!("d{dim}"), shape[dim], Role::Spatial);
        }
        let mut inside: Option<Expr> = None;
        for tap in &self.pattern.filters {
            let extent = tap.tiles() * tap.filter.results as i64 + tap.r.extent - 1;
            let known = tap.y.extent + tap.r.extent - 1;
            let index = loops.add(self.nest, &tap.y.name, extent, Role::Spatial);
            if known < extent {
                let here = Expr::CompareIndex(CompareOp::Lt, index.clone(), Index::constant(known));
                inside = Some(match inside {
                    None => here,
                    Some(there) => Expr::Logic(LogicOp::And, Box::new(there), Box::new(here)),
                });
            }
            let start = Index::constant(tap.start);
            places[tap.data_dim] = index.add(&start).ok_or_else(Refusal::overflow)?;
        }
        if let Some(dim) = self.pattern.channel {
            places[dim] = loops.add(self.nest, &format!("d{dim}"), shape[dim], Role::Spatial);
        }
        let mut value = element(data, places);
        if let Some(inside) = inside {
            let zero = constant(self.dtype(), 0.0);
            value = Expr::Select(Box::new(inside), Box::new(value), Box::new(zero));
        }
        let (buffer, node) = self.stage(data, "tiled", &loops, value)?;
        self.body.push(node);
        Ok(buffer)
    }

    /// The position of a tile along a filtered dimension.
    fn tile_position(&self, tile: &Index, number: usize) -> Result<Index, Refusal> {
        let inner: i64 =
            self.pattern.filters[number + 1..].iter().map(FilteredAxis::tiles).product();
        let position = tile.div(inner.max(1)).ok_or_else(Refusal::overflow)?;
        Ok(if number == 0 { position } else { position.rem(self.pattern.filters[number].tiles()) })
    }

    /// `BT d B`, one dimension after the other. The last stage is `in.wino`: products, other
    /// dimensions, tile, channel.
    fn data(&mut self, tiled: BufferId) -> Result<BufferId, Refusal> {
        let data = self.pattern.data.tensor;
        let shape = self.nest.buffer(data).shape.clone();
        let others = self.other_dims();
        let count = self.pattern.filters.len();
        let mut source = tiled;
        for number in 0..count {
            let is_last = number + 1 == count;
            let mut loops = Loops::default();
            let products = |n: usize| self.pattern.filters[n].filter.products() as i64;
            let add_products = |loops: &mut Loops, nest: &mut LoopNest, upto: usize| {
                let names = (0..upto).map(|n| (format!("f{n}"), products(n)));
                names.map(|(name, n)| loops.add(nest, &name, n, Role::Spatial)).collect()
            };
            let mut frequencies: Vec<Index> = Vec::new();
            if is_last {
                frequencies = add_products(&mut loops, self.nest, count);
            }
            let other: Vec<Index> = others
                .iter()
                .map(|dim| loops.add(self.nest, &format!("d{dim}"), shape[*dim], Role::Spatial))
                .collect();
            let tile = loops.add(self.nest, "tile", self.tiles(), Role::Spatial);
            let mut raw: Vec<Index> = Vec::new();
            if !is_last {
                for n in number + 1..count {
                    raw.push(loops.add(self.nest, &format!("e{n}"), products(n), Role::Spatial));
                }
                frequencies = add_products(&mut loops, self.nest, number + 1);
            }
            let channel = self
                .pattern
                .channel
                .map(|dim| loops.add(self.nest, &format!("d{dim}"), shape[dim], Role::Spatial));
            let read = |position: usize| -> Result<Expr, Refusal> {
                let mut subscripts = other.clone();
                if number == 0 {
                    let within = [Index::constant(position as i64)].into_iter().chain(raw.clone());
                    for (n, within) in within.enumerate() {
                        let results = self.pattern.filters[n].filter.results as i64;
                        let first = self.tile_position(&tile, n)?.scale(results);
                        let place = first.and_then(|first| first.add(&within));
                        subscripts.push(place.ok_or_else(Refusal::overflow)?);
                    }
                } else {
                    subscripts.push(tile.clone());
                    subscripts.push(Index::constant(position as i64));
                    subscripts.extend(raw.iter().cloned());
                    subscripts.extend(frequencies[..number].iter().cloned());
                }
                subscripts.extend(channel.clone());
                Ok(element(source, subscripts))
            };
            let matrix = &self.pattern.filters[number].filter.bt;
            let value = product(matrix, self.dtype(), &frequencies[number], &read)?;
            let suffix = if is_last { "wino" } else { "rows" };
            let (buffer, node) = self.stage(data, suffix, &loops, value)?;
            self.body.push(node);
            source = buffer;
        }
        Ok(source)
    }

    /// The dimensions of the weights that are not taps, the innermost spatial loop last.
    fn weight_dims(&self) -> Vec<usize> {
        let is_tap = |dim: &usize| self.pattern.filters.iter().any(|f| f.weight_dim == *dim);
        let subscripts = &self.pattern.weight.subscripts;
        let mut dims: Vec<usize> = (0..subscripts.len()).filter(|dim| !is_tap(dim)).collect();
        dims.sort_by_key(|dim| {
            self.pattern.lane.is_some() && subscripts[*dim].as_axis() == self.pattern.lane
        });
        dims
    }

    /// `G g GT`, one dimension after the other. The last stage is `weight.wino`: products and other
    /// dimensions.
    fn weights(&mut self) -> Result<Vec<(BufferId, Node)>, Refusal> {
        let weight = self.pattern.weight.tensor;
        let shape = self.nest.buffer(weight).shape.clone();
        let dims = self.weight_dims();
        let count = self.pattern.filters.len();
        let mut made: Vec<(BufferId, Node)> = Vec::new();
        for number in 0..count {
            let mut loops = Loops::default();
            let mut frequencies = Vec::new();
            for (n, tap) in self.pattern.filters[..=number].iter().enumerate() {
                let extent = tap.filter.products() as i64;
                frequencies.push(loops.add(self.nest, &format!("f{n}"), extent, Role::Spatial));
            }
            let mut raw = Vec::new();
            for tap in &self.pattern.filters[number + 1..] {
                raw.push(loops.add(self.nest, &tap.r.name, tap.r.extent, Role::Spatial));
            }
            let mut others = Vec::new();
            for dim in &dims {
                let name = format!("d{dim}");
                others.push(loops.add(self.nest, &name, shape[*dim], Role::Spatial));
            }
            let source = made.last().map(|(buffer, _)| *buffer);
            let read = |position: usize| -> Result<Expr, Refusal> {
                let taps = || [Index::constant(position as i64)].into_iter().chain(raw.clone());
                if let Some(source) = source {
                    let done = frequencies[..number].iter().cloned();
                    return Ok(element(source, done.chain(taps()).chain(others.clone()).collect()));
                }
                let mut place = vec![Index::default(); shape.len()];
                for (tap, index) in self.pattern.filters.iter().zip(taps()) {
                    place[tap.weight_dim] = index;
                }
                for (dim, other) in dims.iter().zip(&others) {
                    place[*dim] = other.clone();
                }
                Ok(element(weight, place))
            };
            let matrix = &self.pattern.filters[number].filter.g;
            let value = product(matrix, self.dtype(), &frequencies[number], &read)?;
            let suffix = if number + 1 == count { "wino" } else { "rows" };
            made.push(self.stage(weight, suffix, &loops, value)?);
        }
        Ok(made)
    }

    /// The products, summed over the terms that are not taps: `out.wino`, products, spatial loops,
    /// tile, innermost spatial loop.
    fn products(&mut self, data: BufferId, weight: BufferId) -> Result<BufferId, Refusal> {
        let mut loops = Loops::default();
        let mut frequencies = Vec::new();
        for (number, tap) in self.pattern.filters.iter().enumerate() {
            let extent = tap.filter.products() as i64;
            frequencies.push(loops.add(self.nest, &format!("f{number}"), extent, Role::Spatial));
        }
        loops.copy(self.nest, &self.pattern.results(), Role::Spatial);
        let tile = loops.add(self.nest, "tile", self.tiles(), Role::Spatial);
        let lane: Vec<Axis> = self.pattern.lane_axis().into_iter().collect();
        loops.copy(self.nest, &lane, Role::Spatial);
        loops.copy(self.nest, &self.pattern.terms(), Role::Reduce);

        let of = |dim: &usize| loops.index(&self.pattern.data.subscripts[*dim]);
        let mut place = frequencies.clone();
        for dim in self.other_dims() {
            place.push(of(&dim)?);
        }
        place.push(tile);
        if let Some(dim) = self.pattern.channel {
            place.push(of(&dim)?);
        }
        let left = element(data, place);
        let mut place = frequencies;
        for dim in self.weight_dims() {
            place.push(loops.index(&self.pattern.weight.subscripts[dim])?);
        }
        let right = element(weight, place);
        let value = Expr::Arith(ArithOp::Mul, Box::new(left), Box::new(right));
        let buffer = self.buffer(self.pattern.store.buffer, "wino", &loops.loops)?;
        let spatial = loops.loops.iter().filter(|(.., role)| *role == Role::Spatial);
        let subscripts = spatial.map(|(var, ..)| Index::axis(*var)).collect();
        let mut store = Store::new(buffer, subscripts, value);
        store.combine = Some(ReductionOp::Sum);
        store.init = Some(neutral(ReductionOp::Sum, self.dtype()));
        self.body.push(chain(&loops.loops, store));
        Ok(buffer)
    }

    /// `AT M A`, one dimension after the other; the last one assembles the tiles.
    fn results(&mut self, products: BufferId) -> Result<(), Refusal> {
        let count = self.pattern.filters.len();
        let mut source = products;
        for number in 0..count - 1 {
            source = self.partial_results(source, number)?;
        }
        let number = count - 1;
        let mut loops = Loops::default();
        let others = loops.copy(self.nest, &self.pattern.results(), Role::Spatial);
        let lane: Vec<Axis> = self.pattern.lane_axis().into_iter().collect();
        let lane = loops.copy(self.nest, &lane, Role::Spatial);
        let (mut tile, mut within, mut domain) = (Index::constant(0), Vec::new(), Vec::new());
        for tap in &self.pattern.filters {
            let results = tap.filter.results as i64;
            let name = &tap.y.name;
            let outer = loops.add(self.nest, &format!("{name}.t"), tap.tiles(), Role::Spatial);
            let inner = loops.add(self.nest, &format!("{name}.r"), results, Role::Spatial);
            let whole = outer.scale(results).and_then(|first| first.add(&inner));
            let whole = whole.ok_or_else(Refusal::overflow)?;
            if tap.tiles() * results > tap.y.extent {
                let last = Index::constant(tap.y.extent - 1);
                let index = last.sub(&whole).ok_or_else(Refusal::overflow)?;
                domain.push(Bound { index, padding: false, term: false });
            }
            loops.values.insert(tap.y.var, whole);
            let before = tile.scale(tap.tiles()).and_then(|before| before.add(&outer));
            tile = before.ok_or_else(Refusal::overflow)?;
            within.push(inner);
        }
        let read = |position: usize| -> Result<Expr, Refusal> {
            let position = Index::constant(position as i64);
            let place = if number == 0 {
                [position].into_iter().chain(others.clone()).chain([tile.clone()]).collect()
            } else {
                let mut place = others.clone();
                place.push(tile.clone());
                place.push(position);
                place.extend(within[..number].iter().cloned());
                place
            };
            Ok(element(source, place.into_iter().chain(lane.clone()).collect::<Vec<_>>()))
        };
        let matrix: &Matrix = &self.pattern.filters[number].filter.at;
        let mut value = product(matrix, self.dtype(), &within[number], &read)?;
        let start = &self.pattern.store.init;
        let zero = neutral(ReductionOp::Sum, self.dtype());
        if let Some(start) = start.as_ref().filter(|start| **start != zero) {
            value = Expr::Arith(ArithOp::Add, Box::new(loops.expr(start)?), Box::new(value));
        }
        let old = &self.pattern.store;
        let subscripts: Vec<Index> =
            old.subscripts.iter().map(|s| loops.index(s)).collect::<Result<_, _>>()?;
        let mut store = Store::new(old.buffer, subscripts, value);
        store.domain = domain;
        self.body.push(chain(&loops.loops, store));
        Ok(())
    }

    /// `out.rows`: spatial loops, tile, remaining products, results so far, innermost loop.
    fn partial_results(&mut self, source: BufferId, number: usize) -> Result<BufferId, Refusal> {
        let mut loops = Loops::default();
        let others = loops.copy(self.nest, &self.pattern.results(), Role::Spatial);
        let tile = loops.add(self.nest, "tile", self.tiles(), Role::Spatial);
        let mut remaining = Vec::new();
        for (n, tap) in self.pattern.filters.iter().enumerate().skip(number + 1) {
            let extent = tap.filter.products() as i64;
            remaining.push(loops.add(self.nest, &format!("f{n}"), extent, Role::Spatial));
        }
        let mut within = Vec::new();
        for tap in &self.pattern.filters[..=number] {
            let name = format!("{}.r", tap.y.name);
            let results = tap.filter.results as i64;
            within.push(loops.add(self.nest, &name, results, Role::Spatial));
        }
        let lane: Vec<Axis> = self.pattern.lane_axis().into_iter().collect();
        let lane = loops.copy(self.nest, &lane, Role::Spatial);
        let read = |position: usize| -> Result<Expr, Refusal> {
            let position = Index::constant(position as i64);
            let mut place: Vec<Index> = Vec::new();
            if number == 0 {
                place.push(position);
                place.extend(remaining.iter().cloned());
                place.extend(others.iter().cloned());
                place.push(tile.clone());
            } else {
                place.extend(others.iter().cloned());
                place.push(tile.clone());
                place.push(position);
                place.extend(remaining.iter().cloned());
                place.extend(within[..number].iter().cloned());
            }
            place.extend(lane.iter().cloned());
            Ok(element(source, place))
        };
        let matrix = &self.pattern.filters[number].filter.at;
        let value = product(matrix, self.dtype(), &within[number], &read)?;
        let of = self.pattern.store.buffer;
        let (buffer, node) = self.stage(of, "rows", &loops, value)?;
        self.body.push(node);
        Ok(buffer)
    }
}
