//! How the accesses of a stage move with its loops.

use tensorwright_lang::program::{Expr, Index};

use super::placement::find;
use crate::nest::{BufferId, LoopNest, Role, Var};
use crate::primitives::loops_of;

/// A loop of a stage.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) var: Var,
    pub(super) extent: i64,
    pub(super) role: Role,
}

/// A read or the write of a stage, as a position in memory.
#[derive(Debug, Clone)]
pub(super) struct Access {
    pub(super) buffer: BufferId,
    offset: Option<Index>,
}

/// What a stage does: its loops, its reads, its write.
#[derive(Debug, Clone)]
pub(super) struct Accesses {
    pub(super) axes: Vec<Axis>,
    pub(super) reads: Vec<Access>,
    pub(super) write: Access,
}

impl Accesses {
    pub(super) fn of(nest: &LoopNest, stage: &str) -> Option<Self> {
        let store = find(nest, stage)?;
        let axis = |l: &&crate::nest::Loop| Axis {
            name: nest.var_name(l.var).to_owned(),
            var: l.var,
            extent: l.extent,
            role: l.role,
        };
        let own = |l: &&&crate::nest::Loop| l.stage == Some(store.buffer);
        let axes = loops_of(nest, stage).iter().filter(own).map(axis).collect();
        let mut reads: Vec<Access> = Vec::new();
        let mut look = |expr: &Expr| {
            expr.walk_reads(&mut |read| {
                let gathers = read.subscripts.iter().any(Index::has_value);
                let offset = nest.buffer(read.tensor).offset(&read.subscripts);
                let offset = offset.filter(|_| !gathers);
                reads.push(Access { buffer: read.tensor, offset });
            });
        };
        look(&store.value);
        let offset = nest.buffer(store.buffer).offset(&store.subscripts);
        Some(Self { axes, reads, write: Access { buffer: store.buffer, offset } })
    }

    /// The loops of a role.
    pub(super) fn of_role(&self, role: Role) -> impl Iterator<Item = &Axis> {
        self.axes.iter().filter(move |axis| axis.role == role)
    }

    /// The reads that are neither contiguous nor constant along a loop.
    pub(super) fn strided(&self, axis: &Axis) -> Vec<&Access> {
        self.reads.iter().filter(|read| !matches!(read.stride(axis), Some(0 | 1))).collect()
    }

    /// Whether some reads change with a loop and others do not: the others are reused by a tile.
    pub(super) fn has_reuse(&self, axis: &Axis) -> bool {
        let still = self.reads.iter().filter(|read| read.stride(axis) == Some(0)).count();
        still > 0
    }
}

impl Access {
    /// How far the position moves with an iteration of a loop; `None` if that differs.
    pub(super) fn stride(&self, axis: &Axis) -> Option<i64> {
        self.offset.as_ref()?.coefficient_of(axis.var)
    }
}
