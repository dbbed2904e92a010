//! Vectorized results along a row.
//!
//! Results with reduction loops are computed together with others that read the same vectors, which
//! are loaded once:
//!
//! ```text
//! for k, x { for i { s(k,x) += w(k,i) * p(x+i); } }
//!
//! for x.0 { for i { s(0,x..) += w(0,i) * p(x+i..); s(1,x..) += w(1,i) * p(x+i..); } }    // sums in registers
//! ```

use tensorwright_schedule::ScheduleError;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::primitives::{CacheWrite, Reorder, Split, Tail, Unroll, Vectorize};

use super::phases::phases;
use super::steps::Row;

/// The maximum number of unrolled vector terms.
const MOST_WRITTEN: i64 = 96;

/// The loops that a row is split into.
struct Cut {
    /// The loops around all terms, outermost first: blocks of the row, and its phases.
    around: Vec<String>,
    /// The loop over the vectors of a block, if there are several.
    vectors: Option<String>,
    lanes: String,
    /// The vectors per step, and the stride of their lanes.
    count: i64,
    apart: i64,
}

impl Row<'_> {
    /// Computes results along the row, several vectors per step.
    pub(super) fn results(
        &mut self,
        accesses: &Accesses,
        axis: &Axis,
        lanes: i64,
    ) -> Result<(), ScheduleError> {
        let stage = self.stage;
        let others = accesses.axes.iter().skip(self.depth).filter(|other| other.var != axis.var);
        let (terms, results): (Vec<&Axis>, Vec<&Axis>) =
            others.partition(|other| other.role == Role::Reduce);
        let cut = self.cut(accesses, axis, lanes, !terms.is_empty())?;
        let mut sums = cut.count;
        let most = self.goal.target.vector_registers() * 3 / 4;
        let joins = |other: &&Axis| {
            let joins = !terms.is_empty()
                && other.extent > 1
                && sums * other.extent <= most
                && accesses.shares_vectors(other, axis, cut.apart);
            sums *= if joins { other.extent } else { 1 };
            joins
        };
        let (tile, results): (Vec<&Axis>, Vec<&Axis>) = results.into_iter().partition(joins);
        let names = |axes: &[&Axis]| axes.iter().map(|axis| axis.name.clone()).collect::<Vec<_>>();
        let inner: Vec<String> = names(&tile).into_iter().chain(cut.vectors).collect();
        let order = names(&results).into_iter().chain(cut.around.iter().cloned());
        let order = order.chain(names(&terms)).chain(inner.iter().cloned());
        self.apply(stage, Reorder { order: order.chain([cut.lanes.clone()]).collect() })?;
        // Unrolls the innermost reduction loops, as far as they are small.
        let mut vectors = sums;
        let few = terms.iter().rev().take_while(|axis| {
            vectors = vectors.saturating_mul(axis.extent);
            vectors <= MOST_WRITTEN
        });
        let few: Vec<&Axis> = few.copied().collect();
        for target in names(&few).into_iter().chain(inner) {
            self.apply(stage, Unroll { target })?;
        }
        self.apply(stage, Vectorize { target: cut.lanes })?;
        match cut.around.into_iter().next_back() {
            Some(at) if !terms.is_empty() => self.apply(stage, CacheWrite { at }),
            _ => Ok(()),
        }
    }

    /// Splits a row into blocks of vectors.
    fn cut(
        &mut self,
        accesses: &Accesses,
        axis: &Axis,
        lanes: i64,
        has_terms: bool,
    ) -> Result<Cut, ScheduleError> {
        let part = |part: &str| format!("{}.{part}", axis.name);
        let (blocks, vectors, lane) = (part("0"), part("vectors"), part("lanes"));
        let phased = phases(accesses, axis).filter(|by| has_terms && axis.extent >= lanes * by);
        if let Some(apart) = phased {
            let phase = part("phase");
            let mut split = Split::new(&axis.name, &[lanes, apart]).tail(Tail::Peel);
            split.names = vec![blocks.clone(), lane.clone(), phase.clone()];
            self.apply(self.stage, split)?;
            let around = vec![blocks, phase];
            return Ok(Cut { around, vectors: None, lanes: lane, count: 1, apart });
        }
        let most = self.vectors.min(axis.extent / lanes).max(1);
        let (count, tail) = match self.is_short {
            true => (fitting(axis.extent, lanes, most), Tail::Shift),
            false => (most, Tail::Peel),
        };
        let mut split = Split::new(&axis.name, &[count, lanes]).tail(tail);
        split.names = vec![blocks.clone(), vectors.clone(), lane.clone()];
        self.apply(self.stage, split)?;
        Ok(Cut { around: vec![blocks], vectors: Some(vectors), lanes: lane, count, apart: 1 })
    }
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
