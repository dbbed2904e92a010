//! [`Samples`]: states found by repeated pipeline searches.

use std::collections::HashSet;

use tensorwright_pipeline::{BeamOptions, State};
use tensorwright_schedule::Schedule;
use tensorwright_space::Rejection;

use super::PipelineSearch;

/// States found by repeated searches (section 6). The second search is a beam search; all others
/// are greedy and differ in their seed, so that a first answer is available at once. States are
/// numbered in the order in which they are found, without duplicates.
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
    /// All states found, with costs.
    states: Vec<(State, f64)>,
    /// The numbers of the states not yet taken, best last.
    left: Vec<usize>,
    seen: HashSet<u64>,
    /// Measured states with their times in seconds.
    measured: Vec<(State, f64)>,
}

impl Samples {
    /// The searches of a batch: one beam search and 79 greedy ones (section 6).
    pub const BATCH: usize = 80;

    /// Starts without any search. `seed` determines every random choice.
    #[must_use]
    pub fn new(pipeline: Box<dyn PipelineSearch>, seed: u64) -> Self {
        let (states, left, seen) = (Vec::new(), Vec::new(), HashSet::new());
        Self { pipeline, seed, searches: 0, states, left, seen, measured: Vec::new() }
    }

    /// Records the measured time of a state. Call [`retrain`](Self::retrain) to train the cost
    /// model.
    pub fn observe(&mut self, number: usize, seconds: f64) {
        let Some((state, _)) = self.states.get(number) else { return };
        if seconds > 0.0 && seconds.is_finite() {
            self.measured.push((state.clone(), seconds));
        }
    }

    /// The number of measured states.
    #[must_use]
    pub fn observed(&self) -> usize {
        self.measured.len()
    }

    /// Continues training the cost model on the measurements of this program (section 6,
    /// autotuning), and sorts the remaining states again.
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

    /// Sorts the best state last. Ties keep the order of discovery.
    fn sort(&mut self) {
        let states = &self.states;
        self.left.sort_by(|a, b| states[*b].1.total_cmp(&states[*a].1).then(b.cmp(a)));
    }

    /// The number of searches so far.
    #[must_use]
    pub fn searches(&self) -> usize {
        self.searches
    }

    /// Runs one more search while `goes_on` returns true; returns the number of the best new state,
    /// if any.
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

    /// Takes the remaining state with the lowest estimated cost.
    pub fn take_best(&mut self) -> Option<usize> {
        self.left.pop()
    }

    /// Takes a state; returns whether it was available.
    pub fn take(&mut self, number: usize) -> bool {
        let place = self.left.iter().position(|left| *left == number);
        place.map(|place| self.left.remove(place)).is_some()
    }

    /// The estimated cycles of a state.
    #[must_use]
    pub fn cycles(&self, number: usize) -> Option<f64> {
        self.states.get(number).map(|(_, cost)| *cost)
    }

    /// The schedule of a state.
    ///
    /// # Errors
    /// If [`PipelineSearch::decode`] refuses the state, or there is no state with this number.
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
