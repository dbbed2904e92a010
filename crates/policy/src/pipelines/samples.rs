//! [`Samples`]: what one search after another finds.

use std::collections::HashSet;

use tensorwright_pipeline::{BeamOptions, State};
use tensorwright_schedule::Schedule;
use tensorwright_space::Rejection;

use super::PipelineSearch;

/// What one search after another finds (section 6). The second is a beam; all others are greedy and differ by their seed, so
/// that there is an answer at once. States are numbered as they are found; none is found twice.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_policy::{Samples, pipeline_search};
/// use tensorwright_machine::{Cpu, Goal};
///
/// let text = "def blur(float(H,W) in) -> (out) {
///   bx(y,x) = in(y,x) + in(y,x+1)
///   out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
/// }";
/// let program = Module::parse("blur.tc", text)?.bind("blur", [("H", 2000), ("W", 2000)])?;
/// let pipeline = pipeline_search(&program, &Goal::new(Cpu::avx512()).into(), None)?;
/// let mut samples = Samples::new(pipeline, 0);
/// for _ in 0..Samples::BATCH {
///     let _ = samples.search(&mut || true);
/// }
/// let best = samples.take_best().ok_or("nothing was found")?;
/// let schedule = samples.decode(best).map_err(|refused| refused.reason)?;
/// assert!(schedule.to_string().contains("vectorize"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Samples {
    pipeline: Box<dyn PipelineSearch>,
    seed: u64,
    searches: usize,
    /// All that was found, with costs.
    states: Vec<(State, f64)>,
    /// The numbers of those that nobody took, the best last.
    left: Vec<usize>,
    seen: HashSet<u64>,
    /// What was measured, in seconds.
    measured: Vec<(State, f64)>,
}

impl Samples {
    /// The searches of a batch: a beam and 79 greedy ones (section 6).
    pub const BATCH: usize = 80;

    /// No search so far. `seed` decides every random choice.
    #[must_use]
    pub fn new(pipeline: Box<dyn PipelineSearch>, seed: u64) -> Self {
        let (states, left, seen) = (Vec::new(), Vec::new(), HashSet::new());
        Self { pipeline, seed, searches: 0, states, left, seen, measured: Vec::new() }
    }

    /// Learns that a state took so many seconds. The cost model is [retrained](Self::retrain) when it is asked to be.
    pub fn observe(&mut self, number: usize, seconds: f64) {
        let Some((state, _)) = self.states.get(number) else { return };
        if seconds > 0.0 && seconds.is_finite() {
            self.measured.push((state.clone(), seconds));
        }
    }

    /// How many states were measured.
    #[must_use]
    pub fn observed(&self) -> usize {
        self.measured.len()
    }

    /// Trains the cost model on with what was measured of this program (section 6, autotuning), and puts what nobody took
    /// into its order.
    pub fn retrain(&mut self) {
        if !self.pipeline.learn(&self.measured, self.seed) {
            return;
        }
        for number in &self.left {
            let state = self.states[*number].0.clone();
            self.states[*number].1 = self.pipeline.cycles(&state);
        }
        self.sort();
    }

    /// Puts the best last. Of equal ones, what was found first comes first.
    fn sort(&mut self) {
        let states = &self.states;
        self.left.sort_by(|a, b| states[*b].1.total_cmp(&states[*a].1).then(b.cmp(a)));
    }

    /// How many searches there were.
    #[must_use]
    pub fn searches(&self) -> usize {
        self.searches
    }

    /// Searches once more, as long as it is told to go on; the number of the best state that is new, if there is one.
    pub fn search(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Option<usize> {
        let options = if self.searches == 1 { BeamOptions::beam() } else { BeamOptions::greedy() };
        let options = options.with_seed(self.seed.wrapping_add(self.searches as u64));
        self.searches += 1;
        let first = self.states.len();
        for (state, cost) in self.pipeline.search_while(&options, goes_on).states {
            if self.seen.insert(state.full_hash()) {
                self.left.push(self.states.len());
                self.states.push((state, cost));
            }
        }
        self.sort();
        (first < self.states.len()).then_some(first)
    }

    /// Takes the best state by the model that nobody took.
    pub fn take_best(&mut self) -> Option<usize> {
        self.left.pop()
    }

    /// Takes a state; says whether it was there to be taken.
    pub fn take(&mut self, number: usize) -> bool {
        let place = self.left.iter().position(|left| *left == number);
        place.map(|place| self.left.remove(place)).is_some()
    }

    /// The cycles that the model expects of a state.
    #[must_use]
    pub fn cycles(&self, number: usize) -> Option<f64> {
        self.states.get(number).map(|(_, cost)| *cost)
    }

    /// The schedule of a state.
    ///
    /// # Errors
    /// Why it has none, as [`PipelineSearch::decode`] says, or that there is no such state.
    pub fn decode(&self, number: usize) -> Result<Schedule, Rejection> {
        match self.states.get(number) {
            Some((state, _)) => self.pipeline.decode(state),
            None => {
                let reason = format!("there are {} states", self.states.len());
                Err(Rejection { rule: "state", reason })
            }
        }
    }
}
