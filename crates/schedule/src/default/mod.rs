//! The schedule of a program that nobody has tuned, by rules.
//!
//! [`default_schedule`] goes through the stages once:
//!
//! 1. `placement`: cheap stages are inlined; a reduction that one element-wise stage reads in
//!    place (a bias, a rectifier) is computed inside the tiles of that stage.
//! 2. `access`: which loop the reads allow to vectorize, and which reads are reused by which loop.
//! 3. `tile`: a register tile that the target's registers hold, with little waste on these sizes;
//!    panels of strided reads are packed.
//! 4. The outermost loops are parallel if there is enough to do.
//!
//! Every step is tried on the nest and left out if it is refused, so the result always applies.

mod access;
mod placement;
mod tile;

use tensorwright_lang::program::Program;

use crate::canonical;
use crate::lower::lower;
use crate::nest::{Loop, LoopNest, Role};
use crate::primitives::{Fuse, Parallel, Primitive, loops_of};
use crate::schedule::{Schedule, Span, Step};
use crate::target::Target;

/// Fewer inner iterations than this are not worth a second worker.
const PARALLEL_WORK: i128 = 1 << 16;

/// The schedule of a program that nobody has tuned. It applies to the program's canonical nest, and
/// the result can be lowered.
#[must_use]
pub fn default_schedule(program: &Program, target: &Target) -> Schedule {
    let mut draft = Draft { nest: canonical(program), schedule: Schedule::default() };
    let groups = placement::place(&mut draft);
    for group in &groups {
        tile::schedule(&mut draft, group, target);
        parallelize(&mut draft, &group.root);
    }
    // A stage can make more code than lowering allows; plain loops always can be lowered.
    if lower(draft.nest).is_ok() { draft.schedule } else { Schedule::default() }
}

/// A schedule in the making, and the nest that it has made so far.
struct Draft {
    nest: LoopNest,
    schedule: Schedule,
}

impl Draft {
    /// Adds a step if it is legal; says whether it was.
    fn step(&mut self, stage: &str, primitive: impl Into<Primitive>) -> bool {
        let step =
            Step { stage: stage.to_owned(), primitive: primitive.into(), span: Span::default() };
        let applied = step.apply(&mut self.nest).is_ok();
        if applied {
            self.schedule.steps.push(step);
        }
        applied
    }

    /// Adds several steps if all are legal, none otherwise; says whether they were.
    fn steps(&mut self, add: impl FnOnce(&mut Draft) -> bool) -> bool {
        let (nest, steps) = (self.nest.clone(), self.schedule.steps.len());
        let added = add(self);
        if !added {
            self.nest = nest;
            self.schedule.steps.truncate(steps);
        }
        added
    }

    /// The names of the loops around a stage, outermost first.
    fn loop_names(&self, stage: &str) -> Vec<String> {
        let name = |l: &Loop| self.nest.var_name(l.var).to_owned();
        loops_of(&self.nest, stage).into_iter().map(name).collect()
    }
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
    fn count(nodes: &[crate::nest::Node]) -> i128 {
        use crate::nest::Node;
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
