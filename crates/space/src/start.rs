//! The point nearest to what the default schedule does: where a search may start, and what fixes the
//! parameters that are not free.

use tensorwright_schedule::Target;
use tensorwright_schedule::default::PACK_ROW_BYTES;

use crate::Point;
use crate::generate::Generated;
use crate::group::{Group, Vector};
use crate::limits;
use crate::parameter::{Domain, Factorization};
use crate::tiling::{Tiling, Values};

pub(crate) fn start(made: &Generated, target: &Target) -> Point {
    let mut ranks = vec![0u32; made.parameters.len()];
    for (rank, parameter) in ranks.iter_mut().zip(&made.parameters) {
        if let Domain::Factorization(splits) = parameter.domain() {
            *rank = splits.plain();
        }
    }
    for group in &made.groups {
        start_group(group, made, target, &mut ranks);
    }
    Point::new(ranks)
}

fn start_group(group: &Group, made: &Generated, target: &Target, ranks: &mut [u32]) {
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
            let (rows, vectors) = register_tile(group, target, extent, row_extent, *lanes);
            set(group.spatial[*axis].tile, (vectors * lanes) as u64);
            if let Some(row) = row {
                set(group.spatial[row].tile, rows as u64);
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
    share_outermost(group, made, target, ranks);
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
pub(crate) fn share_outermost(group: &Group, made: &Generated, target: &Target, ranks: &mut [u32]) {
    let Some(slot) = group.slots.parallel else { return };
    let free = vec![true; ranks.len()];
    for loops in 1..made.parameters[slot].count() {
        ranks[slot] = loops;
        let point = Point::new(ranks.to_vec());
        let values = Values { parameters: &made.parameters, point: &point, free: &free };
        if limits::check(group, &Tiling::of(group, values), target, &[], usize::MAX).is_ok() {
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

/// Rows and vectors of a register tile that fits the registers and wastes little.
fn register_tile(
    group: &Group,
    target: &Target,
    extent: i64,
    row_extent: i64,
    lanes: i64,
) -> (i64, i64) {
    if group.reduce.is_empty() {
        return (1, 1);
    }
    let waste =
        |extent: i64, block: i64| ((extent + block - 1) / block * block) as f64 / extent as f64;
    let mut best = (f64::MAX, 1, 1);
    for vectors in 1..=4 {
        for rows in 1..=row_extent.clamp(1, 14) {
            if rows * vectors + vectors + 1 > target.vector_registers {
                break;
            }
            let busy = 12.0 / (rows * vectors).min(12) as f64;
            let loads = (rows + vectors) as f64 / (rows * vectors) as f64;
            let cost = waste(extent, vectors * lanes)
                * waste(row_extent, rows)
                * busy
                * (1.0 + 0.25 * loads);
            if cost < best.0 {
                best = (cost, rows, vectors);
            }
        }
    }
    (best.1, best.2)
}
