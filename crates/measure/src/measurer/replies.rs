//! Handles messages and ends of children.

use std::time::Instant;

use tensorwright_outcome::{Outcome, Phase};

use super::Measurer;
use super::child_slot::{Built, ChildSlot, Purpose, Run, Task};
use super::finalists::Finalist;
use crate::child::{End, Event};
use crate::protocol::{BuilderReply, Compared, Frame, RunnerReply, Verdict};

impl Measurer {
    /// Handles an event of a child; events of replaced children are ignored.
    pub(super) fn handle(&mut self, event: Event) {
        let Event { child, what } = event;
        let understood = match what {
            Ok(Some(frame)) => self.understand(child, frame),
            Ok(None) => Err(None),
            Err(error) => Err(Some(error.to_string())),
        };
        if let Err(garbage) = understood {
            self.lose(child, garbage);
        }
    }

    /// Handles a message, or returns why it is malformed.
    fn understand(&mut self, child: u64, frame: Frame) -> Result<(), Option<String>> {
        let garbage = || Some("what the process wrote is not an answer".to_owned());
        if self.runner.has(child) {
            let reply = frame.message().map_err(|_| garbage())?;
            return self.runner_says(frame.number, reply).ok_or_else(garbage);
        }
        let Some(number) = self.builders.iter().position(|builder| builder.has(child)) else {
            return Ok(());
        };
        let reply = frame.message().map_err(|_| garbage())?;
        self.builder_says(number, frame, reply).ok_or_else(garbage)
    }

    /// Handles a builder's answer; `None` if it is out of place.
    fn builder_says(&mut self, number: usize, frame: Frame, reply: BuilderReply) -> Option<()> {
        let slot = &mut self.builders[number];
        if let BuilderReply::Ready = reply {
            return slot.ready();
        }
        slot.task.as_ref().filter(|task| task.request == frame.number)?;
        let Task { what: mut job, since, .. } = slot.done()?;
        job.spent.build += since.elapsed();
        match reply {
            BuilderReply::Built(description) => {
                let object = job.object.clone().unwrap_or(frame.bytes);
                self.keep(Built { job: *job, description, object });
            }
            BuilderReply::Illegal { rule, reason } => {
                self.finish(*job, Outcome::Illegal { rule, reason });
            }
            BuilderReply::Failed(reason) => self.finish(*job, Outcome::BuildFailed { reason }),
            BuilderReply::Ready | BuilderReply::Expected => return None,
        }
        Some(())
    }

    /// Keeps a candidate until it can run.
    fn keep(&mut self, built: Built) {
        match built.job.purpose {
            Purpose::Trial(_) => self.built.push_back(built),
            Purpose::Finalist(place) => {
                if let Some(finalist) = self.finalists.get_mut(place) {
                    *finalist = Some(Ok(built));
                }
            }
        }
    }

    /// Handles the runner's answer; `None` if it is out of place.
    fn runner_says(&mut self, number: u64, reply: RunnerReply) -> Option<()> {
        if let RunnerReply::Ready(roofline) = reply {
            self.roofline = roofline;
            return self.runner.ready();
        }
        let first_call = self.first_call_limit();
        let task = self.runner.task.as_mut().filter(|task| task.request == number)?;
        match (reply, &mut task.what) {
            (RunnerReply::Loaded, Run::Trial(built)) if task.phase == Phase::Build => {
                built.job.spent.build += task.since.elapsed();
                task.begin(Phase::Check, self.config.run_deadline);
            }
            (RunnerReply::Prepared, Run::Trial(built)) if task.phase == Phase::Check => {
                built.job.spent.check += task.since.elapsed();
                task.begin(Phase::Check, first_call);
            }
            (RunnerReply::Checked, Run::Trial(built)) if task.phase == Phase::Check => {
                built.job.spent.check += task.since.elapsed();
                task.begin(Phase::Time, self.config.run_deadline);
            }
            (RunnerReply::Timed(verdict, roofline), Run::Trial(_)) => {
                self.roofline = roofline;
                self.judge(verdict);
            }
            (RunnerReply::Compared(compared, roofline), Run::Comparison) => {
                self.roofline = roofline;
                self.runner.done();
                if compared.iter().any(|compared| compared.verdict.is_contagious()) {
                    // One of them may have damaged the process for the others.
                    self.runner.child = None;
                    self.compared = Some(Vec::new());
                    return Some(());
                }
                let finalist = |compared: Compared| Finalist {
                    outcome: outcome(compared.verdict),
                    rounds: compared.rounds,
                };
                self.compared = Some(compared.into_iter().map(finalist).collect());
            }
            _ => return None,
        }
        Some(())
    }

    /// Converts the runner's verdict to the outcome of its candidate.
    fn judge(&mut self, verdict: Verdict) {
        let earlier = self.runner.served;
        let Some(Task { what: Run::Trial(mut built), phase, since, .. }) = self.runner.done()
        else {
            return;
        };
        built.job.spent.add(phase, since);
        let is_wrong = matches!(verdict, Verdict::Wrong(_));
        if is_wrong || verdict.is_contagious() {
            // A kernel with wrong results may have written elsewhere too.
            self.runner.child = None;
            let is_blameless = earlier > 0 || matches!(verdict, Verdict::Lost(_));
            if is_blameless && self.try_again(&mut built) {
                return;
            }
        }
        self.finish(built.job, outcome(verdict));
    }

    /// Queues a candidate again, once, if another one or something outside may have caused its
    /// failure.
    fn try_again(&mut self, built: &mut Built) -> bool {
        if std::mem::replace(&mut built.job.is_second_run, true) {
            return false;
        }
        self.built.push_front(built.clone());
        true
    }

    /// Handles a child that is gone, or that must go because of a malformed message.
    fn lose(&mut self, child: u64, garbage: Option<String>) {
        if self.runner.has(child) {
            let end = self.runner.bury(garbage);
            self.runner_ended(&end);
        } else if let Some(number) = self.builders.iter().position(|b| b.has(child)) {
            let end = self.builders[number].bury(garbage);
            self.builder_ended(number, end);
        }
    }

    fn runner_ended(&mut self, end: &End) {
        let is_fresh = self.runner.served == 0;
        let Some(task) = self.runner.task.take() else { return };
        match task.what {
            Run::Trial(mut built) => {
                built.job.spent.add(task.phase, task.since);
                let is_blameless = !is_fresh || end.signal == Some(libc::SIGKILL);
                if is_blameless && self.try_again(&mut built) {
                    return;
                }
                let End { reason, stderr, .. } = end.clone();
                self.finish(built.job, Outcome::Crashed { reason, stderr });
            }
            // It is unknown which one caused it; an empty list means failure.
            Run::Comparison => self.compared = Some(Vec::new()),
        }
    }

    fn builder_ended(&mut self, number: usize, end: End) {
        let Some(Task { what: mut job, since, .. }) = self.builders[number].task.take() else {
            return;
        };
        job.spent.build += since.elapsed();
        let is_blameless = end.signal == Some(libc::SIGKILL);
        if is_blameless && !std::mem::replace(&mut job.is_second_build, true) {
            self.queue.push_front(*job);
            return;
        }
        let reason = format!("{}\n{}", end.reason, end.stderr);
        let reason = reason.trim_end().to_owned();
        self.finish(*job, Outcome::BuildFailed { reason });
    }

    /// Kills children that have missed their deadline.
    pub(super) fn expire(&mut self) {
        let now = Instant::now();
        for number in 0..self.builders.len() {
            let slot = &mut self.builders[number];
            if slot.deadline().is_some_and(|deadline| deadline <= now) && !slot.postpone() {
                let task = slot.expel();
                if let Some(Task { what: mut job, since, limit, .. }) = task {
                    job.spent.build += since.elapsed();
                    let limit = limit.as_secs_f64();
                    self.finish(*job, Outcome::TimedOut { phase: Phase::Build, limit });
                }
            }
        }
        if self.runner.deadline().is_some_and(|deadline| deadline <= now) && !self.runner.postpone()
        {
            self.runner_is_late();
        }
    }

    fn runner_is_late(&mut self) {
        match self.runner.expel() {
            Some(Task { what: Run::Trial(mut built), phase, since, limit, .. }) => {
                built.job.spent.add(phase, since);
                let limit = limit.as_secs_f64();
                self.finish(built.job, Outcome::TimedOut { phase, limit });
            }
            Some(Task { what: Run::Comparison, .. }) => self.compared = Some(Vec::new()),
            None => {}
        }
    }
}

impl<T> ChildSlot<T> {
    /// Marks a child as ready; `None` if it was ready before.
    fn ready(&mut self) -> Option<()> {
        self.ready_by.take()?;
        self.failures = 0;
        Some(())
    }

    /// Counts a child that did not become ready.
    pub(super) fn fail(&mut self, complaint: String) {
        self.failures += 1;
        self.complaint = complaint;
    }

    /// Kills the child, or finds out how it ended by itself.
    fn bury(&mut self, garbage: Option<String>) -> End {
        let Some(mut child) = self.child.take() else {
            return End { signal: None, reason: String::new(), stderr: String::new() };
        };
        let end = match garbage {
            None => child.end(),
            Some(reason) => End { signal: None, reason, ..child.kill() },
        };
        if self.ready_by.take().is_some() {
            self.fail(format!("{}\n{}", end.reason, end.stderr));
        }
        end
    }

    /// Kills a late child and returns its task.
    pub(super) fn expel(&mut self) -> Option<Task<T>> {
        if let Some(mut child) = self.child.take() {
            child.kill();
        }
        if self.ready_by.take().is_some() {
            self.fail("it took too long to start".to_owned());
        }
        self.task.take()
    }
}

impl super::StepTimes {
    /// Adds the time since a phase of the runner began.
    fn add(&mut self, phase: Phase, since: Instant) {
        let step = match phase {
            Phase::Build => &mut self.build,
            Phase::Check => &mut self.check,
            Phase::Time => &mut self.time,
        };
        *step += since.elapsed();
    }
}

/// The outcome of a verdict.
pub(super) fn outcome(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Right(timing) => Outcome::Measured(timing),
        Verdict::Wrong(reason) => Outcome::WrongResult { reason },
        Verdict::TooLarge(reason) => Outcome::Illegal { rule: "memory".to_owned(), reason },
        Verdict::OverLimits(reason) => Outcome::Illegal { rule: "limits".to_owned(), reason },
        Verdict::Unlinkable(reason) => Outcome::BuildFailed { reason },
        Verdict::Failed(reason) => Outcome::Crashed { reason, stderr: String::new() },
        Verdict::Lost(_) => Outcome::DeviceLost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_become_outcomes() {
        let large = outcome(Verdict::TooLarge("1 TB".into()));
        assert_eq!(large.to_string(), "illegal: memory: 1 TB");
        assert_eq!(outcome(Verdict::Wrong("x".into())).kind(), "wrong-result");
        assert_eq!(outcome(Verdict::Unlinkable("x".into())).kind(), "build-failed");
        let limits = outcome(Verdict::OverLimits("2048 threads".into()));
        assert_eq!(limits.to_string(), "illegal: limits: 2048 threads");
        assert_eq!(outcome(Verdict::Failed("x".into())).kind(), "crashed");
        assert_eq!(outcome(Verdict::Lost("x".into())), Outcome::DeviceLost);
    }
}
