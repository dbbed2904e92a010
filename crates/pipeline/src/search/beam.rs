//! One pass of the beam.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

use tensorwright_random::Rng;

use crate::enumerate::Space;
use crate::state::{Decision, State};

use super::costs::Costs;
use super::options::BeamOptions;
use super::sampling::sample;

/// A queued state.
struct Pending {
    state: State,
    cost: f64,
    /// Its cost, penalized if similar states came before.
    rank: f64,
    is_penalized: bool,
    /// The order of insertion: breaks ties.
    number: usize,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    /// The cheapest state is the greatest, since a heap yields the maximum.
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank.total_cmp(&self.rank).then(other.number.cmp(&self.number))
    }
}

/// The beam, with its knowledge from earlier passes.
pub(super) struct Beam<'a> {
    space: &'a Space<'a>,
    options: &'a BeamOptions,
    frozen: &'a [Option<Decision>],
    /// Whether stages may be computed inside others.
    fuses: bool,
    /// The structures that led to good states in the previous pass.
    permitted: HashSet<u64>,
}

/// The decision of a phase.
#[derive(Clone, Copy)]
enum Phase {
    Location,
    Tiling,
}

impl<'a> Beam<'a> {
    pub(super) fn new(
        space: &'a Space<'a>,
        options: &'a BeamOptions,
        frozen: &'a [Option<Decision>],
        fuses: bool,
    ) -> Self {
        Self { space, options, frozen, fuses, permitted: HashSet::new() }
    }

    fn hash(&self, state: &State, depth: usize) -> u64 {
        state.structural_hash(self.space.levels.count(), depth)
    }

    /// One pass over the program; returns the final states, best first, or none if it is
    /// interrupted.
    pub(super) fn pass(
        &mut self,
        pass: usize,
        costs: &mut Costs<'_>,
        rng: &mut Rng,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Vec<(State, f64)> {
        let start = Pending {
            state: State::default(),
            cost: 0.0,
            rank: 0.0,
            is_penalized: false,
            number: 0,
        };
        let mut queue = BinaryHeap::from([start]);
        for stage in (0..self.space.dag.stages.len()).rev() {
            for phase in [Phase::Location, Phase::Tiling] {
                let chosen = self.choose(queue, pass);
                let mut next = BinaryHeap::new();
                for (state, cost) in &chosen {
                    if !goes_on() {
                        return Vec::new();
                    }
                    for child in self.children(state, stage, phase, pass, rng) {
                        let number = next.len();
                        let is_same = matches!(child.1, Same::Yes);
                        let cost = if is_same { *cost } else { costs.of(&child.0) };
                        let state = child.0;
                        next.push(Pending { state, cost, rank: cost, is_penalized: false, number });
                    }
                }
                queue = next;
            }
        }
        let mut found = self.choose(queue, pass);
        found.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        self.learn(pass, &found);
        found
    }

    /// The options of a stage in a state.
    fn children(
        &self,
        state: &State,
        stage: usize,
        phase: Phase,
        pass: usize,
        rng: &mut Rng,
    ) -> Vec<(State, Same)> {
        if let Some(decision) = &self.frozen[stage] {
            return match phase {
                Phase::Location => vec![(state.with(stage, decision.clone()), Same::No)],
                Phase::Tiling => vec![(state.clone(), Same::Yes)],
            };
        }
        let options = match phase {
            Phase::Location => self.space.locations(state, stage, self.fuses),
            Phase::Tiling => {
                let is_open = matches!(state.decision(stage), Some(Decision::Root(None)));
                if !is_open || self.space.dag.stages[stage].fixed.is_some() {
                    return vec![(state.clone(), Same::Yes)];
                }
                self.space.tilings(state, stage)
            }
        };
        let options = match self.options.sampling {
            true => sample(options, |state| self.hash(state, pass + 1), rng),
            false => options,
        };
        options.into_iter().map(|state| (state, Same::No)).collect()
    }

    /// Selects the states to keep (section 4.5). Among similar states the first keeps its cost, and
    /// others are penalized by a factor. Structures that led nowhere in the previous pass come
    /// last.
    fn choose(&self, mut queue: BinaryHeap<Pending>, pass: usize) -> Vec<(State, f64)> {
        let mut seen: HashMap<u64, f64> = HashMap::new();
        let mut chosen = Vec::new();
        while chosen.len() < self.options.width.max(1) {
            let Some(mut next) = queue.pop() else { break };
            if !next.is_penalized && self.options.width > 1 {
                let count = seen.entry(self.hash(&next.state, pass + 1)).or_insert(0.0);
                *count += 1.0;
                let mut penalty = *count;
                if pass > 0 && !self.permitted.contains(&self.hash(&next.state, pass - 1)) {
                    penalty += 10.0;
                }
                if penalty > 1.0 {
                    next.is_penalized = true;
                    next.rank = next.cost * penalty;
                    if queue.peek().is_some_and(|other| other.rank < next.rank) {
                        queue.push(next);
                        continue;
                    }
                }
            }
            chosen.push((next.state, next.cost));
        }
        chosen
    }

    /// Remembers the structures of the best states and their predecessors.
    fn learn(&mut self, pass: usize, found: &[(State, f64)]) {
        let Some((_, best)) = found.first() else { return };
        for (state, _) in found.iter().filter(|(_, cost)| *cost <= 1.2 * best) {
            let mut at = Some(state.clone());
            while let Some(state) = at {
                let hash = self.hash(&state, pass);
                self.permitted.insert(hash);
                at = state.before();
            }
        }
    }
}

/// Whether a state equals its parent.
#[derive(Clone, Copy)]
enum Same {
    Yes,
    No,
}
