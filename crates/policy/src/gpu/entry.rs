//! What the rest of the crate asks the sketch of graphics processors.

use tensorwright_schedule::Schedule;
use tensorwright_space::{Parameter, Point, Rejection};

use super::cost::{self, TERMS};
use super::group::Group;
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
        Point::new(ranks)
    }

    fn rules(&self) -> Vec<&'static str> {
        knobs::rules().map(|(name, _)| name).collect()
    }

    fn refusal(&self, values: Values<'_>) -> Option<(usize, Rejection)> {
        let refused =
            |group: &Group| knobs::refusal(group, &self.tiling(group, values), &self.goal);
        self.groups.iter().filter_map(refused).min_by_key(|(place, _)| *place)
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
        let of_group = |group: &Group| {
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
        self.groups.iter().map(cycles).sum()
    }

    fn estimate_terms(&self, values: Values<'_>) -> Vec<(&'static str, f64)> {
        let mut sum: Vec<(&'static str, f64)> = TERMS.iter().map(|name| (*name, 0.0)).collect();
        for group in &self.groups {
            let terms = cost::terms(group, &self.tiling(group, values), &self.goal);
            sum.iter_mut().zip(terms).for_each(|(sum, term)| sum.1 += term);
        }
        sum
    }

    fn has_sums(&self) -> bool {
        self.groups.iter().any(Group::is_reduction)
    }

    fn decode(&self, values: Values<'_>) -> Result<Schedule, Rejection> {
        let mut draft = self.prepared.clone();
        for group in &self.groups {
            decode::launch(&mut draft, group, &self.tiling(group, values))?;
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
        self.groups.iter().flat_map(of_group).collect()
    }

    fn begun(&self) -> &Schedule {
        &self.begun.schedule
    }
}
