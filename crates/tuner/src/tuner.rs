//! [`Tuner`]: the configuration of a tuning run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tensorwright::{Goal, Precision, Program, Schedule, Target};
use tensorwright_measure::WorkerCommand;
use tensorwright_outcome::Outcome;
use tensorwright_pipeline::Weights;
use tensorwright_policy::{Preset, ScheduleSpace, SpaceOptions};

use crate::budget::Budget;
use crate::error::TuneError;
use crate::mode::Mode;
use crate::remote_workers::RemoteWorkers;

/// Tunes a program.
///
/// Candidates are built and run in child processes; `worker` says how to start one (the command
/// `tensorwright` is its own worker).
#[derive(Debug, Clone)]
#[must_use]
pub struct Tuner {
    /// The program with names by position, as in the records and in other processes.
    pub(crate) program: Program,
    /// The same program with the names of its text, for messages.
    pub(crate) shown: Program,
    pub(crate) sizes: BTreeMap<String, i64>,
    pub(crate) worker: WorkerCommand,
    pub(crate) goal: Goal,
    pub(crate) mode: Mode,
    /// Weights of the pipelines' cost model, if not the built-in ones.
    pub(crate) weights: Option<Arc<Weights>>,
    /// The requested strategy.
    pub(crate) strategy: Option<String>,
    pub(crate) budget: Budget,
    pub(crate) seed: u64,
    pub(crate) options: SpaceOptions,
    pub(crate) command: String,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) fresh: bool,
    /// Lets a fleet try the candidates.
    pub(crate) remote: Option<RemoteWorkers>,
    /// Object files to use instead of compiling these schedules.
    pub(crate) planted: Vec<(Schedule, Vec<u8>)>,
}

impl Tuner {
    /// A tuner for this machine, with one thread, the default strategy and budget.
    ///
    /// # Errors
    /// If this machine's processor is not known.
    pub fn new(program: &Program, worker: WorkerCommand) -> Result<Self, TuneError> {
        let goal = Goal::new(Target::native()?).with_precision(Precision::default());
        Ok(Self {
            program: program.canonically_named(),
            shown: program.clone(),
            sizes: BTreeMap::new(),
            worker,
            goal,
            mode: Mode::default(),
            weights: None,
            strategy: None,
            budget: Budget::default(),
            seed: 0,
            options: Preset::Full.options(),
            command: String::new(),
            stop: Arc::new(AtomicBool::new(false)),
            fresh: false,
            remote: None,
            planted: Vec::new(),
        })
    }

    /// Sets the sizes of the program, by the names of its text, for the records.
    pub fn sizes(mut self, sizes: BTreeMap<String, i64>) -> Self {
        self.sizes = sizes;
        self
    }

    /// The sizes, by the names of the program's text.
    #[must_use]
    pub fn sizes_by_name(&self) -> &BTreeMap<String, i64> {
        &self.sizes
    }

    /// Tunes for another processor that this machine can also run.
    pub fn target(mut self, target: Target) -> Self {
        self.goal.target = target;
        self
    }

    /// Tunes for this many threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.goal = self.goal.with_threads(threads.max(1));
        self
    }

    /// Sets how much is measured before a choice.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Ranks pipelines by another cost model than the built-in one.
    pub fn weights(mut self, weights: Weights) -> Self {
        self.weights = Some(Arc::new(weights));
        self
    }

    /// Searches with another strategy. Only [`Mode::Autotune`] has one.
    pub fn strategy(mut self, name: &str) -> Self {
        self.strategy = Some(name.to_owned());
        self
    }

    /// Sets the budget.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the seed of all random choices.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Searches another space.
    pub fn options(mut self, options: SpaceOptions) -> Self {
        self.options = options;
        self
    }

    /// The command line, for the records.
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = command.into();
        self
    }

    /// Sets a flag that stops the run soon after it is set.
    pub fn stop_flag(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Ignores existing records: for comparisons of strategies.
    pub fn fresh(mut self, fresh: bool) -> Self {
        self.fresh = fresh;
        self
    }

    /// Lets a fleet try the candidates; its queue is on the server of the records.
    ///
    /// ```no_run
    /// use tensorwright::Module;
    /// use tensorwright_measure::WorkerCommand;
    /// use tensorwright_records::Journal;
    /// use tensorwright_tuner::{RemoteWorkers, Tuner};
    ///
    /// let module = Module::parse("twice.tc", "def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }")?;
    /// let program = module.def("twice")?.bind([("N", 1 << 20)])?;
    /// let mut journal = Journal::open(Some(&"postgres://ann@db.example/tuning".parse()?))?;
    /// let tuner = Tuner::new(&program, WorkerCommand::new("tensorwright").arg("worker"))?;
    /// let tuned = tuner.fleet(Some(RemoteWorkers::default())).run(&mut journal, &mut |_| {})?;
    /// println!("{}", tuned.winner.schedule);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fleet(mut self, remote: Option<RemoteWorkers>) -> Self {
        self.remote = remote;
        self
    }

    /// Sets the precision; by default exact.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.goal.precision = precision;
        self
    }

    /// Uses an object file as the compiled code of a schedule: tests simulate compiler bugs with
    /// it.
    #[doc(hidden)]
    pub fn plant(mut self, schedule: Schedule, object: Vec<u8>) -> Self {
        let schedule = schedule.renamed(self.shown.ir(), self.program.ir()).unwrap_or(schedule);
        self.planted.push((schedule, object));
        self
    }

    /// A tuner that continues after this one's run: with its records and other random choices.
    pub fn continued(self) -> Self {
        Self { fresh: false, seed: self.seed.wrapping_add(1), ..self }
    }

    /// What chooses candidates, as named in the records: the strategy, or a mode without one.
    pub(crate) fn chooser(&self) -> &str {
        match self.mode {
            Mode::Autotune => self.strategy_name(),
            mode => mode.name(),
        }
    }

    /// The requested strategy, or else the last of the list.
    pub(crate) fn strategy_name(&self) -> &str {
        let default = tensorwright_search::registry::STRATEGIES.last();
        let default = default.map_or("random", |strategy| strategy.name);
        self.strategy.as_deref().unwrap_or(default)
    }

    /// The space options of a program with names by position; the user's parameter names are those
    /// of the text.
    pub(crate) fn options_of(&self, program: &Program) -> Result<SpaceOptions, TuneError> {
        if self.options.only.is_none() {
            return Ok(self.options.clone());
        }
        let goal = self.goal_here();
        let named = ScheduleSpace::new(self.shown.ir(), &goal, &self.options)?;
        let mut options = self.options.clone();
        options.only = None;
        let space = ScheduleSpace::new(program.ir(), &goal, &options)?;
        let both = named.all_parameters().zip(space.all_parameters());
        let free = both.filter(|((_, is_free, _), _)| *is_free);
        options.only = Some(free.map(|(_, (it, ..))| it.name().to_owned()).collect());
        Ok(options)
    }

    /// A schedule in the names of the text.
    pub(crate) fn in_own_names(&self, schedule: Schedule) -> Schedule {
        schedule.renamed(self.program.ir(), self.shown.ir()).unwrap_or(schedule)
    }

    /// The outcome of a candidate, in the names of the text.
    pub(crate) fn told(&self, outcome: Outcome) -> Outcome {
        outcome.reworded(|reason| self.program.ir().translated(reason, self.shown.ir()))
    }

    /// The goal of schedules: the target as this machine has it.
    pub(crate) fn goal_here(&self) -> Goal {
        self.goal.clone().on_this_machine()
    }
}
