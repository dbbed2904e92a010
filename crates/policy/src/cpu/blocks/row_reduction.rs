//! Reductions over the rows of a block: they share its loop.
//!
//! The gradient of attention has three products of row-wise intermediates: one reduces columns and
//! keeps rows, two reduce rows.
//!
//! ```text
//! for l, s { dS(l,s) = ..; }                     for l.block {
//! for l, d { dQ(l,d) += dS(l,s) * K(s,d); }        for l, s { dS(l,s) = ..; }
//! for s, d { dK(s,d) += dS(l,s) * Q(l,d); }   ->   for l, d { dQ(l,d) += ..; }      // tiles
//!                                                  for s, d { dK(s,d) += ..; }      // tiles, with the terms of a block
//!                                                }
//! ```
//!
//! No intermediate of size rows by columns goes to memory.

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::primitives::{ComputeWith, Reorder, Split, Tail};

use super::{Unit, is_product_unit};

/// A product that reduces over the rows of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowReduction {
    /// The stage.
    pub(crate) stage: String,
    /// Its reduction loop over the rows.
    pub(crate) terms: String,
}

impl RowReduction {
    /// A unit that reduces over the rows of a root inside these enclosing loops; `None` if it does
    /// not.
    pub(super) fn of(
        draft: &ScheduleState,
        unit: &Unit,
        row: &Axis,
        around: &[&Axis],
    ) -> Option<Self> {
        let Unit::Group { root, reduction: None } = unit else { return None };
        let accesses = Accesses::of(&draft.nest, root).filter(|_| is_product_unit(draft, unit))?;
        let mut results = accesses.of_role(Role::Spatial);
        let is_inside =
            around.iter().all(|axis| results.next().map(|own| own.extent) == Some(axis.extent));
        let mut terms = accesses.of_role(Role::Reduce);
        let (Some(only), None) = (terms.next(), terms.next()) else { return None };
        // The remaining loops must include rows and vectors of its own.
        (is_inside && only.extent == row.extent && results.count() >= 2)
            .then(|| Self { stage: root.clone(), terms: only.name.clone() })
    }

    /// Fuses it into the block loop of a root whose rows are already split; returns whether that
    /// succeeded.
    pub(super) fn join(&self, draft: &mut ScheduleState, root: &str, at: &str, rows: i64) -> bool {
        let block = format!("{}.block", self.terms);
        let mut split = Split::new(&self.terms, &[rows]).tail(Tail::Peel);
        split.names = vec![block.clone(), format!("{}.row", self.terms)];
        let place = ComputeWith { other: root.to_owned(), at: at.to_owned() };
        draft.steps(|draft| {
            draft.step(&self.stage, split)
                && self.outwards(draft, (root, at), block)
                && draft.step(&self.stage, place)
        })
    }

    /// Moves a loop to the depth of another loop in a root; returns whether that succeeded.
    fn outwards(&self, draft: &mut ScheduleState, (root, at): (&str, &str), block: String) -> bool {
        let found = Accesses::of(&draft.nest, &self.stage).zip(Accesses::of(&draft.nest, root));
        let Some((own, theirs)) = found else { return false };
        let Some(place) = theirs.axes.iter().position(|axis| axis.name == at) else { return false };
        let mut order: Vec<String> = own.axes.iter().map(|axis| axis.name.clone()).collect();
        order.retain(|name| *name != block);
        order.insert(place.min(order.len()), block);
        draft.step(&self.stage, Reorder { order })
    }
}
