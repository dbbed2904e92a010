//! Analytical cost model of CPU tilings.
//!
//! The time of a register tile is the maximum of its multiply-add, load, latency and front-end
//! times. Cache traffic follows from the loops: a cache level holds the outermost loop whose data
//! fits. Outer loops bring the data in again, except adjacent loops that do not move a tensor (the
//! model of Anderson et al. 2021, section 4, uses the same quantities as features). Packing, stores
//! of results and tails are added.
//!
//! Times are in cycles of a core. The constants were fitted on records of the benchmark suites;
//! `docs/cost-model.md` says how, and how well the model ranks operators that it was not fitted on.

mod terms;

pub(crate) use terms::{Constants, TERMS};

use tensorwright_machine::{Cpu, Goal};

use crate::cpu::group::{Group, Vector};
use crate::cpu::tiling::{PackAt, StoreBy, Tiling};
use crate::stages::operand::{Extents, Mover, Operand};

/// The address period of the L1 cache: 64 sets of 64 bytes.
const L1_PERIOD: f64 = 4096.0;

/// The address period of the L2 cache: 1024 sets.
const L2_PERIOD: f64 = 65_536.0;

/// A loop around the register tiles.
#[derive(Debug, Clone, Copy)]
struct OuterLoop {
    mover: Mover,
    trips: i64,
}

/// The model's view of a tiling.
struct Model<'a> {
    group: &'a Group,
    tiling: &'a Tiling,
    goal: &'a Goal<Cpu>,
    /// The loops around a register tile, outermost first.
    around: Vec<OuterLoop>,
    /// The number of outermost spatial loops, and of all loops except the innermost reduction
    /// loops.
    outer: usize,
    places: usize,
    /// The extents of one iteration of all of them.
    tile: Extents,
}

/// The cycles of a tiling, term by term, in the order of [`TERMS`].
pub(crate) fn terms(group: &Group, tiling: &Tiling, goal: &Goal<Cpu>) -> [f64; TERMS.len()] {
    let model = Model::new(group, tiling, goal);
    let tiles = model.executions(model.around.len());
    let [fma, loads, latency, gathers] = model.step();
    let workers = model.workers();
    let near = model.traffic(0.75 * goal.target.caches().l1 as f64, L1_PERIOD);
    let far = model.traffic(0.75 * goal.target.caches().l2 as f64, L2_PERIOD);
    [
        fma.max(latency) * tiles / workers,
        loads * tiles / workers,
        gathers * tiles / workers,
        model.loop_overhead() * tiles / workers,
        near / workers,
        far / workers.sqrt(),
        model.copies() / workers,
        model.stores() / workers,
    ]
}

/// The estimated cycles of a tiling.
pub(crate) fn cycles(group: &Group, tiling: &Tiling, goal: &Goal<Cpu>) -> f64 {
    Constants::default().cycles(&terms(group, tiling, goal))
}

impl<'a> Model<'a> {
    fn new(group: &'a Group, tiling: &'a Tiling, goal: &'a Goal<Cpu>) -> Self {
        let mut around: Vec<OuterLoop> = Vec::new();
        for axis in &tiling.outer_order {
            let whole = Mover::Spatial(*axis, 1);
            around.push(OuterLoop { mover: whole, trips: outer_trips(group, tiling, *axis) });
        }
        let outer = around.len();
        let mut middle: Vec<Option<OuterLoop>> = Vec::new();
        for (axis, parts) in tiling.spatial.iter().enumerate() {
            if parts.len() > 3 {
                let between = parts[1..parts.len() - 2].iter();
                around.extend(
                    between.map(|t| OuterLoop { mover: Mover::Spatial(axis, 1), trips: *t }),
                );
            }
            if parts.len() > 1 {
                let trips = parts[parts.len() - 2];
                let mover = Mover::Spatial(axis, 1);
                middle.push((parts.len() > 2).then_some(OuterLoop { mover, trips }));
            }
        }
        for (axis, parts) in tiling.reduce.iter().enumerate() {
            if parts.len() > 1 {
                middle.push(Some(OuterLoop { mover: Mover::Reduce(axis, 1), trips: parts[0] }));
            }
        }
        let order = tiling.middle_order.iter();
        around.extend(order.filter_map(|item| middle.get(*item).copied().flatten()));
        let places = around.len();
        for axis in &tiling.reduce_order {
            let parts = &tiling.reduce[*axis];
            let inner: i64 = if parts.len() > 1 { parts[1..].iter().product() } else { parts[0] };
            let lanes = match tiling.vector {
                Vector::Reduce { axis: vector, lanes } if vector == *axis => lanes,
                _ => 1,
            };
            let trips = (inner + lanes - 1) / lanes.max(1);
            around.push(OuterLoop { mover: Mover::Reduce(*axis, 1), trips });
        }
        let register = |axis: usize| match tiling.vector {
            Vector::Spatial { axis: vector, lanes } if vector == axis => {
                tiling.register(axis).max(lanes)
            }
            _ => tiling.register(axis),
        };
        let lanes_of = |axis: usize| match tiling.vector {
            Vector::Reduce { axis: vector, lanes } if vector == axis => lanes,
            _ => 1,
        };
        let tile = Extents {
            spatial: (0..tiling.spatial.len()).map(register).collect(),
            reduce: (0..tiling.reduce.len()).map(lanes_of).collect(),
        };
        Self { group, tiling, goal, around, outer, places, tile }
    }

    /// The number of executions of the body of the first `level` loops.
    fn executions(&self, level: usize) -> f64 {
        self.around[..level].iter().map(|l| l.trips as f64).product()
    }

    /// The extents inside the first `level` loops.
    fn extents(&self, level: usize) -> Extents {
        let mut extents = self.tile.clone();
        for l in &self.around[level..] {
            match l.mover {
                Mover::Spatial(axis, _) => extents.spatial[axis] *= l.trips,
                Mover::Reduce(axis, _) => extents.reduce[axis] *= l.trips,
            }
        }
        for (extent, split) in extents.spatial.iter_mut().zip(&self.group.spatial) {
            *extent = (*extent).min(split.axis.extent.max(1));
        }
        for (extent, split) in extents.reduce.iter_mut().zip(&self.group.reduce) {
            *extent = (*extent).min(split.axis.extent.max(1));
        }
        extents
    }

    /// Where an operand is packed.
    fn packed_at(&self, operand: &Operand) -> Option<PackAt> {
        let place = self.group.packs.iter().position(|pack| pack.tensor == operand.tensor)?;
        self.tiling.packs.get(place).copied().filter(|at| *at != PackAt::Nowhere)
    }

    /// The cycles of multiply-adds, loads, latency and gathers in one step of a register tile.
    fn step(&self) -> [f64; 4] {
        let lanes = self.tiling.lanes() as f64;
        let accumulators = self.tiling.accumulators().max(1) as f64;
        let (mut loads, mut gathers) = (0.0, 0.0);
        let (shared, steps) = self.shared();
        for operand in &self.group.reads {
            let elements = operand.elements(&shared) / steps;
            let stride = match self.tiling.vector {
                Vector::Scalar => Some(0),
                Vector::Spatial { axis, .. } => operand.spatial.get(axis).copied().flatten(),
                Vector::Reduce { axis, .. } => operand.reduce.get(axis).copied().flatten(),
            };
            let vectors = elements / lanes;
            loads += self.page_walks(operand);
            match stride {
                Some(0) => loads += elements,
                Some(1) => loads += 1.1 * vectors,
                _ if self.packed_at(operand).is_some() => loads += vectors,
                _ => gathers += vectors * (4.0 + 0.7 * lanes),
            }
        }
        let wide = if lanes * self.group.element_bytes as f64 > 32.0 { 1.0 } else { 0.9 };
        let latency = if self.group.reduce.is_empty() { 0.0 } else { 4.0 };
        // More accumulators than the latency needs hide cache delays.
        let uneven = 1.0 + 2.5 / accumulators;
        let spills = if self.writes_out_overlapping_taps() { 2.5 } else { 1.0 };
        [accumulators / 2.0 * wide * uneven * spills, loads / 2.0, latency, gathers]
    }

    /// The iterations that share their reads, and their number in steps of the register tile: one,
    /// or all unrolled terms of a window.
    fn shared(&self) -> (Extents, f64) {
        let mut extents = self.tile.clone();
        let Some(term) = self.tiling.reduce_order.last().filter(|_| self.writes_out_window())
        else {
            return (extents, 1.0);
        };
        let terms = self.tiling.unroll.min(self.group.reduce[*term].axis.extent);
        extents.reduce[*term] *= terms;
        (extents, terms as f64)
    }

    /// Whether a window is unrolled whose reads neighbours in the register tile share, and whose
    /// operands all fit the registers.
    fn writes_out_window(&self) -> bool {
        let Some(term) = self.tiling.reduce_order.last().filter(|_| self.tiling.unroll > 1) else {
            return false;
        };
        let is_lanes =
            |row| matches!(self.tiling.vector, Vector::Spatial { axis, .. } if axis == row);
        let moves = |row: usize| {
            !is_lanes(row) && self.tiling.register(row) > 1 && self.group.is_window(row, *term)
        };
        let fits = self.tiling.accumulators() + 2 <= self.goal.target.vector_registers();
        fits && !self.tiling.sums_in_lanes() && (0..self.tiling.spatial.len()).any(moves)
    }

    /// Page walks of an operand that touches a new page per term, in loads.
    fn page_walks(&self, operand: &Operand) -> f64 {
        let extents = self.group.reduce.iter().map(|split| split.axis.extent);
        let longest = extents.enumerate().max_by_key(|(_, extent)| *extent);
        let far = longest.is_some_and(|(axis, extent)| {
            let step = operand.reduce[axis].unwrap_or(0).saturating_mul(operand.element_bytes);
            step >= 1024 && extent > 32
        });
        if far && self.packed_at(operand).is_none() { 8.0 } else { 0.0 }
    }

    /// Whether iterations over window taps are unrolled that share reads with neighbours in the
    /// register tile: the compiler then keeps common operands in registers that it does not have
    /// (rule 4 of the measurements in docs/performance.md).
    fn writes_out_overlapping_taps(&self) -> bool {
        let Some(innermost) = self.tiling.reduce_order.last() else { return false };
        if self.group.reduce[*innermost].axis.extent < 2 {
            return false;
        }
        let is_tap = |mover: &Mover| matches!(mover, Mover::Reduce(axis, _) if axis == innermost);
        let is_tiled = |mover: &Mover| match *mover {
            Mover::Spatial(axis, _) => self.tiling.register(axis) > 1,
            Mover::Reduce(..) => false,
        };
        let mut dimensions = self.group.reads.iter().flat_map(|operand| &operand.moved_by);
        self.tiling.unroll > 1
            && self.tiling.accumulators() > 8
            && !self.writes_out_window()
            && dimensions.any(|movers| movers.iter().any(is_tap) && movers.iter().any(is_tiled))
    }

    /// The loop overhead per step.
    fn loop_overhead(&self) -> f64 {
        1.0 / self.tiling.unroll.max(1) as f64
    }

    /// The effective number of workers.
    fn workers(&self) -> f64 {
        let loops = usize::try_from(self.tiling.parallel).unwrap_or(0).min(self.outer);
        if loops == 0 || self.goal.workers < 2 {
            return 1.0;
        }
        let (items, workers) = (self.executions(loops), self.goal.workers as f64);
        items / (items / workers).ceil()
    }

    /// The bytes loaded into a cache of a size whose sets repeat every `period` bytes.
    fn traffic(&self, size: f64, period: f64) -> f64 {
        let operands = || self.group.reads.iter().chain([&self.group.write]);
        let footprint = |operand: &Operand, extents: &Extents| {
            operand.footprint(extents, self.packed_at(operand).is_some())
        };
        let fits = |level: &usize| {
            let extents = self.extents(*level);
            let room = |operand: &Operand| {
                operand.room(&extents, self.packed_at(operand).is_some(), period)
            };
            operands().map(room).sum::<f64>() <= size
        };
        let level = (0..self.around.len()).find(fits).unwrap_or(self.around.len());
        let extents = self.extents(level);
        operands()
            .map(|operand| {
                let (mut times, mut stays) = (1.0, true);
                for l in self.around[..level].iter().rev() {
                    stays &= !operand.moves(l.mover);
                    times *= if stays { 1.0 } else { l.trips as f64 };
                }
                times * footprint(operand, &extents)
            })
            .sum()
    }

    /// The cycles of packing.
    fn copies(&self) -> f64 {
        let copy = |operand: &Operand| {
            let level = match self.packed_at(operand) {
                Some(PackAt::Outer) => 1,
                Some(PackAt::Middle) => self.outer,
                Some(PackAt::Inner) => self.places,
                Some(PackAt::Laid | PackAt::Nowhere) | None => return 0.0,
            };
            let level = level.min(self.around.len());
            let elements = operand.elements(&self.extents(level));
            self.executions(level) * elements * if self.turns(operand) { 4.0 } else { 0.8 }
        };
        let copies: f64 = self.group.reads.iter().map(copy).sum();
        copies
    }

    /// Whether packing transposes an operand.
    fn turns(&self, operand: &Operand) -> bool {
        match self.tiling.vector {
            Vector::Spatial { axis, .. } => !matches!(operand.spatial.get(axis), Some(Some(0 | 1))),
            _ => false,
        }
    }

    /// The cycles of initializing and storing register tiles.
    fn stores(&self) -> f64 {
        let is_result = |l: &OuterLoop| matches!(l.mover, Mover::Spatial(..));
        let host = self.around[..self.places].iter().rposition(is_result).map_or(0, |at| at + 1);
        let accumulates = self.around[..host].iter().any(|l| !is_result(l) && l.trips > 1);
        let accumulators = self.tiling.accumulators().max(1) as f64;
        let lanes = self.tiling.lanes() as f64;
        let one = match self.tiling.vector {
            Vector::Spatial { axis, .. } => match self.group.write.spatial.get(axis) {
                Some(Some(1)) => 1.5,
                _ if self.tiling.store == StoreBy::Transposed => self.turned_store(),
                _ => 2.0 * lanes,
            },
            Vector::Reduce { .. } => 10.0,
            Vector::Scalar => 1.5,
        };
        let again = if accumulates { 2.0 } else { 1.0 };
        self.executions(host) * (accumulators * one * again + 12.0)
    }
}

impl Model<'_> {
    /// The cycles per vector of a tile that is transposed on its way to memory: it is gathered from
    /// the L1 cache, and scattered if results are not contiguous.
    fn turned_store(&self) -> f64 {
        let along = self.group.contiguous.and_then(|axis| self.group.write.spatial[axis]);
        if along == Some(1) { 16.0 } else { 40.0 }
    }
}

/// The trip count of an outermost spatial loop.
fn outer_trips(group: &Group, tiling: &Tiling, axis: usize) -> i64 {
    let extent = group.spatial[axis].axis.extent.max(1);
    let cover = tiling.cover(axis).max(1);
    if tiling.spatial[axis].len() == 1 && cover == 1 {
        return extent;
    }
    (extent + cover - 1) / cover
}
