//! Distributes block-local buffers over the registers of threads.
//!
//! ```text
//! block.x for n.0 {
//!   float C.tile[16][16][4][4];                     shared by the block      float C.tile[4][4] of each thread
//!   for k.0 { thread.y for m.1 { thread.x for n.1 { .. C.tile(m.1, n.1, m.2, n.2) += ..; } } }
//!   thread.y for m.1 { thread.x for n.1 { .. C(..) = C.tile(m.1, n.1, m.2, n.2); } }
//! ```
//!
//! This applies if every thread accesses its own elements only. The nest keeps the dimensions that
//! are thread indices, and emitters for devices drop them
//! ([`Buffer::by_thread`](crate::nest::Buffer::by_thread)).

use super::{block_of, has_bound};
use crate::lower::LowerError;
use crate::nest::{BufferId, LoopNest, Memory, Node, Store, Var};
use tensorwright_lang::program::{Index, TensorId};

pub(in crate::lower) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    let mut own: Vec<(usize, Vec<usize>)> = Vec::new();
    for (place, buffer) in nest.buffers.iter().enumerate() {
        if buffer.memory == Some(Memory::Shared) && !buffer.is_shared {
            let id = TensorId(place as u32);
            own.extend(dimensions(nest, id).map(|dimensions| (place, dimensions)));
        }
    }
    for (place, dimensions) in own {
        let buffer = &mut nest.buffers[place];
        buffer.memory = Some(Memory::Stack);
        buffer.by_thread = dimensions;
    }
    Ok(())
}

/// The dimensions that are thread indices in all accesses; `None` if threads share elements.
fn dimensions(nest: &LoopNest, id: BufferId) -> Option<Vec<usize>> {
    let mut accesses = Accesses { id, found: Vec::new() };
    let mut block = [1; 3];
    for node in &nest.body {
        let tree = std::slice::from_ref(node);
        let before = accesses.found.len();
        accesses.nodes(tree, [None; 3]);
        if accesses.found.len() > before {
            if !has_bound(tree) {
                return None;
            }
            let extents = block_of(tree);
            block = std::array::from_fn(|place| block[place].max(extents[place]));
        }
    }
    let (first, _) = accesses.found.first()?;
    let mut own = Vec::new();
    for (place, _) in block.iter().enumerate().filter(|(_, extent)| **extent > 1) {
        let is_own = |dimension: &usize| {
            accesses.found.iter().all(|(subscripts, threads)| {
                let thread = threads[place];
                thread.is_some() && subscripts[*dimension].as_axis() == thread
            })
        };
        own.push((0..first.len()).find(is_own)?);
    }
    own.sort_unstable();
    Some(own)
}

/// The accesses to a buffer, with the enclosing thread loops.
struct Accesses {
    id: BufferId,
    found: Vec<(Vec<Index>, [Option<Var>; 3])>,
}

impl Accesses {
    fn nodes(&mut self, nodes: &[Node], threads: [Option<Var>; 3]) {
        for node in nodes {
            match node {
                Node::Loop(l) => {
                    let mut inner = threads;
                    if let crate::nest::LoopKind::Thread(dim) = l.kind {
                        inner[dim.place()] = Some(l.var);
                    }
                    self.nodes(&l.body, inner);
                }
                Node::Guard(guard) => self.nodes(&guard.body, threads),
                Node::Store(store) => self.store(store, threads),
                Node::Prefetch(_) | Node::Barrier => {}
            }
        }
    }

    fn store(&mut self, store: &Store, threads: [Option<Var>; 3]) {
        if store.buffer == self.id {
            self.found.push((store.subscripts.clone(), threads));
        }
        store.walk_reads(&mut |_, read| {
            if read.tensor == self.id {
                self.found.push((read.subscripts.clone(), threads));
            }
        });
    }
}
