//! What the rest of the crate asks the sketch of graphics processors.

use tensorwright_schedule::Schedule;
use tensorwright_space::{Parameter, Point, Rejection};

use super::cost::{self, TERMS};
use super::group::Group;
use super::rows::{self, Chain};
use super::sketch::{GpuSketch, Setting};
use super::{decode, knobs, rank, rules};
use crate::sketch::{Sketch, Values};

impl Sketch for GpuSketch {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The best tiling of each group by the model.
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
        knobs::rules().map(|(name, _)| name).chain(["row_threads"]).collect()
    }

    fn refusal(&self, values: Values<'_>) -> Option<(usize, Rejection)> {
        let refused =
            |group: &Group| knobs::refusal(group, &self.tiling(group, values), &self.goal);
        let of_groups = self.apart(values).filter_map(refused).min_by_key(|(place, _)| *place);
        of_groups.or_else(|| {
            let place = knobs::rules().count();
            let refused =
                |(chain, threads): (&Chain, i64)| chain.refusal(threads, &self.goal.target);
            let reason = self.launches(values).find_map(refused)?;
            Some((place, Rejection { rule: "row_threads", reason }))
        })
    }

    /// Groups have no parameter in common.
    fn to_blame(&self, values: Values<'_>) -> Vec<usize> {
        let refused = |group: &&Group| {
            knobs::refusal(group, &self.tiling(group, values), &self.goal).is_some()
        };
        let group = self.groups.iter().find(refused);
        group.map_or_else(Vec::new, |group| group.parameters.clone().collect())
    }

    fn idle(&self, values: Values<'_>) -> Vec<(usize, &'static str)> {
        const IN_ROW: &str = "its stage is computed row by row with others";
        let of_group = |group: &Group| {
            if self.is_in_row(group, values) {
                return group.parameters.clone().map(|at| (at, IN_ROW)).collect();
            }
            let tiling = self.tiling(group, values);
            let idle = |(at, _, Setting { knob, place }): (usize, &Parameter, Setting)| {
                Some((at, knob.idle(&tiling, group, place)?))
            };
            self.of_group(group).filter_map(idle).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of_group).collect()
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
            // What is not free stays.
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
        self.apart(values).map(cycles).sum::<f64>() + rows.sum::<f64>()
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
        self.fixed.iter().for_each(|stage| rules::lines(&mut draft, stage));
        Ok(draft.schedule)
    }

    /// Logarithms of what decides how fast a tiling is: threads, blocks, results of a thread, shared bytes, and each
    /// term of the model.
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
        self.groups.iter().flat_map(of_group).chain(rows).collect()
    }

    fn begun(&self) -> &Schedule {
        &self.begun.schedule
    }
}

impl GpuSketch {
    /// Makes chains one launch where the model expects that to be faster than the groups of their stages.
    fn join(&self, ranks: &mut [u32]) {
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
