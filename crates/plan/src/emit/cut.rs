//! Cutting loops: splits and their order.

use tensorwright_schedule::ScheduleError;
use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::primitives::{Reorder, Split, Tail};

use super::Emitter;
use crate::stages::{AxisId, StageId};
use crate::tiling::{LoopKind, PlannedLoop};

impl Emitter<'_> {
    /// Cuts the next loops of a stage from those that are not cut yet.
    ///
    /// # Errors
    /// If a primitive refuses.
    pub fn cut(&mut self, stage: StageId, loops: Vec<PlannedLoop>) -> Result<(), ScheduleError> {
        let Some(mut placed) = self.slot(stage)?.take() else { return Ok(()) };
        let is_partial = placed.plan.tiling.partial.is_some();
        let applied = if is_partial { with_partial(&loops) } else { loops.clone() };
        let mut names = vec![String::new(); applied.len()];
        let mut rest = Vec::new();
        for (axis, old) in std::mem::take(&mut placed.rest) {
            let mut parts: Vec<usize> =
                (0..applied.len()).filter(|place| applied[*place].axis == axis).collect();
            parts.sort_by_key(|place| std::cmp::Reverse(applied[*place].size));
            let Some(last) = parts.last().map(|place| applied[*place].size) else {
                rest.push((axis, old));
                continue;
            };
            if let ([whole], 1) = (parts.as_slice(), last) {
                names[*whole] = old;
                continue;
            }
            let own = self.stages.get(stage).and_then(|stage| stage.axes.get(usize::from(axis.0)));
            let own = own.map_or(old.as_str(), |axis| axis.name.as_str());
            let mut sizes: Vec<i64> = parts.iter().map(|place| applied[*place].size).collect();
            for place in &parts {
                let level = self.levels.name(applied[*place].level);
                let is_partial = is_partial && applied[*place].kind == LoopKind::Vector;
                let part = if is_partial { "partial" } else { level };
                names[*place] = format!("{own}.{part}");
            }
            let mut all: Vec<String> = parts.iter().map(|place| names[*place].clone()).collect();
            if last > 1 {
                let inner = format!("{own}.in");
                sizes.push(1);
                all.push(inner.clone());
                rest.push((axis, inner));
            }
            self.split(stage, old, &sizes, all, placed.plan.tiling.tail(axis))?;
        }
        let own = Accesses::of(&self.draft.nest, self.stages.name(stage));
        let own = own.map_or_else(Vec::new, |own| own.axes);
        let place = |name: &String| own.iter().position(|axis| axis.name == *name);
        rest.sort_by_key(|(_, name)| place(name));
        let order = names.iter().chain(rest.iter().map(|(_, name)| name));
        let order: Vec<String> = order.cloned().collect();
        let now = own.iter().map(|axis| &axis.name).filter(|name| order.contains(name));
        if order.len() > 1 && !now.eq(&order) {
            self.draft.apply(self.stages.name(stage), Reorder { order })?;
        }
        placed.names.extend(names);
        placed.rest = rest;
        placed.plan.tiling.loops.extend(loops);
        *self.slot(stage)? = Some(placed);
        Ok(())
    }

    /// Splits a loop into loops of these sizes, the last of which is 1.
    fn split(
        &mut self,
        stage: StageId,
        target: String,
        sizes: &[i64],
        mut names: Vec<String>,
        tail: Tail,
    ) -> Result<(), ScheduleError> {
        // A size that is no multiple of the next one needs a split of its own.
        let ends = sizes.windows(2).position(|pair| pair[0] % pair[1].max(1) != 0);
        let count = ends.map_or(sizes.len(), |end| end + 1);
        let (now, later) = sizes.split_at(count);
        let mut factors: Vec<i64> = now.windows(2).map(|pair| pair[0] / pair[1].max(1)).collect();
        let rest = names.split_off(count);
        let inner = format!("{target}.rest");
        if !later.is_empty() {
            factors.extend(now.last());
            names.push(inner.clone());
        }
        let split = Split { target, factors, names, tail };
        self.draft.apply(self.stages.name(stage), split)?;
        if later.is_empty() { Ok(()) } else { self.split(stage, inner, later, rest, tail) }
    }
}

/// The loops with those of partial results as one: it is split where these are computed.
fn with_partial(loops: &[PlannedLoop]) -> Vec<PlannedLoop> {
    let vector = loops.iter().find(|l| l.kind == LoopKind::Vector);
    let Some(axis): Option<AxisId> = vector.map(|l| l.axis) else { return loops.to_vec() };
    let is_part = |l: &PlannedLoop| l.axis == axis && l.kind == LoopKind::Unrolled;
    loops.iter().filter(|l| !is_part(l)).copied().collect()
}
