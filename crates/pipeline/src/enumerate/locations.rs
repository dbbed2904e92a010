//! The legal compute locations of a stage.

use crate::dag::{Dag, Reach, Source, Stage};
use crate::levels::Levels;
use crate::state::{Decision, Layout};

/// The maximum size of an expression after inlining.
const MOST_PARTS: f64 = 256.0;

/// The maximum instructions of an element that is cheaper to recompute than to read.
const CHEAP: f64 = 2.0;

/// A loop of a stage: the stage and the level.
pub(super) type Scope = (usize, usize);

/// The number of elements of a stage that its readers need, through inlined stages, for a region of
/// each reader; `None` if one of them is undecided.
fn reads(
    dag: &Dag,
    layout: &Layout<'_>,
    stage: usize,
    elements: &impl Fn(&Stage) -> f64,
) -> Option<f64> {
    let mut reads = 0.0;
    for consumer in &dag.consumers[stage] {
        let of = &dag.stages[*consumer];
        let computed = match layout.decision(*consumer)? {
            Decision::Inline => self::reads(dag, layout, *consumer, elements)?,
            _ => elements(of),
        };
        let edge = of.edges.iter().find(|edge| edge.source == Source::Stage(stage))?;
        reads += computed * edge.reads as f64 * of.terms();
    }
    Some(reads)
}

/// The number of reads per element of a stage, over all readers.
fn calls(dag: &Dag, layout: &Layout<'_>, stage: usize) -> Option<f64> {
    reads(dag, layout, stage, &|_| 1.0)
}

/// "If a Func consists of a single stage and is called point-wise by its consumer, we always inline
/// it" (section 4).
pub(super) fn must_inline(dag: &Dag, layout: &Layout<'_>, stage: usize) -> bool {
    let of = &dag.stages[stage];
    let [consumer] = dag.consumers[stage].as_slice() else { return false };
    let reader = &dag.stages[*consumer];
    let edge = reader.edges.iter().find(|edge| edge.source == Source::Stage(stage));
    of.is_inlinable
        && reader.fixed.is_none()
        && edge.is_some_and(|edge| edge.is_in_place)
        && of.parts as f64 <= MOST_PARTS / 2.0
        && calls(dag, layout, stage) == Some(1.0)
}

/// Whether an element costs hardly more than reading it: a border, a conversion.
fn is_cheap(of: &Stage) -> bool {
    let mut positions = of.edges.iter().flat_map(|edge| &edge.footprint.dimensions);
    of.operations <= CHEAP && positions.all(|reach| *reach != Reach::Whole)
}

/// Whether a stage is cheap enough to inline: recomputed at most `most` times (4.6: excessive
/// recompute), unless computing it is cheaper than reading it.
pub(super) fn may_inline(dag: &Dag, layout: &Layout<'_>, stage: usize, most: f64) -> bool {
    let of = &dag.stages[stage];
    let again = || {
        let computed = reads(dag, layout, stage, &Stage::points);
        computed.is_some_and(|computed| computed <= most * of.points())
    };
    // Stages with shared operands read them from registers: they are computed once, maybe with
    // strided lanes.
    let is_free = |of: &Stage| of.fixed.is_none() && of.together.is_empty();
    let is_read_freely = dag.consumers[stage].iter().all(|reader| is_free(&dag.stages[*reader]));
    of.is_inlinable
        && is_read_freely
        && (is_cheap(of) || again())
        && calls(dag, layout, stage).is_some_and(|calls| calls * of.parts as f64 <= MOST_PARTS)
}

/// The loops that enclose all readers of a stage, outermost first.
pub(super) fn scopes(dag: &Dag, levels: &Levels, layout: &Layout<'_>, stage: usize) -> Vec<Scope> {
    let mut common: Option<Vec<Scope>> = None;
    for reader in readers(dag, layout, stage) {
        let path = path(levels, layout, reader);
        common = Some(match common {
            None => path,
            Some(known) => {
                known.into_iter().zip(path).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
            }
        });
    }
    common.unwrap_or_default()
}

/// The readers of a stage, through inlined stages.
fn readers(dag: &Dag, layout: &Layout<'_>, stage: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut open = dag.consumers[stage].clone();
    while let Some(reader) = open.pop() {
        if layout.is_inlined(reader) {
            open.extend(&dag.consumers[reader]);
        } else if !found.contains(&reader) {
            found.push(reader);
        }
    }
    found
}

/// The loops of a stage that can contain others, outermost first.
fn path(levels: &Levels, layout: &Layout<'_>, stage: usize) -> Vec<Scope> {
    let (mut path, tiling) = match layout.decision(stage) {
        Some(Decision::At { consumer, level, tiling }) => {
            let mut around = self::path(levels, layout, *consumer);
            around.retain(|(of, at)| *of != *consumer || at <= level);
            (around, tiling)
        }
        Some(Decision::Root(Some(tiling))) => (Vec::new(), tiling),
        _ => return Vec::new(),
    };
    let Some(region) = layout.region(stage) else { return path };
    // A stage that is distributed over the iterations of its host has no such loop of its own.
    let is_own = |level: usize| !(tiling.first > 0 && levels.list[level].is_shared);
    let hosts = (tiling.first..levels.count()).filter(|level| levels.is_host(*level));
    for level in hosts.filter(|level| is_own(*level)) {
        if tiling.trips(level, &region).iter().any(|trips| *trips > 1) {
            path.push((stage, level));
        }
    }
    path
}
