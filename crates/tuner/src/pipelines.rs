//! [`PipelineSource`]: proposes schedules from a search over pipelines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tensorwright::{Goal, Precision, Schedule};
use tensorwright_policy::{Preset, Samples, ScheduleSpace, pipeline_search};
use tensorwright_records::Origin;
use tensorwright_search::{Observation, Proposal};
use tensorwright_space::{Point, Rejection};

use crate::mode::Mode;
use crate::source::Source;
use crate::tuner::Tuner;

/// The divisors of a run's time that limit its searches over pipelines: beside other sources, and
/// alone.
const SHARES: (u32, u32) = (10, 2);

/// The limits in a run without a time limit: beside other sources, and alone.
const LONGEST: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));

/// The source is exhausted after this many searches in a row without a new state.
const MOST_BARREN: usize = 24;

/// Measurements per update of the cost model.
const BATCH: usize = 16;

/// States to propose even if the time is used up: building a schedule takes time too.
const LEAST: u64 = 6;

/// Proposes schedules from a search over pipelines, for programs of several stages. Points are the
/// numbers of the states found so far.
///
/// The cost model ranks them. If the mode measures many candidates, every second proposal is a
/// fresh sample, as in Anderson et al. 2021, section 6: the model is not always right.
pub(crate) struct PipelineSource {
    samples: Samples,
    precision: Precision,
    /// Searches to run before the first proposal.
    ahead: usize,
    /// Whether to propose fresh samples between the best states.
    goes_on: bool,
    /// The remaining time for searches and for building schedules.
    left: Duration,
    stop: Arc<AtomicBool>,
    turn: u64,
    barren: usize,
    /// Measurements that the cost model has learned from.
    learned: usize,
}

impl PipelineSource {
    /// The source of a run; `None` for programs of one stage and for restricted spaces.
    pub(crate) fn of(tuner: &Tuner, goal: &Goal) -> Option<Self> {
        let program = tuner.program.ir();
        if program.stages.len() < 2 || tuner.options != Preset::Full.options() {
            return None;
        }
        let goes_on = tuner.mode == Mode::Autotune;
        let (share, longest) = if goes_on { (SHARES.0, LONGEST.0) } else { (SHARES.1, LONGEST.1) };
        let pipeline = pipeline_search(program, goal, tuner.weights.clone()).ok()?;
        Some(Self {
            samples: Samples::new(pipeline, tuner.seed),
            precision: tuner.goal.precision,
            ahead: if goes_on { 2 } else { Samples::BATCH },
            goes_on,
            left: tuner.budget.time.map_or(longest, |time| (time / share).min(longest)),
            stop: Arc::clone(&tuner.stop),
            turn: 0,
            barren: 0,
            learned: 0,
        })
    }

    /// Searches again if there is time; returns the best new state.
    fn search(&mut self) -> Option<usize> {
        if self.is_over() {
            return None;
        }
        let (clock, left) = (Instant::now(), self.left);
        let stop = Arc::clone(&self.stop);
        let mut goes_on = || clock.elapsed() < left && !stop.load(Ordering::Relaxed);
        let found = self.samples.search(&mut goes_on);
        self.left = left.saturating_sub(clock.elapsed());
        self.barren = if found.is_some() { 0 } else { self.barren + 1 };
        found
    }

    fn is_over(&self) -> bool {
        self.left.is_zero() || self.barren >= MOST_BARREN || self.stop.load(Ordering::Relaxed)
    }

    /// The next state to propose.
    fn next(&mut self) -> Option<usize> {
        while self.samples.searches() < self.ahead && !self.is_over() {
            self.search();
        }
        self.turn += 1;
        if self.turn > LEAST && self.left.is_zero() {
            return None;
        }
        if self.goes_on && self.turn.is_multiple_of(2) {
            let fresh = self.search().filter(|fresh| self.samples.take(*fresh));
            if fresh.is_some() {
                return fresh;
            }
        }
        self.samples.take_best()
    }
}

impl Source for PipelineSource {
    fn propose(&mut self, at_most: usize) -> Proposal {
        let numbers = (0..at_most).map_while(|_| self.next());
        let point = |number: usize| Point::new([u32::try_from(number).unwrap_or(u32::MAX)]);
        let points: Vec<Point> = numbers.map(point).collect();
        if points.is_empty() { Proposal::Exhausted } else { Proposal::Points(points) }
    }

    fn decode(&mut self, point: &Point) -> Result<Schedule, Rejection> {
        let clock = Instant::now();
        let decoded = self.samples.decode(point.rank(0) as usize);
        self.left = self.left.saturating_sub(clock.elapsed());
        let schedule = decoded?;
        if self.precision.allows(schedule.precision()) {
            return Ok(schedule);
        }
        let reason = "it uses an algebraic rewrite that rounds differently".to_owned();
        Err(Rejection { rule: "precision", reason })
    }

    /// Trains the cost model on measurements, in batches.
    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            if let Some(seconds) = observation.outcome.cost() {
                self.samples.observe(observation.point.rank(0) as usize, seconds);
            }
        }
        if self.goes_on && self.samples.observed() >= self.learned + BATCH && !self.is_over() {
            let clock = Instant::now();
            self.samples.retrain();
            self.learned = self.samples.observed();
            self.left = self.left.saturating_sub(clock.elapsed());
        }
    }

    fn origin(&self, _: &Point) -> Option<Origin> {
        Some(Origin::Pipeline)
    }

    fn space(&self) -> Option<&ScheduleSpace> {
        None
    }
}
