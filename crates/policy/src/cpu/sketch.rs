//! The CPU sketch: groups, chains and blocks with parameters.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::primitives::stages;
use tensorwright_space::Parameter;
use tensorwright_space::parameter::Categorical;

use crate::SpaceOptions;
use crate::cpu::blocks::{self, BLOCK, Block, Shape};
use crate::cpu::group::Group;
use crate::cpu::groups::groups;
use crate::cpu::knobs::place::{self, Place, Placement, PlacementError, Places};
use crate::cpu::knobs::{KNOBS, Knob, SpaceRequest, Value};
use crate::cpu::rows::{self, Chain, ROWS, RowTiling};
use crate::cpu::tiling::Tiling;
use crate::sketch::Values;

/// A parameter of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupParameter {
    /// The knob that interprets its values.
    pub(crate) knob: &'static dyn Knob,
    /// The index of its loop or tensor in the group.
    pub(crate) place: usize,
}

/// A program as groups of stages with knobs.
#[derive(Debug, Clone)]
pub(crate) struct CpuSketch {
    /// The nest to schedule, after the rewritings of the algorithm.
    pub(crate) begun: ScheduleState,
    pub(crate) goal: Goal<Cpu>,
    /// The parameters: of placements, then groups, chains and blocks.
    pub(crate) parameters: Vec<Parameter>,
    /// The knobs of the group parameters, which follow those of placements.
    settings: Vec<GroupParameter>,
    /// The compute locations of stages.
    pub(crate) places: Places,
    /// Groups in program order.
    pub(crate) groups: Vec<Group>,
    /// Stages scheduled by rules.
    pub(crate) fixed: Vec<String>,
    /// Stages that may be fused row by row. They are in groups as well, which apply without fusion.
    pub(crate) chains: Vec<Chain>,
    /// Products and chains that may be computed together in blocks of rows.
    pub(crate) blocks: Vec<Block>,
}

impl CpuSketch {
    /// The sketch of a draft, which may contain rewritings only.
    pub(crate) fn of(begun: ScheduleState, goal: &Goal<Cpu>, options: &SpaceOptions) -> Self {
        let request = SpaceRequest { goal, options };
        // Parameters of a single stage need no stage prefix.
        let is_alone = stages(&begun.nest).len() == 1;
        let name_of = |stage: &str, name: &str| match is_alone {
            true => name.to_owned(),
            false => format!("{stage}:{name}"),
        };
        let (draft, mut placements) = place::candidates(&begun);
        let is_rewritten = !begun.schedule.steps.is_empty();
        let found = groups(&draft, request, is_rewritten);
        // Only groups have loops at which others may be computed.
        let root_of = |reader: &str| found.tiled.iter().find(|group| group.has(reader));
        let root_of = |reader: &str| root_of(reader).map(|group| group.root.clone());
        placements.retain_mut(|placement| placement.keep_inside_if(root_of));
        let place = |p: &Placement| Parameter::new(name_of(&p.stage, place::NAME), p.domain());
        // Column blocks have rules of their own for rows.
        let mut chains = rows::find(&draft, goal);
        if let Some(columns) = blocks::find_columns(&draft, goal) {
            chains.retain(|chain| !chain.stages.iter().any(|stage| columns.has(&stage.name)));
        }
        let mut sketch = Self {
            parameters: placements.iter().map(place).collect(),
            settings: Vec::new(),
            goal: goal.clone(),
            places: Places::new(placements, &begun.nest),
            groups: found.tiled,
            chains,
            blocks: Vec::new(),
            fixed: found.fixed,
            begun,
        };
        for group in &mut sketch.groups {
            let first = sketch.parameters.len();
            for knob in KNOBS {
                for description in knob.knob_parameters(group, request) {
                    let parameter = Parameter::new(
                        name_of(group.stage(), &description.name),
                        description.domain,
                    );
                    if parameter.count() > 1 {
                        sketch.parameters.push(parameter);
                        sketch
                            .settings
                            .push(GroupParameter { knob: *knob, place: description.place });
                    }
                }
            }
            group.parameters = first..sketch.parameters.len();
        }
        for chain in &mut sketch.chains {
            let first = sketch.parameters.len();
            for (knob, parameter) in rows::parameters(chain, goal, name_of) {
                sketch.parameters.push(parameter);
                chain.knobs.push(knob);
            }
            chain.parameters = first..sketch.parameters.len();
        }
        sketch.blocks = blocks::find(&draft, &sketch.chains, goal);
        sketch.keep_blocks_that_apply(&draft);
        for block in &mut sketch.blocks {
            block.parameter = sketch.parameters.len();
            let domain = Categorical::new(block.names());
            sketch.parameters.push(Parameter::new(name_of(&block.root, BLOCK), domain));
        }
        sketch
    }

    /// The tiling of a group for the values of all parameters.
    pub(crate) fn tiling(&self, group: &Group, values: Values<'_>) -> Tiling {
        let mut tiling = Tiling::plain(group);
        for (at, parameter, GroupParameter { knob, place }) in self.of_group(group) {
            let (domain, rank) = (parameter.domain(), values.ranks.get(at).copied().unwrap_or(0));
            let is_free = values.free.get(at).copied().unwrap_or(true);
            knob.read(&mut tiling, group, place, Value { domain, rank, is_free });
        }
        tiling.settle(group)
    }

    /// Sets the parameters of a group to a tiling.
    pub(crate) fn write(&self, group: &Group, tiling: &Tiling, ranks: &mut [u32]) {
        for (at, parameter, GroupParameter { knob, place }) in self.of_group(group) {
            if let Some(rank) = ranks.get_mut(at) {
                *rank = knob.write(tiling, group, place, parameter.domain());
            }
        }
    }

    /// The parameters of a group, with their indices.
    pub(crate) fn of_group(
        &self,
        group: &Group,
    ) -> impl Iterator<Item = (usize, &Parameter, GroupParameter)> {
        let first = group.parameters.start - self.places.placements.len();
        let settings = self.settings.get(first..).unwrap_or_default();
        let parameters = self.parameters.get(group.parameters.clone()).unwrap_or_default();
        let all = group.parameters.clone().zip(parameters).zip(settings);
        all.map(|((at, parameter), setting)| (at, parameter, *setting))
    }

    /// The groups that are scheduled separately, with their tilings.
    pub(crate) fn tilings(&self, values: Values<'_>) -> impl Iterator<Item = (&Group, Tiling)> {
        let at_root = move |group: &&Group| {
            self.place_of(&group.root, values) == Place::Root
                && !self.is_together(&group.root, values)
        };
        self.groups.iter().filter(at_root).map(move |group| (group, self.tiling(group, values)))
    }

    /// The tiling of a chain.
    pub(crate) fn row_tiling(&self, chain: &Chain, values: Values<'_>) -> RowTiling {
        chain.tiling(&self.parameters, values.ranks)
    }

    /// The chain that a stage is fused into, if any.
    pub(crate) fn fused(&self, stage: &str, values: Values<'_>) -> Option<&Chain> {
        let chain = self.chains.iter().find(|chain| chain.has(stage))?;
        self.row_tiling(chain, values).is_fused.then_some(chain)
    }

    /// Removes block shapes that primitives refuse.
    fn keep_blocks_that_apply(&mut self, draft: &ScheduleState) {
        let mut ranks = vec![0u32; self.parameters.len()];
        for chain in &self.chains {
            chain.start(&self.parameters, &[], &self.goal, &mut ranks);
        }
        let tiling = |chain: &Chain| chain.tiling(&self.parameters, &ranks);
        for block in &mut self.blocks {
            let whole = block.clone();
            let applies = |shape: &Shape| {
                let mut draft = draft.clone();
                blocks::compute(&mut draft, &whole, *shape, (&self.chains, &tiling), &self.goal)
                    .is_ok()
            };
            block.shapes.retain(applies);
        }
        self.blocks.retain(|block| !block.shapes.is_empty());
    }

    /// The shape of a block; `None` without blocking.
    pub(crate) fn block_shape(&self, block: &Block, values: Values<'_>) -> Option<Shape> {
        block.shape(values.ranks.get(block.parameter).copied().unwrap_or(u32::MAX))
    }

    /// The block that a stage is computed in, if any.
    pub(crate) fn blocked(&self, stage: &str, values: Values<'_>) -> Option<&Block> {
        let block = self.blocks.iter().find(|block| block.has(stage))?;
        self.block_shape(block, values).map(|_| block)
    }

    /// Whether a stage is fused with others, row by row or in blocks of rows.
    pub(crate) fn is_together(&self, stage: &str, values: Values<'_>) -> bool {
        self.fused(stage, values).is_some() || self.blocked(stage, values).is_some()
    }

    /// Rejects a stage of a block with another compute location.
    pub(crate) fn outside_block(&self, values: Values<'_>) -> Option<PlacementError> {
        let moved = |placement: &Placement| self.place_of(&placement.stage, values) != Place::Root;
        let mut placements = self.places.placements.iter().enumerate().filter(|(_, p)| moved(p));
        let placed = placements.find_map(|(at, Placement { stage, .. })| {
            let block = self.blocked(stage, values)?;
            let reason = format!("{stage} is computed in the blocks of {}", block.root);
            Some((block, reason, at))
        });
        let apart = || {
            let mut apart = self.chains.iter().filter(|c| !self.row_tiling(c, values).is_fused);
            apart.find_map(|chain| {
                let block = self.blocked(&chain.root, values)?;
                let reason = format!(
                    "{} is computed row by row in the blocks of {}",
                    chain.root, block.root
                );
                Some((block, reason, chain.parameters.start))
            })
        };
        let (block, reason, at) = placed.or_else(apart)?;
        Some(PlacementError { rule: BLOCK, reason, parameters: vec![at, block.parameter] })
    }

    /// Rejects a stage of a chain with another compute location.
    pub(crate) fn displaced(&self, values: Values<'_>) -> Option<PlacementError> {
        let is_inside = |placement: &Placement| self.place_of(&placement.stage, values).is_inside();
        let mut inside = self.places.placements.iter().enumerate().filter(|(_, p)| is_inside(p));
        inside.find_map(|(at, Placement { stage, .. })| {
            let chain = self.fused(stage, values)?;
            let reason = format!("{stage} is computed in the rows of {}", chain.root);
            Some(PlacementError {
                rule: ROWS,
                reason,
                parameters: vec![at, chain.parameters.start],
            })
        })
    }

    /// The compute location of a stage; the root level if it has no parameter.
    pub(crate) fn place_of(&self, stage: &str, values: Values<'_>) -> Place {
        self.places.of(stage, values.ranks)
    }
}
