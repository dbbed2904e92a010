//! The loop nest IR: loops, stores and buffers.
//!
//! Expressions are those of a [`Program`](tensorwright_lang::program::Program): an
//! [`Expr`] over [reads](tensorwright_lang::program::Read) whose subscripts are in the normal form
//! of [`Index`]. In a nest, an axis is a loop variable ([`Var`]) and a tensor is a buffer
//! ([`BufferId`]); semantics (integers wrap, `/` rounds down, selections are lazy) are the same.
//!
//! A nest has two forms. While primitives act on it, loops may be unrolled or vectorized, a
//! reduction carries its [starting value](Store::init), and a store its [domain](Store::domain).
//! After [lowering](crate::lower()) no unrolled or vectorized loops are left, reductions are
//! initialised by stores of their own, and domains have become [guards](Node::Guard) and
//! [masks](Store::mask): a [`LoweredNest`](crate::LoweredNest).

mod buffer;
mod hidden;
mod launch;
mod operations;
mod parts;
mod print;
mod ranges;
mod run_time;
mod shared;
mod size;
mod table;
mod tensor;
mod uses;
mod walk;

pub use buffer::{Buffer, Fragment, Layout, LayoutError, Memory, Owner};
pub(crate) use hidden::HiddenTrees;
pub use launch::{Launch, Launches, WARP};
pub(crate) use operations::operations;
pub(crate) use parts::{index_parts, parts};
pub(crate) use ranges::extreme;
pub use ranges::{Ranges, Simplify};
pub use run_time::{MAX_BYTES, MAX_STRIDE, NumberSource, RunTimeNumber, RunTimeShape, SizeBound};
pub use shared::Shared;
pub use size::Size;
pub use table::Table;
pub(crate) use tensor::factors;
pub use tensor::{Placed, TILE, TensorOp, TensorWork};
pub use uses::Uses;
pub use walk::{for_each_loop, for_each_store, for_each_store_mut, substitute};
pub(crate) use walk::{rewrite_nodes, rewrite_store};

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{AxisId, Expr, FixedScalar, Index, Location, Read, TensorId};

/// The nodes of a nest or a loop, in order.
pub type Body = Shared<Node>;

/// A loop variable, by its number in [`LoopNest::vars`].
pub type Var = AxisId;

/// A buffer, by its number in [`LoopNest::buffers`].
pub type BufferId = TensorId;

/// A stage, identified by the buffer that it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId(pub BufferId);

/// Loops over stores, and the buffers they touch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoopNest {
    /// The name of the kernel.
    pub name: String,
    /// The buffers, by [`BufferId`].
    pub buffers: Table<Buffer>,
    /// The names of the loop variables, by [`Var`].
    pub vars: Table<Arc<str>>,
    /// The parameters: inputs, then outputs, then prepared buffers.
    pub parameters: Vec<BufferId>,
    /// The inputs that are constant between calls.
    pub constants: Vec<BufferId>,
    /// The numbers that are known when the kernel is called, in the order in which callers pass
    /// them: sizes that vary, and strides.
    pub numbers: Vec<RunTimeNumber>,
    /// The conditions on sizes beyond their ranges. Callers check them.
    pub size_bounds: Vec<SizeBound>,
    /// The parameters of the definition that are compiled into the loops.
    pub fixed: Vec<FixedScalar>,
    /// The preparation: runs once, ahead of all calls, and fills prepared buffers from `const`
    /// inputs.
    pub prepare: Body,
    /// The body: runs at every call.
    pub body: Body,
    /// The factor by which the bound on rounding errors exceeds that of the program's own sums, for
    /// data of one magnitude. Rewritings that round differently raise it above one. For other data
    /// it is an estimate.
    pub error_growth: f64,
    /// The part of it that tensor operations cause: [their rounding](TensorOp) is not visible in
    /// the loops.
    pub rounding_growth: f64,
    /// The size of the canonical nest of the program, which [limits](crate::limits) always allow.
    pub own: Size,
    /// The launches of the nest; only after [lowering](crate::lower()) for a device.
    pub launches: Option<Launches>,
    /// The trees outside of the current [window](crate::Window).
    pub(crate) hidden: Arc<HiddenTrees>,
}

/// A node of a nest.
#[derive(Debug, Clone)]
pub enum Node {
    /// A loop.
    Loop(Loop),
    /// Nodes that run only where conditions hold.
    Guard(Guard),
    /// A write to a buffer.
    Store(Store),
    /// A hint that an element will be read soon. Its subscripts may be out of bounds.
    Prefetch(Prefetch),
    /// A barrier for the threads of a block; only in a [launch](Launch), outside of thread loops.
    Barrier,
}

/// A loop whose variable runs from 0 to below `extent` in steps of one, or over a [span](Span).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Loop {
    /// The variable.
    pub var: Var,
    /// The number of iterations; at least one. With a [span](Loop::span), the values of the
    /// variable are below this.
    pub extent: i64,
    /// Whether the number of iterations depends on sizes. [Domains](Store::domain) say how.
    pub is_sized: bool,
    /// The iterations, where these depend on sizes; only after lowering.
    pub span: Option<Box<Span>>,
    /// The stage that the loop belongs to.
    pub stage: Option<StageId>,
    /// How the iterations run.
    pub kind: LoopKind,
    /// The role: spatial, reduction or recurrence.
    pub role: Role,
    /// Other stages that share the loop and for which it is a reduction loop, whatever its role.
    pub terms_of: Vec<StageId>,
    /// Whether lowering peels the last iteration, so that the others need no guard.
    pub peel: bool,
    /// Whether consecutive iterations may compute the same elements again (a tail that is shifted
    /// inwards).
    pub overlaps: bool,
    /// Whether an iteration reads elements that earlier ones left in a buffer of the enclosing loop
    /// (a sliding window), so that iterations run in order.
    pub slides: bool,
    /// The buffers that live for one iteration.
    pub locals: Vec<BufferId>,
    /// The loop body.
    pub body: Body,
}

/// The iterations from `begin` to below `end`, at least one: functions of
/// [run-time numbers](RunTimeNumber) and of enclosing loops.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// The first value of the variable.
    pub begin: Index,
    /// One past the last value.
    pub end: Index,
}

/// How the iterations of a loop run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// Sequential.
    Serial,
    /// Parallel: in any order, on several workers.
    Parallel,
    /// Bound to the blocks of a grid: in any order.
    Block(Dim),
    /// Bound to the threads of a block: in any order.
    Thread(Dim),
    /// Unrolled; gone after lowering.
    Unrolled,
    /// Vectorized; gone after lowering, which creates [`Store::lanes`].
    Vectorized,
    /// Part of a [tensor operation](TensorOp): in any order with its other loops by a warp of a
    /// device, and sequential everywhere else.
    Tensor,
}

/// A direction of the grid of blocks or threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dim {
    /// The direction in which neighboring threads run together.
    X,
    /// The next one.
    Y,
    /// The last one.
    Z,
}

impl Dim {
    /// All directions, with their names in the text of schedules.
    pub const ALL: [(&'static str, Dim); 3] = [("x", Dim::X), ("y", Dim::Y), ("z", Dim::Z)];

    /// The name in the text of schedules.
    #[must_use]
    pub fn name(self) -> &'static str {
        Dim::ALL[self.place()].0
    }

    /// The position in lists of extents, `x` first.
    #[must_use]
    pub fn place(self) -> usize {
        match self {
            Dim::X => 0,
            Dim::Y => 1,
            Dim::Z => 2,
        }
    }
}

impl LoopKind {
    /// Whether the iterations are blocks or threads of a device.
    #[must_use]
    pub fn is_bound(self) -> bool {
        matches!(self, LoopKind::Block(_) | LoopKind::Thread(_))
    }
}

/// The kind in the syntax of schedules and nests.
impl fmt::Display for LoopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoopKind::Serial => f.write_str("serial"),
            LoopKind::Parallel => f.write_str("parallel"),
            LoopKind::Block(dim) => write!(f, "block.{}", dim.name()),
            LoopKind::Thread(dim) => write!(f, "thread.{}", dim.name()),
            LoopKind::Unrolled => f.write_str("unrolled"),
            LoopKind::Vectorized => f.write_str("vectorized"),
            LoopKind::Tensor => f.write_str("tensor"),
        }
    }
}

/// The role of a loop: the dependences between its iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Spatial: iterations compute different elements and are independent.
    Spatial,
    /// Reduction: iterations compute terms of the same elements.
    Reduce,
    /// Recurrence: iterations compute different elements, each from those of earlier iterations.
    /// They run in order, and so do the loops that it is split into.
    Scan,
}

/// Nodes that run only if all conditions hold.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Guard {
    /// Each must be at least zero. They do not depend on data.
    pub conditions: Vec<Index>,
    /// The guarded nodes.
    pub body: Body,
}

/// A write of one element, or of one element per lane.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Store {
    /// The buffer.
    pub buffer: BufferId,
    /// One subscript per dimension of the buffer.
    pub subscripts: Vec<Index>,
    /// With an operator, the value is combined with the old value of the element; without, it
    /// replaces it.
    pub combine: Option<ReductionOp>,
    /// The value.
    pub value: Expr,
    /// The initial value of a reduction; lowering turns it into a separate store.
    pub init: Option<Expr>,
    /// The iterations in which the store runs; lowering turns this into guards and masks.
    pub domain: Vec<Bound>,
    /// Set for the store of a scatter.
    pub scatter: Option<Box<Scatter>>,
    /// The lanes of a vector store; only after lowering. If no subscript depends on the lane, the
    /// operator combines all lanes into one element.
    pub lanes: Option<Lanes>,
    /// Conditions that depend on the lane: only lanes in which each is at least zero are active.
    /// Inactive lanes must not read. Only after lowering.
    pub mask: Vec<Index>,
}

/// A scatter: in some dimensions, the term decides which element it goes to. Any iteration may
/// contribute to an element, and another store initializes all elements.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scatter {
    /// The dimensions.
    pub dimensions: Vec<u32>,
    /// Those of them that may be out of bounds, depending on data: the kernel checks them at run
    /// time.
    pub checked: Vec<u32>,
    /// The location of the subscripts in the source text.
    pub place: Location,
}

/// A condition for a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// At least zero where the condition holds.
    pub index: Index,
    /// Whether the store may also run where the condition fails, if no access is out of bounds: it
    /// writes padding there that is never read (a tail that is rounded up).
    pub padding: bool,
    /// Whether it limits the terms of the reduction and not the elements: the reduction is
    /// initialized everywhere.
    pub term: bool,
}

/// The purpose of a read in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// Its value.
    Value,
    /// The initial value of its reduction.
    Start,
    /// The position of its write, or the condition for it.
    Place,
}

/// The lanes of a vector store: `var` takes the values 0 to below `count` at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    /// The variable that numbers the lanes; it occurs in the expressions of the store.
    pub var: Var,
    /// The number of lanes.
    pub count: i64,
    /// Whether the lanes are steps of a recurrence: each reads the element of the previous one. The
    /// value is then a [`Running`](tensorwright_lang::program::Running) one, whose terms may be
    /// combined in any order.
    pub in_order: bool,
}

/// A hint that an element will be read soon.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Prefetch {
    /// The buffer.
    pub buffer: BufferId,
    /// One subscript per dimension.
    pub subscripts: Vec<Index>,
}

impl LoopNest {
    /// The buffer of an id.
    #[must_use]
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// The name of a variable.
    #[must_use]
    pub fn var_name(&self, var: Var) -> &str {
        &self.vars[var.0 as usize]
    }

    /// The type of the elements of a buffer.
    #[must_use]
    pub fn dtype(&self, id: BufferId) -> DType {
        self.buffer(id).dtype
    }

    /// Adds a variable.
    pub fn add_var(&mut self, name: impl Into<Arc<str>>) -> Var {
        self.vars.push(name.into());
        AxisId(self.vars.len() as u32 - 1)
    }

    /// The number of the buffer of this name.
    pub(crate) fn buffer_number(&self, name: &str) -> Option<usize> {
        let key = |name: &str| {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            hasher.finish()
        };
        self.buffers.find(|buffer| key(&buffer.name), key(name), |buffer| buffer.name == name)
    }

    /// Adds a buffer.
    pub fn add_buffer(&mut self, buffer: Buffer) -> BufferId {
        self.buffers.push(buffer);
        TensorId(self.buffers.len() as u32 - 1)
    }

    /// Whether the nest is fully lowered.
    pub(crate) fn is_lowered(&self) -> bool {
        fn lowered(node: &Node) -> bool {
            match node {
                Node::Loop(l) => {
                    !matches!(l.kind, LoopKind::Unrolled | LoopKind::Vectorized)
                        && !l.peel
                        && l.body.iter().all(lowered)
                }
                Node::Guard(guard) => guard.body.iter().all(lowered),
                Node::Store(store) => store.init.is_none() && store.domain.is_empty(),
                Node::Prefetch(_) | Node::Barrier => true,
            }
        }
        self.prepare.iter().chain(&self.body).all(lowered)
            && self.buffers.iter().all(|buffer| buffer.layout.is_none() && buffer.memory.is_some())
    }
}

impl Loop {
    /// A serial loop.
    #[must_use]
    pub fn new(var: Var, extent: i64, role: Role, body: impl Into<Body>) -> Self {
        let (kind, locals, body) = (LoopKind::Serial, Vec::new(), body.into());
        let (stage, peel, overlaps, slides) = (None, false, false, false);
        let (terms_of, is_sized, span) = (Vec::new(), false, None);
        Self {
            var,
            extent,
            is_sized,
            span,
            stage,
            kind,
            role,
            terms_of,
            peel,
            overlaps,
            slides,
            locals,
            body,
        }
    }

    /// The loop without its body.
    #[must_use]
    pub(crate) fn shell(&self) -> Self {
        Self { body: Body::default(), locals: Vec::new(), ..self.clone() }
    }

    /// Sets the stage of the loop.
    #[must_use]
    pub fn of(mut self, stage: StageId) -> Self {
        self.stage = Some(stage);
        self
    }
}

impl Loop {
    /// Whether the loop is a reduction loop of a stage. The reduction begins at the outermost such
    /// loop around a store: [`Store::init`] is stored before it.
    #[must_use]
    pub fn reduces(&self, stage: StageId) -> bool {
        self.role == Role::Reduce && self.stage == Some(stage) || self.terms_of.contains(&stage)
    }

    /// Takes over the locals of inner loops that were removed. Copies of a loop share them.
    pub(crate) fn adopt(&mut self, locals: Vec<BufferId>) {
        for id in locals {
            if !self.locals.contains(&id) {
                self.locals.push(id);
            }
        }
    }
}

impl Store {
    /// A store of a value.
    #[must_use]
    pub fn new(buffer: BufferId, subscripts: Vec<Index>, value: Expr) -> Self {
        Self {
            buffer,
            subscripts,
            combine: None,
            value,
            init: None,
            domain: Vec::new(),
            scatter: None,
            lanes: None,
            mask: Vec::new(),
        }
    }

    /// The stage of the store.
    #[must_use]
    pub fn stage(&self) -> StageId {
        StageId(self.buffer)
    }

    /// The elements that the store reads, and for which purpose; without the old value of the
    /// element that it updates. The one definition of what a store reads.
    #[must_use]
    pub fn reads(&self) -> Vec<(Use, &Read)> {
        let mut all = Vec::new();
        self.walk_reads(&mut |what, read| all.push((what, read)));
        all
    }

    /// Calls `visit` with every element that the store reads, as [`Store::reads`] lists them.
    pub fn walk_reads<'a>(&'a self, visit: &mut impl FnMut(Use, &'a Read)) {
        let mut look = |what: Use, expr: &'a Expr| expr.walk_reads(&mut |read| visit(what, read));
        look(Use::Value, &self.value);
        self.init.iter().for_each(|init| look(Use::Start, init));
        let bounds = self.domain.iter().map(|bound| &bound.index);
        for index in self.subscripts.iter().chain(bounds).chain(&self.mask) {
            index.outermost_values().into_iter().for_each(|value| look(Use::Place, value));
        }
    }

    /// Whether the store is a recurrence: its value depends on other elements of its own buffer.
    #[must_use]
    pub fn is_recurrence(&self) -> bool {
        self.does_read(self.buffer)
    }

    /// Whether the store is one of a scatter.
    #[must_use]
    pub fn is_scatter(&self) -> bool {
        self.scatter.is_some()
    }

    /// The written element, as a checked read; `None` if it needs no check.
    #[must_use]
    pub fn checked_element(&self) -> Option<Read> {
        let Scatter { checked, place, .. } = self.scatter.as_deref()?;
        let (tensor, subscripts) = (self.buffer, self.subscripts.clone());
        let read = Read { tensor, subscripts, checked: checked.clone(), place: *place };
        (!checked.is_empty()).then_some(read)
    }

    /// Whether the store reads a buffer.
    #[must_use]
    pub fn does_read(&self, buffer: BufferId) -> bool {
        let mut found = false;
        self.walk_reads(&mut |_, read| found |= read.tensor == buffer);
        found
    }
}
