//! [`Trying`]: candidates of one run, built from its text, checked and timed.

use std::time::Duration;

use tensorwright::{Diagnostics, Module, Precision, Program, Schedule, Target};
use tensorwright_fleet::{Assignment, Finalist, LeasedItem, finals_of};
use tensorwright_measure::{Config, MeasureError, Measurer, Roofline, WorkerCommand};
use tensorwright_outcome::Outcome;
use tensorwright_tuner::{COMPILER, RecordNames};

/// The machine as a worker sees it.
pub(super) struct Bench {
    pub(super) worker: WorkerCommand,
    pub(super) target: Target,
    pub(super) threads: usize,
}

/// A run that candidates are tried of.
pub(super) struct Trying {
    measurer: Measurer,
    program: Program,
    precision: Precision,
    /// The best time that anybody has seen.
    best: f64,
}

/// Why no candidate of a run can be tried.
pub(super) enum Hopeless {
    /// By its text: that is the outcome of each of them.
    Refused(Outcome),
    /// By this machine.
    Machine(MeasureError),
}

fn illegal(rule: &str, reason: String) -> Outcome {
    Outcome::Illegal { rule: rule.to_owned(), reason }
}

impl Trying {
    /// Takes up a run. Nothing is believed: the text is parsed and checked here, and has to have the hash that was said.
    pub(super) fn start(assignment: &Assignment, bench: &Bench) -> Result<Self, Hopeless> {
        let here = (bench.target.fingerprint(), bench.threads, COMPILER);
        let there =
            (assignment.target.clone(), assignment.threads as usize, assignment.compiler.as_str());
        if here != there {
            let machine = |(target, threads, compiler): (String, usize, &str)| {
                format!("{target} x{threads} {compiler}")
            };
            let reason = format!("this machine is {}, not {}", machine(here), machine(there));
            return Err(Hopeless::Refused(illegal("class", reason)));
        }
        let refused = |rule: &str, reason: String| Hopeless::Refused(illegal(rule, reason));
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
        let measurer = Measurer::start(&program, config).map_err(Hopeless::Machine)?;
        Ok(Self { measurer, program, precision, best: f64::INFINITY })
    }

    /// Begins with a candidate; what became of it, if that is clear at once.
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

    /// A schedule that may be tried, or what becomes of one that may not.
    fn schedule(&self, text: &str) -> Result<Schedule, Outcome> {
        match Schedule::parse(text) {
            Err(diagnostics) => Err(illegal("schedule", diagnostics.to_string())),
            Ok(schedule) if !self.precision.allows(schedule.precision()) => {
                let reason =
                    format!("it is {}, and {} is wanted", schedule.precision(), self.precision);
                Err(illegal("precision", reason))
            }
            // The text has the names of whoever began the run, and candidates have names by position. One that cannot be
            // applied is refused with a reason when it is built.
            Ok(schedule) => {
                Ok(RecordNames::new(&self.program, || None).own(text).unwrap_or(schedule))
            }
        }
    }

    /// Candidates that are far slower than the best are cut short.
    fn saw(&mut self, seconds: Option<f64>) {
        if let Some(seconds) = seconds.filter(|seconds| *seconds < self.best) {
            self.best = seconds;
            self.measurer.set_best(seconds);
        }
    }

    /// Times schedules in turns, which nothing else of this worker disturbs.
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
                // A thousand rounds say all there is to say, and fit into an answer.
                (one.outcome, one.rounds.into_iter().take(1000).collect())
            }),
        };
        read.into_iter().map(finalist).collect()
    }

    /// The next candidate of which it is known what became of it.
    pub(super) fn next(&mut self, wait: Duration) -> Option<(u64, Outcome)> {
        let finished = self.measurer.next(wait)?;
        let whole = finished.outcome.timing().filter(|timing| !timing.cut);
        self.saw(whole.map(|timing| timing.seconds));
        Some((finished.id, finished.outcome))
    }

    pub(super) fn in_flight(&self) -> usize {
        self.measurer.in_flight()
    }

    /// How fast this machine is: what its class is judged by.
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
