//! [`Tiling`]: what a point says about a group, as numbers.

use tensorwright_schedule::primitives::Tail;

use crate::cpu::group::{Group, Slots, Split, Vector};
use tensorwright_space::parameter::Domain;
use tensorwright_space::{Parameter, Point};

/// The values of all parameters, fixed and free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) parameters: &'a [Parameter],
    pub(crate) point: &'a Point,
    /// Which parameters are free.
    pub(crate) free: &'a [bool],
}

impl Values<'_> {
    /// The number of a discrete parameter, or its value if the group has none.
    pub(crate) fn number(&self, slot: Option<usize>, otherwise: i64) -> i64 {
        match slot.map(|slot| (self.parameters[slot].domain(), self.point.rank(slot))) {
            Some((Domain::Discrete(discrete), rank)) => discrete.value(rank),
            _ => otherwise,
        }
    }

    /// The choice of a categorical parameter.
    pub(crate) fn choice(&self, slot: Option<usize>) -> Option<&str> {
        let slot = slot?;
        match self.parameters[slot].domain() {
            Domain::Categorical(choices) => {
                choices.choices().get(self.point.rank(slot) as usize).map(String::as_str)
            }
            _ => None,
        }
    }

    /// Where each tensor of a group is packed.
    pub(crate) fn packed(&self, group: &Group) -> Vec<Option<&str>> {
        group.packs.iter().map(|pack| self.choice(Some(pack.slot))).collect()
    }

    /// The order of so many items; their own if the group has no parameter for it.
    pub(crate) fn order(&self, slot: Option<usize>, items: usize) -> Vec<usize> {
        let found = slot.and_then(|slot| match self.parameters[slot].domain() {
            Domain::Permutation(orders) => Some(orders.order(self.point.rank(slot))),
            _ => None,
        });
        found.unwrap_or_else(|| (0..items).collect())
    }

    /// The parts of a loop, outermost first.
    pub(crate) fn parts(&self, split: &Split) -> Vec<i64> {
        let found = split.tile.and_then(|slot| match self.parameters[slot].domain() {
            Domain::Factorization(splits) => Some(splits.value(self.point.rank(slot))),
            _ => None,
        });
        match found {
            Some(parts) => parts.iter().map(|part| *part as i64).collect(),
            None => vec![split.axis.extent],
        }
    }
}

/// What a point says about a group.
#[derive(Debug, Clone)]
pub(crate) struct Tiling {
    /// The parts of the loops over results, outermost first.
    pub(crate) spatial: Vec<Vec<i64>>,
    /// The parts of the loops over terms.
    pub(crate) reduce: Vec<Vec<i64>>,
    pub(crate) vector: Vector,
    /// Iterations of the innermost loop over terms that are written out.
    pub(crate) unroll: i64,
    pub(crate) tail: Tail,
    pub(crate) vector_tail: Tail,
    /// Whether results are turned in a tile in memory before they are written.
    pub(crate) transposes: bool,
    /// Whether the reduction is computed inside the tiles of its reader.
    pub(crate) fuses: bool,
    pub(crate) parallel: i64,
    pub(crate) outer_order: Vec<usize>,
    pub(crate) middle_order: Vec<usize>,
    pub(crate) reduce_order: Vec<usize>,
}

impl Tiling {
    pub(crate) fn of(group: &Group, values: Values<'_>) -> Self {
        let Slots { outer_order, middle_order, reduce_order, .. } = group.slots;
        let spatial: Vec<Vec<i64>> = group.spatial.iter().map(|s| values.parts(s)).collect();
        let reduce: Vec<Vec<i64>> = group.reduce.iter().map(|s| values.parts(s)).collect();
        let tail = |slot| {
            let name = values.choice(slot).unwrap_or("peel");
            Tail::ALL.iter().find(|(known, _)| *known == name).map_or(Tail::Peel, |(_, t)| *t)
        };
        let vector = group.slots.vector.map_or(0, |slot| values.point.rank(slot) as usize);
        let vector = group.vectors.get(vector).copied().unwrap_or(Vector::Scalar);
        let is_chosen = group.slots.vector.is_some_and(|slot| values.free[slot]);
        let middle = spatial.iter().chain(&reduce).filter(|parts| parts.len() > 1).count();
        Self {
            vector: fit(vector, &spatial, is_chosen),
            unroll: values.number(group.slots.unroll, 1),
            tail: tail(group.slots.tail),
            vector_tail: tail(group.slots.vector_tail),
            transposes: values.choice(group.slots.store) == Some("transposed"),
            fuses: group.epilogue_of.is_some() && values.choice(group.slots.fuse) != Some("apart"),
            parallel: values.number(group.slots.parallel, 0),
            outer_order: values.order(outer_order, spatial.len()),
            middle_order: values.order(middle_order, middle),
            reduce_order: values.order(reduce_order, reduce.len()),
            spatial,
            reduce,
        }
    }

    /// The extent of the register tile along a loop over results.
    pub(crate) fn register(&self, axis: usize) -> i64 {
        match self.spatial.get(axis).map(Vec::as_slice) {
            Some([_, .., last]) => *last,
            _ => 1,
        }
    }

    /// The lanes of a vector.
    pub(crate) fn lanes(&self) -> i64 {
        match self.vector {
            Vector::Scalar => 1,
            Vector::Spatial { lanes, .. } | Vector::Reduce { lanes, .. } => lanes,
        }
    }

    /// The accumulators of a register tile, in vectors.
    pub(crate) fn accumulators(&self) -> i64 {
        let all = (0..self.spatial.len()).map(|axis| self.register(axis));
        let elements = all.fold(1i64, i64::saturating_mul);
        match self.vector {
            Vector::Spatial { lanes, .. } => elements / lanes.max(1),
            _ => elements,
        }
    }

    /// The vectors along the vectorized loop.
    pub(crate) fn vectors(&self) -> i64 {
        match self.vector {
            Vector::Spatial { axis, lanes } => self.register(axis) / lanes.max(1),
            _ => 1,
        }
    }

    /// The extent, rounded up to whole tiles, of a loop over results without its outermost part.
    pub(crate) fn tile(&self, axis: usize) -> i64 {
        self.spatial.get(axis).map_or(1, |parts| parts[1..].iter().product())
    }

    /// The iterations that one of the outermost loop stands for, lanes of a loop that is not split
    /// otherwise included.
    pub(crate) fn cover(&self, axis: usize) -> i64 {
        match self.vector {
            Vector::Spatial { axis: vector, lanes }
                if vector == axis && self.spatial[axis].len() == 1 =>
            {
                lanes
            }
            _ => self.tile(axis).max(1),
        }
    }

    /// What becomes of the last tile along a loop over results.
    pub(crate) fn tail_of(&self, axis: usize) -> Tail {
        match self.vector {
            Vector::Spatial { axis: vector, .. } if vector == axis => self.vector_tail,
            _ => self.tail,
        }
    }
}

/// A space in which the vector is not a parameter takes what the tile allows: fewer lanes, or none.
fn fit(vector: Vector, spatial: &[Vec<i64>], is_chosen: bool) -> Vector {
    match vector {
        Vector::Spatial { axis, mut lanes } if !is_chosen => {
            let tile = spatial.get(axis).and_then(|parts| parts.last()).copied().unwrap_or(1);
            while lanes > 1 && tile % lanes != 0 {
                lanes /= 2;
            }
            if lanes > 1 { Vector::Spatial { axis, lanes } } else { Vector::Scalar }
        }
        other => other,
    }
}
