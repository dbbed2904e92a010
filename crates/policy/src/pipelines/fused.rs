//! Replaces a schedule by one from pipeline search that moves fewer bytes.
//!
//! Rules compute stencils in blocks of rows and fuse epilogues; all other intermediate tensors go
//! through memory. If several of them are larger than a cache, a greedy search often finds better
//! compute locations.

use std::collections::BTreeSet;

use tensorwright_lang::program::Program;
use tensorwright_pipeline::BeamOptions;
use tensorwright_schedule::nest::{BufferId, LoopNest, for_each_loop, for_each_store};
use tensorwright_schedule::primitives::loops_of;
use tensorwright_schedule::stage_map::MappedStage;
use tensorwright_schedule::{Schedule, StageMap, canonical};

use crate::sketch::Policy;

/// Programs with more stages are left to rules. In long chains of stencils many short rows cost
/// more than bytes do, and this comparison counts only bytes.
const MOST_STAGES: usize = 24;

/// The maximum number of states to evaluate, which bounds the time.
const MOST_ASKED: usize = 1 << 14;

/// The new schedule may move at most this fraction of the bytes.
const LESS_MOVED: f64 = 0.75;

/// The new schedule may compute at most this many times the terms.
const MORE_WORK: f64 = 1.15;

/// A schedule with far less memory traffic than the given one and little more computation, and its
/// estimated cycles; `None` if the search finds none.
pub(crate) fn instead_of(
    program: &Program,
    policy: &dyn Policy,
    schedule: &Schedule,
) -> Option<(Schedule, f64)> {
    if !(3..=MOST_STAGES).contains(&program.stages.len()) {
        return None;
    }
    let canonical = canonical(program);
    let other = Traffic::of(&canonical, schedule)?;
    let cache = policy.cache() as f64;
    let least = program.outputs.iter().map(|output| program.tensor(*output).bytes() as f64);
    // Compulsory traffic is not worth a search.
    if other.bytes < least.sum::<f64>() + 4.0 * cache {
        return None;
    }
    let pipeline = policy.pipeline(program, None);
    let mut asked = 0;
    let found = pipeline.search_while(&BeamOptions::greedy(), &mut || {
        asked += 1;
        asked <= MOST_ASKED
    });
    let (state, cycles) = found.states.first()?;
    let schedule = pipeline.decode(state).ok()?;
    let own = Traffic::of(&canonical, &schedule)?;
    let is_less = own.bytes <= LESS_MOVED * other.bytes && other.bytes - own.bytes >= 2.0 * cache;
    (is_less && own.terms <= MORE_WORK * other.terms).then_some((schedule, *cycles))
}

/// The memory traffic and the work of a schedule.
struct Traffic {
    /// The bytes of whole tensors that root loops read and write, counted once per root loop.
    bytes: f64,
    /// The number of computed elements, or of terms for reductions.
    terms: f64,
}

impl Traffic {
    fn of(canonical: &LoopNest, schedule: &Schedule) -> Option<Self> {
        let nest = schedule.apply(canonical.clone()).ok()?;
        let mut locals: BTreeSet<BufferId> = BTreeSet::new();
        for_each_loop(&nest.body, &mut |l| locals.extend(&l.locals));
        let elements = |id: BufferId| -> f64 {
            nest.buffer(id).shape.iter().map(|extent| *extent as f64).product()
        };
        let mut bytes = 0.0;
        for node in &nest.body {
            let mut touched = BTreeSet::new();
            for_each_store(std::slice::from_ref(node), &mut |store| {
                touched.insert(store.buffer);
                touched.extend(store.reads().into_iter().map(|(_, read)| read.tensor));
            });
            let whole = touched.difference(&locals);
            bytes += whole.map(|id| elements(*id) * nest.dtype(*id).bytes() as f64).sum::<f64>();
        }
        let map = StageMap::of(canonical, &nest);
        let computed = |stage: &MappedStage| {
            let loops = loops_of(canonical, &stage.name);
            stage.times * loops.iter().map(|l| l.extent as f64).product::<f64>()
        };
        Some(Self { bytes, terms: map.stages.iter().map(computed).sum() })
    }
}
