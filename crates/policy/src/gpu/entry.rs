//! `Sketch` implementation for GPUs.

use tensorwright_schedule::Schedule;
use tensorwright_space::{Parameter, Point, Rejection};

use super::cost::{self, TERMS};
use super::group::Group;
use super::rows::{self, Chain};
use super::sketch::{GpuSketch, GroupParameter};
use super::tensor::{Product, Shape};
use super::{decode, knobs, rank, rules, tensor};
use crate::sketch::{Sketch, Values};

impl Sketch for GpuSketch {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The best tiling of each group by the cost model.
    fn start(&self, _: &[bool]) -> Point {
        let mut ranks = vec![0u32; self.parameters.len()];
        for group in &self.groups {
            if let Some(best) = rank::ranked(group, &self.goal, 1).first() {
                self.write(group, best, &mut ranks);
            }
        }
        self.join(&mut ranks);
        Point::new(ranks)
    }

    fn rules(&self) -> Vec<&'static str> {
        knobs::rules().map(|(name, _)| name).chain(["row_threads", "tensor"]).collect()
    }

    fn refusal(&self, values: Values<'_>) -> Option<(usize, Rejection)> {
        let refused =
            |group: &Group| knobs::refusal(group, &self.tiling(group, values), &self.goal);
        let of_groups = self.apart(values).filter_map(refused).min_by_key(|(place, _)| *place);
        of_groups.or_else(|| {
            let place = knobs::rules().count();
            let refused =
                |(chain, threads): (&Chain, i64)| chain.refusal(threads, &self.goal.target);
            let reason = self.launches(values).find_map(refused);
            let reason = reason.map(|reason| (place, Rejection { rule: "row_threads", reason }));
            reason.or_else(|| {
                let gpu = &self.goal.target;
                let refused = |(product, group, shape): (&Product, &Group, Shape)| {
                    product.refusal(group, &shape, gpu)
                };
                let reason = self.tensors(values).find_map(refused)?;
                Some((place + 1, Rejection { rule: "tensor", reason }))
            })
        })
    }

    /// Groups share no parameters.
    fn to_blame(&self, values: Values<'_>) -> Vec<usize> {
        let refused = |group: &&Group| {
            knobs::refusal(group, &self.tiling(group, values), &self.goal).is_some()
        };
        let gpu = &self.goal.target;
        let mut tensors = self.tensors(values);
        let product =
            tensors.find(|(product, group, shape)| product.refusal(group, shape, gpu).is_some());
        match (self.apart(values).find(refused), product) {
            (Some(group), _) => group.parameters.clone().collect(),
            (None, Some((product, ..))) => product.places().collect(),
            (None, None) => Vec::new(),
        }
    }

    fn idle(&self, values: Values<'_>) -> Vec<(usize, &'static str)> {
        const IN_ROW: &str = "its stage is fused row by row with others";
        const ON_TENSORS: &str = "its stage is computed on tensor cores";
        const OFF_TENSORS: &str = "its stage is not computed on tensor cores";
        let of_group = |group: &Group| {
            let why = match self.is_in_row(group, values) {
                true => Some(IN_ROW),
                false => self.is_on_tensors(group, values).then_some(ON_TENSORS),
            };
            if let Some(why) = why {
                return group.parameters.clone().map(|at| (at, why)).collect();
            }
            let tiling = self.tiling(group, values);
            let idle =
                |(at, _, GroupParameter { knob, place }): (usize, &Parameter, GroupParameter)| {
                    Some((at, knob.idle(&tiling, group, place)?))
                };
            self.of_group(group).filter_map(idle).collect::<Vec<_>>()
        };
        let of_product = |product: &Product| {
            let group = self.groups.get(product.group);
            let in_row = group.is_some_and(|group| self.is_in_row(group, values));
            let is_off = product.shape(&self.parameters, values.ranks).is_none();
            match (in_row, is_off) {
                (true, _) => product.places().map(|at| (at, IN_ROW)).collect::<Vec<_>>(),
                (false, true) => product.places().skip(1).map(|at| (at, OFF_TENSORS)).collect(),
                (false, false) => Vec::new(),
            }
        };
        let of_groups = self.groups.iter().flat_map(of_group);
        of_groups.chain(self.products.iter().flat_map(of_product)).collect()
    }

    /// The best tilings of all groups together, then the second best, and so on.
    fn ranked(&self, base: Values<'_>, count: usize) -> Vec<Point> {
        let each: Vec<_> =
            self.groups.iter().map(|group| rank::ranked(group, &self.goal, count)).collect();
        let longest = each.iter().map(Vec::len).max().unwrap_or(0);
        let mut points: Vec<Point> = Vec::new();
        for place in 0..longest.max(1).min(count) {
            let mut ranks = base.ranks.to_vec();
            for (group, tilings) in self.groups.iter().zip(&each) {
                if let Some(tiling) = tilings.get(place).or_else(|| tilings.last()) {
                    self.write(group, tiling, &mut ranks);
                }
            }
            self.join(&mut ranks);
            // Fixed parameters stay.
            for (at, rank) in ranks.iter_mut().enumerate() {
                if base.free.get(at) == Some(&false) {
                    *rank = base.ranks[at];
                }
            }
            let point = Point::new(ranks);
            if !points.contains(&point) {
                points.push(point);
            }
        }
        points
    }

    fn estimate(&self, values: Values<'_>) -> f64 {
        if self.refusal(values).is_some() {
            return f64::INFINITY;
        }
        let cycles = |group: &Group| cost::cycles(group, &self.tiling(group, values), &self.goal);
        let rows = self.launches(values);
        let rows = rows.map(|(chain, threads)| rows::cycles(chain, threads, &self.goal.target));
        self.apart(values).map(cycles).sum::<f64>() + rows.sum::<f64>() + self.on_tensors(values)
    }

    fn estimate_terms(&self, values: Values<'_>) -> Vec<(&'static str, f64)> {
        let mut sum: Vec<(&'static str, f64)> = TERMS.iter().map(|name| (*name, 0.0)).collect();
        for group in self.apart(values) {
            let terms = cost::terms(group, &self.tiling(group, values), &self.goal);
            sum.iter_mut().zip(terms).for_each(|(sum, term)| sum.1 += term);
        }
        let rows = self.launches(values);
        let rows = rows.map(|(chain, threads)| rows::cycles(chain, threads, &self.goal.target));
        sum.push(("rows", rows.sum()));
        sum.push(("tensors", self.on_tensors(values)));
        sum
    }

    fn has_sums(&self) -> bool {
        self.groups.iter().any(Group::is_reduction)
    }

    fn decode(&self, values: Values<'_>) -> Result<Schedule, Rejection> {
        let mut draft = self.prepared.clone();
        for group in self.apart(values) {
            decode::launch(&mut draft, group, &self.tiling(group, values))?;
        }
        for (chain, threads) in self.launches(values) {
            rows::launch(&mut draft, chain, threads)?;
        }
        for (product, group, shape) in self.tensors(values) {
            decode::tensor(&mut draft, group, product, &shape)?;
        }
        self.fixed.iter().for_each(|stage| rules::lines(&mut draft, stage));
        Ok(draft.schedule)
    }

    /// Logarithms of features that determine performance: threads, blocks, results per thread,
    /// shared bytes, and each term of the model.
    fn features(&self, values: Values<'_>) -> Vec<f32> {
        let log = |x: f64| (x.max(1.0) as f32).log2();
        let of_group = |group: &Group| {
            let tiling = self.tiling(group, values);
            let sizes = [
                tiling.threads_of_block() as f64,
                tiling.blocks(group),
                tiling.accumulators() as f64,
                tiling.shared_bytes(group),
            ];
            let terms = cost::terms(group, &tiling, &self.goal);
            sizes.into_iter().chain(terms).map(log).collect::<Vec<f32>>()
        };
        let rows = self.chains.iter().map(|chain| chain.threads(&self.parameters, values.ranks));
        let rows = rows.map(|threads| log(threads as f64));
        let on_tensors = |product: &Product| {
            let shape = product.shape(&self.parameters, values.ranks);
            let sizes = shape.map_or([0; 4], |Shape { terms, warps, tiles }| {
                [terms, warps[0] * warps[1], tiles[0], tiles[1]]
            });
            sizes.map(|size| log(size as f64))
        };
        let tensors = self.products.iter().flat_map(on_tensors);
        self.groups.iter().flat_map(of_group).chain(rows).chain(tensors).collect()
    }

    fn begun(&self) -> &Schedule {
        &self.begun.schedule
    }
}

impl GpuSketch {
    /// The estimated cycles of products on tensor cores.
    fn on_tensors(&self, values: Values<'_>) -> f64 {
        let gpu = &self.goal.target;
        let cycles = |(product, group, shape): (&Product, &Group, Shape)| {
            tensor::cycles(product, group, &shape, gpu)
        };
        self.tensors(values).map(cycles).sum()
    }

    /// Fuses chains into one launch, and moves products to tensor cores, if the model expects
    /// either to be faster than separate groups.
    fn join(&self, ranks: &mut [u32]) {
        for product in &self.products {
            product.write(None, ranks);
            let Some(group) = self.groups.get(product.group) else { continue };
            let Some((shape, on_tensors)) = tensor::best(product, group, &self.goal) else {
                continue;
            };
            let free = vec![true; ranks.len()];
            let tiling = self.tiling(group, Values { ranks, free: &free });
            if on_tensors < cost::cycles(group, &tiling, &self.goal) {
                product.write(Some(shape), ranks);
            }
        }
        let free = vec![true; ranks.len()];
        for chain in &self.chains {
            let Some((threads, fused)) = rows::best(chain, &self.goal) else { continue };
            let apart: f64 = {
                let values = Values { ranks, free: &free };
                let own = self.groups.iter().filter(|group| chain.of.has(group.stage()));
                own.map(|group| cost::cycles(group, &self.tiling(group, values), &self.goal)).sum()
            };
            if let Some(rank) = ranks.get_mut(chain.parameter) {
                *rank = if fused < apart { chain.rank(threads) } else { 0 };
            }
        }
    }
}
