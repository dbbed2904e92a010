//! Assigns each buffer a memory: caller, workspace, stack, shared or register.
//!
//! Buffers of the caller stay where they are. Buffers that live for a whole call, and large ones,
//! go to the workspace. Small buffers that live for one iteration of a loop go to the stack, and so
//! do buffers with a [layout](crate::primitives::SetLayout), which are meant to stay close. If all
//! small buffers together exceed the stack of a thread, the largest ones go to the workspace too.
//!
//! On a device, a buffer that lives for an iteration of a block loop, or of a loop between blocks
//! and threads, is shared by the threads of the block. A buffer that lives for an iteration of a
//! thread loop, or of a loop inside one, is local to the thread.

use super::device::has_bound;
use super::{LowerError, LowerOptions};
use crate::nest::{Body, Buffer, BufferId, LoopKind, LoopNest, Memory, Node, Owner};

/// Limits on the stack memory of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackLimits {
    /// The largest buffer, in bytes.
    pub largest_bytes: i64,
    /// All buffers together, in bytes.
    pub total_bytes: i64,
}

impl Default for StackLimits {
    /// Tiles fit the L1 cache, and all of them fit the smallest common thread stack.
    fn default() -> Self {
        Self { largest_bytes: 16 << 10, total_bytes: 256 << 10 }
    }
}

/// Assigns memories. This pass runs first: no other pass changes the size of a buffer, and the next
/// ones remove layouts.
pub(super) fn run(nest: &mut LoopNest, options: &LowerOptions) -> Result<(), LowerError> {
    let limits = options.stack;
    for buffer in nest.buffers.iter_mut() {
        buffer.memory = Some(home(buffer, limits));
    }
    if options.device.is_some() {
        return settle_on_device(nest);
    }
    let mut on_stack: Vec<(i64, usize)> = nest
        .buffers
        .iter()
        .enumerate()
        .filter(|(_, buffer)| buffer.memory == Some(Memory::Stack))
        .map(|(place, buffer)| (buffer.bytes(), place))
        .collect();
    on_stack.sort_unstable();
    let mut total = on_stack.iter().fold(0i64, |sum, (bytes, _)| sum.saturating_add(*bytes));
    while total > limits.total_bytes
        && let Some((bytes, place)) = on_stack.pop()
    {
        nest.buffers[place].memory = Some(Memory::Workspace);
        total -= bytes;
    }
    Ok(())
}

/// Assigns memories on a device. Trees without bound loops run on one thread, so their buffers go
/// to the workspace. [Launches](super::device) check that the other buffers fit.
fn settle_on_device(nest: &mut LoopNest) -> Result<(), LowerError> {
    for buffer in nest.buffers.iter_mut().filter(|buffer| buffer.owner.is_kernel()) {
        buffer.memory = Some(Memory::Workspace);
    }
    // Devices have no such hints, and one for a buffer of a thread would seem to share it.
    for body in [&mut nest.prepare, &mut nest.body] {
        *body = without_hints(std::mem::take(body));
    }
    let mut found: Vec<(BufferId, Memory)> = Vec::new();
    for node in nest.body.iter().filter(|node| has_bound(std::slice::from_ref(node))) {
        locals_of(std::slice::from_ref(node), false, &mut found);
    }
    for (id, memory) in found {
        nest.buffers[id.0 as usize].memory = Some(memory);
    }
    Ok(())
}

/// The nodes without prefetches.
fn without_hints(nodes: Body) -> Body {
    let one = |node: Node| match node {
        Node::Prefetch(_) => None,
        Node::Loop(mut l) => {
            l.body = without_hints(l.body);
            Some(Node::Loop(l))
        }
        Node::Guard(mut guard) => {
            guard.body = without_hints(guard.body);
            Some(Node::Guard(guard))
        }
        other => Some(other),
    };
    nodes.into_iter().filter_map(one).collect()
}

/// The buffers of the loops of a launch.
fn locals_of(nodes: &[Node], in_thread: bool, found: &mut Vec<(BufferId, Memory)>) {
    for node in nodes {
        match node {
            Node::Loop(l) => {
                let in_thread = in_thread || matches!(l.kind, LoopKind::Thread(_));
                let memory = if in_thread { Memory::Stack } else { Memory::Shared };
                found.extend(l.locals.iter().map(|id| (*id, memory)));
                locals_of(&l.body, in_thread, found);
            }
            Node::Guard(guard) => locals_of(&guard.body, in_thread, found),
            Node::Store(_) | Node::Prefetch(_) | Node::Barrier => {}
        }
    }
}

fn home(buffer: &Buffer, limits: StackLimits) -> Memory {
    match buffer.owner {
        Owner::Input | Owner::Output | Owner::Prepared => Memory::Caller,
        Owner::Intermediate if buffer.layout.is_none() => Memory::Workspace,
        Owner::Intermediate | Owner::Local => match buffer.bytes() <= limits.largest_bytes {
            true => Memory::Stack,
            false => Memory::Workspace,
        },
    }
}

#[cfg(test)]
mod tests {
    use tensorwright_lang::Module;

    use super::*;
    use crate::lower::{LowerOptions, LoweredNest, lower_with};
    use crate::{Schedule, canonical, lower};

    #[test]
    fn many_small_buffers_do_not_overflow_the_stack() {
        let stages: String = (1..=40)
            .map(|stage| format!("t{stage}(i,j) = t{}(i,j) * 2 + 1\n", stage - 1))
            .collect();
        let text = format!(
            "def f(float(N,M) in) -> (out) {{ t0(i,j) = in(i,j) + 1\n{stages}out(i,j) = t40(i,j) }}"
        );
        let module = Module::parse("f.tc", &text).unwrap();
        let program = module.bind("f", [("N", 4), ("M", 4000)]).unwrap();
        let steps: String = (0..=40)
            .rev()
            .map(|stage| {
                let reader = if stage == 40 { "out".into() } else { format!("t{}", stage + 1) };
                format!("t{stage}: compute_at {reader} i\n")
            })
            .collect();
        let nest = Schedule::parse(&steps).unwrap().apply(canonical(&program)).unwrap();
        let on_stack = |lowered: &LoweredNest| {
            let stack =
                lowered.as_nest().buffers.iter().filter(|b| b.memory == Some(Memory::Stack));
            stack.map(crate::nest::Buffer::bytes).sum::<i64>()
        };
        let lowered = |stack: StackLimits| {
            let options = LowerOptions { stack, ..LowerOptions::default() };
            lower_with(nest.clone(), &options, &mut |_, _| {}).unwrap()
        };
        let limits = StackLimits::default();
        let unlimited = StackLimits { total_bytes: i64::MAX, ..limits };
        assert!(on_stack(&lowered(unlimited)) > 2 * limits.total_bytes);
        assert!((1..=limits.total_bytes).contains(&on_stack(&lowered(limits))));
        // A target may have a smaller stack: each row of 4000 elements exceeds this one.
        assert_eq!(on_stack(&lowered(StackLimits { largest_bytes: 15_999, ..limits })), 0);
    }

    #[test]
    fn what_outlives_loops_is_in_the_workspace() {
        let text = "def f(float(N) A) -> (out) { t(i) = A(i) + 1\nu(i) = t(i) * 2\nout(i) = u(i) }";
        let program = Module::parse("f.tc", text).unwrap().bind("f", [("N", 8)]).unwrap();
        let homes = |steps: &str| {
            let nest = Schedule::parse(steps).unwrap().apply(canonical(&program)).unwrap();
            assert!(nest.buffers.iter().all(|buffer| buffer.memory.is_none()));
            let lowered = lower(nest).unwrap();
            ["A", "t", "out"].map(|name| {
                let buffer = lowered.as_nest().buffers.iter().find(|buffer| buffer.name == name);
                buffer.and_then(|buffer| buffer.memory).unwrap()
            })
        };
        use Memory::{Caller, Stack, Workspace};
        assert_eq!(homes(""), [Caller, Workspace, Caller]);
        assert_eq!(homes("t: compute_at u i"), [Caller, Stack, Caller]);
        assert_eq!(homes("t: layout [d0/4, d0%4]"), [Caller, Stack, Caller]);
    }
}
