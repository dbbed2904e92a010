//! Emits loops, guards and prefetches.

use inkwell::IntPredicate;
use inkwell::values::{BasicValue as _, IntValue};
use tensorwright_lang::program::Index;
use tensorwright_schedule::nest::{Guard, Loop, LoopKind, Memory, Node, Prefetch};

use super::function::Variable;
use super::ir::defect;
use super::{Active, Emitter};
use crate::error::{Error, Result};

impl<'ctx> Emitter<'_, 'ctx> {
    pub(super) fn nodes(&mut self, nodes: &[Node]) -> Result<()> {
        nodes.iter().try_for_each(|node| match node {
            Node::Loop(inner) => self.a_loop(inner),
            Node::Guard(guard) => self.guard(guard),
            Node::Store(store) => self.store(store),
            Node::Prefetch(prefetch) => self.prefetch(prefetch),
            Node::Barrier => Ok(()),
        })
    }

    fn a_loop(&mut self, inner: &Loop) -> Result<()> {
        if inner.extent < 1 {
            return Err(Error::Build("a loop without iterations".into()));
        }
        match inner.kind {
            // Run sequentially, blocks, threads and tensor operations of a device compute the same.
            LoopKind::Serial | LoopKind::Block(_) | LoopKind::Thread(_) | LoopKind::Tensor => {
                let (begin, end) = self.span(inner)?;
                self.iterate(inner, begin, end)
            }
            LoopKind::Parallel => self.parallel(inner),
            LoopKind::Unrolled | LoopKind::Vectorized => {
                Err(Error::Build("the loop nest is not lowered".into()))
            }
        }
    }

    /// The first value of a loop's variable, and one past the last.
    pub(super) fn span(&mut self, inner: &Loop) -> Result<(IntValue<'ctx>, IntValue<'ctx>)> {
        let Some(span) = &inner.span else {
            return Ok((self.ir.i64(0), self.ir.i64(inner.extent)));
        };
        let begin = self.scalar_index(&span.begin, Active::SCALAR)?;
        Ok((begin, self.scalar_index(&span.end, Active::SCALAR)?))
    }

    /// The iterations of a loop from `begin` to below `end`, at least one: the loop is rotated,
    /// with its test at the end.
    pub(super) fn iterate(
        &mut self,
        inner: &Loop,
        begin: IntValue<'ctx>,
        end: IntValue<'ctx>,
    ) -> Result<()> {
        self.frame.ranges.insert(inner.var, inner.extent);
        self.locals(inner)?;
        if inner.extent == 1 {
            // A constant bound enables more folding of index arithmetic.
            let variable = Variable { value: self.ir.i64(0), level: 0 };
            self.frame.vars.insert(inner.var, variable);
            return self.nodes(&inner.body);
        }
        let before = self.block()?;
        let body = self.ir.context.append_basic_block(self.frame.function, "loop");
        let after = self.ir.context.append_basic_block(self.frame.function, "");
        self.ir.builder.build_unconditional_branch(body)?;
        self.ir.builder.position_at_end(body);
        let name = self.nest.vars.get(inner.var.0 as usize).map_or("", |name| &**name);
        let phi = self.ir.builder.build_phi(self.ir.context.i64_type(), &super::label(name))?;
        phi.add_incoming(&[(&begin, before)]);
        let value = phi.as_basic_value().into_int_value();

        self.open_level()?;
        let level = self.innermost();
        self.frame.vars.insert(inner.var, Variable { value, level });
        self.nodes(&inner.body)?;
        self.frame.vars.remove(&inner.var);
        self.close_level();

        let next = self.ir.builder.build_int_nuw_add(value, self.ir.i64(1), "")?;
        if let Some(add) = next.as_instruction_value() {
            // The bound is a signed number too.
            let flagged = add.set_no_signed_wrap_flag(true);
            flagged.map_err(|_| defect("an addition takes flags"))?;
        }
        let again = self.ir.builder.build_int_compare(IntPredicate::ULT, next, end, "")?;
        let latch = self.block()?;
        self.ir.builder.build_conditional_branch(again, body, after)?;
        phi.add_incoming(&[(&next, latch)]);
        self.ir.builder.position_at_end(after);
        Ok(())
    }

    /// Allocates stack memory for buffers that live for one iteration. The allocations are in the
    /// entry block, because `sroa` only finds them there.
    fn locals(&mut self, inner: &Loop) -> Result<()> {
        for local in &inner.locals {
            if matches!(self.buffer(*local)?.memory, Some(Memory::Stack | Memory::Shared)) {
                self.stack_buffer(*local)?;
            }
        }
        Ok(())
    }

    fn guard(&mut self, guard: &Guard) -> Result<()> {
        self.when(&guard.conditions, |emitter| emitter.nodes(&guard.body))
    }

    /// Emits code under conditions on loop variables.
    pub(super) fn when(
        &mut self,
        conditions: &[Index],
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let mut all: Option<IntValue<'ctx>> = None;
        for condition in conditions {
            if self.frame.ranges.always(condition) {
                continue;
            }
            let holds = self.is_non_negative(condition)?;
            all = Some(match all {
                Some(all) => self.ir.builder.build_and(all, holds, "")?,
                None => holds,
            });
        }
        let Some(all) = all else { return body(self) };
        let then = self.ir.context.append_basic_block(self.frame.function, "then");
        let after = self.ir.context.append_basic_block(self.frame.function, "");
        self.ir.builder.build_conditional_branch(all, then, after)?;
        self.ir.builder.position_at_end(then);
        body(self)?;
        self.ir.builder.build_unconditional_branch(after)?;
        self.ir.builder.position_at_end(after);
        Ok(())
    }

    /// `index >= 0`, as a comparison of the terms with the constant.
    fn is_non_negative(&mut self, index: &Index) -> Result<IntValue<'ctx>> {
        let least = index.constant_term().checked_neg();
        let overflow = || Error::Build("a condition overflows 64 bits".into());
        let constant = Index::constant(least.ok_or_else(overflow)?);
        let terms = index.add(&constant).ok_or_else(overflow)?;
        let sum = self.scalar_index(&terms, Active::SCALAR)?;
        let least = self.ir.i64(least.ok_or_else(overflow)?);
        Ok(self.ir.builder.build_int_compare(IntPredicate::SGE, sum, least, "")?)
    }

    fn prefetch(&mut self, prefetch: &Prefetch) -> Result<()> {
        self.charge()?;
        let buffer = self.buffer(prefetch.buffer)?;
        let offset = buffer
            .offset(&prefetch.subscripts)
            .ok_or_else(|| Error::Build("the offset of a prefetch overflows".into()))?;
        let address = self.address(prefetch.buffer, &offset, Active::SCALAR)?;
        // For reading, into all cache levels, data.
        let args =
            [address.into(), self.ir.i32(0).into(), self.ir.i32(3).into(), self.ir.i32(1).into()];
        self.ir.intrinsic_call("llvm.prefetch", &[address.get_type().into()], &args)?;
        Ok(())
    }

    pub(super) fn block(&self) -> Result<inkwell::basic_block::BasicBlock<'ctx>> {
        self.ir.builder.get_insert_block().ok_or_else(|| defect("no insertion point"))
    }
}
