//! Matrix products on tensor cores, in 16 by 16 warp tiles.
//!
//! ```text
//! block m.0, n.0 {
//!   for k.0 {                                          steps: operands of a step are shared
//!     warp m.1, n.1 {
//!       for k.1, m.2, n.2 { tile += tile * tile; }     tiles of a warp, 16 terms at a time
//! ```
//!
//! The parameters are those of OpEvo's space for tensor cores (section 5.1): warps per block and
//! tiles per warp in both directions, and the terms per step. Zero terms per step means a launch
//! without tensor cores.

mod cost;
mod find;

use tensorwright_machine::Gpu;
use tensorwright_schedule::nest::{TILE, WARP};
use tensorwright_space::Parameter;
use tensorwright_space::parameter::Discrete;

use super::group::Group;
use crate::stages::ranks::number;

pub(crate) use cost::{best, cycles};
pub(crate) use find::find;

/// The names of the parameters, without the stage prefix, and their values.
const PARAMETERS: [(&str, &[i64]); 5] = [
    ("tensor.terms", &[0, 16, 32, 64]),
    ("tensor.warps.m", &[1, 2, 4, 8]),
    ("tensor.warps.n", &[1, 2, 4, 8]),
    ("tensor.tiles.m", &[1, 2, 4]),
    ("tensor.tiles.n", &[1, 2, 4]),
];

/// A group whose stage is a matrix product.
#[derive(Debug, Clone)]
pub(crate) struct Product {
    /// The index of the group in the sketch.
    pub(crate) group: usize,
    /// The indices of the row and column loops among the spatial loops.
    pub(crate) results: [usize; 2],
    /// The index of the reduction loop among the reduction loops.
    pub(crate) terms: usize,
    /// The factors.
    pub(crate) factors: [String; 2],
    /// The bytes of an element of a factor.
    bytes: i64,
    /// Whether factors are rounded to TF32 first.
    pub(crate) is_tf32: bool,
    /// The index of its first parameter in the sketch.
    pub(crate) parameter: usize,
}

/// The tiling of a product on tensor cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The terms of a step; zero if the product is computed without tensor cores.
    pub(crate) terms: i64,
    /// The warps of a block along rows and columns.
    pub(crate) warps: [i64; 2],
    /// The tiles of a warp along rows and columns.
    pub(crate) tiles: [i64; 2],
}

impl Shape {
    /// The smallest shape.
    const ONE: Self = Self { terms: TILE, warps: [1, 1], tiles: [1, 1] };

    /// The results of a block along rows and columns.
    pub(crate) fn block(&self) -> [i64; 2] {
        [0, 1].map(|at| self.warps[at] * self.tiles[at] * TILE)
    }

    /// The threads of a block.
    pub(crate) fn threads(&self) -> i64 {
        self.warps[0] * self.warps[1] * WARP
    }

    /// The thread extents of a block, those of a warp last.
    pub(crate) fn directions(&self) -> Vec<i64> {
        let warps = self.warps.into_iter().filter(|warps| *warps > 1);
        warps.chain([WARP]).collect()
    }

    fn values(&self) -> [i64; PARAMETERS.len()] {
        let ([wm, wn], [tm, tn]) = (self.warps, self.tiles);
        [self.terms, wm, wn, tm, tn]
    }

    /// All shapes.
    fn all() -> impl Iterator<Item = Self> {
        let [terms, warps_m, warps_n, tiles_m, tiles_n] = PARAMETERS.map(|(_, values)| values);
        let terms = terms.iter().filter(|terms| **terms > 0);
        terms.flat_map(move |terms| {
            warps_m.iter().flat_map(move |wm| {
                warps_n.iter().flat_map(move |wn| {
                    tiles_m.iter().flat_map(move |tm| {
                        tiles_n.iter().map(move |tn| Self {
                            terms: *terms,
                            warps: [*wm, *wn],
                            tiles: [*tm, *tn],
                        })
                    })
                })
            })
        })
    }
}

impl Product {
    /// Its parameters.
    pub(crate) fn knob_parameters(&self, stage: &str, is_alone: bool) -> Vec<Parameter> {
        let named = |name: &str| match is_alone {
            true => name.to_owned(),
            false => format!("{stage}:{name}"),
        };
        let parameter = |(name, values): (&str, &[i64])| {
            Parameter::new(named(name), Discrete::new(values.iter().copied()))
        };
        PARAMETERS.into_iter().map(parameter).collect()
    }

    /// The indices of its parameters in the sketch, that of the switch first.
    pub(crate) fn places(&self) -> std::ops::Range<usize> {
        self.parameter..self.parameter + PARAMETERS.len()
    }

    /// The shape for the ranks of all parameters; `None` without tensor cores.
    pub(crate) fn shape(&self, parameters: &[Parameter], ranks: &[u32]) -> Option<Shape> {
        let value =
            |at: usize| match (parameters.get(self.parameter + at), ranks.get(self.parameter + at))
            {
                (Some(parameter), Some(rank)) => number(parameter.domain(), *rank, 0),
                _ => 0,
            };
        let warps_and_tiles = [1, 2, 3, 4].map(|at| value(at).max(1));
        let [wm, wn, tm, tn] = warps_and_tiles;
        let terms = value(0);
        (terms > 0).then_some(Shape { terms, warps: [wm, wn], tiles: [tm, tn] })
    }

    /// Writes a shape into the ranks of all parameters.
    pub(crate) fn write(&self, shape: Option<Shape>, ranks: &mut [u32]) {
        let values = shape.map(|shape| shape.values());
        for (at, (_, known)) in PARAMETERS.into_iter().enumerate() {
            let place = values.and_then(|values| known.iter().position(|one| *one == values[at]));
            if let Some(rank) = ranks.get_mut(self.parameter + at) {
                *rank = place.and_then(|place| u32::try_from(place).ok()).unwrap_or(0);
            }
        }
    }

    /// Why a product does not support a shape.
    pub(crate) fn refusal(&self, group: &Group, shape: &Shape, gpu: &Gpu) -> Option<String> {
        /// Registers for addresses and for tiles of factors.
        const SPARE: i64 = 64;
        /// The registers per thread for a tile.
        const OF_TILE: i64 = TILE * TILE / WARP;
        for (at, place) in self.results.into_iter().enumerate() {
            let (name, extent) = (&group.spatial[place].axis.name, group.spatial[place].extent());
            let block = shape.block()[at];
            if extent % block != 0 {
                return Some(format!(
                    "blocks of {block} do not divide {extent} iterations of {name}"
                ));
            }
        }
        let terms = group.reduce[self.terms].extent();
        if terms % shape.terms != 0 {
            return Some(format!("steps of {} do not divide {terms} terms", shape.terms));
        }
        if shape.threads() > gpu.threads_per_block {
            let (threads, most) = (shape.threads(), gpu.threads_per_block);
            return Some(format!("a block has {threads} threads, limit {most}"));
        }
        let registers = shape.tiles[0] * shape.tiles[1] * OF_TILE + SPARE;
        if registers > gpu.registers_per_thread {
            let most = gpu.registers_per_thread;
            return Some(format!("a thread needs {registers} registers, limit {most}"));
        }
        let (bytes, most) = (self.shared_bytes(group, shape), gpu.declared_shared());
        (bytes > most)
            .then(|| format!("a block needs {bytes} bytes of shared memory, limit {most}"))
    }

    /// The shared bytes of a block: operands of a step, and the results for an epilogue.
    fn shared_bytes(&self, group: &Group, shape: &Shape) -> i64 {
        let [rows, columns] = shape.block();
        let others = group.reduce.iter().enumerate().filter(|(at, _)| *at != self.terms);
        // Along windows, a row of operands is longer than a row of results.
        let window: i64 = others.map(|(_, split)| split.extent() - 1).sum();
        let operands = (rows + columns + window) * shape.terms * self.bytes;
        let results = if group.epilogue_of.is_some() { rows * columns * 4 } else { 0 };
        operands + results
    }
}
