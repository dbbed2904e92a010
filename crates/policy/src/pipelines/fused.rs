//! Whether a search over pipelines sends fewer bytes through memory than a schedule does.
//!
//! Rules compute stencils in blocks of rows and finish what is read in place; what they leave whole goes through memory. Where
//! a program has several such tensors that are larger than a cache, a greedy search often finds places for them.

use std::collections::BTreeSet;

use tensorwright_lang::program::Program;
use tensorwright_pipeline::BeamOptions;
use tensorwright_schedule::nest::{BufferId, LoopNest, for_each_loop, for_each_store};
use tensorwright_schedule::primitives::loops_of;
use tensorwright_schedule::stage_map::MappedStage;
use tensorwright_schedule::{Schedule, StageMap, canonical};

use crate::sketch::Policy;

/// Programs with more stages are left to rules: in long chains of stencils many short rows cost more than bytes do, which a
/// count of bytes does not see.
const MOST_STAGES: usize = 24;

/// So many states may be asked about, which takes about as long.
const MOST_ASKED: usize = 1 << 14;

/// What the search finds moves at most this part of the bytes.
const LESS_MOVED: f64 = 0.75;

/// And computes at most so many times as many terms.
const MORE_WORK: f64 = 1.15;

/// A schedule that sends far fewer bytes through memory than another one, and computes little more; `None` if there is none.
pub(crate) fn instead_of(
    program: &Program,
    policy: &dyn Policy,
    schedule: &Schedule,
) -> Option<Schedule> {
    if !(3..=MOST_STAGES).contains(&program.stages.len()) {
        return None;
    }
    let canonical = canonical(program);
    let other = Traffic::of(&canonical, schedule)?;
    let cache = policy.cache() as f64;
    let least = program.outputs.iter().map(|output| program.tensor(*output).bytes() as f64);
    // What is read and written in any case is not worth a search.
    if other.bytes < least.sum::<f64>() + 4.0 * cache {
        return None;
    }
    let pipeline = policy.pipeline(program, None);
    let mut asked = 0;
    let found = pipeline.search_while(&BeamOptions::greedy(), &mut || {
        asked += 1;
        asked <= MOST_ASKED
    });
    let (state, _) = found.states.first()?;
    let schedule = pipeline.decode(state).ok()?;
    let own = Traffic::of(&canonical, &schedule)?;
    let is_less = own.bytes <= LESS_MOVED * other.bytes && other.bytes - own.bytes >= 2.0 * cache;
    (is_less && own.terms <= MORE_WORK * other.terms).then_some(schedule)
}

/// What a schedule moves and computes.
struct Traffic {
    /// The bytes of whole tensors that loops at the root read and write, once for each of these loops.
    bytes: f64,
    /// The elements that are computed, or the terms of those that are reductions.
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
