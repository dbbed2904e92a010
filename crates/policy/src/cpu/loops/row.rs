//! The loops of a stage that is computed row by row.
//!
//! Results with reduction loops are computed together with others that read the same vectors, which
//! are loaded once:
//!
//! ```text
//! for k, x { for i { s(k,x) += w(k,i) * p(x+i); } }
//!
//! for x.panel { for i { s(0,x..) += w(0,i) * p(x+i..); s(1,x..) += w(1,i) * p(x+i..); } }    // sums in registers
//! ```

use tensorwright_machine::{Cpu, Goal};
use tensorwright_plan::levels::cpu::{LANES, PANEL, PHASE, ROWS, TERMS, TILE, VECTORS};
use tensorwright_plan::{LoopKind, LoopRef, Open, PlannedLoop, Tiling};
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{LoopNest, Role};
use tensorwright_schedule::primitives::{MAX_LANES, Tail};

use super::whole;

/// The maximum number of unrolled vector terms.
const MOST_WRITTEN: i64 = 96;

/// The maximum number of phases of a row.
const MOST_PHASES: i64 = 4;

/// How a row is computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// The vectors per step.
    pub(crate) vectors: i64,
    /// Whether rows are short: the rest of a row is then computed in a whole vector that overlaps
    /// the one before.
    pub(crate) is_short: bool,
    /// The loop around a row, which holds partial results.
    pub(crate) at: LoopRef,
}

impl Row {
    /// The vectorized loops of a row.
    pub(crate) fn tiling(self, nest: &LoopNest, open: &Open, goal: &Goal<Cpu>) -> Tiling {
        let accesses = &open.accesses;
        let Some(axis) = lane_axis(accesses, open.depth) else { return Tiling::default() };
        let bytes = nest.dtype(accesses.write.buffer).bytes() as i64;
        let lanes = goal.target.lanes(bytes).min(axis.extent);
        match axis.role {
            Role::Reduce => self.partial(open, axis, lanes),
            Role::Spatial => self.results(open, axis, lanes, goal),
            // Recurrences are in no chain.
            Role::Scan => Tiling::default(),
        }
    }

    /// Results along the row, several vectors per step.
    fn results(self, open: &Open, axis: &Axis, lanes: i64, goal: &Goal<Cpu>) -> Tiling {
        let accesses = &open.accesses;
        let others = open.axes().iter().filter(|other| other.var != axis.var);
        let (terms, results): (Vec<&Axis>, Vec<&Axis>) =
            others.partition(|other| other.role == Role::Reduce);
        let id = open.axis(axis);
        let phased =
            phases(accesses, axis).filter(|by| !terms.is_empty() && axis.extent >= lanes * by);
        let most = self.vectors.min(axis.extent / lanes).max(1);
        let count = match phased {
            Some(_) => 1,
            None if self.is_short => fitting(axis.extent, lanes, most),
            None => most,
        };
        let apart = phased.unwrap_or(1);
        let mut sums = count;
        let registers = goal.target.vector_registers() * 3 / 4;
        let joins = |other: &&Axis| {
            let joins = !terms.is_empty()
                && other.extent > 1
                && sums * other.extent <= registers
                && accesses.shares_vectors(other, axis, apart);
            sums *= if joins { other.extent } else { 1 };
            joins
        };
        let (tile, results): (Vec<&Axis>, Vec<&Axis>) = results.into_iter().partition(joins);
        // The innermost reduction loops are unrolled, as far as they are small.
        let is_written = |axis: &&&Axis| {
            sums = sums.saturating_mul(axis.extent);
            sums <= MOST_WRITTEN
        };
        let written = terms.iter().rev().take_while(is_written).count();
        let (serial, written) = terms.split_at(terms.len() - written);

        let mut loops = whole(open, results, TILE, LoopKind::Serial);
        loops.push(PlannedLoop::new(id, count * lanes * apart, PANEL));
        loops.extend(phased.map(|_| PlannedLoop::new(id, 1, PHASE)));
        let around = if phased.is_some() { PHASE } else { PANEL };
        loops.extend(whole(open, serial.iter().copied(), TERMS, LoopKind::Serial));
        loops.extend(whole(open, written.iter().copied(), TERMS, LoopKind::Unrolled));
        loops.extend(whole(open, tile, ROWS, LoopKind::Unrolled));
        if phased.is_none() {
            loops.push(PlannedLoop::new(id, lanes, VECTORS).kind(LoopKind::Unrolled));
        }
        loops.push(PlannedLoop::new(id, apart, LANES).kind(LoopKind::Vector));
        let is_shifted = self.is_short && phased.is_none();
        let tails = if is_shifted { vec![(id, Tail::Shift)] } else { Vec::new() };
        let accumulate = (!terms.is_empty()).then_some(around);
        Tiling { loops, tails, accumulate, ..Tiling::default() }
    }

    /// A reduction along the row: partial results in the lanes of several vectors, combined at the
    /// end.
    fn partial(self, open: &Open, axis: &Axis, lanes: i64) -> Tiling {
        let vectors = self.vectors.min(axis.extent / lanes).min(MAX_LANES / lanes).max(1);
        let id = open.axis(axis);
        let others = || open.axes().iter().filter(|other| other.var != axis.var);
        let of_role = |is_term: bool| others().filter(move |o| (o.role == Role::Reduce) == is_term);
        let mut loops = whole(open, of_role(false), TILE, LoopKind::Serial);
        loops.extend(whole(open, of_role(true), TERMS, LoopKind::Serial));
        loops.push(PlannedLoop::new(id, vectors * lanes, TERMS));
        if vectors > 1 {
            loops.push(PlannedLoop::new(id, lanes, VECTORS).kind(LoopKind::Unrolled));
        }
        loops.push(PlannedLoop::new(id, 1, LANES).kind(LoopKind::Vector));
        Tiling { loops, partial: Some(self.at), ..Tiling::default() }
    }
}

/// The loop of a row to vectorize: a contiguous spatial loop, otherwise a contiguous reduction
/// loop. The first `depth` loops are around the row.
pub(crate) fn lane_axis(accesses: &Accesses, depth: usize) -> Option<&Axis> {
    let inner = || accesses.axes.iter().skip(depth).filter(|axis| axis.extent > 1);
    let contiguous = |axis: &&Axis| accesses.strided(axis).is_empty();
    let written = |axis: &&Axis| accesses.write.stride(axis) == Some(1);
    let results = || inner().filter(|axis| axis.role == Role::Spatial);
    let terms = || inner().filter(|axis| axis.role == Role::Reduce);
    let both = results().filter(written).find(contiguous);
    let in_phases = || results().filter(written).find(|axis| phases(accesses, axis).is_some());
    both.or_else(in_phases)
        .or_else(|| terms().filter(contiguous).max_by_key(|axis| axis.extent))
        .or_else(|| results().find(written))
}

/// The maximum vectors of a row per step of a stage.
pub(crate) fn most_vectors(
    nest: &LoopNest,
    accesses: &Accesses,
    depth: usize,
    goal: &Goal<Cpu>,
) -> i64 {
    let lanes = goal.target.lanes(nest.dtype(accesses.write.buffer).bytes() as i64).max(1);
    match lane_axis(accesses, depth) {
        Some(axis) if axis.role == Role::Reduce => (axis.extent.min(MAX_LANES) / lanes).max(1),
        Some(axis) => (axis.extent / lanes).max(1),
        None => 1,
    }
}

/// The smallest stride of results along a loop for which all reads have a constant stride, if
/// neighbours do not: the filters of a mosaic depend on whether a column is even.
pub(crate) fn phases(accesses: &Accesses, axis: &Axis) -> Option<i64> {
    let apart = accesses.period(axis).filter(|apart| (2..=MOST_PHASES).contains(apart))?;
    let is_even = |stride: Option<i64>| stride == Some(0) || stride == Some(apart);
    accesses.reads.iter().all(|read| is_even(read.stride_of(axis, apart))).then_some(apart)
}

/// The number of vectors per step, up to a maximum, with the least padding at the end of a row.
fn fitting(extent: i64, lanes: i64, most: i64) -> i64 {
    let computed = |count: &i64| {
        let block = count * lanes;
        (extent + block - 1) / block * block
    };
    (1..=most).rev().min_by_key(computed).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_fit_the_row() {
        assert_eq!(fitting(128, 16, 4), 4);
        assert_eq!(fitting(130, 16, 4), 3);
        assert_eq!(fitting(16, 16, 4), 1);
        assert_eq!(fitting(80, 16, 4), 1);
    }
}
