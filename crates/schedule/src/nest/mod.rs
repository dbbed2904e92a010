//! The loop nest: loops over stores, and the buffers they touch.
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
pub use ranges::{Ranges, Simplify};
pub use shared::Shared;
pub use size::Size;
pub use table::Table;
pub(crate) use tensor::factors;
pub use tensor::{Placed, TILE, TensorOp, TensorWork};
pub use uses::Uses;
pub use walk::{for_each_loop, for_each_store, for_each_store_mut, substitute};
pub(crate) use walk::{rewrite_nodes, rewrite_store};

use std::fmt;
use std::sync::Arc;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{AxisId, Expr, FixedScalar, Index, Location, Read, TensorId};

/// What a nest or a loop holds, one node after the other.
pub type Body = Shared<Node>;

/// A loop variable, by its number in [`LoopNest::vars`].
pub type Var = AxisId;

/// A buffer, by its number in [`LoopNest::buffers`].
pub type BufferId = TensorId;

/// A stage, by the buffer that it makes.
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
    /// What the caller passes: inputs, then outputs, then prepared buffers.
    pub parameters: Vec<BufferId>,
    /// The inputs whose values do not change between calls.
    pub constants: Vec<BufferId>,
    /// The parameters of the definition that are numbers in the loops.
    pub fixed: Vec<FixedScalar>,
    /// What runs once, ahead of all calls: it fills the prepared buffers from `const` inputs.
    pub prepare: Body,
    /// What runs at every call.
    pub body: Body,
    /// By how much the bound on rounding errors exceeds that of the program's own sums on data of one
    /// magnitude: rewritings that compute with other numbers than the program names raise it above
    /// one. On other data it is an estimate.
    pub error_growth: f64,
    /// The part of it that plain loops do not show: how [tensor operations](TensorOp) round.
    pub rounding_growth: f64,
    /// How large the canonical nest of the program is: what [limits](crate::limits) always allow.
    pub own: Size,
    /// How the nest runs on a device; only after [lowering](crate::lower()) for one.
    pub launches: Option<Launches>,
    /// What stands around the body where a [`Window`](crate::Window) shows a piece of it.
    pub(crate) hidden: Arc<HiddenTrees>,
}

/// A step of a nest.
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
    /// The threads of a block wait for each other; only in a [launch](Launch), outside of thread loops.
    Barrier,
}

/// A loop whose variable runs from 0 to below `extent` in steps of one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Loop {
    /// The variable.
    pub var: Var,
    /// The number of iterations; at least one.
    pub extent: i64,
    /// The stage whose loop it is.
    pub stage: Option<StageId>,
    /// How the iterations run.
    pub kind: LoopKind,
    /// Whether the iterations make different elements, in which order, or terms of the same ones.
    pub role: Role,
    /// The stages that share the loop with its own and that its iterations make terms of, whatever its role.
    pub terms_of: Vec<StageId>,
    /// Whether lowering splits off the last iteration, so that the others need no guard.
    pub peel: bool,
    /// Whether consecutive iterations may make the same elements again (a tail that is shifted
    /// inwards).
    pub overlaps: bool,
    /// Whether an iteration reads what those before it left in a buffer of the loop around (a sliding window), so that
    /// they run in order.
    pub slides: bool,
    /// The buffers that live for one iteration.
    pub locals: Vec<BufferId>,
    /// What runs at each iteration.
    pub body: Body,
}

/// How the iterations of a loop run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// One after the other.
    Serial,
    /// In any order, by several workers.
    Parallel,
    /// In any order, by the blocks of a grid of a device.
    Block(Dim),
    /// In any order, by the threads of a block of a device.
    Thread(Dim),
    /// Written out one after the other; gone after lowering.
    Unrolled,
    /// As the lanes of vectors; gone after lowering, where stores have [`Store::lanes`].
    Vectorized,
    /// In any order, with those of the other loops of a [tensor operation](TensorOp), by a warp of threads of a device;
    /// one after the other everywhere else.
    Tensor,
}

/// A direction in which blocks and threads of a device are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dim {
    /// The one in which neighbours run together.
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

    /// The place in lists of extents, `x` first.
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

/// The kind as schedules and nests spell it.
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

/// What the iterations of a loop have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// They make different elements and do not depend on each other.
    Spatial,
    /// They make terms of the same elements.
    Reduce,
    /// They make different elements, each from those of earlier iterations: a recurrence. They run in
    /// order, one after the other, and so do the loops that it is split into.
    Scan,
}

/// Nodes that run only where all conditions hold.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Guard {
    /// Each must be at least zero. No values from data occur in them.
    pub conditions: Vec<Index>,
    /// What runs then.
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
    /// With an operator the value is combined with what the element holds; without, it replaces it.
    pub combine: Option<ReductionOp>,
    /// The value.
    pub value: Expr,
    /// What a reduction starts from; lowering makes a store of its own of it.
    pub init: Option<Expr>,
    /// Where the store takes place; lowering turns it into guards and masks.
    pub domain: Vec<Bound>,
    /// What makes it the store of a scatter.
    pub scatter: Option<Box<Scatter>>,
    /// The lanes of a vector store; only after lowering. Where no subscript depends on the lane,
    /// all lanes are combined into one element, and there is an operator to combine them with.
    pub lanes: Option<Lanes>,
    /// Conditions that depend on the lane: only lanes where each is at least zero take part. Reads
    /// by other lanes must not happen. Only after lowering.
    pub mask: Vec<Index>,
}

/// The store of a scatter: in some dimensions, which element a term goes to is up to the term. So terms of
/// one element are anywhere, and another store gives all elements their start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scatter {
    /// The dimensions.
    pub dimensions: Vec<u32>,
    /// Those of them that data may leave, so that they are checked when the kernel runs.
    pub checked: Vec<u32>,
    /// Where the source text says where terms go.
    pub place: Location,
}

/// A condition under which a store takes place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// At least zero where the condition holds.
    pub index: Index,
    /// Whether the store may take place elsewhere too, as long as nothing is accessed out of
    /// bounds: what it writes there is padding that nobody reads (a tail that is rounded up).
    pub padding: bool,
    /// Whether it limits the terms of the store's reduction and not its elements: the reduction
    /// starts everywhere.
    pub term: bool,
}

/// What a store reads an element for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// Its value.
    Value,
    /// What its reduction starts from.
    Start,
    /// Where it writes, and whether.
    Place,
}

/// The lanes of a vector store: `var` takes the values 0 to below `count` at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    /// The variable that numbers the lanes; it occurs in the expressions of the store.
    pub var: Var,
    /// The number of lanes.
    pub count: i64,
    /// Whether they are steps of a recurrence: each reads what the one before it writes. The value is then a
    /// [`Running`](tensorwright_lang::program::Running) one, whose terms may be combined in any order.
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

    /// Adds a buffer.
    pub fn add_buffer(&mut self, buffer: Buffer) -> BufferId {
        self.buffers.push(buffer);
        TensorId(self.buffers.len() as u32 - 1)
    }

    /// Whether the nest is in the form that emitters take.
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
        let terms_of = Vec::new();
        Self { var, extent, stage, kind, role, terms_of, peel, overlaps, slides, locals, body }
    }

    /// The loop without what it holds.
    #[must_use]
    pub(crate) fn shell(&self) -> Self {
        Self { body: Body::default(), locals: Vec::new(), ..self.clone() }
    }

    /// The loop as one of a stage.
    #[must_use]
    pub fn of(mut self, stage: StageId) -> Self {
        self.stage = Some(stage);
        self
    }
}

impl Loop {
    /// Whether the iterations make terms of the elements of a stage. The outermost such loop around a
    /// store is where its reduction begins: [`Store::init`] is stored ahead of it.
    #[must_use]
    pub fn reduces(&self, stage: StageId) -> bool {
        self.role == Role::Reduce && self.stage == Some(stage) || self.terms_of.contains(&stage)
    }

    /// Takes over the buffers of loops inside that are no more. Copies of a loop share them.
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

    /// The stage that it belongs to.
    #[must_use]
    pub fn stage(&self) -> StageId {
        StageId(self.buffer)
    }

    /// The elements that the store reads, and what for; not the old value of the element that it
    /// combines with. All that asks what is read asks here.
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

    /// Whether the store is a recurrence: its value is computed from other elements of its own buffer.
    #[must_use]
    pub fn is_recurrence(&self) -> bool {
        self.does_read(self.buffer)
    }

    /// Whether the store is one of a scatter.
    #[must_use]
    pub fn is_scatter(&self) -> bool {
        self.scatter.is_some()
    }

    /// The element that is written, as a read whose subscripts are checked; `None` if none has to be.
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
