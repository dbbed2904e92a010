//! Records landscapes: measures every legal point of a space once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tensorwright::Schedule;
use tensorwright::runtime::Machine;
use tensorwright_landscape::{Landscape, Provenance};
use tensorwright_measure::{Config, Measurer};
use tensorwright_outcome::Outcome;
use tensorwright_policy::ScheduleSpace;
use tensorwright_records::Origin;
use tensorwright_space::{Point, Rng};

use crate::bandit::ArmPoint;
use crate::candidates::{Admission, Candidates};
use crate::error::TuneError;
use crate::executor::DEPTH;
use crate::identity::key_of;
use crate::tuner::Tuner;

/// Spaces with more points than this are sampled, not enumerated.
const MOST_ENUMERATED: u64 = 1 << 24;

/// A plan for recording a landscape.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LandscapePlan {
    /// The program, the space and how it is measured.
    pub tuner: Tuner,
    /// How many legal points to sample, uniformly; all of them if `None`.
    pub sample: Option<usize>,
}

impl LandscapePlan {
    /// A plan for all points of the space that the tuner would search.
    #[must_use]
    pub fn new(tuner: Tuner) -> Self {
        Self { tuner, sample: None }
    }

    /// The legal points to record, and whether they are all.
    ///
    /// # Errors
    /// If there are none, or more than can be enumerated.
    pub fn points(&self, space: &ScheduleSpace) -> Result<(Vec<Point>, bool), TuneError> {
        let search = space.search_space();
        let size = search.size();
        let points: Vec<Point> = match self.sample {
            None if size > MOST_ENUMERATED.into() => {
                let text = format!(
                    "the space has {size} points\n  help: search fewer parameters with --only, or \
                     record a sample with --sample"
                );
                return Err(TuneError::Landscape(text));
            }
            None => search.points().filter(|point| search.is_legal(point)).collect(),
            Some(count) => {
                let mut rng = Rng::new(self.tuner.seed);
                let mut points: Vec<Point> = Vec::new();
                let mut seen = std::collections::HashSet::new();
                for _ in 0..count.saturating_mul(20) {
                    let Some(point) = search.sample_legal(&mut rng) else { break };
                    if seen.insert(point.clone()) {
                        points.push(point);
                    }
                    if points.len() == count {
                        break;
                    }
                }
                points
            }
        };
        if points.is_empty() {
            return Err(TuneError::Landscape("the space has no legal point".to_owned()));
        }
        Ok((points, self.sample.is_none()))
    }

    /// The search space.
    ///
    /// # Errors
    /// If the target has none.
    pub fn space(&self) -> Result<ScheduleSpace, TuneError> {
        let Tuner { shown, options, .. } = &self.tuner;
        Ok(ScheduleSpace::new(shown.ir(), &self.tuner.goal_here(), options)?)
    }
}

/// Measures the points of a plan that are not known yet, and reports each.
///
/// # Errors
/// If candidates cannot be measured, or the user stops it; the points reported so far remain valid.
pub fn record_landscape(
    plan: &LandscapePlan,
    mut known: HashMap<Point, Outcome>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Point, &Outcome, usize, usize),
) -> Result<Landscape, TuneError> {
    let space = plan.space()?;
    let (points, complete) = plan.points(&space)?;
    let tuner = &plan.tuner;
    let mut config = Config::new(tuner.worker.clone(), tuner.goal.target.clone());
    config.threads = tuner.goal.threads();
    config.seed = tuner.seed;
    let mut measurer = Measurer::start(&tuner.shown, config)?;
    let best = known.values().filter_map(Outcome::cost).fold(f64::INFINITY, f64::min);
    if best.is_finite() {
        measurer.set_best(best);
    }
    let mut recorder = Recorder { known: &mut known, tell, best, total: points.len() };
    // In random order, so that slow drift of the machine does not look like the effect of a
    // parameter.
    let mut order: Vec<Point> =
        points.iter().filter(|point| !recorder.known.contains_key(*point)).cloned().collect();
    Rng::new(tuner.seed).shuffle(&mut order);
    let mut order = order.into_iter();
    let mut candidates = Candidates::default();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(TuneError::Landscape("stopped; the same command goes on".to_owned()));
        }
        while measurer.in_flight() < DEPTH {
            let Some(point) = order.next() else { break };
            match space.decode(&point) {
                Err(refused) => {
                    let rule = refused.rule.to_owned();
                    recorder.note(vec![point], &Outcome::Illegal { rule, reason: refused.reason });
                }
                Ok(schedule) => {
                    submit(&mut measurer, &mut candidates, &mut recorder, schedule, point)
                }
            }
        }
        if measurer.in_flight() == 0 && order.len() == 0 {
            break;
        }
        let Some(finished) = measurer.next(Duration::from_millis(200)) else { continue };
        let Some(candidate) = candidates.back(finished.id, &finished.outcome) else { continue };
        if matches!(finished.outcome, Outcome::DeviceLost) {
            continue;
        }
        let points = candidate.points.into_iter().map(|place| place.point).collect();
        recorder.note(points, &finished.outcome);
        measurer.set_best(recorder.best);
    }
    let origin = Provenance {
        program: tuner.shown.to_string(),
        def: tuner.shown.name().to_owned(),
        sizes: tuner.sizes.clone(),
        key: key_of(&tuner.shown, &tuner.goal).program,
        machine: Machine::detect().model,
        method: format!(
            "{} thread(s), in random order, in turns with a probe",
            tuner.goal.threads()
        ),
        complete,
        start: vec![space.start()],
    };
    let parameters = space.search_space().parameters().to_vec();
    let cells = points.into_iter().filter_map(|point| {
        let outcome = known.get(&point)?.clone();
        Some((point, outcome))
    });
    Landscape::new(origin, parameters, cells).map_err(|e| TuneError::Landscape(e.to_string()))
}

struct Recorder<'a> {
    known: &'a mut HashMap<Point, Outcome>,
    tell: &'a mut dyn FnMut(&Point, &Outcome, usize, usize),
    best: f64,
    total: usize,
}

impl Recorder<'_> {
    fn note(&mut self, points: Vec<Point>, outcome: &Outcome) {
        if let Some(timing) = outcome.timing().filter(|timing| !timing.cut) {
            self.best = self.best.min(timing.seconds);
        }
        for point in points {
            self.known.insert(point.clone(), outcome.clone());
            (self.tell)(&point, outcome, self.known.len(), self.total);
        }
    }
}

fn submit(
    measurer: &mut Measurer,
    candidates: &mut Candidates,
    recorder: &mut Recorder<'_>,
    schedule: Schedule,
    point: Point,
) {
    let place = ArmPoint { arm: 0, point: point.clone() };
    match candidates.admit(schedule.clone(), Some(place), Origin::Unknown) {
        Admission::New(number) => measurer.submit(number, &schedule),
        Admission::InFlight => {}
        Admission::AlreadyMeasured(outcome) => recorder.note(vec![point], &outcome),
    }
}
