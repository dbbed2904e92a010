//! Draws the pair of an index: a program and one of its schedules.

use std::rc::Rc;

use tensorwright_lang::program::Program;
use tensorwright_schedule::primitives::Primitive;
use tensorwright_schedule::{LoopNest, Schedule};
use tensorwright_testkit::Rng;

use super::case::Case;
use super::failure::{Kind, Problem, Suspect};
use super::inputs::Inputs;
use super::oracle::Oracle;
use super::pair::apply_checked;
use super::programs::Programs;
use super::schedules::{self, DrawnSchedule, Maker, MakerError};
use super::tally::Tally;

/// How many consecutive pairs share a program, inputs and reference results.
pub(crate) const SCHEDULES: u64 = 4;

/// Separates the random numbers of schedules from those of programs.
const SCHEDULE_FAMILY: u64 = 0x5c4e_d01e;

/// A program with inputs and a schedule generator.
pub(crate) struct Subject {
    /// The program, bound.
    pub(crate) program: Rc<Program>,
    /// The reference results.
    pub(crate) oracle: Oracle,
    case: Case,
    maker: Maker,
}

impl Subject {
    /// Draws the program of a number.
    pub(crate) fn of(
        programs: &Programs,
        kind: schedules::Kind,
        (seed, number): (u64, u64),
        tally: &mut Tally,
    ) -> Result<Self, (Case, Problem)> {
        let mut rng = Rng::of(seed, number);
        let (inputs, target) = (Inputs::random(&mut rng), target(&mut rng).to_owned());
        let (example, source) = programs.draw(&mut rng);
        tally.count(&format!("({source})"), true);
        let (text, def, sizes) = (example.text, example.def, example.sizes);
        let case = Case { text, def, sizes, inputs, target, schedule: String::new() };
        let problem = |kind, why| Problem::new(Suspect::Schedule, kind, why);
        let program = match case.bind() {
            Ok(program) => Rc::new(program),
            Err(why) => return Err((case, problem(Kind::Refused, why))),
        };
        match kind.maker(&program, &mut rng) {
            Ok(maker) => {
                let oracle = Oracle::new(Rc::clone(&program));
                Ok(Self { program, oracle, case, maker })
            }
            Err(MakerError(why)) => Err((case, problem(Kind::Crash, why))),
        }
    }

    /// Draws the pair of an index; `None` if no schedule of that index is small enough.
    pub(crate) fn draw(
        &self,
        (seed, index): (u64, u64),
        tally: &mut Tally,
    ) -> Result<Option<Drawn>, (Case, Problem)> {
        let mut rng = Rng::of(seed ^ SCHEDULE_FAMILY, index);
        let made = match self.maker.draw(&self.program, &mut rng, tally) {
            Ok(made) => made,
            Err(MakerError(why)) => {
                return Err((self.case.clone(), Problem::new(Suspect::Schedule, Kind::Crash, why)));
            }
        };
        Ok(made.map(|made| Drawn::new(self.case.clone(), made)))
    }
}

/// A case with its original schedule.
pub(crate) struct Drawn {
    /// The case.
    pub(crate) case: Case,
    made: DrawnSchedule,
}

impl Drawn {
    fn new(mut case: Case, made: DrawnSchedule) -> Self {
        case.schedule = made.schedule.to_string();
        if made.schedule.steps.iter().any(|step| is_algebraic(&step.primitive)) {
            case.inputs = case.inputs.finite();
        }
        Self { case, made }
    }

    /// The nest from the schedule's text, if it equals that of the original schedule.
    pub(crate) fn read(&self, program: &Program) -> Result<LoopNest, Problem> {
        let DrawnSchedule { schedule, nest } = &self.made;
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
        let again = apply_checked(&read, program)?;
        if let Some(nest) = nest {
            let (before, after) = (nest.to_string(), again.to_string());
            if before != after {
                return Err(differs(format!("the nest was\n{before}and became\n{after}")));
            }
        }
        Ok(again)
    }
}

/// Mostly this machine; sometimes a processor with shorter vectors.
fn target(rng: &mut Rng) -> &'static str {
    match rng.index(10) {
        0 if cfg!(target_arch = "x86_64") => "sse",
        1 | 2 if cfg!(target_arch = "x86_64") => "avx2",
        _ => "native",
    }
}

/// Whether a primitive uses laws that fail for infinities (zero times infinity is not zero).
fn is_algebraic(primitive: &Primitive) -> bool {
    matches!(
        primitive,
        Primitive::Pad(_) | Primitive::Phases(_) | Primitive::Factor(_) | Primitive::Winograd(_)
    )
}
