//! `tile.LOOP` of a spatial loop: blocks, virtual threads, threads, results per thread.

use tensorwright_machine::{Goal, Gpu};
use tensorwright_schedule::access::Axis;
use tensorwright_space::parameter::{Domain, Factorization};

use super::{Knob, KnobParameter, Rule, of_tiles, read_tile, write_tile};
use crate::SpaceOptions;
use crate::gpu::group::Group;
use crate::gpu::tiling::Tiling;
use crate::stages::split::{FEWEST, Split};

/// Blocks, virtual threads, threads, results per thread.
const LEVELS: usize = 4;

/// The most virtual threads along a loop.
const MOST_APART: u64 = 8;

/// The maximum number of adjacent results of a thread along a loop.
const MOST_INNER: u64 = 16;

/// The most threads along a loop.
const MOST_THREADS: u64 = 256;

/// The maximum number of unrolled statements per term.
const MOST_WRITTEN: i64 = 512;

/// How spatial loops are split.
#[derive(Debug)]
pub(super) struct TileKnob;

/// The spatial loops, with the ways to split each.
pub(crate) fn results(axes: Vec<Axis>, options: &SpaceOptions) -> Vec<Split> {
    // Tiling-only spaces reproduce the papers: nothing is left out.
    let tiles_only = options.only.is_some();
    let allow = |parts: &[u64]| {
        let [.., apart, threads, inner] = parts else { return true };
        let is_even = threads.is_power_of_two() || parts[0] * apart * inner == 1;
        tiles_only
            || *apart <= MOST_APART && *inner <= MOST_INNER && *threads <= MOST_THREADS && is_even
    };
    let split = |axis: Axis| {
        let extent = axis.extent.max(1) as u64;
        let tile = (axis.extent >= FEWEST)
            .then(|| Factorization::filtered(extent, LEVELS, options.splits, allow));
        Split::new(axis, tile)
    };
    axes.into_iter().map(split).collect()
}

impl Knob for TileKnob {
    fn knob_parameters(&self, group: &Group) -> Vec<KnobParameter> {
        of_tiles(&group.spatial)
    }

    fn read(&self, tiling: &mut Tiling, group: &Group, place: usize, _: &Domain, rank: u32) {
        read_tile(&mut tiling.spatial, &group.spatial, place, rank);
    }

    fn write(&self, tiling: &Tiling, _: &Group, place: usize, domain: &Domain) -> u32 {
        write_tile(&tiling.spatial, place, domain)
    }

    fn rules(&self) -> &'static [Rule] {
        &[
            ("directions", directions),
            ("threads", threads),
            ("registers", registers),
            ("written out", written_out),
            ("padding", padding),
        ]
    }
}

/// Blocks have three dimensions; cooperative reduction takes one of them.
fn directions(_: &Group, tiling: &Tiling, _: &Goal<Gpu>) -> Option<String> {
    let most = if tiling.shares_sum() { 2 } else { 3 };
    let along = tiling.thread_axes().len();
    (along > most).then(|| format!("{along} loops have threads, limit {most}"))
}

/// A block has at most the number of threads that the device supports.
fn threads(_: &Group, tiling: &Tiling, goal: &Goal<Gpu>) -> Option<String> {
    let (threads, most) = (tiling.threads_of_block(), goal.target.threads_per_block);
    (threads > most).then(|| format!("a block has {threads} threads, limit {most}"))
}

/// The results of a thread and its reads per term fit its registers: the rest would spill to slow
/// memory.
fn registers(group: &Group, tiling: &Tiling, goal: &Goal<Gpu>) -> Option<String> {
    let (needed, most) =
        (super::super::cost::registers(group, tiling), goal.target.registers_per_thread);
    (needed > most).then(|| format!("a thread needs {needed} registers, limit {most}"))
}

/// The work of a thread per term is unrolled.
fn written_out(_: &Group, tiling: &Tiling, _: &Goal<Gpu>) -> Option<String> {
    let statements = tiling.accumulators().saturating_mul(tiling.unroll);
    (statements > MOST_WRITTEN)
        .then(|| format!("{statements} unrolled statements, limit {MOST_WRITTEN}"))
}

/// Padding adds at most half of the computation.
fn padding(group: &Group, tiling: &Tiling, _: &Goal<Gpu>) -> Option<String> {
    group.spatial.iter().enumerate().find_map(|(place, split)| {
        let (tile, extent) = (tiling.tile(place).max(1), split.extent());
        let covered = (extent + tile - 1) / tile * tile;
        let excess = covered - extent;
        (2 * excess > extent && excess >= 32).then(|| {
            let name = &split.axis.name;
            format!("tiles of {tile} cover {covered} iterations of {name}, not {extent}")
        })
    })
}
