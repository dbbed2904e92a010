//! [`Tuner`]: the choices that lead to a run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tensorwright::{Goal, Precision, Program, Schedule, Target};
use tensorwright_measure::WorkerCommand;
use tensorwright_outcome::Outcome;
use tensorwright_pipeline::Weights;
use tensorwright_policy::{Options, Preset, ScheduleSpace};

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
    /// The program with names by position, which records and other processes know.
    pub(crate) program: Program,
    /// The same with the names of its text, for people.
    pub(crate) shown: Program,
    pub(crate) sizes: BTreeMap<String, i64>,
    pub(crate) worker: WorkerCommand,
    pub(crate) goal: Goal,
    pub(crate) mode: Mode,
    /// What the cost model of pipelines has learned, if somebody brings it.
    pub(crate) weights: Option<Arc<Weights>>,
    /// The strategy that somebody asked for.
    pub(crate) strategy: Option<String>,
    pub(crate) budget: Budget,
    pub(crate) seed: u64,
    pub(crate) options: Options,
    pub(crate) command: String,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) fresh: bool,
    /// That a fleet tries the candidates.
    pub(crate) remote: Option<RemoteWorkers>,
    /// Code that takes the place of what the compiler makes of a schedule.
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

    /// The sizes that the program was bound to, by the names of its text: kept for people who look
    /// at records.
    pub fn sizes(mut self, sizes: BTreeMap<String, i64>) -> Self {
        self.sizes = sizes;
        self
    }

    /// The sizes, by the names of the program's text.
    #[must_use]
    pub fn sizes_by_name(&self) -> &BTreeMap<String, i64> {
        &self.sizes
    }

    /// Tunes for a processor that this machine can run as well.
    pub fn target(mut self, target: Target) -> Self {
        self.goal.target = target;
        self
    }

    /// Tunes for so many threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.goal = self.goal.with_threads(threads.max(1));
        self
    }

    /// Measures less before it chooses, or as much as the budget allows.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Chooses between pipelines by another cost model than the one that comes with this version.
    pub fn weights(mut self, weights: Weights) -> Self {
        self.weights = Some(Arc::new(weights));
        self
    }

    /// Searches with another strategy. Only [`Mode::Autotune`] has one.
    pub fn strategy(mut self, name: &str) -> Self {
        self.strategy = Some(name.to_owned());
        self
    }

    /// Ends when a budget is used.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Decides every random choice.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Searches another space.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// What the user typed: kept for people who look at records.
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = command.into();
        self
    }

    /// A flag that ends the run soon after somebody sets it.
    pub fn stop_flag(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Begins anew although there are records: for comparisons of strategies.
    pub fn fresh(mut self, fresh: bool) -> Self {
        self.fresh = fresh;
        self
    }

    /// Lets a fleet try the candidates, whose queue is on the server of the records.
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

    /// With which numbers sums may be computed; by default with those that the program names.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.goal.precision = precision;
        self
    }

    /// Tries an object as what the compiler made of a schedule: how tests find out what becomes of a
    /// compiler that makes mistakes.
    #[doc(hidden)]
    pub fn plant(mut self, schedule: Schedule, object: Vec<u8>) -> Self {
        let schedule = schedule.renamed(self.shown.ir(), self.program.ir()).unwrap_or(schedule);
        self.planted.push((schedule, object));
        self
    }

    /// What goes on where a run of this one has ended: it knows what that found out, and chooses at random
    /// otherwise.
    pub fn continued(self) -> Self {
        Self { fresh: false, seed: self.seed.wrapping_add(1), ..self }
    }

    /// What chooses candidates, as records name it: the strategy, or a mode that needs none.
    pub(crate) fn chooser(&self) -> &str {
        match self.mode {
            Mode::Autotune => self.strategy_name(),
            mode => mode.name(),
        }
    }

    /// The strategy: the last of the list unless somebody asked for another.
    pub(crate) fn strategy_name(&self) -> &str {
        let default = tensorwright_search::registry::STRATEGIES.last();
        let default = default.map_or("random", |strategy| strategy.name);
        self.strategy.as_deref().unwrap_or(default)
    }

    /// What is searched of a program with names by position: parameters that somebody asks for have names of the text.
    pub(crate) fn options_of(&self, program: &Program) -> Result<Options, TuneError> {
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

    /// What became of a candidate, in the names of the text.
    pub(crate) fn told(&self, outcome: Outcome) -> Outcome {
        outcome.reworded(|reason| self.program.ir().retold(reason, self.shown.ir()))
    }

    /// What schedules are made for: the target as this machine has it.
    pub(crate) fn goal_here(&self) -> Goal {
        self.goal.clone().on_this_machine()
    }
}
