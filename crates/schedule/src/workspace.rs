//! Where the buffers of the workspace lie: one plan that every emitter and the runtime follow.
//!
//! The workspace is a *shared* part followed by one *private* part per worker. A buffer that is
//! local to an iteration of a parallel loop, or to a loop below one, is private: iterations run at
//! the same time and must not see each other's copy. All other buffers are shared.
//!
//! ```text
//! workspace                 + shared_bytes            + shared_bytes + private_bytes
//! | shared: packed B ...    | worker 0: tile of A ... | worker 1: tile of A ... |
//! ```
//!
//! No two buffers share a byte, so emitters may promise that pointers to different buffers do not
//! alias. Every buffer and every part starts at a multiple of [`ALIGNMENT`].

use serde::{Deserialize, Serialize};

use crate::LoweredNest;
use crate::nest::{Buffer, BufferId, LoopKind, LoopNest, Memory, Node};

/// The alignment of the workspace and of every buffer in it, in bytes: a cache line, which is also
/// the widest vector.
pub const ALIGNMENT: i64 = 64;

/// How large the workspace of a kernel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Workspace {
    /// The size of the part that all workers share.
    pub shared_bytes: i64,
    /// The size of the part of one worker.
    pub private_bytes: i64,
}

/// Where the buffers of the workspace of a nest lie.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkspaceLayout {
    /// How large the workspace is.
    pub size: Workspace,
    places: Vec<Option<WorkspaceOffset>>,
}

/// Where a buffer of the workspace lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceOffset {
    /// That many bytes from the start of the workspace.
    Shared(i64),
    /// That many bytes from the start of the worker's own part; in code outside parallel loops, of
    /// worker 0.
    Private(i64),
}

impl Workspace {
    /// The size for a number of workers (at least one), saturating.
    #[must_use]
    pub fn bytes(&self, workers: i32) -> i64 {
        let private = self.private_bytes.saturating_mul(i64::from(workers.max(1)));
        self.shared_bytes.saturating_add(private)
    }
}

impl WorkspaceLayout {
    /// Lays out the workspace of a nest.
    #[must_use]
    pub fn of(lowered: &LoweredNest) -> Self {
        Self::of_nest(lowered.as_nest())
    }

    fn of_nest(nest: &LoopNest) -> Self {
        let mut private = vec![false; nest.buffers.len()];
        mark_private(nest.prepare.iter().chain(&nest.body), false, &mut private);
        let mut size = Workspace::default();
        let place = |(buffer, private): (&Buffer, bool)| {
            if buffer.memory != Some(Memory::Workspace) {
                return None;
            }
            let bytes = buffer.bytes();
            Some(match private {
                false => WorkspaceOffset::Shared(append(&mut size.shared_bytes, bytes)),
                true => WorkspaceOffset::Private(append(&mut size.private_bytes, bytes)),
            })
        };
        let places = nest.buffers.iter().zip(private).map(place).collect();
        Self { size, places }
    }

    /// Where a buffer lies; `None` if it is not in the workspace.
    #[must_use]
    pub fn offset(&self, buffer: BufferId) -> Option<WorkspaceOffset> {
        self.places.get(buffer.0 as usize).copied().flatten()
    }
}

/// Reserves room at the end of a part and returns where it starts.
fn append(part: &mut i64, bytes: i64) -> i64 {
    let start = *part;
    let padded = bytes.max(0).saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *part = start.saturating_add(padded);
    start
}

/// Marks the locals of parallel loops and of the loops below them. Lowering may copy a loop (a
/// peeled tail): a buffer that is private in one copy is private in all.
fn mark_private<'a>(
    nodes: impl IntoIterator<Item = &'a Node>,
    in_parallel: bool,
    private: &mut [bool],
) {
    for node in nodes {
        match node {
            Node::Loop(inner) => {
                let in_parallel = in_parallel || inner.kind == LoopKind::Parallel;
                for local in inner.locals.iter().filter(|_| in_parallel) {
                    if let Some(private) = private.get_mut(local.0 as usize) {
                        *private = true;
                    }
                }
                mark_private(&inner.body, in_parallel, private);
            }
            Node::Guard(guard) => mark_private(&guard.body, in_parallel, private),
            Node::Store(_) | Node::Prefetch(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nest::{Loop, Owner, Role};
    use tensorwright_lang::dtype::DType;

    fn workspace(name: &str, elements: i64) -> Buffer {
        let mut buffer = Buffer::new(name.into(), DType::Float, vec![elements], Owner::Local);
        buffer.memory = Some(Memory::Workspace);
        buffer
    }

    #[test]
    fn locals_of_parallel_loops_are_private() {
        let mut nest = LoopNest {
            name: "k".into(),
            buffers: Vec::new(),
            vars: Vec::new(),
            parameters: Vec::new(),
            constants: Vec::new(),
            prepare: Vec::new(),
            body: Vec::new(),
            error_growth: 1.0,
            own: crate::nest::Size::default(),
        };
        let (i, j) = (nest.add_var("i"), nest.add_var("j"));
        let shared = nest.add_buffer(workspace("shared", 3));
        let outer = nest.add_buffer(workspace("outer", 17));
        let inner = nest.add_buffer(workspace("inner", 16));
        let stack =
            nest.add_buffer(Buffer { memory: Some(Memory::Stack), ..workspace("stack", 4) });
        let mut below = Loop::new(j, 2, Role::Spatial, Vec::new());
        below.locals.push(inner);
        let mut parallel = Loop::new(i, 2, Role::Spatial, vec![Node::Loop(below)]);
        parallel.kind = LoopKind::Parallel;
        parallel.locals.extend([outer, stack]);
        let mut serial = Loop::new(j, 2, Role::Spatial, vec![Node::Loop(parallel)]);
        serial.locals.push(shared);
        nest.body.push(Node::Loop(serial));

        let plan = WorkspaceLayout::of_nest(&nest);
        assert_eq!(plan.offset(shared), Some(WorkspaceOffset::Shared(0)));
        assert_eq!(plan.offset(outer), Some(WorkspaceOffset::Private(0)));
        assert_eq!(plan.offset(inner), Some(WorkspaceOffset::Private(128)));
        assert_eq!(plan.offset(stack), None);
        assert_eq!((plan.size.shared_bytes, plan.size.private_bytes), (64, 192));
        assert_eq!((plan.size.bytes(0), plan.size.bytes(3)), (256, 640));
    }
}
