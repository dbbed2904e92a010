//! Workspace layout: offsets of buffers, shared by all emitters and runtimes.
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
//! Buffers with disjoint lifetimes may share bytes: a chain of stages needs the memory of two of
//! them. A buffer lives from the first to the last top-level statement that mentions it. If a
//! buffer has its own bytes ([`WorkspaceLayout::is_alone`]), emitters may declare that no other
//! pointer aliases it; pointers that one statement uses never alias. Every buffer and every part
//! starts at a multiple of [`ALIGNMENT`].

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::LoweredNest;
use crate::nest::{Buffer, BufferId, LoopKind, LoopNest, Memory, Node, Uses};

/// The alignment of the workspace and of every buffer in it, in bytes: a cache line, which is also
/// the widest vector.
pub const ALIGNMENT: i64 = 64;

/// The size of the workspace of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Workspace {
    /// The size of the part that all workers share.
    pub shared_bytes: i64,
    /// The size of the part of one worker.
    pub private_bytes: i64,
}

/// The offsets of the buffers in the workspace of a nest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkspaceLayout {
    /// The size of the workspace.
    pub size: Workspace,
    places: Vec<Option<WorkspaceOffset>>,
    /// Whether each buffer has bytes of its own.
    alone: Vec<bool>,
}

/// The offset of a buffer in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceOffset {
    /// The offset in bytes from the start of the workspace.
    Shared(i64),
    /// The offset in bytes from the start of the worker's private part; outside of parallel loops,
    /// that of worker 0.
    Private(i64),
}

impl Workspace {
    /// The total size for a number of workers (at least one), saturating.
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
            // Buffers whose extents depend on sizes come behind, see `lower/slots.rs`.
            let is_ours = buffer.memory == Some(Memory::Workspace) && buffer.run_time.is_none();
            // An unused buffer needs no memory.
            let (life, bytes) = match lives[place] {
                Some(life) => (life, padded(buffer.bytes())),
                None => (Life { first: 0, last: 0 }, 0),
            };
            is_ours.then_some(Tenant { place, bytes, life })
        };
        let tenants = nest.buffers.iter().enumerate().filter_map(tenant);
        let (own, all): (Vec<Tenant>, Vec<Tenant>) = tenants.partition(|t| private[t.place]);
        let (shared, private) = (settle(all), settle(own));
        let count = nest.buffers.len();
        let size = Workspace { shared_bytes: end(&shared), private_bytes: end(&private) };
        let mut layout = Self { size, places: vec![None; count], alone: vec![false; count] };
        for (part, is_private) in [(shared, false), (private, true)] {
            alone(&part).for_each(|place| layout.alone[place] = true);
            for (tenant, start) in &part {
                layout.places[tenant.place] = Some(match is_private {
                    false => WorkspaceOffset::Shared(*start),
                    true => WorkspaceOffset::Private(*start),
                });
            }
        }
        layout
    }

    /// Whether no other buffer ever shares its bytes.
    #[must_use]
    pub fn is_alone(&self, buffer: BufferId) -> bool {
        self.alone.get(buffer.0 as usize).copied().unwrap_or(false)
    }

    /// The offset of a buffer; `None` if it is not in the workspace.
    #[must_use]
    pub fn offset(&self, buffer: BufferId) -> Option<WorkspaceOffset> {
        self.places.get(buffer.0 as usize).copied().flatten()
    }
}

/// The first and the last top-level statement that mentions a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// A buffer that needs space in a part.
#[derive(Debug, Clone, Copy)]
struct Tenant {
    /// Its number among the buffers.
    place: usize,
    bytes: i64,
    life: Life,
}

/// The lifetimes of buffers; `None` for unused ones.
pub(crate) fn lives(nest: &LoopNest) -> Vec<Option<Life>> {
    let mut lives: Vec<Option<Life>> = vec![None; nest.buffers.len()];
    for (now, node) in nest.prepare.iter().chain(&nest.body).enumerate() {
        for id in Uses::mentioned(std::slice::from_ref(node)) {
            if let Some(life) = lives.get_mut(id.0 as usize) {
                let first = life.map_or(now, |life| life.first);
                *life = Some(Life { first, last: now });
            }
        }
    }
    lives
}

/// The positions of buffers that share no byte with another one.
fn alone(settled: &[(Tenant, i64)]) -> impl Iterator<Item = usize> {
    let bytes = |(tenant, start): &(Tenant, i64)| (*start, start.saturating_add(tenant.bytes));
    let mut sorted: Vec<_> = settled.iter().filter(|(tenant, _)| tenant.bytes > 0).collect();
    sorted.sort_by_key(|room| bytes(room));
    let mut found = Vec::new();
    let mut taken = 0;
    for (at, room) in sorted.iter().enumerate() {
        let (start, end) = bytes(room);
        let is_next_apart = sorted.get(at + 1).is_none_or(|next| bytes(next).0 >= end);
        if taken <= start && is_next_apart {
            found.push(room.0.place);
        }
        taken = taken.max(end);
    }
    found.into_iter()
}

/// Parts with more buffers are allocated in order of time: comparing all pairs takes too long.
const MOST_COMPARED: usize = 1024;

/// The most gaps to try for a buffer before it is appended at the end.
const MOST_GAPS: usize = 64;

/// Allocates buffers in order of time, each in the first gap that is free when its lifetime begins.
fn settle_in_time(mut tenants: Vec<Tenant>) -> Vec<(Tenant, i64)> {
    tenants
        .sort_by_key(|tenant| (tenant.life.first, std::cmp::Reverse(tenant.bytes), tenant.place));
    let mut settled: Vec<(Tenant, i64)> = Vec::with_capacity(tenants.len());
    // The live buffers, by end of lifetime, and the gaps between them, by offset.
    let mut ends: BTreeSet<(usize, i64, i64)> = BTreeSet::new();
    let mut gaps: BTreeMap<i64, i64> = BTreeMap::new();
    let mut top: i64 = 0;
    for tenant in tenants {
        while let Some((_, start, bytes)) =
            ends.first().copied().filter(|end| end.0 < tenant.life.first)
        {
            ends.pop_first();
            give_back(&mut gaps, start, bytes);
        }
        let fits = |(_, bytes): &(&i64, &i64)| **bytes >= tenant.bytes;
        let gap = gaps.iter().take(MOST_GAPS).find(fits).map(|(start, bytes)| (*start, *bytes));
        let start = match gap {
            Some((start, bytes)) => {
                gaps.remove(&start);
                if bytes > tenant.bytes {
                    gaps.insert(start + tenant.bytes, bytes - tenant.bytes);
                }
                start
            }
            None => {
                let start = top;
                top = top.saturating_add(tenant.bytes);
                start
            }
        };
        ends.insert((tenant.life.last, start, tenant.bytes));
        settled.push((tenant, start));
    }
    settled
}

/// Frees a gap and merges it with its neighbors.
fn give_back(gaps: &mut BTreeMap<i64, i64>, mut start: i64, mut bytes: i64) {
    if let Some((before, length)) =
        gaps.range(..start).next_back().map(|(at, length)| (*at, *length))
        && before.saturating_add(length) == start
    {
        gaps.remove(&before);
        (start, bytes) = (before, length.saturating_add(bytes));
    }
    if let Some(length) = gaps.remove(&start.saturating_add(bytes)) {
        bytes = bytes.saturating_add(length);
    }
    if bytes > 0 {
        gaps.insert(start, bytes);
    }
}

/// Allocates buffers by decreasing size, each in the first gap that is free during its lifetime.
fn settle(tenants: Vec<Tenant>) -> Vec<(Tenant, i64)> {
    let (mut tenants, unused): (Vec<Tenant>, Vec<Tenant>) =
        tenants.into_iter().partition(|tenant| tenant.bytes > 0);
    let unused = unused.into_iter().map(|tenant| (tenant, 0));
    if tenants.len() > MOST_COMPARED {
        return settle_in_time(tenants).into_iter().chain(unused).collect();
    }
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
    settled.extend(unused);
    settled
}

/// The end of a part.
fn end(settled: &[(Tenant, i64)]) -> i64 {
    let ends = settled.iter().map(|(tenant, start)| start.saturating_add(tenant.bytes));
    ends.max().unwrap_or(0)
}

/// A size, padded to the alignment.
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
    use crate::nest::{Loop, Owner, Role, Shared, Store, Table};
    use tensorwright_lang::dtype::DType;
    use tensorwright_lang::program::{Expr, Index, Scalar};

    fn workspace(name: &str, elements: i64) -> Buffer {
        let mut buffer = Buffer::new(name.into(), DType::Float, vec![elements], Owner::Local);
        buffer.memory = Some(Memory::Workspace);
        buffer
    }

    /// Writes the first element of a buffer.
    fn zero(buffer: BufferId) -> Store {
        Store {
            buffer,
            subscripts: vec![Index::constant(0)],
            combine: None,
            value: Expr::Const(Scalar::float(DType::Float, 0.0)),
            init: None,
            domain: Vec::new(),
            scatter: None,
            lanes: None,
            mask: Vec::new(),
        }
    }

    #[test]
    fn locals_of_parallel_loops_are_private() {
        let mut nest = LoopNest {
            name: "k".into(),
            buffers: Table::default(),
            vars: Table::default(),
            parameters: Vec::new(),
            constants: Vec::new(),
            numbers: Vec::new(),
            size_bounds: Vec::new(),
            fixed: Vec::new(),
            prepare: Shared::default(),
            body: Shared::default(),
            error_growth: 1.0,
            rounding_growth: 1.0,
            own: crate::nest::Size::default(),
            launches: None,
            hidden: std::sync::Arc::default(),
        };
        let (i, j) = (nest.add_var("i"), nest.add_var("j"));
        let shared = nest.add_buffer(workspace("shared", 3));
        let outer = nest.add_buffer(workspace("outer", 17));
        let inner = nest.add_buffer(workspace("inner", 16));
        let stack =
            nest.add_buffer(Buffer { memory: Some(Memory::Stack), ..workspace("stack", 4) });
        // An unused buffer gets no memory.
        let stores = [shared, outer, inner].map(|buffer| Node::Store(zero(buffer)));
        let mut below = Loop::new(j, 2, Role::Spatial, stores.to_vec());
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
    fn many_buffers_share_room_over_time() {
        let tenant = |place: usize, first, last| {
            let bytes = 64 * (1 + place as i64 % 3);
            Tenant { place, bytes, life: Life { first, last } }
        };
        let mut tenants: Vec<Tenant> = (0..5000).map(|n| tenant(n, n, n + 1)).collect();
        tenants.extend((0..10).map(|n| tenant(5000 + n, 0, 5000)));
        let settled = settle(tenants);
        assert!(end(&settled) <= 64 * 3 * (10 + 3), "{} bytes", end(&settled));
        for (number, (one, start)) in settled.iter().enumerate() {
            for (other, begin) in &settled[number + 1..] {
                let meet = one.life.first <= other.life.last && other.life.first <= one.life.last;
                let apart = start + one.bytes <= *begin || begin + other.bytes <= *start;
                assert!(!meet || apart, "{one:?} at {start}, {other:?} at {begin}");
            }
        }
        assert_eq!(alone(&settled).filter(|place| *place >= 5000).count(), 10);
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
        // `s0` lives until the end, and two others at a time.
        assert!(plan.size.shared_bytes <= 3 * 4096, "{} bytes", plan.size.shared_bytes);
        assert!(plan.is_alone(id("s0")) && !plan.is_alone(id("s4")));
        // Buffers that one statement reads and writes do not overlap.
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
