//! What the rest of the crate asks the sketch of processors.

use tensorwright_schedule::Schedule;
use tensorwright_space::{Parameter, Point, Rejection};

use crate::cpu::cost::{self, TERMS};
use crate::cpu::group::{Group, Vector};
use crate::cpu::knobs::place::{Misplaced, Place, RULES};
use crate::cpu::knobs::{self, Beside, KNOBS};
use crate::cpu::sketch::{CpuSketch, Setting};
use crate::cpu::tiling::Tiling;
use crate::cpu::{decode, features, rank};
use crate::sketch::{Sketch, Values};

impl CpuSketch {
    /// What knobs start from beside a vector.
    fn start_with(&self, group: &Group, vector: Vector) -> Tiling {
        let mut tiling = Tiling { vector, ..Tiling::plain(group) };
        KNOBS.iter().for_each(|knob| knob.start(&mut tiling, group, &self.goal));
        tiling
    }
}

impl Sketch for CpuSketch {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Of the vectors of each group the first with which the rules are content.
    fn start(&self, free: &[bool]) -> Point {
        let mut ranks = vec![0u32; self.parameters.len()];
        for group in &self.groups {
            let suits = group.vectors.iter().any(|vector| {
                self.write(group, &self.start_with(group, *vector), &mut ranks);
                let tiling = self.tiling(group, Values { ranks: &ranks, free });
                knobs::check(group, &tiling, &self.goal, usize::MAX).is_ok()
            });
            if let (false, Some(first)) = (suits, group.vectors.first()) {
                self.write(group, &self.start_with(group, *first), &mut ranks);
            }
        }
        Point::new(ranks)
    }

    fn rules(&self) -> Vec<&'static str> {
        let of_knobs = knobs::rules().map(|(name, _)| name);
        RULES.iter().copied().chain(of_knobs).collect()
    }

    fn refusal(&self, values: Values<'_>) -> Option<(usize, Rejection)> {
        if let Some(Misplaced { rule, reason, .. }) = self.places.misplaced(values.ranks) {
            let place = RULES.iter().position(|name| *name == rule).unwrap_or(0);
            return Some((place, Rejection { rule, reason }));
        }
        let mut first: Option<(usize, Rejection)> = None;
        for (group, tiling) in self.tilings(values) {
            let most = first.as_ref().map_or(usize::MAX, |(rule, _)| *rule);
            if let Err(refused) = knobs::check(group, &tiling, &self.goal, most) {
                first = Some(refused);
            }
        }
        // The rules of places come before those of groups.
        first.map(|(rule, refused)| (rule + RULES.len(), refused))
    }

    /// Groups have no parameter in common.
    fn to_blame(&self, values: Values<'_>) -> Vec<usize> {
        if let Some(Misplaced { parameters, .. }) = self.places.misplaced(values.ranks) {
            return parameters;
        }
        let refused = |(group, tiling): &(&Group, Tiling)| {
            knobs::check(group, tiling, &self.goal, usize::MAX).is_err()
        };
        let group = self.tilings(values).find(refused);
        group.map_or_else(Vec::new, |(group, _)| group.parameters.clone().collect())
    }

    fn idle(&self, values: Values<'_>) -> Vec<(usize, &'static str)> {
        let is_inside = |stage: &str| self.place_of(stage, values) != Place::Root;
        let of_group = |group: &Group| {
            let tiling = self.tiling(group, values);
            let moved = is_inside(&group.root).then_some("the stage is computed where it is read");
            let idle = |(at, _, Setting { knob, place }): (usize, &Parameter, Setting)| {
                let beside = Beside { tiling: &tiling, group, place, is_inside: &is_inside };
                Some((at, moved.or_else(|| knob.idle(beside))?))
            };
            self.of_group(group).filter_map(idle).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of_group).collect()
    }

    fn ranked(&self, base: Values<'_>, count: usize) -> Vec<Point> {
        rank::ranked(self, base, count)
    }

    fn estimate(&self, values: Values<'_>) -> f64 {
        self.groups.iter().map(|group| rank::estimate(self, group, values)).sum()
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
        decode::decode(self, values)
    }

    fn features(&self, values: Values<'_>) -> Vec<f32> {
        let of = |group: &Group| features::features(group, &self.tiling(group, values));
        self.groups.iter().flat_map(of).collect()
    }

    fn begun(&self) -> &Schedule {
        &self.begun.schedule
    }
}
