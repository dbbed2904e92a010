//! Assigns work to children: the event loop behind every wait.

use std::time::{Duration, Instant};

use tensorwright_outcome::{Outcome, Phase};

use super::child_slot::{Built, Job, MOST_FAILURES, Purpose, Run, Task};
use super::start::greet;
use super::{Measurer, TrialResult};
use crate::child::Role;
use crate::protocol::{BuilderRequest, RunnerRequest, Setup};
use crate::worker::PROCESSOR_SECONDS;

/// A first call may always take this long, however fast the best is.
const LEAST_LIMIT: Duration = Duration::from_millis(100);

/// The same on a device: some runtimes finish compiling at the first launch.
const LEAST_DEVICE_LIMIT: Duration = Duration::from_secs(3);

impl Measurer {
    /// Handles events until `is_done` or `until`.
    pub(super) fn pump(&mut self, until: Instant, is_done: impl Fn(&Self) -> bool) {
        loop {
            // A child that has answered is not late, however long its answer waited here.
            while let Ok(event) = self.events.try_recv() {
                self.handle(event);
            }
            self.expire();
            self.dispatch();
            let now = Instant::now();
            if is_done(self) || now >= until {
                return;
            }
            let next = self.nearest_deadline().map_or(until, |deadline| deadline.min(until));
            if let Ok(event) = self.events.recv_timeout(next.saturating_duration_since(now)) {
                self.handle(event);
            }
        }
    }

    /// Gives work to idle children.
    pub(super) fn dispatch(&mut self) {
        self.restart();
        self.give_up();
        self.drain_or_fill();
        for number in 0..self.builders.len() {
            if self.builders[number].is_idle() && self.may_build() {
                let Some(job) = self.next_job() else { break };
                self.build(number, job);
            }
        }
        if self.runner.is_idle()
            && self.may_run()
            && let Some(built) = self.built.pop_front()
        {
            self.run(built);
        }
    }

    fn nearest_deadline(&self) -> Option<Instant> {
        let builders = self.builders.iter().filter_map(|builder| builder.deadline());
        builders.chain(self.runner.deadline()).min()
    }

    /// Starts missing children. Replaces an idle runner that has used much of its CPU time limit.
    fn restart(&mut self) {
        let used = self.runner.busy.as_secs().saturating_mul(self.config.threads as u64);
        if self.runner.is_idle() && used > PROCESSOR_SECONDS / 2 {
            self.runner.child = None;
        }
        let Self { spawner, setup, places, .. } = self;
        for slot in &mut self.builders {
            if slot.child.is_some() || slot.failures >= MOST_FAILURES {
                continue;
            }
            match spawner.start(Role::Builder) {
                Ok(mut child) => {
                    let processors = places.builders.clone();
                    greet(&mut child, &Setup { processors, ..setup.clone() });
                    slot.occupy(child);
                }
                Err(error) => slot.fail(error.to_string()),
            }
        }
        if self.runner.child.is_some() || self.runner.failures >= MOST_FAILURES {
            return;
        }
        match spawner.start(Role::Runner) {
            Ok(mut child) => {
                let (processors, roofline) = (places.runner.clone(), Some(self.roofline));
                greet(&mut child, &Setup { processors, roofline, ..setup.clone() });
                self.runner.occupy(child);
            }
            Err(error) => self.runner.fail(error.to_string()),
        }
    }

    /// Without any children left, fails the candidates that wait for one.
    fn give_up(&mut self) {
        if self.builders.iter().all(|builder| builder.is_given_up()) || self.runner.is_given_up() {
            let jobs: Vec<Job> = self.queue.drain(..).collect();
            let built = self.built.drain(..).map(|built| built.job);
            let jobs: Vec<Job> = built.chain(jobs).collect();
            jobs.into_iter().for_each(|job| self.finish(job, Outcome::DeviceLost));
        }
    }

    /// If building disturbs timing, alternates: builds a few candidates, then runs them all.
    fn drain_or_fill(&mut self) {
        if self.built.is_empty() {
            self.is_draining = false;
        } else if self.built.len() >= self.most_built() || self.queue.is_empty() {
            self.is_draining = true;
        }
    }

    /// Enough that the runner need not wait, and few enough to fit into memory.
    fn most_built(&self) -> usize {
        2 * self.builders.len() + 2
    }

    fn may_build(&self) -> bool {
        let is_disturbing = self.places.is_crowded && (self.is_draining || self.is_running());
        self.built.len() < self.most_built() && !is_disturbing
    }

    fn may_run(&self) -> bool {
        let is_disturbed = self.places.is_crowded && self.is_building();
        // Trials are not run while finalists wait for the runner.
        !is_disturbed && !self.is_comparing && (!self.places.is_crowded || self.is_draining)
    }

    fn is_running(&self) -> bool {
        self.runner.task.is_some()
    }

    pub(super) fn is_building(&self) -> bool {
        self.builders.iter().any(|builder| builder.task.is_some())
    }

    /// The next candidate to build; only finalists while these are compared.
    fn next_job(&mut self) -> Option<Job> {
        let is_finalist = |job: &Job| matches!(job.purpose, Purpose::Finalist(_));
        match self.is_comparing {
            false => self.queue.pop_front(),
            true => self.queue.iter().position(is_finalist).and_then(|at| self.queue.remove(at)),
        }
    }

    pub(super) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    fn build(&mut self, number: usize, job: Job) {
        let request = self.next_request();
        let message = BuilderRequest::Build {
            schedule: job.schedule.clone(),
            lower_only: job.object.is_some(),
        };
        let limit = self.config.build_deadline;
        let slot = &mut self.builders[number];
        // If the message cannot be delivered, the child is gone, and its last event reports that.
        let _ = slot.child.as_mut().map(|child| child.send(request, &message, &[]));
        slot.assign(Task::new(request, Box::new(job)), Phase::Build, limit);
    }

    fn run(&mut self, built: Built) {
        let request = self.next_request();
        let message = RunnerRequest::Run {
            description: built.description.clone(),
            best: self.best,
            plan: self.config.timing,
        };
        // The runner compiles device programs. Preparation runs once in the life of a kernel: only
        // the call itself is hurried.
        let (phase, limit) = match self.setup.device {
            Some(_) => (Phase::Build, self.config.build_deadline),
            None => (Phase::Check, self.config.run_deadline),
        };
        let child = self.runner.child.as_mut();
        let _ = child.map(|child| child.send(request, &message, &built.object));
        let what = Run::Trial(Box::new(built));
        self.runner.assign(Task::new(request, what), phase, limit);
    }

    /// The limit of a first call: shorter once a best time is known.
    pub(super) fn first_call_limit(&self) -> Duration {
        let hopeless = self.best.map(|best| best * self.config.timing.hopeless);
        let hopeless = hopeless.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let limit = self.config.run_deadline;
        let least = self.setup.device.as_ref().map_or(LEAST_LIMIT, |_| LEAST_DEVICE_LIMIT);
        hopeless.map_or(limit, |hopeless| hopeless.max(least).min(limit))
    }

    /// Delivers an outcome.
    pub(super) fn finish(&mut self, job: Job, outcome: Outcome) {
        match job.purpose {
            Purpose::Trial(id) => {
                self.finished.push_back(TrialResult { id, outcome, spent: job.spent });
            }
            Purpose::Finalist(place) => {
                if let Some(finalist) = self.finalists.get_mut(place) {
                    *finalist = Some(Err(outcome));
                }
            }
        }
    }
}
