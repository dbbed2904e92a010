//! Schedules by rules, without a model: of stages that a model has nothing to say about, and of programs with
//! many stages.
//!
//! [`complete`] goes through the stages once:
//!
//! 1. `groups`: cheap stages are inlined; a reduction that one element-wise stage reads in
//!    place (a bias, a rectifier) is computed inside the tiles of that stage.
//! 2. `access`: which loop the reads allow to vectorize, and which reads are reused by which loop.
//! 3. `tile`: a register tile that the goal's registers hold, with little waste on these sizes;
//!    panels of strided reads are packed.
//! 4. The outermost loops are parallel if there is enough to do.
//!
//! `recurrence` does that for stages whose elements are computed in order: vectors and workers go along other loops.
//!
//! Every step is tried on the nest and left out if it is refused, so the result always applies.

mod groups;
mod recurrence;
mod tile;
mod transform;

pub use tile::PACK_ROW_BYTES;

use tensorwright_lang::program::Program;
use tensorwright_schedule::nest::{Loop, Node, Role};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{Fuse, Parallel, loops_of};
use tensorwright_schedule::{Draft, Schedule, canonical, lower};
use tensorwright_target::{Cpu, Goal};

use crate::alternatives;

/// Fewer inner iterations than this are not worth a second worker.
const PARALLEL_WORK: i128 = 1 << 16;

/// The schedule of a program by rules alone. It applies to the program's canonical nest, and the result
/// can be lowered.
#[must_use]
pub fn schedule_by_rules(program: &Program, goal: &Goal<Cpu>) -> Schedule {
    let begun = alternatives(program, goal.precision).into_iter().next();
    complete(begun.unwrap_or_else(|| Draft::new(canonical(program))), goal).schedule
}

/// Schedules by rules what a draft has not scheduled yet. The draft may have rewritten stages; their
/// loops must be as the rewriting left them.
#[must_use]
pub fn complete(mut draft: Draft, goal: &Goal<Cpu>) -> Draft {
    let begun = draft.clone();
    let groups = groups::place(&mut draft);
    for group in groups.iter().filter(|group| !transform::is_inside(&begun, &group.root)) {
        if is_recurrence(&draft, &group.root)
            || group.reduction.is_none() && is_movement(&draft, &group.root)
        {
            movement(&mut draft, &group.root, goal);
        } else {
            tile::schedule(&mut draft, group, goal);
            parallelize(&mut draft, &group.root);
        }
    }
    // A stage can make more code than lowering allows; plain loops always can be lowered.
    if lower(draft.nest.clone()).is_ok() { draft } else { begun }
}

/// Whether the value of a stage is selected by loops that are to be unrolled: a small matrix.
#[must_use]
pub fn is_written_out(draft: &Draft, stage: &str) -> bool {
    !transform::written_loops(draft, stage).is_empty()
}

/// Whether a stage only moves data or combines a few elements of it: it has no loop over terms.
#[must_use]
pub fn is_movement(draft: &Draft, stage: &str) -> bool {
    loops_of(&draft.nest, stage).iter().all(|l| l.role == Role::Spatial)
}

/// Whether the elements of a stage are computed in order, from each other.
#[must_use]
pub fn is_recurrence(draft: &Draft, stage: &str) -> bool {
    loops_of(&draft.nest, stage).iter().any(|l| l.role == Role::Scan)
}

/// Schedules a stage without terms by rules.
pub fn movement(draft: &mut Draft, stage: &str, goal: &Goal<Cpu>) {
    if store_of(&draft.nest, stage).is_none() || transform::is_inside(draft, stage) {
        return;
    }
    if is_recurrence(draft, stage) {
        recurrence::schedule(draft, stage, goal);
    } else if !transform::schedule(draft, stage, goal) {
        tile::rows(draft, stage, goal);
    }
    parallelize(draft, stage);
}

/// Makes the outermost spatial loops of a stage parallel, fused if the first has few iterations.
fn parallelize(draft: &mut Draft, stage: &str) {
    loop {
        let loops = loops_of(&draft.nest, stage);
        let [first, rest @ ..] = loops.as_slice() else { return };
        if first.role != Role::Spatial || first.overlaps || inner_work(first) < PARALLEL_WORK {
            return;
        }
        let name = draft.nest.var_name(first.var).to_owned();
        let few = first.extent < 8;
        let next = rest.first().filter(|next| few && next.role == Role::Spatial);
        let next = next.map(|next| draft.nest.var_name(next.var).to_owned());
        let fused = match next {
            Some(inner) => draft.step(stage, Fuse { outer: name.clone(), inner, name: None }),
            None => false,
        };
        if !fused {
            draft.step(stage, Parallel { target: name });
            return;
        }
    }
}

/// The number of stores that a loop runs.
fn inner_work(l: &Loop) -> i128 {
    fn count(nodes: &[Node]) -> i128 {
        let one = |node: &Node| match node {
            Node::Loop(l) => i128::from(l.extent).saturating_mul(count(&l.body)),
            Node::Guard(guard) => count(&guard.body),
            Node::Store(_) => 1,
            Node::Prefetch(_) => 0,
        };
        nodes.iter().map(one).fold(0, i128::saturating_add)
    }
    i128::from(l.extent).saturating_mul(count(&l.body))
}
