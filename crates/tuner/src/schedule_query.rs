//! [`ScheduleQuery`]: for what a schedule is wanted, and whether one serves.

use tensorwright::{Goal, Program, Schedule, Target};
use tensorwright_records::Best;

use crate::names::RecordNames;

/// For what a schedule is wanted.
#[derive(Debug, Clone, Copy)]
pub struct ScheduleQuery<'a> {
    /// The program.
    pub program: &'a Program,
    /// The target, the threads of parallel loops, and with which numbers sums may be computed.
    pub goal: &'a Goal,
}

impl ScheduleQuery<'_> {
    /// The schedule of a record in the names of the program, if it can be read and applied, and its text in names by
    /// position.
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
        // What is for another machine cannot run here; its loops can.
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
