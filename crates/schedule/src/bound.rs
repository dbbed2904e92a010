//! Placement rules for loops that are bound to GPU blocks and threads.
//!
//! ```text
//! block.y for m.0 {            blocks are outermost, and each of these loops holds nothing but the next
//!   block.x for n.0 {
//!     for k.0 {                what all threads of a block go through together
//!       thread.x for t { .. }  threads of a stage, directly inside each other;
//!       thread.y for m.1 {     those of another stage are beside them, never inside
//!         thread.x for n.1 {
//!           for k.1 { .. }     what one thread does
//! ```
//!
//! [`check`] runs after every step of a schedule. Read as plain serial loops, a nest with bound
//! loops computes the same. A top-level tree of the nest is a launch, its blocks are independent,
//! and threads can synchronize between two neighboring thread loops. One thread executes the
//! statements of a block that are outside of thread loops.

use crate::nest::{Loop, LoopKind, LoopNest, Node};
use crate::refusal::Refusal;

/// Checks the bound loops of a nest.
///
/// # Errors
/// The first loop with an illegal position: which, why, and how to fix it.
pub(crate) fn check(nest: &LoopNest) -> Result<(), Refusal> {
    Check { nest }.nodes(&nest.body, &mut Vec::new())
}

struct Check<'a> {
    nest: &'a LoopNest,
}

impl<'a> Check<'a> {
    fn nodes(&self, nodes: &'a [Node], around: &mut Vec<&'a Loop>) -> Result<(), Refusal> {
        for node in nodes {
            if let Node::Loop(l) = node {
                self.a_loop(l, around)?;
                around.push(l);
                self.shared(l, around)?;
                self.nodes(&l.body, around)?;
                around.pop();
            }
        }
        Ok(())
    }

    fn a_loop(&self, l: &Loop, around: &[&Loop]) -> Result<(), Refusal> {
        match l.kind {
            LoopKind::Block(_) => {
                self.bound(l, around)?;
                self.block(l, around)
            }
            LoopKind::Thread(_) => {
                self.bound(l, around)?;
                self.thread(l, around)
            }
            LoopKind::Parallel => match around.iter().find(|outer| outer.kind.is_bound()) {
                Some(outer) => Err(self.mixed(l, outer)),
                None => Ok(()),
            },
            LoopKind::Serial | LoopKind::Unrolled | LoopKind::Vectorized | LoopKind::Tensor => {
                Ok(())
            }
        }
    }

    /// Rules for all bound loops.
    fn bound(&self, l: &Loop, around: &[&Loop]) -> Result<(), Refusal> {
        if l.peel {
            return Err(self
                .refuse(l, "its last iteration would run apart from the others, and all of a launch is one loop")
                .help("split it with the tail `guard`"));
        }
        if l.overlaps {
            return Err(self
                .refuse(l, "its tail is shifted inwards, so two of its iterations would make the same elements")
                .help("split it with the tail `guard`"));
        }
        if l.slides {
            return Err(self
                .refuse(l, "a window slides along it, so that its iterations need each other")
                .help("split it before, and let the window slide along the inner loop"));
        }
        if let Some(outer) = around.iter().find(|outer| outer.kind == l.kind) {
            let why = format!("loop `{}` around it is already", self.name(outer));
            return Err(self
                .refuse(l, &why)
                .help("bind it in another direction, or fuse the two loops before"));
        }
        match around.iter().find(|outer| outer.kind == LoopKind::Parallel) {
            Some(outer) => Err(self.mixed(outer, l)),
            None => Ok(()),
        }
    }

    fn block(&self, l: &Loop, around: &[&Loop]) -> Result<(), Refusal> {
        let is_block = |outer: &&&Loop| matches!(outer.kind, LoopKind::Block(_));
        if let Some(outer) = around.iter().find(|outer| !is_block(outer)) {
            let (name, outer_name) = (self.name(l), self.name(outer));
            let why = match outer.kind {
                LoopKind::Thread(_) => {
                    format!("loop `{outer_name}` around it is threads of a block")
                }
                _ => format!("it is inside of loop `{outer_name}`, and blocks are outermost"),
            };
            return Err(self.refuse(l, &why).help(format!(
                "reorder `{name}` to the outside of `{outer_name}` before, or bind it to threads"
            )));
        }
        match around.last() {
            Some(outer) if outer.body.len() > 1 => Err(self.not_alone(l, outer, "blocks")),
            _ => Ok(()),
        }
    }

    fn thread(&self, l: &Loop, around: &[&Loop]) -> Result<(), Refusal> {
        let is_thread = |outer: &&&Loop| matches!(outer.kind, LoopKind::Thread(_));
        let (Some(outer), Some(parent)) = (around.iter().find(is_thread), around.last()) else {
            return Ok(());
        };
        if !is_thread(&parent) {
            let why = format!(
                "loop `{}` is between it and loop `{}`, and threads are directly inside each other",
                self.name(parent),
                self.name(outer)
            );
            return Err(self.refuse(l, &why).help(format!(
                "reorder `{}` to the inside, or to the outside of both",
                self.name(parent)
            )));
        }
        if parent.body.len() > 1 {
            return Err(self.not_alone(l, parent, "threads"));
        }
        Ok(())
    }

    /// Refuses a buffer that threads are to share but that is local to one thread.
    fn shared(&self, l: &Loop, around: &[&Loop]) -> Result<(), Refusal> {
        let shared =
            l.locals.iter().map(|id| self.nest.buffer(*id)).find(|buffer| buffer.is_shared);
        let thread = around.iter().find(|outer| matches!(outer.kind, LoopKind::Thread(_)));
        match (shared, thread) {
            (Some(buffer), Some(thread)) => Err(Refusal::new(format!(
                "`{}` is to be shared by the threads of a block, and lives in loop `{}`, which is inside of one: loop `{}` \
                 is bound to {}",
                buffer.name,
                self.name(l),
                self.name(thread),
                thread.kind
            ))
            .help("copy in a loop between blocks and threads, or leave `in shared` out")),
            _ => Ok(()),
        }
    }

    /// The loop around it holds other nodes too.
    fn not_alone(&self, l: &Loop, outer: &Loop, who: &str) -> Refusal {
        let (name, outer) = (self.name(l), self.name(outer));
        self.refuse(
            l,
            &format!("loop `{outer}` around it is {who} too and holds more than `{name}`"),
        )
        .help(format!(
            "compute in `{name}` what is computed in `{outer}`, or in a loop around both"
        ))
    }

    /// A parallel loop and a bound loop are nested.
    fn mixed(&self, parallel: &Loop, bound: &Loop) -> Refusal {
        Refusal::new(format!(
            "loop `{}` is parallel and loop `{}` is bound to {}, one inside of the other: workers are those of a \
             processor, blocks and threads those of a device",
            self.name(parallel),
            self.name(bound),
            bound.kind
        ))
        .help("bind both, or make only one of them parallel")
    }

    fn refuse(&self, l: &Loop, why: &str) -> Refusal {
        let stage = l.stage.map_or("", |stage| self.nest.buffer(stage.0).name.as_str());
        Refusal::new(format!(
            "loop `{}` of `{stage}` cannot be bound to {}: {why}",
            self.name(l),
            l.kind
        ))
    }

    fn name(&self, l: &Loop) -> &str {
        self.nest.var_name(l.var)
    }
}
