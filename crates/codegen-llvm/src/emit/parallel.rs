//! Emits parallel loops as tasks for the thread pool.
//!
//! ```text
//! context = { buffers.., variables.., workspace, error }
//! pool ? pool->run(pool, task, &context, extent) : task(&context, 0, extent, 0)
//!
//! task(context, begin, end, worker):
//!   private = workspace + shared_bytes + worker * private_bytes
//!   task.body(buffers.., variables.., workspace, private, error, pool, begin, end)
//! ```

use inkwell::module::Linkage;
use inkwell::types::{BasicTypeEnum, FunctionType, StructType};
use inkwell::values::{BasicMetadataValueEnum, FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tensorwright_schedule::nest::{BufferId, Loop, Memory, Node};

use super::function::{self, Captures, Frame, declare_inner, parameter};
use super::ir::{Ir, Value, defect};
use super::{Emitter, memory};
use crate::error::Result;

impl<'ctx> Emitter<'_, 'ctx> {
    pub(super) fn parallel(&mut self, inner: &Loop) -> Result<()> {
        let mut captures = Captures::of(&inner.body);
        captures.buffers = self.captured(&inner.body, inner.locals.clone(), captures.buffers)?;
        captures.vars = self.frame.vars.keys().copied().collect();
        let context_type = context_type(&self.ir, &captures);
        let context = self.context(&captures, context_type)?;

        let here = self.block()?;
        let name = format!("{}.task", self.frame.function.get_name().to_string_lossy());
        let body = declare_inner(&self.ir, &format!("{name}.body"), &captures);
        self.describe(body, &captures)?;
        let task = self.task(&name, body, &captures, context_type)?;
        self.task_body(inner, body, &captures)?;
        self.ir.builder.position_at_end(here);
        // Lowering gives no first iteration to parallel loops but zero.
        let (_, end) = self.span(inner)?;
        self.run(task, context, end)
    }

    /// The buffers that an outlined function receives: those of the caller, and stack buffers of
    /// the enclosing function. It computes workspace addresses itself, and has its own stack for
    /// `own` buffers and those of its loops.
    pub(super) fn captured(
        &self,
        nodes: &[Node],
        mut own: Vec<BufferId>,
        mentioned: Vec<BufferId>,
    ) -> Result<Vec<BufferId>> {
        locals_below(nodes, &mut own);
        let mut captured = Vec::new();
        for id in mentioned {
            let is_captured = match self.buffer(id)?.memory {
                Some(Memory::Workspace) => false,
                Some(Memory::Stack | Memory::Shared) => !own.contains(&id),
                Some(Memory::Caller) | None => true,
            };
            if is_captured {
                captured.push(id);
            }
        }
        Ok(captured)
    }

    /// Fills the context of a task.
    fn context(
        &mut self,
        captures: &Captures,
        kind: StructType<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        let context =
            self.at_level(0, |emitter| Ok(emitter.ir.builder.build_alloca(kind, "")?))?;
        let mut fields: Vec<Value<'ctx>> = Vec::new();
        for id in &captures.buffers {
            fields.push(self.pointer(*id)?.into());
        }
        for var in &captures.vars {
            let variable = self.frame.vars.get(var).ok_or_else(|| defect("a captured variable"))?;
            fields.push(variable.value.into());
        }
        let environment = self.frame.environment;
        fields.extend([environment.workspace, environment.error].map(Value::from));
        for (number, field) in (0..).zip(fields) {
            let slot = self.ir.builder.build_struct_gep(kind, context, number, "")?;
            self.ir.builder.build_store(slot, field)?;
        }
        Ok(context)
    }

    /// Emits the function that the pool calls.
    fn task(
        &mut self,
        name: &str,
        body: FunctionValue<'ctx>,
        captures: &Captures,
        context_type: StructType<'ctx>,
    ) -> Result<FunctionValue<'ctx>> {
        let ir = &self.ir;
        let task = ir.module.add_function(name, task_type(ir), Some(Linkage::Internal));
        ir.target.annotate(task);
        ir.builder.position_at_end(ir.context.append_basic_block(task, ""));
        let context = parameter(task, 0)?;
        let mut fields: Vec<Value<'ctx>> = Vec::new();
        for number in 0..captures.count() + 2 {
            let slot = ir.builder.build_struct_gep(context_type, context, number, "")?;
            let kind = context_type.get_field_type_at_index(number);
            let kind = kind.ok_or_else(|| defect("a field of the context"))?;
            fields.push(ir.builder.build_load(kind, slot, "")?);
        }
        let (Some(error), Some(workspace)) = (fields.pop(), fields.pop()) else {
            return Err(defect("a context without a workspace"));
        };
        let number = |n: u32| task.get_nth_param(n).ok_or_else(|| defect("a parameter"));
        let (begin, end, worker) = (number(1)?, number(2)?, number(3)?.into_int_value());
        let worker = ir.builder.build_int_s_extend(worker, ir.context.i64_type(), "")?;
        let bytes = ir.i64(self.plan.size.private_bytes);
        let mut offset = ir.builder.build_int_mul(worker, bytes, "")?;
        if let Some(end) = function::run_time_end(self.nest) {
            let position = captures.vars.iter().position(|var| *var == end);
            let position = position.and_then(|at| fields.get(captures.buffers.len() + at));
            let end = position.ok_or_else(|| defect("the end of the workspace"))?;
            offset = ir.builder.build_int_add(offset, end.into_int_value(), "")?;
        }
        let offset = ir.builder.build_int_add(offset, ir.i64(self.plan.size.shared_bytes), "")?;
        let byte = ir.context.i8_type().into();
        let private = memory::element_address(ir, byte, workspace.into_pointer_value(), offset)?;
        let no_pool = ir.context.ptr_type(AddressSpace::default()).const_null();
        fields.extend([workspace, private.into(), error, no_pool.into(), begin, end]);
        let args: Vec<BasicMetadataValueEnum<'ctx>> =
            fields.into_iter().map(BasicMetadataValueEnum::from).collect();
        ir.builder.build_call(body, &args, "")?;
        ir.builder.build_return(None)?;
        Ok(task)
    }

    /// Emits the iterations from `begin` to `end`, possibly none.
    fn task_body(
        &mut self,
        inner: &Loop,
        body: FunctionValue<'ctx>,
        captures: &Captures,
    ) -> Result<()> {
        let frame = Frame::enter(&self.ir, body, captures, self.frame.ranges.clone())?;
        let outer = std::mem::replace(&mut self.frame, frame);
        self.open_level()?;
        let number = |n: u32| {
            let value = body.get_nth_param(captures.count() + n).map(IntValue::try_from);
            value.and_then(std::result::Result::ok).ok_or_else(|| defect("a bound is a number"))
        };
        let (begin, end) = (number(4)?, number(5)?);
        let some = self.ir.builder.build_int_compare(IntPredicate::SLT, begin, end, "")?;
        let then = self.ir.context.append_basic_block(body, "");
        let after = self.ir.context.append_basic_block(body, "");
        self.ir.builder.build_conditional_branch(some, then, after)?;
        self.ir.builder.position_at_end(then);
        self.iterate(inner, begin, end)?;
        self.ir.builder.build_unconditional_branch(after)?;
        self.ir.builder.position_at_end(after);
        self.ir.builder.build_return(None)?;
        self.close_level();
        self.frame = outer;
        Ok(())
    }

    /// Passes a task to the pool, or runs it here without a pool.
    fn run(
        &mut self,
        task: FunctionValue<'ctx>,
        context: PointerValue<'ctx>,
        extent: IntValue<'ctx>,
    ) -> Result<()> {
        let (ir, pool) = (&self.ir, self.frame.environment.pool);
        let pointer = ir.context.ptr_type(AddressSpace::default());
        let [alone, together, after] =
            [(); 3].map(|()| ir.context.append_basic_block(self.frame.function, ""));
        let is_null = ir.builder.build_is_null(pool, "")?;
        ir.builder.build_conditional_branch(is_null, alone, together)?;

        ir.builder.position_at_end(alone);
        let args = [context.into(), ir.i64(0).into(), extent.into(), ir.i32(0).into()];
        ir.builder.build_call(task, &args, "")?;
        ir.builder.build_unconditional_branch(after)?;

        ir.builder.position_at_end(together);
        let run = ir.builder.build_load(pointer, pool, "")?.into_pointer_value();
        let task = task.as_global_value().as_pointer_value();
        let kinds = [pointer.into(), pointer.into(), pointer.into(), ir.context.i64_type().into()];
        let kind = ir.context.void_type().fn_type(&kinds, false);
        let args = [pool.into(), task.into(), context.into(), extent.into()];
        ir.builder.build_indirect_call(kind, run, &args, "")?;
        ir.builder.build_unconditional_branch(after)?;
        ir.builder.position_at_end(after);
        Ok(())
    }
}

/// `void (*)(void *context, int64_t begin, int64_t end, int32_t worker)`.
fn task_type<'ctx>(ir: &Ir<'_, 'ctx>) -> FunctionType<'ctx> {
    let pointer = ir.context.ptr_type(AddressSpace::default());
    let number = ir.context.i64_type();
    let kinds = [pointer.into(), number.into(), number.into(), ir.context.i32_type().into()];
    ir.context.void_type().fn_type(&kinds, false)
}

/// Buffers, variables, the workspace, the error.
fn context_type<'ctx>(ir: &Ir<'_, 'ctx>, captures: &Captures) -> StructType<'ctx> {
    let pointer: BasicTypeEnum<'ctx> = ir.context.ptr_type(AddressSpace::default()).into();
    let number: BasicTypeEnum<'ctx> = ir.context.i64_type().into();
    let mut fields = vec![pointer; captures.buffers.len()];
    fields.extend(captures.vars.iter().map(|_| number));
    fields.extend([pointer; 2]);
    ir.context.struct_type(&fields, false)
}

fn locals_below(nodes: &[Node], found: &mut Vec<BufferId>) {
    for node in nodes {
        match node {
            Node::Loop(inner) => {
                found.extend(&inner.locals);
                locals_below(&inner.body, found);
            }
            Node::Guard(guard) => locals_below(&guard.body, found),
            _ => {}
        }
    }
}
