//! Vectorized reduction loops: partial results in the lanes, combined at the end.

use tensorwright_schedule::primitives::{Rfactor, Split, Unroll, Vectorize};

use super::Decoder;
use super::loops::{self, Loops, TERMS_TAIL};
use crate::cpu::group::{Group, Vector};
use crate::cpu::tiling::Tiling;
use tensorwright_space::Rejection;

impl Decoder<'_> {
    /// Splits a reduction loop into lanes with one partial result each; returns the loops of the
    /// stage.
    pub(super) fn partial(&mut self, group: &Group, tiling: &Tiling) -> Result<Loops, Rejection> {
        let Vector::Reduce { axis: vector, lanes } = tiling.vector else {
            return Ok(Loops::default());
        };
        if group.epilogue_of.is_some() {
            self.rows(&group.root);
        }
        let stage = group.stage();
        let names: Vec<String> = group.spatial.iter().map(|s| s.axis.name.clone()).collect();
        for (axis, name) in names.iter().enumerate() {
            if let Some(split) = loops::split(tiling, axis, name) {
                self.apply(stage, split)?;
            }
        }
        let mut loops = loops::spatial(tiling, &names);
        let middle = loops::middle(group, tiling, &names, false);
        loops.middle.extend(middle);
        let name = group.reduce[vector].axis.name.clone();
        let extent = group.reduce[vector].axis.extent;
        let lane = format!("{name}.lanes");
        let mut split = Split::new(&name, &[tiling.unroll.max(1), lanes]).tail(TERMS_TAIL);
        split.names = vec![format!("{name}.0"), format!("{name}.1"), lane.clone()];
        // Without a spatial loop, a loop of a single iteration holds the partial results.
        if loops.outer.is_empty() {
            let blocks = (extent + tiling.unroll * lanes - 1) / (tiling.unroll * lanes);
            split.factors.insert(0, blocks);
            split.names.insert(0, format!("{name}.all"));
            loops.outer.push(format!("{name}.all"));
        }
        self.apply(stage, split)?;
        for axis in tiling.reduce_order.iter().filter(|axis| **axis != vector) {
            loops.terms.push(group.reduce[*axis].axis.name.clone());
        }
        loops.terms.push(format!("{name}.0"));
        loops.unrolled = Some(format!("{name}.1"));
        // The register tile is around the lanes, which are terms here.
        loops.lanes = Some(lane.clone());
        self.reorder(stage, loops.order())?;
        self.fuse(stage, tiling, &mut loops)?;
        let Some(host) = loops.host().cloned() else { return Ok(loops) };
        self.apply(stage, Rfactor { target: lane.clone(), at: host })?;
        let partial = format!("{stage}.rf");
        for row in &loops.register {
            self.apply(&partial, Unroll { target: row.clone() })?;
            self.draft.step(stage, Unroll { target: row.clone() });
        }
        if let Some(unrolled) = &loops.unrolled {
            self.apply(&partial, Unroll { target: unrolled.clone() })?;
        }
        self.draft.step(stage, Vectorize { target: lane.clone() });
        self.apply(&partial, Vectorize { target: lane })?;
        Ok(loops)
    }
}
