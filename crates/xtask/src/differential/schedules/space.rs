//! Decoded points of search spaces.

use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, TargetError};
use tensorwright_policy::{Preset, ScheduleSpace};
use tensorwright_space::Rng as SpaceRng;
use tensorwright_testkit::Rng;

use super::{DrawnSchedule, small};
use crate::differential::tally::Tally;

/// How many points are drawn to find a small one.
const TRIES: usize = 6;

/// The percentage of spaces with the default preset.
const FULL: usize = 70;

/// The spaces of a program: one per algorithm.
pub(crate) struct Spaces(Vec<ScheduleSpace>);

impl Spaces {
    /// The spaces for a goal and a random preset.
    pub(super) fn of(program: &Program, goal: &Goal, rng: &mut Rng) -> Result<Self, TargetError> {
        let (_, other) = rng.pick(&Preset::ALL);
        let preset = if rng.percent(FULL) { Preset::default() } else { *other };
        ScheduleSpace::alternatives(program, goal, &preset.options()).map(Self)
    }

    /// The schedule of a random legal point; `None` if all draws are rejected or too large.
    pub(super) fn draw(
        &self,
        program: &Program,
        rng: &mut Rng,
        tally: &mut Tally,
    ) -> Option<DrawnSchedule> {
        let mut points = SpaceRng::new(rng.next_u64());
        for _ in 0..TRIES {
            let space = rng.pick(&self.0);
            let point = space.search_space().sample_legal(&mut points);
            tally.count("[legal point]", point.is_some());
            match space.decode(&point?) {
                Ok(schedule) => {
                    let algorithm = space.algorithm();
                    let words: Vec<&str> = algorithm.split_whitespace().skip(1).take(1).collect();
                    tally.count(&format!("[decoded: {}]", words.concat()), true);
                    if let Some(made) = small(schedule, program, tally) {
                        return Some(made);
                    }
                }
                // Primitives may reject more than the rules of the space.
                Err(refused) => tally.count(&format!("[decoded: {}]", refused.rule), false),
            }
        }
        None
    }
}
