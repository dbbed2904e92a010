//! Checks that a warp can execute tensor operations on register tiles.
//!
//! ```text
//! thread.y for m.1 {                                           warps, of 32 threads in direction x
//!   float C.tile[16][16];                                      of a warp: 8 elements of each thread
//!   tensor for m.2 { tensor for n.2 { C.tile(..) = 0; } }
//!   for k.0 { tensor for m.2 { tensor for n.2 { tensor for k.1 { C.tile(..) += ..; } } } }
//!   tensor for m.2 { tensor for n.2 { C(..) = C.tile(..); } }
//! ```
//!
//! No loop of the nest numbers the threads of a warp, because the device decides which thread holds
//! which element: an operation takes all of direction x, and the loops around it number warps.
//! [`Buffer::fragment`](crate::nest::Buffer::fragment) marks buffers that are tiles in registers.

use std::collections::BTreeMap;

use tensorwright_lang::dtype::DType;

use super::{DeviceError, block_of, holds_tensors};
use crate::lower::LowerError;
use crate::nest::{
    BufferId, Dim, Fragment, Loop, LoopKind, LoopNest, Memory, Node, Placed, Store, TensorOp,
    TensorWork, Var, WARP, for_each_loop,
};

pub(in crate::lower) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    let fragments = found(nest).map_err(LowerError::Device)?;
    for (id, fragment) in fragments {
        let buffer = &mut nest.buffers[id.0 as usize];
        buffer.memory = Some(Memory::Stack);
        buffer.fragment = Some(fragment.tiles);
        buffer.by_thread = fragment.by_thread;
    }
    Ok(())
}

const TILES: &str = "accumulate in a tile of the warp: `cache_write` in a bound loop, or inside of one, around the sum";

/// Tiles in registers, and the warps that own them.
#[derive(Debug, Clone)]
struct Tiles {
    tiles: Fragment,
    /// The dimensions that number warps.
    by_thread: Vec<usize>,
}

fn found(nest: &LoopNest) -> Result<BTreeMap<BufferId, Tiles>, DeviceError> {
    let mut fragments = BTreeMap::new();
    for node in nest.prepare.iter().chain(&nest.body) {
        let tree = std::slice::from_ref(node);
        if !holds_tensors(tree) {
            continue;
        }
        let mut pass = Pass { nest, ops: Vec::new(), others: Vec::new() };
        pass.nodes(tree, ThreadLoops::default())?;
        let block = block_of(tree);
        for (op, around) in &pass.ops {
            pass.threads(op, around, tree, block)?;
            pass.in_registers(op)?;
            pass.memory(op)?;
            if let TensorWork::MultiplyAdd { a, .. } = op.work {
                let id = op.tile().0;
                let factors = nest.dtype(a.tensor);
                fragments.insert(id, pass.tiles(id, op, factors, block)?);
            }
        }
        for (op, _) in &pass.ops {
            let id = op.tile().0;
            if !fragments.contains_key(&id) {
                let name = &nest.buffer(id).name;
                return Err(pass.refuse(
                    op,
                    format!("no tensor operation adds products to `{name}`"),
                    "leave its loops as they are, or make those of the sum an operation too",
                ));
            }
        }
    }
    Ok(fragments)
}

/// The thread loops around an operation.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadLoops<'a> {
    /// The loops over threads, by direction.
    threads: [Option<&'a Loop>; 3],
    /// The outermost of them.
    outermost: Option<&'a Loop>,
}

struct Pass<'a> {
    nest: &'a LoopNest,
    ops: Vec<(TensorOp<'a>, ThreadLoops<'a>)>,
    /// Other stores.
    others: Vec<&'a Store>,
}

impl<'a> Pass<'a> {
    fn nodes(&mut self, nodes: &'a [Node], around: ThreadLoops<'a>) -> Result<(), DeviceError> {
        for node in nodes {
            match node {
                Node::Loop(l) if l.kind == LoopKind::Tensor => {
                    let op = TensorOp::of(self.nest, l).map_err(|why| DeviceError::Tensor {
                        stage: self.stage(l),
                        why,
                        help: "split by 16 first, which has to divide the extent",
                    })?;
                    self.ops.push((op, around));
                }
                Node::Loop(l) => {
                    let mut inner = around;
                    if let LoopKind::Thread(dim) = l.kind {
                        inner.threads[dim.place()] = Some(l);
                        inner.outermost = inner.outermost.or(Some(l));
                    }
                    self.nodes(&l.body, inner)?;
                }
                Node::Guard(guard) => self.nodes(&guard.body, around)?,
                Node::Store(store) => self.others.push(store),
                Node::Prefetch(_) | Node::Barrier => {}
            }
        }
        Ok(())
    }

    /// Direction x belongs to the warp, and all its threads take part.
    fn threads(
        &self,
        op: &TensorOp<'_>,
        around: &ThreadLoops<'_>,
        tree: &[Node],
        block: [i64; 3],
    ) -> Result<(), DeviceError> {
        if let Some(l) = around.threads[Dim::X.place()] {
            let name = self.nest.var_name(l.var);
            return Err(self.refuse(
                op,
                format!("loop `{name}` around it is bound to thread.x, whose 32 threads are the warp that does it"),
                "bind warps to thread.y, and nothing around the operation to thread.x",
            ));
        }
        if block[Dim::X.place()] != WARP {
            let mut widest = String::new();
            for_each_loop(tree, &mut |l| {
                if l.kind == LoopKind::Thread(Dim::X) && l.extent > WARP {
                    self.nest.var_name(l.var).clone_into(&mut widest);
                }
            });
            return Err(self.refuse(
                op,
                format!(
                    "loop `{widest}` beside it makes blocks of {} threads in direction x, and a warp has {WARP}",
                    block[Dim::X.place()]
                ),
                "split it by 32, and bind the outer part to thread.y",
            ));
        }
        let Some(outermost) = around.outermost else { return Ok(()) };
        if let Some(other) = other_store(&outermost.body) {
            let (name, warps) =
                (&self.nest.buffer(other.buffer).name, self.nest.var_name(outermost.var));
            return Err(self.refuse(
                op,
                format!("`{name}` is computed one by one in the same loop `{warps}` over warps"),
                "compute it in thread loops of its own, beside those of the operation",
            ));
        }
        Ok(())
    }

    /// Operand and result tiles are in memory that the whole warp can access, in a layout of the
    /// device.
    fn memory(&self, op: &TensorOp<'_>) -> Result<(), DeviceError> {
        let placed = |id: BufferId, subscripts: &[_], rows: Var, columns: Var| {
            let buffer = self.nest.buffer(id);
            if buffer.memory == Some(Memory::Stack) {
                return Err(self.refuse(
                    op,
                    format!(
                        "`{}` is a thread's own, and all threads of the warp access it",
                        buffer.name
                    ),
                    "compute it in a loop between blocks and threads, where it is shared",
                ));
            }
            Placed::of(buffer, subscripts, rows, columns).map(drop).map_err(|why| {
                let help = "copy it by `cache_read` or lay it out so that rows or columns are contiguous and 16 bytes apart";
                self.refuse(op, why, help)
            })
        };
        match op.work {
            TensorWork::Fill(_) => Ok(()),
            TensorWork::Write(_) => placed(op.store.buffer, &op.store.subscripts, op.m, op.n),
            TensorWork::MultiplyAdd { k, a, b } => {
                placed(a.tensor, &a.subscripts, op.m, k)?;
                placed(b.tensor, &b.subscripts, k, op.n)
            }
        }
    }

    /// Accumulators are in registers of a warp, not in memory.
    fn in_registers(&self, op: &TensorOp<'_>) -> Result<(), DeviceError> {
        let buffer = self.nest.buffer(op.tile().0);
        match buffer.memory {
            Some(Memory::Stack | Memory::Shared) if !buffer.is_shared => Ok(()),
            _ => {
                let why = format!("`{}` is in memory, and sums are in registers", buffer.name);
                Err(self.refuse(op, why, TILES))
            }
        }
    }

    /// An accumulator is in registers: only operations of one warp access it.
    fn tiles(
        &self,
        id: BufferId,
        adds: &TensorOp<'_>,
        factors: DType,
        block: [i64; 3],
    ) -> Result<Tiles, DeviceError> {
        let buffer = self.nest.buffer(id);
        let name = &buffer.name;
        let accesses = |store: &&&Store| store.buffer == id || store.does_read(id);
        if let Some(other) = self.others.iter().find(accesses) {
            let other = &self.nest.buffer(other.buffer).name;
            let why = format!("`{other}` accesses elements of the tile `{name}` one by one");
            return Err(self.refuse(
                adds,
                why,
                "write the tile to memory as an operation too: `tensorize m n` of the copy",
            ));
        }
        let own: Vec<_> = self.ops.iter().filter(|(op, _)| op.tile().0 == id).collect();
        let other_read = self
            .ops
            .iter()
            .find(|(op, _)| op.tile().0 != id && (op.store.buffer == id || op.store.does_read(id)));
        let dimensions = dimensions(adds);
        let is_same = own.iter().all(|(op, _)| self::dimensions(op) == dimensions);
        let Some(dimensions) = dimensions.filter(|_| is_same && other_read.is_none()) else {
            let why =
                format!("`{name}` is accessed in other ways than as one tile of rows and columns");
            return Err(self.refuse(adds, why, TILES));
        };
        let mut by_thread = Vec::new();
        if buffer.memory == Some(Memory::Shared) {
            for place in [Dim::Y.place(), Dim::Z.place()] {
                if block[place] == 1 || own.iter().all(|(_, at)| at.threads[place].is_none()) {
                    continue;
                }
                let is_own = |dimension: &usize| {
                    own.iter().all(|(op, at)| {
                        let index = &op.tile().1[*dimension];
                        at.threads[place].is_some_and(|l| index.as_axis() == Some(l.var))
                    })
                };
                let Some(dimension) = (0..buffer.shape.len()).find(is_own) else {
                    let why = format!("several warps access one tile of `{name}`");
                    return Err(self.refuse(adds, why, TILES));
                };
                by_thread.push(dimension);
            }
            by_thread.sort_unstable();
        }
        let of_other = |op: &TensorOp<'_>| match op.work {
            TensorWork::MultiplyAdd { a, .. } => self.nest.dtype(a.tensor) != factors,
            TensorWork::Fill(_) | TensorWork::Write(_) => false,
        };
        if own.iter().any(|(op, _)| of_other(op)) {
            let why = format!("products of different types are added to `{name}`");
            return Err(self.refuse(adds, why, TILES));
        }
        Ok(Tiles { tiles: Fragment { dimensions, factors }, by_thread })
    }

    fn stage(&self, l: &Loop) -> String {
        l.stage.map_or_else(String::new, |stage| self.nest.buffer(stage.0).name.clone())
    }

    fn refuse(&self, op: &TensorOp<'_>, why: String, help: &'static str) -> DeviceError {
        let stage = self.nest.buffer(op.store.buffer).name.clone();
        DeviceError::Tensor { stage, why, help }
    }
}

/// The dimensions of a tile's rows and columns; `None` if it is accessed in another way.
fn dimensions(op: &TensorOp<'_>) -> Option<[usize; 2]> {
    let subscripts = op.tile().1;
    let place = |var: Var| subscripts.iter().position(|index| index.as_axis() == Some(var));
    let found = [place(op.m)?, place(op.n)?];
    let is_tile = |var: Var| var == op.m || var == op.n;
    let others = subscripts.iter().enumerate().filter(|(place, _)| !found.contains(place));
    others.into_iter().all(|(_, index)| !index.mentions(&is_tile)).then_some(found)
}

/// A store outside of tensor operations.
fn other_store(nodes: &[Node]) -> Option<&Store> {
    nodes.iter().find_map(|node| match node {
        Node::Loop(l) if l.kind == LoopKind::Tensor => None,
        Node::Loop(l) => other_store(&l.body),
        Node::Guard(guard) => other_store(&guard.body),
        Node::Store(store) => Some(store),
        Node::Prefetch(_) | Node::Barrier => None,
    })
}
