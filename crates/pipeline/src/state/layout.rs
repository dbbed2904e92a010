//! [`Layout`]: the groups of a state, and the regions of their stages.

use std::sync::Arc;

use crate::dag::{Dag, Source};

use super::{Decision, State, Tiling};

/// A state as groups of stages.
#[derive(Debug)]
pub struct Layout<'a> {
    dag: &'a Dag,
    decisions: Vec<Option<(&'a Decision, u64)>>,
    /// For every stage, the root stage whose loops enclose it.
    roots: Vec<Option<usize>>,
    /// For every stage, the groups that it is inlined into.
    inlined: Vec<Vec<usize>>,
}

/// A stage of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The stage.
    pub stage: usize,
    /// The region per execution.
    pub region: Vec<i64>,
    /// The number of executions.
    pub executions: f64,
    /// The loop that it is computed in: a stage and a level.
    pub host: Option<(usize, usize)>,
    /// Its tiles.
    pub tiling: Option<Arc<Tiling>>,
}

/// Regions by stage, `None` if not needed.
type Regions = Vec<Option<Vec<i64>>>;

/// A read of a stage from another one that is not inlined.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Load {
    pub(crate) source: Source,
    /// The region that is read.
    pub(crate) region: Vec<i64>,
    /// The number of elements read per element and term.
    pub(crate) reads: f64,
    /// The number of those that are not contiguous along a row.
    pub(crate) gathered: f64,
}

impl<'a> Layout<'a> {
    /// The layout of a state.
    #[must_use]
    pub fn new(dag: &'a Dag, state: &'a State) -> Self {
        let decisions = state.decisions(dag.stages.len());
        let mut roots: Vec<Option<usize>> = vec![None; decisions.len()];
        let mut inlined: Vec<Vec<usize>> = vec![Vec::new(); decisions.len()];
        // Consumers come first.
        for stage in (0..decisions.len()).rev() {
            match decisions[stage] {
                Some((Decision::Root(_), _)) => roots[stage] = Some(stage),
                Some((Decision::At { consumer, .. }, _)) => roots[stage] = roots[*consumer],
                Some((Decision::Inline, _)) => {
                    let mut groups: Vec<usize> = Vec::new();
                    for consumer in &dag.consumers[stage] {
                        groups.extend(roots[*consumer]);
                        groups.extend(&inlined[*consumer]);
                    }
                    groups.sort_unstable();
                    groups.dedup();
                    inlined[stage] = groups;
                }
                None => {}
            }
        }
        Self { dag, decisions, roots, inlined }
    }

    /// The root stages.
    pub fn groups(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.roots.len()).filter(|stage| self.roots[*stage] == Some(*stage))
    }

    /// The decision about a stage.
    pub(crate) fn decision(&self, stage: usize) -> Option<&'a Decision> {
        self.decisions.get(stage).copied().flatten().map(|(decision, _)| decision)
    }

    /// Whether a stage is inlined.
    #[must_use]
    pub fn is_inlined(&self, stage: usize) -> bool {
        matches!(self.decision(stage), Some(Decision::Inline))
    }

    /// The root stage whose loops enclose a stage.
    pub(crate) fn group_of(&self, stage: usize) -> Option<usize> {
        self.roots.get(stage).copied().flatten()
    }

    /// The region that a stage computes per execution.
    pub(crate) fn region(&self, stage: usize) -> Option<Vec<i64>> {
        let members = self.members(self.group_of(stage)?);
        members.into_iter().find(|member| member.stage == stage).map(|member| member.region)
    }

    /// A key per group: equal groups have equal keys and costs (section 3.3).
    pub(crate) fn keys(&self) -> Vec<(usize, u64)> {
        let mut keys = vec![0u64; self.roots.len()];
        let mut add = |group: usize, hash: u64| {
            keys[group] =
                keys[group].wrapping_add(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash >> 29);
        };
        for (stage, found) in self.decisions.iter().enumerate() {
            let Some((_, hash)) = found else { continue };
            self.roots[stage].into_iter().for_each(|group| add(group, *hash));
            self.inlined[stage].iter().for_each(|group| add(*group, *hash));
        }
        self.groups().map(|group| (group, keys[group])).collect()
    }

    /// The stages of a group with their regions, readers first.
    #[must_use]
    pub fn members(&self, group: usize) -> Vec<Member> {
        let own = |stage: &usize| self.roots[*stage] == Some(group);
        let mut found: Vec<Member> = Vec::new();
        let mut scopes: Vec<((usize, usize), Regions)> = Vec::new();
        for stage in (0..=group).rev().filter(own) {
            let member = match self.decision(stage) {
                Some(Decision::At { consumer, level, tiling }) => {
                    let scope = (*consumer, *level);
                    let Some(host) = found.iter().find(|member| member.stage == *consumer) else {
                        continue;
                    };
                    let executions = executions(host, *level);
                    let regions = match scopes.iter().find(|(known, _)| *known == scope) {
                        Some((_, regions)) => regions,
                        None => {
                            let tile = host.tiling.as_ref().and_then(|tiling| tiling.tile(*level));
                            let tile = tile.unwrap_or(&host.region).to_vec();
                            scopes.push((scope, self.required(group, *consumer, tile)));
                            let Some((_, regions)) = scopes.last() else { continue };
                            regions
                        }
                    };
                    let region = regions[stage].clone();
                    let region = region.unwrap_or_else(|| self.dag.stages[stage].spatial.clone());
                    Member {
                        stage,
                        region,
                        executions,
                        host: Some(scope),
                        tiling: Some(tiling.clone()),
                    }
                }
                Some(Decision::Root(tiling)) => {
                    let region = self.dag.stages[stage].spatial.clone();
                    Member { stage, region, executions: 1.0, host: None, tiling: tiling.clone() }
                }
                _ => continue,
            };
            found.push(member);
        }
        found
    }

    /// The regions of all stages of a group that a tile of one of them needs.
    fn required(&self, group: usize, stage: usize, tile: Vec<i64>) -> Regions {
        let mut regions: Regions = vec![None; stage + 1];
        regions[stage] = Some(tile);
        for of in (0..=stage).rev() {
            let is_ours = self.roots[of] == Some(group) || self.inlined[of].contains(&group);
            let Some(region) = regions[of].clone().filter(|_| is_ours) else { continue };
            for edge in &self.dag.stages[of].edges {
                let Source::Stage(producer) = edge.source else { continue };
                join(&mut regions[producer], edge.footprint.region(&region));
            }
        }
        regions
    }

    /// The reads of a stage that computes a region, and its instructions per element and term,
    /// including inlined stages.
    pub(crate) fn loads(&self, stage: usize, region: &[i64]) -> (Vec<Load>, f64) {
        let mut loads: Vec<Load> = Vec::new();
        let mut operations = 0.0;
        let mut open: Vec<(usize, Vec<i64>, f64, bool)> = vec![(stage, region.to_vec(), 1.0, true)];
        while let Some((of, region, times, in_rows)) = open.pop() {
            let stage = &self.dag.stages[of];
            operations += times * stage.operations;
            for edge in &stage.edges {
                let (region, reads) = (edge.footprint.region(&region), times * edge.reads as f64);
                let in_rows = in_rows && edge.is_along_rows(stage.spatial.len());
                let gathered = if in_rows { 0.0 } else { reads };
                match edge.source {
                    Source::Stage(producer) if self.is_inlined(producer) && open.len() < 4096 => {
                        open.push((producer, region, reads, in_rows));
                    }
                    source => match loads.iter_mut().find(|load| load.source == source) {
                        Some(load) => {
                            load.reads += reads;
                            load.gathered += gathered;
                            load.region
                                .iter_mut()
                                .zip(&region)
                                .for_each(|(a, b)| *a = (*a).max(*b));
                        }
                        None => loads.push(Load { source, region, reads, gathered }),
                    },
                }
            }
        }
        (loads, operations)
    }
}

/// The number of executions of the body of a loop.
pub(crate) fn executions(host: &Member, level: usize) -> f64 {
    let Some(tiling) = &host.tiling else { return host.executions };
    let trips = (tiling.first..=level).flat_map(|level| tiling.trips(level, &host.region));
    host.executions * trips.map(|trips| trips as f64).product::<f64>()
}

fn join(region: &mut Option<Vec<i64>>, with: Vec<i64>) {
    match region {
        Some(region) => region.iter_mut().zip(with).for_each(|(a, b)| *a = (*a).max(b)),
        None => *region = Some(with),
    }
}
