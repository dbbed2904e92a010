//! [`CandidateRunner`]: builds, checks and times candidates of one run.

use std::time::Duration;

use tensorwright::{Diagnostics, Module, Precision, Program, Schedule, Target};
use tensorwright_fleet::{Assignment, Finalist, LeasedItem, finals_of};
use tensorwright_measure::{Config, MeasureError, Measurer, Roofline, WorkerCommand};
use tensorwright_outcome::Outcome;
use tensorwright_tuner::{COMPILER, RecordNames};

/// The machine, as a worker sees it.
pub(super) struct Bench {
    pub(super) worker: WorkerCommand,
    pub(super) target: Target,
    pub(super) threads: usize,
}

/// Runs the candidates of one run.
pub(super) struct CandidateRunner {
    measurer: Measurer,
    program: Program,
    precision: Precision,
    /// The best known time.
    best: f64,
}

/// Why no candidate of a run can be tried.
pub(super) enum SetupError {
    /// The run's text is invalid: the outcome of all its candidates.
    Refused(Outcome),
    /// This machine cannot measure.
    Machine(MeasureError),
}

fn illegal(rule: &str, reason: String) -> Outcome {
    Outcome::Illegal { rule: rule.to_owned(), reason }
}

impl CandidateRunner {
    /// Sets up a run. The text is not trusted: it is parsed and checked here, and its hash must
    /// match.
    pub(super) fn start(assignment: &Assignment, bench: &Bench) -> Result<Self, SetupError> {
        let here = (bench.target.fingerprint(), bench.threads, COMPILER);
        let there =
            (assignment.target.clone(), assignment.threads as usize, assignment.compiler.as_str());
        if here != there {
            let machine = |(target, threads, compiler): (String, usize, &str)| {
                format!("{target} x{threads} {compiler}")
            };
            let reason = format!("this machine is {}, not {}", machine(here), machine(there));
            return Err(SetupError::Refused(illegal("class", reason)));
        }
        let refused = |rule: &str, reason: String| SetupError::Refused(illegal(rule, reason));
        let precision: Precision =
            assignment.precision.parse().map_err(|reason| refused("precision", reason))?;
        let program =
            bound(assignment).map_err(|diagnostics| refused("program", diagnostics.to_string()))?;
        if program.hash().to_string() != assignment.program {
            return Err(refused(
                "program",
                "the text is of another program than its hash".to_owned(),
            ));
        }
        let mut config = Config::new(bench.worker.clone(), bench.target.clone());
        config.threads = bench.threads;
        config.seed = assignment.input_seed;
        let measurer = Measurer::start(&program, config).map_err(SetupError::Machine)?;
        Ok(Self { measurer, program, precision, best: f64::INFINITY })
    }

    /// Starts a candidate; returns its outcome if that is known at once.
    pub(super) fn begin(&mut self, place: u64, leased: &LeasedItem) -> Option<Outcome> {
        self.saw(leased.best);
        match self.schedule(&leased.schedule) {
            Err(outcome) => Some(outcome),
            Ok(schedule) => {
                self.measurer.submit(place, &schedule);
                None
            }
        }
    }

    /// A valid schedule, or the outcome of an invalid one.
    fn schedule(&self, text: &str) -> Result<Schedule, Outcome> {
        match Schedule::parse(text) {
            Err(diagnostics) => Err(illegal("schedule", diagnostics.to_string())),
            Ok(schedule) if !self.precision.allows(schedule.precision()) => {
                let reason =
                    format!("it is {}, but {} is expected", schedule.precision(), self.precision);
                Err(illegal("precision", reason))
            }
            // The text uses the names of the run's author, candidates use positional names. A
            // schedule that does not apply is rejected with a reason when it is built.
            Ok(schedule) => {
                Ok(RecordNames::new(&self.program, || None).own(text).unwrap_or(schedule))
            }
        }
    }

    /// Candidates far slower than the best are cut short.
    fn saw(&mut self, seconds: Option<f64>) {
        if let Some(seconds) = seconds.filter(|seconds| *seconds < self.best) {
            self.best = seconds;
            self.measurer.set_best(seconds);
        }
    }

    /// Times schedules in turns, with nothing else running in this worker.
    pub(super) fn finals(&mut self, text: &str) -> Vec<Finalist> {
        let Some((time, texts)) = finals_of(text) else { return Vec::new() };
        let read: Vec<Result<Schedule, Outcome>> =
            texts.iter().map(|text| self.schedule(text)).collect();
        let schedules: Vec<Schedule> =
            read.iter().filter_map(|schedule| schedule.as_ref().ok().cloned()).collect();
        let mut timed = self.measurer.finalists(&schedules, time).into_iter();
        let finalist = |schedule: Result<Schedule, Outcome>| match schedule {
            Err(outcome) => (outcome, Vec::new()),
            Ok(_) => timed.next().map_or((Outcome::DeviceLost, Vec::new()), |one| {
                // A thousand rounds suffice and fit into a message.
                (one.outcome, one.rounds.into_iter().take(1000).collect())
            }),
        };
        read.into_iter().map(finalist).collect()
    }

    /// The next candidate with a known outcome.
    pub(super) fn next(&mut self, wait: Duration) -> Option<(u64, Outcome)> {
        let finished = self.measurer.next(wait)?;
        let whole = finished.outcome.timing().filter(|timing| !timing.cut);
        self.saw(whole.map(|timing| timing.seconds));
        Some((finished.id, finished.outcome))
    }

    pub(super) fn in_flight(&self) -> usize {
        self.measurer.in_flight()
    }

    /// The speed of this machine, which its class is checked against.
    pub(super) fn roofline(&self) -> Roofline {
        self.measurer.roofline()
    }
}

/// The program of a run.
fn bound(assignment: &Assignment) -> Result<Program, Diagnostics> {
    let module = Module::parse("run", &assignment.text)?;
    let def = module.def(&assignment.def)?;
    // The text has numbers for sizes, and scalars only by name.
    let open = [def.sizes(), def.integer_scalars()].concat();
    let mut sizes = assignment.sizes.clone();
    sizes.retain(|name, _| open.contains(&name.as_str()));
    def.bind(sizes)
}
