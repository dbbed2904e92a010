//! The parameters of chains.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_space::Parameter;
use tensorwright_space::parameter::{Categorical, Discrete, Domain};

use super::{Chain, RowTiling};
use crate::cpu::work::PARALLEL_WORK;

/// The parameter that says whether stages are computed row by row, and the rule about it.
pub(crate) const ROWS: &str = "rows";

/// The vectors that are computed at a time.
const VECTORS: [i64; 4] = [1, 2, 4, 8];

/// The vectors that a search starts with.
const START: i64 = 4;

/// What a parameter of a chain decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKnob {
    /// Whether its stages are computed row by row.
    Rows,
    /// The vectors of a stage, by place, that are computed at a time.
    Vectors(usize),
    /// Whether workers share the rows.
    Parallel,
}

/// The parameters of a chain with what they decide; `name_of` makes the name of a stage's parameter.
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
    /// The parameters, by place, with what they decide.
    pub(crate) fn knobs(&self) -> impl Iterator<Item = (usize, RowKnob)> {
        self.parameters.clone().zip(self.knobs.iter().copied())
    }

    /// What the values of the parameters say.
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

    /// Where a search starts: by rows, unless that is fixed and others are searched.
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

/// The rank of the greatest number up to another.
fn most_up_to(domain: &Domain, most: i64) -> u32 {
    match domain {
        Domain::Discrete(numbers) => {
            numbers.values().iter().rposition(|count| *count <= most).unwrap_or(0) as u32
        }
        _ => 0,
    }
}
