//! The pair of an index.

use tensorwright_schedule::primitives::Primitive;
use tensorwright_schedule::{LoopNest, Schedule, canonical};
use tensorwright_testkit::Rng;

use super::case::Case;
use super::failure::{Kind, Problem, Suspect};
use super::scheduler;
use super::source::Source;
use super::tally::Tally;

/// A random case, and what its schedule was before it became text.
pub(crate) struct Drawn {
    /// The case.
    pub(crate) case: Case,
    scheduled: Option<(Schedule, LoopNest)>,
}

impl Drawn {
    /// Draws the pair of an index. Never dies, whatever primitives do.
    pub(crate) fn of(source: &Source, seed: u64, index: u64, tally: &mut Tally) -> Self {
        let mut rng = Rng::of(seed, index);
        let mut case = source.draw(&mut rng);
        let Ok(program) = case.bind() else { return Self { case, scheduled: None } };
        let scheduled = scheduler::random(canonical(&program), &mut rng, tally);
        case.schedule = scheduled.schedule.to_string();
        if scheduled.schedule.steps.iter().any(|step| is_algebraic(&step.primitive)) {
            case.inputs = case.inputs.finite();
        }
        // Its errors are relative to the largest number of a tile, so all must be of one size.
        let mut steps = scheduled.schedule.steps.iter();
        if steps.any(|step| matches!(step.primitive, Primitive::Winograd(_))) {
            case.inputs = case.inputs.plain();
        }
        Self { case, scheduled: Some((scheduled.schedule, scheduled.nest)) }
    }

    /// Whether the text of the schedule means what the schedule did.
    pub(crate) fn check_text(&self) -> Result<(), Problem> {
        let Some((schedule, nest)) = &self.scheduled else { return Ok(()) };
        let differs = |why: String| Problem::new(Suspect::Schedule, Kind::RoundTrip, why);
        let read = Schedule::parse(&self.case.schedule).map_err(|why| differs(why.to_string()))?;
        for (step, again) in schedule.steps.iter().zip(&read.steps) {
            if (&step.stage, &step.primitive) != (&again.stage, &again.primitive) {
                return Err(differs(format!("`{step}` is read as `{again}`")));
            }
        }
        if read.steps.len() != schedule.steps.len() {
            return Err(differs("a step is lost".to_owned()));
        }
        let program = self.case.bind().map_err(differs)?;
        let again = read.apply(canonical(&program)).map_err(|why| differs(why.to_string()))?;
        let (nest, again) = (nest.to_string(), again.to_string());
        if nest != again {
            return Err(differs(format!("the nest was\n{nest}and became\n{again}")));
        }
        Ok(())
    }
}

/// Whether a primitive uses laws that hold for numbers only: zero times infinity is none.
fn is_algebraic(primitive: &Primitive) -> bool {
    matches!(
        primitive,
        Primitive::Pad(_) | Primitive::Phases(_) | Primitive::Factor(_) | Primitive::Winograd(_)
    )
}
