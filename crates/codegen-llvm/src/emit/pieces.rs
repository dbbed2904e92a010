//! Splits large kernels into several functions.
//!
//! ```text
//! kernel.body(..):             kernel.piece(buffers.., workspace, private, error, pool, 0, 0):
//!   kernel.piece(..)             the loops of some trees
//!   kernel.piece.1(..)
//! ```
//!
//! The run time of LLVM is superlinear in the size of a function, and values computed at its start
//! stay live until its end.

use inkwell::values::BasicMetadataValueEnum;
use tensorwright_schedule::nest::{Node, Ranges};

use super::Emitter;
use super::function::{Captures, Frame, declare_inner, is_in_pieces};
use crate::error::Result;

/// The trees of a piece.
const PIECE: usize = 32;

impl<'ctx> Emitter<'_, 'ctx> {
    /// Emits the trees of a kernel.
    pub(super) fn trees(&mut self, trees: &[Node]) -> Result<()> {
        match is_in_pieces(trees) {
            true => trees.chunks(PIECE).try_for_each(|trees| self.piece(trees)),
            false => self.nodes(trees),
        }
    }

    /// Emits some trees as a function, and calls it.
    fn piece(&mut self, trees: &[Node]) -> Result<()> {
        let mut captures = Captures::of(trees);
        captures.buffers = self.captured(trees, Vec::new(), captures.buffers)?;
        let mut args: Vec<BasicMetadataValueEnum<'ctx>> = Vec::new();
        for id in &captures.buffers {
            args.push(self.pointer(*id)?.into());
        }
        let environment = self.frame.environment;
        let passed =
            [environment.workspace, environment.private, environment.error, environment.pool];
        args.extend(passed.map(BasicMetadataValueEnum::from));
        args.extend([self.ir.i64(0), self.ir.i64(0)].map(BasicMetadataValueEnum::from));

        let here = self.block()?;
        let name = self.frame.function.get_name().to_string_lossy().replace(".body", ".piece");
        let function = declare_inner(&self.ir, &name, &captures);
        self.describe(function, &captures)?;
        let frame = Frame::enter(&self.ir, function, &captures, Ranges::default())?;
        let outer = std::mem::replace(&mut self.frame, frame);
        self.open_level()?;
        self.nodes(trees)?;
        self.ir.builder.build_return(None)?;
        self.close_level();
        self.frame = outer;
        self.ir.builder.position_at_end(here);
        self.ir.builder.build_call(function, &args, "")?;
        Ok(())
    }
}
