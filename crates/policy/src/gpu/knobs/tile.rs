//! `tile.LOOP`: how a loop over results is split into blocks, virtual threads, threads and what a thread does.

use tensorwright_machine::{Goal, Gpu};
use tensorwright_schedule::access::Axis;
use tensorwright_space::parameter::{Domain, Factorization};

use super::{Knob, KnobParameter, Rule, of_tiles, read_tile, write_tile};
use crate::SpaceOptions;
use crate::gpu::group::Group;
use crate::gpu::tiling::Tiling;
use crate::stages::split::{FEWEST, Split};

/// Blocks, virtual threads, threads, what a thread does.
const LEVELS: usize = 4;

/// The most virtual threads along a loop.
const MOST_APART: u64 = 8;

/// The most results of a thread along a loop that are next to each other.
const MOST_INNER: u64 = 16;

/// The most threads along a loop.
const MOST_THREADS: u64 = 256;

/// The most statements that are written out for a term.
const MOST_WRITTEN: i64 = 512;

/// How loops over results are split.
#[derive(Debug)]
pub(super) struct TileKnob;

/// The loops over results, with the ways to split each.
pub(crate) fn results(axes: Vec<Axis>, options: &SpaceOptions) -> Vec<Split> {
    // A space of tiles alone is the papers': nothing is left out.
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

/// Threads of a block have three directions, of which those that share a sum take one.
fn directions(_: &Group, tiling: &Tiling, _: &Goal<Gpu>) -> Option<String> {
    let most = if tiling.shares_sum() { 2 } else { 3 };
    let along = tiling.thread_axes().len();
    (along > most).then(|| format!("threads go along {along} loops, of {most}"))
}

/// A block has no more threads than the device runs together.
fn threads(_: &Group, tiling: &Tiling, goal: &Goal<Gpu>) -> Option<String> {
    let (threads, most) = (tiling.threads_of_block(), goal.target.threads_per_block);
    (threads > most).then(|| format!("a block has {threads} threads, and the device runs {most}"))
}

/// The results of a thread, and what it reads for a term, fit its registers: what does not is in slow memory.
fn registers(group: &Group, tiling: &Tiling, goal: &Goal<Gpu>) -> Option<String> {
    let (needed, most) =
        (super::super::cost::registers(group, tiling), goal.target.registers_per_thread);
    (needed > most).then(|| format!("a thread needs {needed} registers of {most}"))
}

/// What a thread does for a term is written out.
fn written_out(_: &Group, tiling: &Tiling, _: &Goal<Gpu>) -> Option<String> {
    let statements = tiling.accumulators().saturating_mul(tiling.unroll);
    (statements > MOST_WRITTEN)
        .then(|| format!("{statements} statements are written out, of {MOST_WRITTEN}"))
}

/// Tiles that do not divide compute no more than half as much again.
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
