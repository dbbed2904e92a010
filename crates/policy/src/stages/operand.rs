//! Operands of a stage: strides per loop, and footprints.

use tensorwright_lang::program::Index;
use tensorwright_schedule::access::{Access, Axis};
use tensorwright_schedule::nest::LoopNest;

/// The bytes of a cache line.
const LINE: f64 = 64.0;

/// A loop that moves an index, with the stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mover {
    /// A spatial loop by index, and the stride.
    Spatial(usize, i64),
    /// A reduction loop by index, and the stride.
    Reduce(usize, i64),
}

/// A tensor that a stage reads or writes.
#[derive(Debug, Clone)]
pub(crate) struct Operand {
    pub(crate) tensor: String,
    pub(crate) element_bytes: i64,
    pub(crate) shape: Vec<i64>,
    /// The loops that move each dimension.
    pub(crate) moved_by: Vec<Vec<Mover>>,
    /// The memory stride along each spatial loop; `None` if it varies.
    pub(crate) spatial: Vec<Option<i64>>,
    /// The same for reduction loops.
    pub(crate) reduce: Vec<Option<i64>>,
}

/// Equal, evenly spaced pieces of contiguous memory.
struct Rows {
    count: f64,
    /// The cache lines of each.
    lines: f64,
    /// The bytes from one to the next.
    distance: i64,
}

/// The extents of a loop nest.
#[derive(Debug, Clone)]
pub(crate) struct Extents {
    pub(crate) spatial: Vec<i64>,
    pub(crate) reduce: Vec<i64>,
}

impl Operand {
    pub(crate) fn new(nest: &LoopNest, access: &Access, spatial: &[Axis], reduce: &[Axis]) -> Self {
        let buffer = nest.buffer(access.buffer);
        let (subscripts, shape) = buffer.merged(&access.subscripts);
        Self {
            tensor: buffer.name.clone(),
            element_bytes: buffer.dtype.bytes() as i64,
            shape,
            moved_by: subscripts.iter().map(|index| movers(index, spatial, reduce)).collect(),
            spatial: spatial.iter().map(|axis| access.stride(axis)).collect(),
            reduce: reduce.iter().map(|axis| access.stride(axis)).collect(),
        }
    }

    /// Whether a spatial loop moves it.
    pub(crate) fn moves(&self, mover: Mover) -> bool {
        match mover {
            Mover::Spatial(axis, _) => self.spatial.get(axis) != Some(&Some(0)),
            Mover::Reduce(axis, _) => self.reduce.get(axis) != Some(&Some(0)),
        }
    }

    /// The extent of each dimension that some iterations touch.
    fn reaches(&self, extents: &Extents) -> impl Iterator<Item = i64> {
        self.moved_by.iter().zip(&self.shape).map(|(movers, most)| {
            let reach = movers.iter().fold(1i64, |reach, mover| {
                let (extent, distance) = match *mover {
                    Mover::Spatial(axis, distance) => (extents.spatial[axis], distance),
                    Mover::Reduce(axis, distance) => (extents.reduce[axis], distance),
                };
                reach.saturating_add((extent - 1).saturating_mul(distance.abs()))
            });
            reach.min(*most)
        })
    }

    /// The elements that some iterations touch.
    pub(crate) fn elements(&self, extents: &Extents) -> f64 {
        self.reaches(extents).map(|reach| reach as f64).product()
    }

    /// The bytes of the cache lines that some iterations touch; of the packed copy if `packed`.
    pub(crate) fn footprint(&self, extents: &Extents, packed: bool) -> f64 {
        if packed {
            return (self.elements(extents) * self.element_bytes as f64).max(LINE);
        }
        let rows = self.rows(extents);
        rows.count * rows.lines * LINE
    }

    /// The effective space of these lines in a cache with sets that repeat every `period` bytes:
    /// rows whose distance is a large power of two conflict.
    pub(crate) fn room(&self, extents: &Extents, packed: bool, period: f64) -> f64 {
        let bytes = self.footprint(extents, packed);
        if packed {
            return bytes;
        }
        let rows = self.rows(extents);
        let starts = period / common_divisor(rows.distance, period as i64) as f64;
        let places = period / LINE;
        let used = places.min(starts.min(rows.count) * rows.lines);
        bytes * if rows.count > starts { places / used.max(1.0) } else { 1.0 }
    }

    /// The rows that some iterations touch.
    fn rows(&self, extents: &Extents) -> Rows {
        // Whole rows are contiguous with the next ones.
        let bytes = self.element_bytes;
        let (mut run, mut count, mut distance, mut whole) = (1.0, 1.0, bytes, true);
        let reaches: Vec<i64> = self.reaches(extents).collect();
        for (reach, extent) in reaches.iter().zip(&self.shape).rev() {
            if whole {
                run *= *reach as f64;
                whole = reach == extent;
                distance = distance.saturating_mul(*extent);
            } else {
                count *= *reach as f64;
            }
        }
        Rows { count, lines: (run * bytes as f64 / LINE).ceil() + 0.5, distance }
    }
}

fn common_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.max(1), b.max(1));
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The loops that move a subscript.
pub(crate) fn movers(subscript: &Index, spatial: &[Axis], reduce: &[Axis]) -> Vec<Mover> {
    // A loop without a constant stride counts with stride one.
    let distance = |axis: &Axis| subscript.coefficient_of(axis.var).unwrap_or(1);
    let mut all = Vec::new();
    for (place, axis) in spatial.iter().enumerate() {
        all.push(Mover::Spatial(place, distance(axis)));
    }
    for (place, axis) in reduce.iter().enumerate() {
        all.push(Mover::Reduce(place, distance(axis)));
    }
    all.retain(|m| !matches!(m, Mover::Spatial(_, 0) | Mover::Reduce(_, 0)));
    all
}
