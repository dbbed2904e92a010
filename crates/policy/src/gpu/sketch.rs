//! The GPU sketch: groups, chains and products with parameters.

use tensorwright_machine::{Goal, Gpu};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::primitives::stages;
use tensorwright_space::Parameter;

use super::group::Group;
use super::groups::{groups, prepare};
use super::knobs::{KNOBS, Knob};
use super::rows::{self, Chain};
use super::tensor::{self, Product, Shape};
use super::tiling::Tiling;
use crate::SpaceOptions;
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
pub(crate) struct GpuSketch {
    /// The nest to schedule, after the rewritings of the algorithm.
    pub(crate) begun: ScheduleState,
    /// The same after inlining by rules.
    pub(crate) prepared: ScheduleState,
    pub(crate) goal: Goal<Gpu>,
    pub(crate) parameters: Vec<Parameter>,
    settings: Vec<GroupParameter>,
    /// Groups in program order.
    pub(crate) groups: Vec<Group>,
    /// Stages scheduled by rules.
    pub(crate) fixed: Vec<String>,
    /// Stages that may be fused into one launch; they are in groups as well.
    pub(crate) chains: Vec<Chain>,
    /// Groups that may be computed on tensor cores.
    pub(crate) products: Vec<Product>,
}

impl GpuSketch {
    /// The sketch of a draft, which may contain rewritings only.
    pub(crate) fn of(begun: ScheduleState, goal: &Goal<Gpu>, options: &SpaceOptions) -> Self {
        let mut prepared = begun.clone();
        prepare(&mut prepared);
        // Parameters of a single stage need no stage prefix.
        let is_alone = stages(&begun.nest).len() == 1;
        let found = groups(&prepared, options);
        // Tiling-only spaces reproduce the papers.
        let products = match options.only {
            Some(_) => Vec::new(),
            None => tensor::find(&prepared, &found.tiled, goal),
        };
        let mut sketch = Self {
            begun,
            goal: goal.clone(),
            parameters: Vec::new(),
            settings: Vec::new(),
            groups: found.tiled,
            fixed: found.fixed,
            chains: rows::find(&prepared, &goal.target),
            products,
            prepared,
        };
        for group in &mut sketch.groups {
            let first = sketch.parameters.len();
            for knob in KNOBS {
                for description in knob.knob_parameters(group) {
                    let name = match is_alone {
                        true => description.name,
                        false => format!("{}:{}", group.stage(), description.name),
                    };
                    let parameter = Parameter::new(name, description.domain);
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
            let parameter = chain.knob_parameter();
            if parameter.count() > 1 {
                chain.parameter = sketch.parameters.len();
                sketch.parameters.push(parameter);
            }
        }
        for product in &mut sketch.products {
            product.parameter = sketch.parameters.len();
            let stage = sketch.groups[product.group].stage();
            sketch.parameters.extend(product.knob_parameters(stage, is_alone));
        }
        sketch
    }

    /// The products on tensor cores, with their groups.
    pub(crate) fn tensors(
        &self,
        values: Values<'_>,
    ) -> impl Iterator<Item = (&Product, &Group, Shape)> {
        self.products.iter().filter_map(move |product| {
            let group = self.groups.get(product.group)?;
            let shape = product.shape(&self.parameters, values.ranks)?;
            (!self.is_in_row(group, values)).then_some((product, group, shape))
        })
    }

    /// Whether a group is on tensor cores.
    pub(crate) fn is_on_tensors(&self, group: &Group, values: Values<'_>) -> bool {
        self.tensors(values).any(|(_, other, _)| std::ptr::eq(group, other))
    }

    /// The chains that are fused into one launch, with their threads per row.
    pub(crate) fn launches(&self, values: Values<'_>) -> impl Iterator<Item = (&Chain, i64)> {
        let threads = |chain| Chain::threads(chain, &self.parameters, values.ranks);
        self.chains.iter().map(move |chain| (chain, threads(chain))).filter(|(_, t)| *t > 1)
    }

    /// The groups that are neither in a fused chain nor on tensor cores.
    pub(crate) fn apart<'a>(&'a self, values: Values<'a>) -> impl Iterator<Item = &'a Group> {
        let is_apart = move |group: &Group| {
            !self.is_in_row(group, values) && !self.is_on_tensors(group, values)
        };
        self.groups.iter().filter(move |group| is_apart(group))
    }

    /// Whether a group is in a fused chain.
    pub(crate) fn is_in_row(&self, group: &Group, values: Values<'_>) -> bool {
        self.launches(values).any(|(chain, _)| chain.of.has(group.stage()))
    }

    /// The parameters of a group, by index among all.
    pub(crate) fn of_group(
        &self,
        group: &Group,
    ) -> impl Iterator<Item = (usize, &Parameter, GroupParameter)> {
        let all = group.parameters.clone();
        all.filter_map(|at| Some((at, self.parameters.get(at)?, *self.settings.get(at)?)))
    }

    /// The tiling of a group for the values.
    pub(crate) fn tiling(&self, group: &Group, values: Values<'_>) -> Tiling {
        let mut tiling = Tiling::plain(group);
        for (at, parameter, GroupParameter { knob, place }) in self.of_group(group) {
            let rank = values.ranks.get(at).copied().unwrap_or(0);
            knob.read(&mut tiling, group, place, parameter.domain(), rank);
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
}
