//! The parameters of chains.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_space::Parameter;
use tensorwright_space::parameter::{Categorical, Discrete, Domain};

use super::{Chain, RowTiling};
use crate::cpu::work::PARALLEL_WORK;

/// The parameter for row-wise fusion, and its rule.
pub(crate) const ROWS: &str = "rows";

/// The candidate vectors per step.
const VECTORS: [i64; 4] = [1, 2, 4, 8];

/// The vectors per step at the start of a search.
const START: i64 = 4;

/// The decision of a chain's parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKnob {
    /// Whether its stages are fused row by row.
    Rows,
    /// The vectors per step of the stage with this index.
    Vectors(usize),
    /// Whether the rows are parallel.
    Parallel,
}

/// The parameters of a chain with their decisions; `name_of` returns the name of a stage's
/// parameter.
pub(crate) fn parameters(
    chain: &Chain,
    goal: &Goal<Cpu>,
    name_of: impl Fn(&str, &str) -> String,
) -> Vec<(RowKnob, Parameter)> {
    let fused = Categorical::new(["fused", "apart"]);
    let mut all = vec![(RowKnob::Rows, Parameter::new(name_of(&chain.root, ROWS), fused))];
    for (place, stage) in chain.stages.iter().enumerate() {
        let vectors = VECTORS.into_iter().filter(|count| *count <= stage.vectors.max(1));
        let name = name_of(&stage.name, "row_vectors");
        let parameter = Parameter::new(name, Discrete::new(vectors));
        all.push((RowKnob::Vectors(place), parameter));
    }
    if goal.workers > 1 {
        let shared = Categorical::new(["no", "yes"]);
        let name = name_of(&chain.root, "row_parallel");
        all.push((RowKnob::Parallel, Parameter::new(name, shared)));
    }
    all.retain(|(_, parameter)| parameter.count() > 1);
    all
}

impl Chain {
    /// The indices of the parameters, with their decisions.
    pub(crate) fn knobs(&self) -> impl Iterator<Item = (usize, RowKnob)> {
        self.parameters.clone().zip(self.knobs.iter().copied())
    }

    /// The tiling for the values of the parameters.
    pub(crate) fn tiling(&self, parameters: &[Parameter], ranks: &[u32]) -> RowTiling {
        let vectors = vec![1; self.stages.len()];
        let mut tiling = RowTiling { is_fused: true, vectors, is_parallel: false };
        for (at, knob) in self.knobs() {
            let (Some(parameter), Some(rank)) = (parameters.get(at), ranks.get(at)) else {
                continue;
            };
            match (knob, parameter.domain()) {
                (RowKnob::Rows, _) => tiling.is_fused = *rank == 0,
                (RowKnob::Parallel, _) => tiling.is_parallel = *rank == 1,
                (RowKnob::Vectors(place), Domain::Discrete(numbers)) => {
                    tiling.vectors[place] = numbers.value(*rank);
                }
                (RowKnob::Vectors(_), _) => {}
            }
        }
        tiling
    }

    /// The starting values: fused, unless that is fixed and others are free.
    pub(crate) fn start(
        &self,
        parameters: &[Parameter],
        free: &[bool],
        goal: &Goal<Cpu>,
        ranks: &mut [u32],
    ) {
        for (at, knob) in self.knobs() {
            let (Some(parameter), Some(rank)) = (parameters.get(at), ranks.get_mut(at)) else {
                continue;
            };
            *rank = match (knob, parameter.domain()) {
                (RowKnob::Rows, _) => u32::from(!free.get(at).copied().unwrap_or(true)),
                (RowKnob::Parallel, _) => {
                    u32::from(self.rows >= 2 * goal.workers && self.work >= PARALLEL_WORK)
                }
                (RowKnob::Vectors(_), domain) => most_up_to(domain, START),
            };
        }
    }
}

/// The rank of the greatest number up to a limit.
fn most_up_to(domain: &Domain, most: i64) -> u32 {
    match domain {
        Domain::Discrete(numbers) => {
            numbers.values().iter().rposition(|count| *count <= most).unwrap_or(0) as u32
        }
        _ => 0,
    }
}
