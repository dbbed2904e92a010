//! [`ScheduleState`]: a partial schedule and its loop nest.

use crate::nest::{Loop, LoopNest};
use crate::primitives::{Primitive, loops_of};
use crate::schedule::{ByteRange, Schedule, ScheduleError, Step};

/// A partial schedule and the loop nest that its steps produce (a *state* in Ansor).
#[derive(Debug, Clone)]
pub struct ScheduleState {
    /// The nest after all steps.
    pub nest: LoopNest,
    /// The steps so far.
    pub schedule: Schedule,
}

impl ScheduleState {
    /// A state without steps.
    #[must_use]
    pub fn new(nest: LoopNest) -> Self {
        Self { nest, schedule: Schedule::default() }
    }

    /// Applies a step.
    ///
    /// # Errors
    /// The step is not legal; the state is then unchanged.
    pub fn apply(
        &mut self,
        stage: &str,
        primitive: impl Into<Primitive>,
    ) -> Result<(), ScheduleError> {
        let step = Step {
            stage: stage.to_owned(),
            primitive: primitive.into(),
            span: ByteRange::default(),
        };
        step.apply(&mut self.nest)?;
        self.schedule.steps.push(step);
        Ok(())
    }

    /// Applies a step if it is legal; returns whether it was.
    pub fn step(&mut self, stage: &str, primitive: impl Into<Primitive>) -> bool {
        self.apply(stage, primitive).is_ok()
    }

    /// Applies several steps if all are legal, otherwise none; returns whether they were.
    pub fn steps(&mut self, add: impl FnOnce(&mut ScheduleState) -> bool) -> bool {
        let (nest, steps) = (self.nest.clone(), self.schedule.steps.len());
        let added = add(self);
        if !added {
            self.nest = nest;
            self.schedule.steps.truncate(steps);
        }
        added
    }

    /// The names of the loops around a stage, outermost first.
    #[must_use]
    pub fn loop_names(&self, stage: &str) -> Vec<String> {
        let name = |l: &Loop| self.nest.var_name(l.var).to_owned();
        loops_of(&self.nest, stage).into_iter().map(name).collect()
    }
}
