//! Emits statements: loops, guards, stores.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, ReductionOp};
use tensorwright_lang::program::{Index, Interval};
use tensorwright_schedule::nest::{
    Buffer, BufferId, Guard, Loop, LoopKind, Memory, Node, Prefetch, Span, Store, Uses,
};
use tensorwright_schedule::workspace::WorkspaceOffset;

use crate::emitter::{Emitter, below};
use crate::error::EmitError;
use crate::expr::Value;
use crate::helpers::Helper;
use crate::text::{Binding, Text};
use crate::types::{is_single, memory_type};

impl Emitter<'_> {
    /// Emits nodes in order.
    pub(crate) fn nodes(&mut self, nodes: &[Node]) -> Result<(), EmitError> {
        nodes.iter().try_for_each(|node| match node {
            Node::Loop(inner) => match inner.kind {
                LoopKind::Tensor if let Some(syntax) = self.tensors() => {
                    self.tensor_op(inner, syntax)
                }
                LoopKind::Thread(_) if self.launch.is_some() => self.thread_loop(inner),
                // A launch without bound loops runs on one thread.
                LoopKind::Parallel if self.launch.is_none() => self.parallel_loop(inner),
                // Unlowered loops are slower, but correct.
                // Run sequentially, blocks, threads and tensor operations of a device compute the
                // same.
                LoopKind::Serial
                | LoopKind::Parallel
                | LoopKind::Block(_)
                | LoopKind::Thread(_)
                | LoopKind::Unrolled
                | LoopKind::Vectorized
                | LoopKind::Tensor => self.serial_loop(inner),
            },
            Node::Guard(guard) => self.guard(guard),
            Node::Store(store) => self.store(store),
            Node::Prefetch(prefetch) => self.prefetch(prefetch),
            Node::Barrier => Ok(()),
        })
    }

    fn serial_loop(&mut self, inner: &Loop) -> Result<(), EmitError> {
        self.loop_head(inner)?;
        self.iteration(inner)?;
        self.lines.close();
        self.leave();
        Ok(())
    }

    /// Opens a loop and enters the scope of its variable.
    pub(crate) fn loop_head(&mut self, inner: &Loop) -> Result<(), EmitError> {
        let (begin, end) = match inner.span.as_deref() {
            Some(Span { begin, end, .. }) => (self.index(begin)?.into_code(), self.limit(end)?),
            None => ("0".to_owned(), inner.extent.to_string()),
        };
        let (range, ctype) = (self.iterations(inner)?, self.index_type());
        let var = self.enter(inner.var, range);
        self.lines.open(&format!("for ({ctype} {var} = {begin}; {var} < {end}; ++{var})"));
        Ok(())
    }

    /// The values of a loop's variable.
    pub(crate) fn iterations(&self, inner: &Loop) -> Result<Interval, EmitError> {
        let all = below(inner.extent);
        let Some(Span { begin, end, .. }) = inner.span.as_deref() else { return Ok(all) };
        let (lo, hi) = (self.bounds(begin)?.lo.max(all.lo), self.bounds(end)?.hi.min(all.hi + 1));
        Ok(Interval { lo, hi: (hi - 1).max(lo) })
    }

    /// The end of a loop, as an operand of a comparison.
    pub(crate) fn limit(&mut self, end: &Index) -> Result<String, EmitError> {
        Ok(self.index(end)?.at(Binding::Sum))
    }

    /// The body of a loop.
    pub(crate) fn iteration(&mut self, inner: &Loop) -> Result<(), EmitError> {
        self.declare_locals(inner)?;
        self.nodes(&inner.body)
    }

    /// Declares the buffers that live for one iteration of a loop.
    pub(crate) fn declare_locals(&mut self, inner: &Loop) -> Result<(), EmitError> {
        let used = Uses::of(&inner.body).buffers;
        let mut locals = inner.locals.iter().filter(|local| used.contains(local));
        locals.try_for_each(|local| self.declare(*local))
    }

    /// Declares a buffer that the kernel owns.
    pub(crate) fn declare(&mut self, id: BufferId) -> Result<(), EmitError> {
        let buffer = self.buffer(id)?;
        let (name, ctype) = (self.names.buffer(id).to_owned(), memory_type(buffer.dtype));
        let start = match (buffer.memory, self.plan.offset(id)) {
            // Shared buffers are declared at the start of a kernel.
            (Some(Memory::Shared), _) if self.launch.is_some() => return Ok(()),
            (Some(Memory::Stack), _)
                if let (Some(tiles), Some(syntax), Some(fragment)) =
                    (self.fragments(buffer), self.tensors(), buffer.fragment) =>
            {
                let count: i64 = tiles.iter().map(|(_, extent)| *extent).product();
                self.lines.line(syntax.fragment(&name, count, fragment.factors));
                return Ok(());
            }
            (Some(Memory::Stack | Memory::Shared), _) => {
                let elements: i64 = self.held(buffer).iter().map(|(_, extent)| *extent).product();
                self.lines.line(format!("{ctype} {name}[{}];", elements.max(1)));
                self.poison(&name, buffer, false)?;
                return Ok(());
            }
            (Some(Memory::Workspace), None) if buffer.run_time.is_some() && !self.in_task => {
                self.run_time_place(buffer)?
            }
            (_, Some(WorkspaceOffset::Shared(0))) => "workspace".to_owned(),
            (_, Some(WorkspaceOffset::Shared(offset))) => format!("(char *)workspace + {offset}"),
            (_, Some(WorkspaceOffset::Private(offset))) => self.private_place(offset),
            _ => return Err(EmitError::malformed(format!("`{name}` is local and not ours"))),
        };
        if let Some(kernel) = self.launch {
            let (global, offset) = (kernel.device.global(), self.workspace_offset(id)?);
            let pointer = format!("{global}{ctype} *");
            self.lines.line(format!("{pointer}{name} = ({pointer})(workspace + {offset});"));
            return Ok(());
        }
        // Bytes that another buffer uses before or after have another pointer to them.
        let restrict = if self.is_alone(id, buffer) { "restrict " } else { "" };
        self.lines.line(format!("{ctype} *{restrict}{name} = (void *)({start});"));
        self.poison(&name, buffer, buffer.run_time.is_some())
    }

    /// The offset of a buffer in the workspace of a device, which has one part.
    fn workspace_offset(&self, id: BufferId) -> Result<i64, EmitError> {
        match self.plan.offset(id) {
            Some(WorkspaceOffset::Shared(offset)) => Ok(offset),
            Some(WorkspaceOffset::Private(offset)) => Ok(self.plan.size.shared_bytes + offset),
            None => Err(EmitError::malformed("a buffer has no place in the workspace")),
        }
    }

    /// The dimensions of a buffer in memory, with their extents: all of them, except those that are
    /// distributed over device threads.
    pub(crate) fn held(&self, buffer: &Buffer) -> Vec<(usize, i64)> {
        let on_device = self.launch.is_some();
        let is_held = |dimension: &usize| !(on_device && buffer.by_thread.contains(dimension));
        let dimensions = buffer.shape.iter().copied().enumerate();
        dimensions.filter(|(dimension, _)| is_held(dimension)).collect()
    }

    /// Poisons a buffer at the start of its lifetime, if requested. Its memory may have the extents
    /// of the call.
    fn poison(&mut self, name: &str, buffer: &Buffer, is_sized: bool) -> Result<(), EmitError> {
        if self.options.poison && buffer.bytes() > 0 {
            let bytes = match is_sized {
                true => self.run_time_bytes(buffer)?,
                false => buffer.bytes().to_string(),
            };
            self.lines.line(format!("memset({name}, 0xff, {bytes});"));
        }
        Ok(())
    }

    /// An address in the worker's private part of the workspace.
    fn private_place(&self, offset: i64) -> String {
        let (shared, private) = (self.plan.size.shared_bytes, self.plan.size.private_bytes);
        let start = match (self.run_time_end(), shared + offset) {
            (None, start) => start.to_string(),
            (Some(end), 0) => end.to_owned(),
            (Some(end), start) => format!("{start} + {end}"),
        };
        match self.in_task {
            true => format!("(char *)workspace + {start} + worker * INT64_C({private})"),
            // Outside of parallel loops there is one worker.
            false => format!("(char *)workspace + {start}"),
        }
    }

    fn guard(&mut self, guard: &Guard) -> Result<(), EmitError> {
        let conditions = self.conditions(&guard.conditions)?;
        self.lines.open(&format!("if ({conditions})"));
        self.nodes(&guard.body)?;
        self.lines.close();
        Ok(())
    }

    fn store(&mut self, store: &Store) -> Result<(), EmitError> {
        if let Some(lanes) = store.lanes {
            let (lane, ctype) = (self.enter(lanes.var, below(lanes.count)), self.index_type());
            self.lines
                .open(&format!("for ({ctype} {lane} = 0; {lane} < {}; ++{lane})", lanes.count));
        }
        if !store.mask.is_empty() {
            let conditions = self.conditions(&store.mask)?;
            self.lines.open(&format!("if ({conditions})"));
        }
        let statement = self.assignment(store)?;
        self.lines.line(statement);
        if !store.mask.is_empty() {
            self.lines.close();
        }
        if store.lanes.is_some() {
            self.lines.close();
            self.leave();
        }
        Ok(())
    }

    fn assignment(&mut self, store: &Store) -> Result<String, EmitError> {
        let dtype = self.buffer(store.buffer)?.dtype;
        let target = match store.checked_element() {
            Some(element) => self.element(&element)?,
            None => {
                let offset = self.offset(store.buffer, &store.subscripts)?.into_code();
                format!("{}[{offset}]", self.names.buffer(store.buffer))
            }
        };
        let Some(op) = store.combine else {
            let value = self.pack(dtype, &store.value)?.into_code();
            return Ok(format!("{target} = {value};"));
        };
        let value = self.expr(&store.value)?;
        let value = match dtype.is_storage_only() && is_single(value.dtype) {
            // Arithmetic is in `float`; the store rounds.
            true => Value { dtype, ..value },
            false => self.cast(dtype, value),
        };
        let has_operator =
            matches!(dtype, DType::Float | DType::Double | DType::UInt32 | DType::UInt64);
        match op {
            ReductionOp::Sum | ReductionOp::Product if has_operator => {
                Ok(format!("{target} {} {};", op.symbol(), value.text.into_code()))
            }
            _ => {
                let current = self.load(Text::primary(target.clone()), dtype);
                let combined = self.combine(op, current, value);
                Ok(format!("{target} = {};", self.pack_value(dtype, combined).into_code()))
            }
        }
    }

    fn combine(&mut self, op: ReductionOp, current: Value, value: Value) -> Value {
        match op {
            ReductionOp::Sum => self.arith(ArithOp::Add, current, value),
            ReductionOp::Product => self.arith(ArithOp::Mul, current, value),
            ReductionOp::Min => self.extreme(false, value, current),
            ReductionOp::Max => self.extreme(true, value, current),
        }
    }

    fn prefetch(&mut self, prefetch: &Prefetch) -> Result<(), EmitError> {
        if self.launch.is_some() {
            return Ok(());
        }
        let buffer = self.buffer(prefetch.buffer)?;
        let bytes = buffer.dtype.bytes();
        let offset = match buffer.run_time {
            // It may lie anywhere.
            Some(_) => {
                let offset = buffer.offset(&prefetch.subscripts);
                self.index(&offset.ok_or_else(|| overflow(buffer))?)?
            }
            None => self.offset(prefetch.buffer, &prefetch.subscripts)?,
        };
        let (helper, name) = (self.helper(Helper::Prefetch), self.names.buffer(prefetch.buffer));
        let offset = Text::cast("uintptr_t", offset).into_code();
        self.lines.line(format!("{helper}((uintptr_t){name} + {offset} * {bytes});"));
        Ok(())
    }

    /// The position of an element in a buffer.
    pub(crate) fn offset(&mut self, id: BufferId, subscripts: &[Index]) -> Result<Text, EmitError> {
        let buffer = self.buffer(id)?;
        if subscripts.len() != buffer.shape.len() {
            let name = &buffer.name;
            return Err(EmitError::malformed(format!(
                "`{name}` has other subscripts than extents"
            )));
        }
        if buffer.run_time.is_some() {
            return self.strided_offset(buffer, subscripts);
        }
        let offset = self.part_offset(buffer, &self.held(buffer), subscripts)?;
        self.index(&offset)
    }

    /// The position of an element among the elements of some dimensions of a buffer.
    pub(crate) fn part_offset(
        &self,
        buffer: &Buffer,
        dimensions: &[(usize, i64)],
        subscripts: &[Index],
    ) -> Result<Index, EmitError> {
        let mut part = Buffer::new(String::new(), buffer.dtype, Vec::new(), buffer.owner);
        part.shape.extend(dimensions.iter().map(|(_, extent)| *extent));
        let own = dimensions.iter().map(|(dimension, _)| subscripts[*dimension].clone());
        let offset = part.offset(&own.collect::<Vec<Index>>());
        offset.ok_or_else(|| overflow(buffer))
    }
}

/// The offset of an element does not fit 64 bits.
pub(crate) fn overflow(buffer: &Buffer) -> EmitError {
    EmitError::Overflow { buffer: buffer.name.clone() }
}
