//! The loops of a tiled stage, by level.

use tensorwright_pipeline::{Levels, Tiling};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::primitives::{Reorder, Split, Tail};
use tensorwright_space::Rejection;

use crate::stages::steps::apply;

/// The loops of each level of a stage, outermost first.
#[derive(Debug, Clone, Default)]
pub(super) struct TiledLoops {
    levels: Vec<Vec<String>>,
}

impl TiledLoops {
    /// The innermost loop of a level, at which other stages are computed.
    pub(super) fn loop_of(&self, level: usize) -> Option<&String> {
        self.levels.get(level)?.last()
    }

    /// The loops of a level.
    pub(super) fn loops(&self, level: usize) -> &[String] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// The number of loops around the body.
    pub(super) fn depth(&self) -> usize {
        self.levels.iter().map(Vec::len).sum()
    }
}

/// Splits and reorders the loops of a stage: the loops of each level enclose those of the next.
pub(super) fn cut(
    draft: &mut ScheduleState,
    stage: &str,
    tiling: &Tiling,
    levels: &Levels,
) -> Result<TiledLoops, Rejection> {
    let mut hosts = TiledLoops { levels: vec![Vec::new(); levels.count()] };
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return Ok(hosts) };
    let spatial: Vec<Axis> = accesses.of_role(Role::Spatial).cloned().collect();
    let mut inner = Vec::new();
    for (dimension, axis) in spatial.iter().enumerate() {
        // The levels that split this loop, with their tile sizes.
        let mut cuts: Vec<(usize, i64)> = Vec::new();
        let mut around = axis.extent;
        for level in (tiling.first..levels.count()).filter(|level| levels.is_host(*level)) {
            let size = tiling.tile(level).and_then(|tile| tile.get(dimension)).copied();
            let size = size.unwrap_or(around).max(1);
            if size < around {
                if !cuts.is_empty() && around % size != 0 {
                    let reason = format!("tiles of {around} are no multiple of tiles of {size}");
                    return Err(Rejection { rule: "split", reason });
                }
                cuts.push((level, size));
                around = size;
            }
        }
        let name = |level: usize| {
            format!("{}.{}", axis.name, levels.list.get(level).map_or("", |level| level.name))
        };
        if cuts.is_empty() {
            inner.push(axis.name.clone());
            continue;
        }
        let sizes: Vec<i64> = cuts.iter().map(|(_, size)| *size).collect();
        let mut factors: Vec<i64> = sizes.windows(2).map(|pair| pair[0] / pair[1]).collect();
        factors.extend(sizes.last());
        let mut split = Split::new(&axis.name, &factors).tail(Tail::Peel);
        let rest = format!("{}.in", axis.name);
        split.names = cuts.iter().map(|(level, _)| name(*level)).chain([rest.clone()]).collect();
        apply(draft, stage, split)?;
        cuts.iter().for_each(|(level, _)| hosts.levels[*level].push(name(*level)));
        inner.push(rest);
    }
    let mut order: Vec<String> = hosts.levels.iter().flatten().cloned().collect();
    order.extend(inner);
    if order.len() > 1 && hosts.depth() > 0 {
        apply(draft, stage, Reorder { order })?;
    }
    Ok(hosts)
}
