//! The point nearest to what the default schedule does: where a search may start, and what fixes the
//! parameters that are not free.

use crate::cpu::rules::PACK_ROW_BYTES;
use tensorwright_target::{Cpu, Goal};

use crate::cpu::generate::Generated;
use crate::cpu::group::{Group, Vector};
use crate::cpu::limits;
use crate::cpu::register_tile::{Along, RegisterTile, register_tile};
use crate::cpu::tiling::{Tiling, Values};
use tensorwright_space::Point;
use tensorwright_space::parameter::{Domain, Factorization};

pub(crate) fn start(made: &Generated, goal: &Goal<Cpu>) -> Point {
    let mut ranks = vec![0u32; made.parameters.len()];
    for (rank, parameter) in ranks.iter_mut().zip(&made.parameters) {
        if let Domain::Factorization(splits) = parameter.domain() {
            *rank = splits.plain();
        }
    }
    for group in &made.groups {
        start_group(group, made, goal, &mut ranks);
    }
    Point::new(ranks)
}

fn start_group(group: &Group, made: &Generated, goal: &Goal<Cpu>, ranks: &mut [u32]) {
    let splits = |slot: usize| match made.parameters[slot].domain() {
        Domain::Factorization(splits) => Some(splits),
        _ => None,
    };
    let mut set = |slot: Option<usize>, tile: u64| {
        if let Some(slot) = slot
            && let Some(splits) = splits(slot)
            && let Some(rank) = innermost(splits, tile)
        {
            ranks[slot] = rank;
        }
    };
    match group.vectors.first() {
        Some(Vector::Spatial { axis, lanes }) => {
            let extent = group.spatial[*axis].axis.extent;
            let row = rows(group, *axis);
            let row_extent = row.map_or(1, |row| group.spatial[row].axis.extent);
            let along = Along { vector: extent, rows: row_extent, lanes: *lanes };
            let tile = match group.reduce.is_empty() {
                true => RegisterTile { rows: 1, vectors: 1 },
                false => register_tile(&goal.target, along),
            };
            set(group.spatial[*axis].tile, (tile.vectors * lanes) as u64);
            if let Some(row) = row {
                set(group.spatial[row].tile, tile.rows as u64);
            }
        }
        Some(Vector::Reduce { axis, lanes }) => set(group.reduce[*axis].tile, *lanes as u64),
        _ => {}
    }
    for pack in &group.packs {
        let row = pack.shape.last().copied().unwrap_or(1).saturating_mul(pack.element_bytes);
        let moves_with_vector = match group.vectors.first() {
            Some(Vector::Spatial { axis, .. }) => pack.dimension_of[*axis].is_some(),
            _ => false,
        };
        let packs = moves_with_vector && row >= PACK_ROW_BYTES;
        let wanted = if packs { "outer" } else { "none" };
        if let Domain::Categorical(choices) = made.parameters[pack.slot].domain() {
            let laid = choices.choices().iter().position(|choice| choice == "laid");
            let laid = laid.filter(|_| moves_with_vector);
            let place = choices.choices().iter().position(|choice| choice == wanted);
            ranks[pack.slot] = laid.or(place).unwrap_or(0) as u32;
            // A panel is packed once if the loop that it goes with is outermost.
            if packs
                && laid.is_none()
                && let Some(Vector::Spatial { axis, .. }) = group.vectors.first()
            {
                vector_outermost(group, *axis, made, ranks);
            }
        }
    }
    share_outermost(group, made, goal, ranks);
}

/// Makes the vectorized loop the outermost.
pub(crate) fn vector_outermost(group: &Group, axis: usize, made: &Generated, ranks: &mut [u32]) {
    if let Some(slot) = group.slots.outer_order
        && let Domain::Permutation(orders) = made.parameters[slot].domain()
    {
        let others = (0..group.spatial.len()).filter(|other| *other != axis);
        let order: Vec<usize> = std::iter::once(axis).chain(others).collect();
        ranks[slot] = orders.rank(&order).unwrap_or(0);
    }
}

/// Workers share as many of the outermost loops as give each of them something to do.
pub(crate) fn share_outermost(
    group: &Group,
    made: &Generated,
    goal: &Goal<Cpu>,
    ranks: &mut [u32],
) {
    let Some(slot) = group.slots.parallel else { return };
    let free = vec![true; ranks.len()];
    for loops in 1..made.parameters[slot].count() {
        ranks[slot] = loops;
        let point = Point::new(ranks.to_vec());
        let values = Values { parameters: &made.parameters, point: &point, free: &free };
        if limits::check(group, &Tiling::of(group, values), goal, &[], usize::MAX).is_ok() {
            return;
        }
    }
    ranks[slot] = 0;
}

/// The rank of the split whose innermost part is the largest that is at most `tile` and of the same
/// kind (a power of two times the same), everything else outermost.
fn innermost(splits: &Factorization, tile: u64) -> Option<u32> {
    if splits.parts() < 2 {
        return None;
    }
    let mut inner = vec![1; splits.parts() - 1];
    let mut tile = tile;
    while tile > 0 {
        if let Some(last) = inner.last_mut() {
            *last = tile;
        }
        if let Some(rank) = splits.rank_of_inner(&inner) {
            return Some(rank);
        }
        tile -= 1;
    }
    None
}

/// The loop whose iterations share the vectors of a tile: the longest over which some operand stays.
fn rows(group: &Group, vector: usize) -> Option<usize> {
    let candidates = (0..group.spatial.len()).filter(|axis| *axis != vector);
    let shares = |axis: &usize| {
        group.spatial[*axis].axis.extent > 1
            && group.packs.iter().any(|pack| pack.dimension_of[*axis].is_none())
    };
    candidates.filter(shares).max_by_key(|axis| group.spatial[*axis].axis.extent)
}
