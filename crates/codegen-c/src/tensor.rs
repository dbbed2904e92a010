//! Emits tensor operations of a device.
//!
//! ```c
//! nvcuda::wmma::load_matrix_sync(tw_a, (const __half *)(A_pack + 256 * m_1), 16);
//! nvcuda::wmma::load_matrix_sync(tw_b, (const __half *)(B_pack), 16);
//! nvcuda::wmma::mma_sync(C_tile[0], tw_a, tw_b, C_tile[0]);
//! ```
//!
//! In dialects without tensor operations, the loops are plain ones, which the first thread of each
//! warp runs.

use tensorwright_schedule::nest::{
    Buffer, BufferId, Loop, LoopKind, Node, Placed, TensorOp, TensorWork, Var, for_each_loop,
};

use crate::dialect::{DeviceSyntax, TensorSyntax, Tile};
use crate::emitter::Emitter;
use crate::error::EmitError;
use crate::types::literal;

impl Emitter<'_> {
    /// The syntax of tensor operations; `None` if they are plain loops.
    pub(crate) fn tensors(&self) -> Option<&'static dyn TensorSyntax> {
        self.launch.and_then(|kernel| kernel.device.tensors())
    }

    /// The tensor operation of a loop nest, given its outermost loop.
    pub(crate) fn tensor_op(
        &mut self,
        l: &Loop,
        syntax: &'static dyn TensorSyntax,
    ) -> Result<(), EmitError> {
        let op = TensorOp::of(self.nest, l).map_err(EmitError::malformed)?;
        let (id, subscripts) = op.tile();
        let fragment = self.fragment(id, subscripts)?;
        let lines = match op.work {
            TensorWork::Fill(value) => syntax.fill(&fragment, &literal(value)),
            TensorWork::MultiplyAdd { k, a, b } => {
                let dtype = self.buffer(a.tensor)?.dtype;
                let a = self.tile(a.tensor, &a.subscripts, op.m, k)?;
                let b = self.tile(b.tensor, &b.subscripts, k, op.n)?;
                syntax.multiply_add(&fragment, dtype, &a, &b)
            }
            TensorWork::Write(_) => {
                let tile = self.tile(op.store.buffer, &op.store.subscripts, op.m, op.n)?;
                syntax.write(&fragment, &tile)
            }
        };
        self.lines.open("");
        lines.into_iter().for_each(|line| self.lines.line(line));
        self.lines.close();
        Ok(())
    }

    /// The dimensions of a buffer that number its tiles in registers, with their extents; `None` if
    /// it is not in registers.
    pub(crate) fn fragments(&self, buffer: &Buffer) -> Option<Vec<(usize, i64)>> {
        let tiles = buffer.fragment.filter(|_| self.tensors().is_some())?;
        let held = self.held(buffer).into_iter();
        Some(held.filter(|(dimension, _)| !tiles.dimensions.contains(dimension)).collect())
    }

    /// A tile in registers.
    fn fragment(
        &mut self,
        id: BufferId,
        subscripts: &[tensorwright_lang::program::Index],
    ) -> Result<String, EmitError> {
        let buffer = self.buffer(id)?;
        let missing = || EmitError::malformed(format!("`{}` is not in registers", buffer.name));
        let dimensions = self.fragments(buffer).ok_or_else(missing)?;
        let number = self.part_offset(buffer, &dimensions, subscripts)?;
        let number = self.index(&number)?.into_code();
        Ok(format!("{}[{number}]", self.names.buffer(id)))
    }

    /// A tile in memory.
    fn tile(
        &mut self,
        id: BufferId,
        subscripts: &[tensorwright_lang::program::Index],
        rows: Var,
        columns: Var,
    ) -> Result<Tile, EmitError> {
        let placed = Placed::of(self.buffer(id)?, subscripts, rows, columns)
            .map_err(EmitError::malformed)?;
        let start = self.index(&placed.start)?.into_code();
        let name = self.names.buffer(id);
        let start = if start == "0" { name.to_owned() } else { format!("{name} + {start}") };
        Ok(Tile { start, leading: placed.leading, is_row_major: placed.is_row_major })
    }
}

/// Whether nodes contain tensor operations that a dialect supports.
pub(crate) fn holds_tensors(nodes: &[Node], device: &dyn DeviceSyntax) -> bool {
    let mut found = false;
    for_each_loop(nodes, &mut |l| found |= l.kind == LoopKind::Tensor);
    found && device.tensors().is_some()
}
