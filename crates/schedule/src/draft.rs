//! [`Draft`]: a schedule in the making.

use crate::nest::{Loop, LoopNest};
use crate::primitives::{Primitive, loops_of};
use crate::schedule::{ByteRange, Schedule, ScheduleError, Step};

/// A schedule in the making, and the nest that it has made so far.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The nest so far.
    pub nest: LoopNest,
    /// The steps that led to it.
    pub schedule: Schedule,
}

impl Draft {
    /// A draft without steps.
    #[must_use]
    pub fn new(nest: LoopNest) -> Self {
        Self { nest, schedule: Schedule::default() }
    }

    /// Adds a step.
    ///
    /// # Errors
    /// If it is not legal; the draft is then as it was.
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

    /// Adds a step if it is legal; says whether it was.
    pub fn step(&mut self, stage: &str, primitive: impl Into<Primitive>) -> bool {
        self.apply(stage, primitive).is_ok()
    }

    /// Adds several steps if all are legal, none otherwise; says whether they were.
    pub fn steps(&mut self, add: impl FnOnce(&mut Draft) -> bool) -> bool {
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
