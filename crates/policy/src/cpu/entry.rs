//! `Sketch` implementation for CPUs.

use tensorwright_schedule::Schedule;
use tensorwright_space::{Parameter, Point, Rejection};

use crate::cpu::blocks::{BLOCK, Block};
use crate::cpu::cost::{self, TERMS};
use crate::cpu::group::{Group, Vector};
use crate::cpu::knobs::place::{Place, PlacementError, RULES};
use crate::cpu::knobs::{self, KNOBS, KnobContext};
use crate::cpu::rows::{Chain, ROWS, RowKnob};
use crate::cpu::sketch::{CpuSketch, GroupParameter};
use crate::cpu::tiling::Tiling;
use crate::cpu::{decode, features, rank};
use crate::sketch::{Sketch, Values};

/// The rules on compute locations, in order of application.
fn of_places() -> impl Iterator<Item = &'static str> {
    RULES.iter().copied().chain([ROWS, BLOCK])
}

impl CpuSketch {
    /// Why stages cannot be computed at the locations of the values, if so.
    fn placement_error(&self, values: Values<'_>) -> Option<PlacementError> {
        self.places
            .placement_error(values.ranks)
            .or_else(|| self.displaced(values))
            .or_else(|| self.outside_block(values))
    }

    /// The parameters of a chain without effect.
    fn idle_rows(&self, chain: &Chain, values: Values<'_>) -> Vec<(usize, &'static str)> {
        let is_fused = self.row_tiling(chain, values).is_fused;
        let is_inlined = |place: usize| {
            let stage = chain.stages.get(place).map(|stage| stage.name.as_str());
            stage.is_some_and(|stage| self.place_of(stage, values) == Place::Inline)
        };
        let reason = |knob| match knob {
            RowKnob::Rows => None,
            _ if !is_fused => Some("the stages are not fused"),
            RowKnob::Vectors(place) if is_inlined(place) => {
                Some("the stage is computed at its reader")
            }
            RowKnob::Parallel if self.blocked(&chain.root, values).is_some() => {
                Some("blocks of rows are parallel")
            }
            RowKnob::Vectors(_) | RowKnob::Parallel => None,
        };
        chain.knobs().filter_map(|(at, knob)| Some((at, reason(knob)?))).collect()
    }

    /// The starting tiling of the knobs for a vector.
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

    /// For each group, the first vector whose tiling satisfies the rules.
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
        for chain in &self.chains {
            chain.start(&self.parameters, free, &self.goal, &mut ranks);
        }
        // Blocks are enabled, unless their parameter is fixed and others are free.
        for Block { parameter, shapes, .. } in &self.blocks {
            let is_free = free.get(*parameter).copied().unwrap_or(true);
            ranks[*parameter] = if is_free { 0 } else { shapes.len() as u32 };
        }
        Point::new(ranks)
    }

    fn rules(&self) -> Vec<&'static str> {
        let of_knobs = knobs::rules().map(|(name, _)| name);
        of_places().chain(of_knobs).collect()
    }

    fn refusal(&self, values: Values<'_>) -> Option<(usize, Rejection)> {
        if let Some(PlacementError { rule, reason, .. }) = self.placement_error(values) {
            let place = of_places().position(|name| name == rule).unwrap_or(0);
            return Some((place, Rejection { rule, reason }));
        }
        let mut first: Option<(usize, Rejection)> = None;
        for (group, tiling) in self.tilings(values) {
            let most = first.as_ref().map_or(usize::MAX, |(rule, _)| *rule);
            if let Err(refused) = knobs::check(group, &tiling, &self.goal, most) {
                first = Some(refused);
            }
        }
        // The rules on compute locations come before those of groups.
        first.map(|(rule, refused)| (rule + of_places().count(), refused))
    }

    /// Groups share no parameters.
    fn to_blame(&self, values: Values<'_>) -> Vec<usize> {
        if let Some(PlacementError { parameters, .. }) = self.placement_error(values) {
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
            let moved = is_inside(&group.root).then_some("the stage is computed at its reader");
            let together = self.is_together(&group.root, values);
            let moved = moved.or(together.then_some("the stage is fused row by row"));
            let idle =
                |(at, _, GroupParameter { knob, place }): (usize, &Parameter, GroupParameter)| {
                    let context =
                        KnobContext { tiling: &tiling, group, place, is_inside: &is_inside };
                    Some((at, moved.or_else(|| knob.idle(context))?))
                };
            self.of_group(group).filter_map(idle).collect::<Vec<_>>()
        };
        let of_groups = self.groups.iter().flat_map(of_group);
        of_groups
            .chain(self.chains.iter().flat_map(|chain| self.idle_rows(chain, values)))
            .collect()
    }

    fn ranked(&self, base: Values<'_>, count: usize) -> Vec<Point> {
        rank::ranked(self, base, count)
    }

    fn estimate(&self, values: Values<'_>) -> f64 {
        rank::estimate_all(self, values)
    }

    fn estimate_terms(&self, values: Values<'_>) -> Vec<(&'static str, f64)> {
        let mut sum: Vec<(&'static str, f64)> = TERMS.iter().map(|name| (*name, 0.0)).collect();
        let mut add = |terms: [f64; TERMS.len()]| {
            sum.iter_mut().zip(terms).for_each(|(sum, term)| sum.1 += term);
        };
        for group in self.groups.iter().filter(|group| !self.is_together(&group.root, values)) {
            add(cost::terms(group, &self.tiling(group, values), &self.goal));
        }
        self.chains.iter().for_each(|chain| add(rank::row_terms(self, chain, values)));
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
