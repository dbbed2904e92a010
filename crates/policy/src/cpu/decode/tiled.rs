//! Register tiling, with vectorized spatial loops or scalar.

use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{
    CacheWrite, ComputeAt, LayoutText, Part, SetLayout, Split, Unroll, Vectorize,
};

use super::Decoder;
use super::loops::{self, Loops, TERMS_TAIL};
use crate::cpu::group::{Group, Vector};
use crate::cpu::tiling::{StoreBy, Tiling};
use tensorwright_space::Rejection;

impl Decoder<'_> {
    /// Tiles the loops of a group; returns the loops of its root.
    pub(super) fn tiled(&mut self, group: &Group, tiling: &Tiling) -> Result<Loops, Rejection> {
        match &group.epilogue_of {
            Some(reduction) if tiling.is_fused(group) => self.fused(group, tiling, reduction),
            Some(reduction) => {
                self.rows(&group.root);
                self.alone(group, tiling, reduction)
            }
            None => self.alone(group, tiling, &group.root),
        }
    }

    /// Schedules a stage on its own.
    fn alone(&mut self, group: &Group, tiling: &Tiling, stage: &str) -> Result<Loops, Rejection> {
        let names: Vec<String> = group.spatial.iter().map(|s| s.axis.name.clone()).collect();
        let mut loops = self.split_results(tiling, stage, &names)?;
        loops.middle.extend(loops::middle(group, tiling, &names, true));
        self.split_terms(group, tiling, stage, &mut loops, true)?;
        self.reorder(stage, loops.order())?;
        // Parallel loops must be fused before anything is computed between them.
        self.fuse(stage, tiling, &mut loops)?;
        if tiling.store == StoreBy::Transposed {
            self.transposed(group, tiling, stage, &loops)?;
            return Ok(loops);
        }
        self.inner_kinds(stage, &loops)?;
        if !group.reduce.is_empty()
            && let Some(host) = loops.host()
        {
            self.apply(stage, CacheWrite { at: host.clone() })?;
        }
        Ok(loops)
    }

    /// Computes a reduction inside the tiles of its epilogue.
    fn fused(
        &mut self,
        group: &Group,
        tiling: &Tiling,
        reduction: &str,
    ) -> Result<Loops, Rejection> {
        let root = &group.root;
        let mut loops = self.split_results(tiling, root, &group.root_loops)?;
        loops.middle.extend(loops::middle(group, tiling, &group.root_loops, false));
        self.reorder(root, loops.order())?;
        self.fuse(root, tiling, &mut loops)?;
        let Some(host) = loops.host().cloned() else { return Ok(loops) };
        self.apply(reduction, ComputeAt { consumer: root.clone(), at: host })?;
        self.inside_tile(group, tiling, reduction, &loops)?;
        self.lanes_last(group, tiling, reduction)?;
        self.inner_kinds(root, &loops)?;
        Ok(loops)
    }

    /// Changes the layout of a reduction's tile so that the lanes of a vector are contiguous. By
    /// default the tile has the dimension order of the tensor; vectors along another dimension than
    /// the last would be scattered at every term.
    fn lanes_last(
        &mut self,
        group: &Group,
        tiling: &Tiling,
        reduction: &str,
    ) -> Result<(), Rejection> {
        let Vector::Spatial { axis, .. } = tiling.vector else { return Ok(()) };
        let rank = store_of(&self.draft.nest, reduction).map_or(0, |store| store.subscripts.len());
        if rank != group.spatial.len() || axis + 1 >= rank {
            return Ok(());
        }
        let others = (0..rank).filter(|dimension| *dimension != axis);
        let parts = others.chain([axis]).map(|dimension| Part::Whole(dimension as u32));
        self.apply(reduction, SetLayout { layout: LayoutText { parts: parts.collect() } })
    }

    /// Schedules the loops of a reduction over a register tile of its epilogue. Their names differ
    /// from those of enclosing loops: packing refers to loops by name.
    fn inside_tile(
        &mut self,
        group: &Group,
        tiling: &Tiling,
        stage: &str,
        around: &Loops,
    ) -> Result<(), Rejection> {
        let mut loops = Loops::default();
        let mut vector_row = None;
        for (axis, split) in group.spatial.iter().enumerate() {
            let name = &split.axis.name;
            match tiling.vector {
                Vector::Spatial { axis: vector, lanes } if vector == axis => {
                    let (row, lane) = (format!("{name}.vectors"), format!("{name}.lanes"));
                    // A tile shorter than a vector must not be masked: masked accumulators are not
                    // kept in registers.
                    let own =
                        Accesses::of(&self.draft.nest, stage).map_or_else(Vec::new, |a| a.axes);
                    let own = own.iter().find(|axis| axis.name == *name).map(|axis| axis.extent);
                    let mut split = Split::new(name, &[lanes.min(own.unwrap_or(lanes)).max(1)]);
                    split.names = vec![row.clone(), lane.clone()];
                    self.apply(stage, split)?;
                    vector_row = Some(row);
                    loops.lanes = Some(lane);
                }
                _ if around.places().contains(&name) => {
                    let names = vec![format!("{name}.tile"), format!("{name}.rows")];
                    let mut split = Split::new(name, &[tiling.register(axis)]);
                    split.names.clone_from(&names);
                    self.apply(stage, split)?;
                    loops.register.extend(names);
                }
                _ => loops.register.push(name.clone()),
            }
        }
        loops.register.extend(vector_row);
        for (axis, split) in group.reduce.iter().enumerate() {
            if tiling.reduce[axis].len() > 1 {
                loops.middle.push((format!("{}.0", split.axis.name), false));
            }
        }
        self.split_terms(group, tiling, stage, &mut loops, true)?;
        self.reorder(stage, loops.order())?;
        self.inner_kinds(stage, &loops)
    }

    fn split_results(
        &mut self,
        tiling: &Tiling,
        stage: &str,
        names: &[String],
    ) -> Result<Loops, Rejection> {
        for (axis, name) in names.iter().enumerate() {
            if let Some(split) = loops::split(tiling, axis, name) {
                self.apply(stage, split)?;
            }
        }
        Ok(loops::spatial(tiling, names))
    }

    /// Splits the reduction loops, and unrolls part of the innermost one.
    pub(super) fn split_terms(
        &mut self,
        group: &Group,
        tiling: &Tiling,
        stage: &str,
        loops: &mut Loops,
        unrolls: bool,
    ) -> Result<(), Rejection> {
        let innermost = tiling.reduce_order.last().copied();
        for axis in &tiling.reduce_order {
            let (split, parts) = (&group.reduce[*axis], &tiling.reduce[*axis]);
            let name = &split.axis.name;
            let mut factors = parts[1..].to_vec();
            let last = factors.last().copied().unwrap_or(split.axis.extent);
            let unroll = if unrolls && innermost == Some(*axis) { tiling.unroll } else { 1 };
            let whole = factors.is_empty();
            let written_out = unroll > 1 && last > unroll;
            if written_out {
                if let Some(inner) = factors.last_mut() {
                    *inner = (last + unroll - 1) / unroll;
                }
                factors.push(unroll);
            }
            if !factors.is_empty() {
                self.apply(stage, Split::new(name, &factors).tail(TERMS_TAIL))?;
            }
            let level = parts.len() - 1;
            let term = match (whole, written_out) {
                (true, false) => name.clone(),
                (true, true) => format!("{name}.0"),
                (false, _) => format!("{name}.{level}"),
            };
            match (unroll > 1, written_out) {
                // The whole loop.
                (true, false) => loops.unrolled = Some(term),
                (true, true) => {
                    loops.terms.push(term);
                    loops.unrolled = Some(format!("{name}.{}", level + 1));
                }
                (false, _) => loops.terms.push(term),
            }
        }
        Ok(())
    }

    /// Unrolls the register tile and vectorizes its lanes.
    pub(super) fn inner_kinds(&mut self, stage: &str, loops: &Loops) -> Result<(), Rejection> {
        for name in loops.unrolled.iter().chain(&loops.register) {
            self.apply(stage, Unroll { target: name.clone() })?;
        }
        if let Some(lanes) = &loops.lanes {
            self.apply(stage, Vectorize { target: lanes.clone() })?;
        }
        Ok(())
    }

    /// Accumulates along the vectors in registers, transposes the tile in memory, and stores it
    /// along the rows of the result.
    fn transposed(
        &mut self,
        group: &Group,
        tiling: &Tiling,
        stage: &str,
        loops: &Loops,
    ) -> Result<(), Rejection> {
        let Some(host) = loops.host().cloned() else { return Ok(()) };
        let refused = |reason: &str| Rejection { rule: "store", reason: reason.to_owned() };
        let Some(row) = self.contiguous_row(group, tiling) else {
            return Err(refused("the register tile has no loop along the rows of the result"));
        };
        self.apply(stage, CacheWrite { at: host.clone() })?;
        let mut order: Vec<String> = loops
            .register
            .iter()
            .chain(&loops.lanes)
            .filter(|name| **name != row)
            .cloned()
            .collect();
        order.push(row.clone());
        self.reorder(stage, order)?;
        self.apply(stage, Vectorize { target: row })?;
        let tile = format!("{stage}.tile");
        self.apply(&tile, CacheWrite { at: host })?;
        let copied = Loops { unrolled: None, ..loops.clone() };
        self.inner_kinds(&tile, &copied)?;
        self.inner_kinds(&format!("{tile}.tile"), loops)
    }

    /// The loop of the register tile along which results are contiguous.
    fn contiguous_row(&self, group: &Group, tiling: &Tiling) -> Option<String> {
        let place = group.contiguous?;
        let levels = tiling.spatial.get(place)?.len();
        let is_vector = matches!(tiling.vector, Vector::Spatial { axis, .. } if axis == place);
        let name = &group.spatial.get(place)?.axis.name;
        (levels > 1 && !is_vector).then(|| format!("{name}.{}", levels - 1))
    }
}
