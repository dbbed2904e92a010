//! Splits large kernels into several functions.
//!
//! ```text
//! kernel(list, workspace, pool):
//!   kernel.piece(list, workspace, private, error, pool, stack buffers..)
//!   kernel.piece.1(..)
//!
//! kernel.piece(..):            kernel.piece.body(buffers.., workspace, private, error, pool, 0, 0):
//!   load buffers.. from list     the loops of some trees
//!   kernel.piece.body(..)
//! ```
//!
//! The run time of LLVM is superlinear in the size of a function, and values computed at its start
//! stay live until its end. So each piece loads the addresses that it needs: a kernel of many
//! outputs would load all of them in one block.

use inkwell::AddressSpace;
use inkwell::module::Linkage;
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, FunctionValue};
use tensorwright_schedule::nest::{BufferId, Node};

use super::Emitter;
use super::function::{Captures, Environment, Exported, parameter};
use crate::error::Result;

/// The trees of a piece.
const PIECE: usize = 32;

impl<'ctx> Emitter<'_, 'ctx> {
    /// Emits the trees of a kernel in pieces.
    pub(super) fn pieces(&mut self, trees: &[Node], exported: &Exported<'ctx>) -> Result<()> {
        self.open_level()?;
        trees.chunks(PIECE).try_for_each(|trees| self.piece(trees, exported))?;
        self.close_level();
        Ok(())
    }

    /// Emits some trees as a function, and calls it.
    fn piece(&mut self, trees: &[Node], exported: &Exported<'ctx>) -> Result<()> {
        let mut captures = Captures::of(trees);
        captures.buffers = self.captured(trees, Vec::new(), captures.buffers)?;
        captures.vars = self.nest.passed_numbers().collect();
        let is_on_stack = |id: &BufferId| !exported.positions.contains_key(id);
        let on_stack: Vec<BufferId> =
            captures.buffers.iter().copied().filter(is_on_stack).collect();
        let mut args: Vec<BasicMetadataValueEnum<'ctx>> = vec![exported.list.into()];
        args.extend(self.frame.environment.pointers());
        for id in &on_stack {
            args.push(self.pointer(*id)?.into());
        }
        let name = format!("{}.piece", exported.function.get_name().to_string_lossy());
        let body = self.body(&format!("{name}.body"), trees, &captures)?;
        let here = self.block()?;
        let piece = self.piece_of(&name, body, &captures, &on_stack, exported)?;
        self.ir.builder.position_at_end(here);
        self.ir.builder.build_call(piece, &args, "")?;
        Ok(())
    }

    /// Emits the function that loads the addresses for the body of a piece.
    fn piece_of(
        &self,
        name: &str,
        body: FunctionValue<'ctx>,
        captures: &Captures,
        on_stack: &[BufferId],
        exported: &Exported<'ctx>,
    ) -> Result<FunctionValue<'ctx>> {
        let ir = &self.ir;
        let pointer = ir.context.ptr_type(AddressSpace::default());
        let kinds = vec![BasicMetadataTypeEnum::from(pointer); 5 + on_stack.len()];
        let kind = ir.context.void_type().fn_type(&kinds, false);
        let piece = ir.module.add_function(name, kind, Some(Linkage::Internal));
        ir.target.annotate(piece);
        ir.builder.position_at_end(ir.context.append_basic_block(piece, ""));
        let list = parameter(piece, 0)?;
        let mut args: Vec<BasicMetadataValueEnum<'ctx>> = Vec::new();
        for id in &captures.buffers {
            let address = match on_stack.iter().position(|known| known == id) {
                Some(position) => parameter(piece, 5 + position as u32)?,
                None => exported.load(ir, list, *id)?,
            };
            args.push(address.into());
        }
        let numbers = exported.numbers(ir, list, self.nest)?;
        args.extend(numbers.into_iter().map(|(_, value)| BasicMetadataValueEnum::from(value)));
        args.extend(Environment::of(piece, 1)?.arguments(ir));
        ir.builder.build_call(body, &args, "")?;
        ir.builder.build_return(None)?;
        Ok(piece)
    }
}
