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
//! Buffers of which one is no longer used when the other one begins to be used may share bytes: a chain of stages
//! needs the memory of two of them. A buffer lives from the first to the last statement outside of all loops that
//! mentions it. Where one has bytes of its own ([`WorkspaceLayout::is_alone`]), emitters may promise that no other
//! pointer leads there; pointers that a statement uses are always apart. Every buffer and every part starts at a
//! multiple of [`ALIGNMENT`].

use serde::{Deserialize, Serialize};

use crate::LoweredNest;
use crate::nest::{Buffer, BufferId, LoopKind, LoopNest, Memory, Node, Uses};

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
    /// Whether each buffer has bytes of its own.
    alone: Vec<bool>,
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
        let lives = lives(nest);
        let tenant = |(place, buffer): (usize, &Buffer)| {
            let is_ours = buffer.memory == Some(Memory::Workspace);
            is_ours.then(|| Tenant { place, bytes: padded(buffer.bytes()), life: lives[place] })
        };
        let tenants = nest.buffers.iter().enumerate().filter_map(tenant);
        let (own, all): (Vec<Tenant>, Vec<Tenant>) = tenants.partition(|t| private[t.place]);
        let (shared, private) = (settle(all), settle(own));
        let count = nest.buffers.len();
        let size = Workspace { shared_bytes: end(&shared), private_bytes: end(&private) };
        let mut layout = Self { size, places: vec![None; count], alone: vec![false; count] };
        for (part, is_private) in [(shared, false), (private, true)] {
            for (tenant, start) in &part {
                let is_apart = |(other, begin): &(Tenant, i64)| {
                    other.place == tenant.place
                        || begin.saturating_add(other.bytes) <= *start
                        || start.saturating_add(tenant.bytes) <= *begin
                };
                layout.alone[tenant.place] = part.iter().all(is_apart);
                layout.places[tenant.place] = Some(match is_private {
                    false => WorkspaceOffset::Shared(*start),
                    true => WorkspaceOffset::Private(*start),
                });
            }
        }
        layout
    }

    /// Whether no other buffer ever has bytes of this one.
    #[must_use]
    pub fn is_alone(&self, buffer: BufferId) -> bool {
        self.alone.get(buffer.0 as usize).copied().unwrap_or(false)
    }

    /// Where a buffer lies; `None` if it is not in the workspace.
    #[must_use]
    pub fn offset(&self, buffer: BufferId) -> Option<WorkspaceOffset> {
        self.places.get(buffer.0 as usize).copied().flatten()
    }
}

/// The first and the last statement outside of all loops that mentions a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Life {
    first: usize,
    last: usize,
}

/// A buffer that is to get room in a part.
#[derive(Debug, Clone, Copy)]
struct Tenant {
    /// Its number among the buffers.
    place: usize,
    bytes: i64,
    life: Life,
}

/// When buffers live. One that nothing mentions is taken to live always.
fn lives(nest: &LoopNest) -> Vec<Life> {
    let mut lives: Vec<Option<Life>> = vec![None; nest.buffers.len()];
    for (now, node) in nest.prepare.iter().chain(&nest.body).enumerate() {
        for id in Uses::mentioned(std::slice::from_ref(node)) {
            if let Some(life) = lives.get_mut(id.0 as usize) {
                let first = life.map_or(now, |life| life.first);
                *life = Some(Life { first, last: now });
            }
        }
    }
    lives.into_iter().map(|life| life.unwrap_or(Life { first: 0, last: usize::MAX })).collect()
}

/// Gives every buffer the first room that is free during its life, the largest ones first.
fn settle(mut tenants: Vec<Tenant>) -> Vec<(Tenant, i64)> {
    tenants.sort_by_key(|tenant| (std::cmp::Reverse(tenant.bytes), tenant.place));
    let mut settled: Vec<(Tenant, i64)> = Vec::with_capacity(tenants.len());
    for tenant in tenants {
        let meets =
            |other: &Life| other.first <= tenant.life.last && tenant.life.first <= other.last;
        let met = settled.iter().filter(|(other, _)| meets(&other.life));
        let mut taken: Vec<(i64, i64)> =
            met.map(|(other, start)| (*start, start.saturating_add(other.bytes))).collect();
        taken.sort_unstable();
        let mut start: i64 = 0;
        for (begin, end) in taken {
            if start.saturating_add(tenant.bytes) <= begin {
                break;
            }
            start = start.max(end);
        }
        settled.push((tenant, start));
    }
    settled
}

/// Where a part ends.
fn end(settled: &[(Tenant, i64)]) -> i64 {
    let ends = settled.iter().map(|(tenant, start)| start.saturating_add(tenant.bytes));
    ends.max().unwrap_or(0)
}

/// The room of so many bytes.
fn padded(bytes: i64) -> i64 {
    bytes.max(0).saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
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
            Node::Store(_) | Node::Prefetch(_) | Node::Barrier => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nest::{Loop, Owner, Role, Shared};
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
            buffers: Shared::default(),
            vars: Shared::default(),
            parameters: Vec::new(),
            constants: Vec::new(),
            prepare: Shared::default(),
            body: Shared::default(),
            error_growth: 1.0,
            rounding_growth: 1.0,
            own: crate::nest::Size::default(),
            launches: None,
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

    #[test]
    fn a_chain_of_stages_needs_the_memory_of_two() {
        let stages: String =
            (1..20).map(|n| format!("s{n}(i) = s{}(i) + s{}(i+1)\n", n - 1, n - 1)).collect();
        let text = format!(
            "def f(float(N) in) -> (out) {{ s0(i) = in(i) + in(i+1)\n{stages}out(i) = s19(i) + s0(i) where i in 0:s19.0 }}"
        );
        let module = tensorwright_lang::Module::parse("f.tc", &text).unwrap();
        let program = module.bind("f", [("N", 1000)]).unwrap();
        let lowered = crate::lower(crate::canonical(&program)).unwrap();
        let plan = WorkspaceLayout::of(&lowered);
        let id = |name: &str| {
            let place = lowered.as_nest().buffers.iter().position(|buffer| buffer.name == name);
            tensorwright_lang::program::TensorId(place.unwrap() as u32)
        };
        // `s0` is read to the end, and two others at a time.
        assert!(plan.size.shared_bytes <= 3 * 4096, "{} bytes", plan.size.shared_bytes);
        assert!(plan.is_alone(id("s0")) && !plan.is_alone(id("s4")));
        // What one statement reads and writes is apart.
        for stage in 1..20 {
            let [Some(WorkspaceOffset::Shared(a)), Some(WorkspaceOffset::Shared(b))] =
                [stage - 1, stage].map(|stage| plan.offset(id(&format!("s{stage}"))))
            else {
                panic!("all stages are in the shared part");
            };
            assert!((a - b).abs() >= 3900, "s{stage} is at {b}, and what it reads at {a}");
        }
    }
}
