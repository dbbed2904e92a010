//! [`ScheduleQuery`]: a program and goal that need a schedule.

use tensorwright::{Goal, Program, Schedule, Target};
use tensorwright_records::Best;

use crate::names::RecordNames;

/// The program and the goal that a schedule is looked up for.
#[derive(Debug, Clone, Copy)]
pub struct ScheduleQuery<'a> {
    /// The program.
    pub program: &'a Program,
    /// The target, the number of threads and the precision.
    pub goal: &'a Goal,
}

impl ScheduleQuery<'_> {
    /// A recorded schedule in the names of the program, with its text in names by position; `None`
    /// if it cannot be parsed or applied.
    pub(crate) fn usable(
        &self,
        names: &RecordNames<'_>,
        best: &Best,
    ) -> Option<(Schedule, String)> {
        let canonical = names.canonical(&best.trial.schedule)?;
        let schedule = names.shown(&canonical)?;
        let lowered = self.program.compile().schedule(schedule.clone()).lower();
        lowered.ok().map(|_| (schedule, canonical.to_string()))
    }

    /// Whether a kernel of this schedule computes what the program says, on random inputs.
    pub(crate) fn verifies(&self, schedule: &Schedule) -> bool {
        // Code for another machine cannot run here, but its loops can be compiled for this one.
        let target = &self.goal.target;
        let here = target.check_runs_here().is_ok();
        let native = if here { Some(target.clone()) } else { Target::native().ok() };
        let Some(target) = native else { return false };
        let Ok(inputs) = self.program.random_inputs(0) else { return false };
        let builder = self.program.compile().target(target).threads(self.goal.threads());
        let Ok(kernel) = builder.schedule(schedule.clone()).build() else { return false };
        let Ok(outputs) = kernel.run_guarded(&inputs) else { return false };
        kernel.verify(&inputs, &outputs).is_ok_and(|verified| verified.passed())
    }
}
