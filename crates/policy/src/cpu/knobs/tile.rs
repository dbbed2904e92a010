//! `tile.LOOP`: how a loop is split, outermost part first.
//!
//! A spatial loop becomes the outermost loop, middle loops, and a row of the register tile; a
//! reduction loop becomes blocks and the terms of a block. Moving a factor from one part to another
//! connects splits (G-BFS section 3, OpEvo section 3).

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::access::Axis;
use tensorwright_space::parameter::{Domain, Factorization};

use super::{Knob, KnobContext, KnobParameter, Rule, SpaceRequest, Value};
use crate::SpaceOptions;
use crate::cpu::group::{Group, Vector};
use crate::cpu::register_tile::{Along, RegisterTile, register_tiles};
use crate::cpu::tiling::Tiling;
use crate::stages::ranks::rank_of_parts;
use crate::stages::split::{FEWEST, Split, tiles};

/// The largest register tile along a loop that is not vectorized.
const MOST_ROWS: u64 = 32;

/// The most vectors of a register tile along the vectorized loop.
const MOST_VECTORS: u64 = 8;

/// How spatial loops are split.
#[derive(Debug)]
pub(super) struct ResultsKnob;

/// How reduction loops are split.
#[derive(Debug)]
pub(super) struct TermsKnob;

/// The spatial loops, with the ways to split each.
pub(crate) fn results(
    axes: Vec<Axis>,
    vectors: &[Vector],
    lanes: i64,
    options: &SpaceOptions,
) -> Vec<Split> {
    let is_vector = |place: usize| {
        vectors.iter().any(|v| matches!(v, Vector::Spatial { axis, .. } if *axis == place))
    };
    // Tiling-only spaces reproduce the papers: nothing is left out.
    let tiles_only = options.only.is_some();
    let split = |(place, axis): (usize, Axis)| {
        let most = if is_vector(place) { MOST_VECTORS * lanes as u64 } else { MOST_ROWS };
        let fits = |parts: &[u64]| tiles_only || parts.last().is_none_or(|last| *last <= most);
        let extent = axis.extent.max(1) as u64;
        let tile = (axis.extent >= FEWEST)
            .then(|| Factorization::filtered(extent, options.spatial_levels, options.splits, fits));
        Split::new(axis, tile)
    };
    axes.into_iter().enumerate().map(split).collect()
}

impl Knob for ResultsKnob {
    fn knob_parameters(&self, group: &Group, _: SpaceRequest<'_>) -> Vec<KnobParameter> {
        knob_parameters(&group.spatial)
    }

    fn read(&self, tiling: &mut Tiling, group: &Group, place: usize, value: Value<'_>) {
        read(&mut tiling.spatial, &group.spatial, place, value);
    }

    fn write(&self, tiling: &Tiling, _: &Group, place: usize, domain: &Domain) -> u32 {
        tiling.spatial.get(place).map_or(0, |parts| rank_of_parts(domain, parts))
    }

    /// Starts with a register tile that fills the registers and wastes little.
    fn start(&self, tiling: &mut Tiling, group: &Group, goal: &Goal<Cpu>) {
        let Vector::Spatial { axis, lanes } = tiling.vector else { return };
        let row = rows(group, axis);
        let row_extent = row.map_or(1, |row| group.spatial[row].axis.extent);
        let along = Along { vector: group.spatial[axis].axis.extent, rows: row_extent, lanes };
        let tiles = match group.is_reduction() {
            true => register_tiles(&goal.target, along),
            false => vec![RegisterTile { rows: 1, vectors: 1 }],
        };
        for tile in tiles {
            tiling.spatial[axis] = group.spatial[axis].nearest(&[tile.vectors * lanes]);
            if let Some(row) = row {
                tiling.spatial[row] = group.spatial[row].nearest(&[tile.rows]);
            }
            let refused = self.rules().iter().any(|(_, rule)| rule(group, tiling, goal).is_some());
            if !refused {
                return;
            }
        }
    }

    fn rules(&self) -> &'static [Rule] {
        &[("registers", registers), ("padding", padding)]
    }
}

impl Knob for TermsKnob {
    fn knob_parameters(&self, group: &Group, _: SpaceRequest<'_>) -> Vec<KnobParameter> {
        knob_parameters(&group.reduce)
    }

    fn read(&self, tiling: &mut Tiling, group: &Group, place: usize, value: Value<'_>) {
        read(&mut tiling.reduce, &group.reduce, place, value);
    }

    fn write(&self, tiling: &Tiling, _: &Group, place: usize, domain: &Domain) -> u32 {
        tiling.reduce.get(place).map_or(0, |parts| rank_of_parts(domain, parts))
    }

    fn idle(&self, context: KnobContext<'_>) -> Option<&'static str> {
        context.tiling.sums_in_lanes().then_some("a vectorized reduction loop is not tiled")
    }
}

fn knob_parameters(splits: &[Split]) -> Vec<KnobParameter> {
    tiles(splits).map(|(name, place, domain)| KnobParameter { name, place, domain }).collect()
}

fn read(to: &mut [Vec<i64>], splits: &[Split], place: usize, value: Value<'_>) {
    if let (Some(to), Some(split)) = (to.get_mut(place), splits.get(place)) {
        *to = split.parts(value.rank);
    }
}

/// The loop whose iterations share the vectors of a tile: the longest that reuses some operand.
fn rows(group: &Group, vector: usize) -> Option<usize> {
    let candidates = (0..group.spatial.len()).filter(|axis| *axis != vector);
    let shares = |axis: &usize| {
        group.spatial[*axis].axis.extent > 1
            && group.packs.iter().any(|pack| pack.dimension_of[*axis].is_none())
    };
    candidates.filter(shares).max_by_key(|axis| group.spatial[*axis].axis.extent)
}

/// The accumulators, a vector of each operand and a broadcast fit the registers (rule 2 of the
/// measurements in docs/performance.md): one too many spills in the innermost loop.
fn registers(group: &Group, tiling: &Tiling, goal: &Goal<Cpu>) -> Option<String> {
    if !group.is_reduction() {
        return None;
    }
    let width = (tiling.lanes() * group.element_bytes + goal.target.vector_bytes() - 1)
        / goal.target.vector_bytes().max(1);
    let accumulators = tiling.accumulators() * width.max(1);
    let needed = accumulators + tiling.vectors() * width.max(1) + 1;
    (needed > goal.target.vector_registers()).then(|| {
        let have = goal.target.vector_registers();
        format!("the register tile needs {needed} vector registers, limit {have}")
    })
}

/// Padding adds at most half of the computation.
fn padding(group: &Group, tiling: &Tiling, _: &Goal<Cpu>) -> Option<String> {
    group.spatial.iter().enumerate().find_map(|(place, split)| {
        let tile = tiling.tile(place).max(1);
        let extent = split.extent();
        let covered = (extent + tile - 1) / tile * tile;
        // Less than one vector of padding is unavoidable.
        let excess = covered - extent;
        (2 * excess > extent && excess >= 16).then(|| {
            let name = &split.axis.name;
            format!("tiles of {tile} cover {covered} iterations of {name}, not {extent}")
        })
    })
}
