//! Beam search over states (section 4).

mod beam;
mod costs;
mod freezing;
mod options;
mod sampling;
#[cfg(test)]
mod tests;

use tensorwright_random::Rng;

use crate::cost::CostModel;
use crate::dag::Dag;
use crate::enumerate::Space;
use crate::levels::Levels;
use crate::state::State;

use beam::Beam;
use costs::{CostCache, Costs};

pub use options::BeamOptions;

/// The result of a search.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome {
    /// Complete states with their costs, best first.
    pub states: Vec<(State, f64)>,
    /// Statistics of the search.
    pub statistics: Statistics,
}

/// Statistics of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// The number of evaluated states (table 1 of the paper).
    pub states: usize,
    /// The number of those whose cost was computed rather than memoized.
    pub computed: usize,
    /// The number of groups whose cost was computed.
    pub groups: usize,
    /// The number of frozen stages.
    pub frozen: usize,
}

/// Searches for the compute locations and tilings of a program's stages. The result is
/// deterministic.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_pipeline::{AnalyticalModel, Dag, Levels, Machine, BeamOptions, search};
/// use tensorwright_machine::{Cpu, Goal};
///
/// let text = "def blur(float(H,W) in) -> (out) {
///   bx(y,x) = in(y,x) + in(y,x+1)
///   out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
/// }";
/// let program = Module::parse("blur.tc", text)?.bind("blur", [("H", 2000), ("W", 2000)])?;
/// let goal = Goal::new(Cpu::avx512()).with_workers(2);
/// let (dag, levels) = (Dag::new(&program), Levels::of_cpu(&goal));
/// let model = AnalyticalModel::new(&dag, &levels, Machine::of(&goal));
/// let found = search(&dag, &levels, &model, &BeamOptions::beam());
/// let (best, _) = &found.states[0];
/// assert!(!best.text(&dag, &levels).contains("bx: root"), "two passes over memory");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn search(dag: &Dag, levels: &Levels, model: &dyn CostModel, options: &BeamOptions) -> Outcome {
    search_while(dag, levels, model, options, &mut || true)
}

/// [Searches](search) while `goes_on` returns true; it is called often. An interrupted search
/// returns the states of completed passes, if any.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_pipeline::{AnalyticalModel, Dag, Levels, Machine, BeamOptions, search_while};
/// use tensorwright_machine::{Cpu, Goal};
///
/// let text = "def twice(float(N) a) -> (c) { b(i) = a(i) + a(i+1)  c(i) = b(i) * b(i+1) }";
/// let program = Module::parse("twice.tc", text)?.bind("twice", [("N", 2000)])?;
/// let goal = Goal::new(Cpu::avx512());
/// let (dag, levels) = (Dag::new(&program), Levels::of_cpu(&goal));
/// let model = AnalyticalModel::new(&dag, &levels, Machine::of(&goal));
/// let found = search_while(&dag, &levels, &model, &BeamOptions::beam(), &mut || false);
/// assert!(found.states.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn search_while(
    dag: &Dag,
    levels: &Levels,
    model: &dyn CostModel,
    options: &BeamOptions,
    goes_on: &mut dyn FnMut() -> bool,
) -> Outcome {
    let space = Space { dag, levels, recompute: options.recompute };
    let known = options.memoization.then(CostCache::default);
    let mut costs = Costs { dag, model, known, statistics: Statistics::default() };
    let mut rng = Rng::new(options.seed);
    let frozen = match options.freezing {
        true => freezing::frozen(&space, &mut costs, &mut rng, options, goes_on),
        false => vec![None; dag.stages.len()],
    };
    costs.statistics.frozen = frozen.iter().filter(|decision| decision.is_some()).count();
    let mut beam = Beam::new(&space, options, &frozen, true);
    let mut states: Vec<(State, f64)> = Vec::new();
    for pass in 0..options.passes.max(1) {
        states.extend(beam.pass(pass, &mut costs, &mut rng, goes_on));
    }
    states.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut seen = std::collections::HashSet::new();
    states.retain(|(state, _)| seen.insert(state.full_hash()));
    Outcome { states, statistics: costs.statistics }
}
