//! Emits functions: the exported wrapper and the internal body.
//!
//! The exported function unpacks the caller's arguments and calls the internal one, whose pointers
//! are parameters: LLVM only accepts `noalias` there. A [task](super::parallel) and a
//! [piece](super::pieces) are split in the same way.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use inkwell::AddressSpace;
use inkwell::attributes::AttributeLoc;
use inkwell::module::Linkage;
use inkwell::types::{BasicMetadataTypeEnum, BasicType as _};
use inkwell::values::{BasicMetadataValueEnum, FunctionValue, IntValue, PointerValue};
use tensorwright_lang::program::Index;
use tensorwright_schedule::interface::Function;
use tensorwright_schedule::nest::{
    BufferId, Memory, Node, NumberSource, Ranges, RunTimeNumber, Var,
};
use tensorwright_schedule::workspace::{ALIGNMENT, WorkspaceLayout, WorkspaceOffset};
use tensorwright_schedule::{Interface, LoopNest, LoweredNest};

use super::hoist::Level;
use super::ir::{Ir, defect};
use super::{Active, Emitter, memory};
use crate::error::{Error, Result};

/// A function under construction.
pub(super) struct Frame<'ctx> {
    pub(super) function: FunctionValue<'ctx>,
    /// The function's start, then the loops around the current position, outermost first.
    pub(super) levels: Vec<Level<'ctx>>,
    /// The level at whose start instructions are inserted; `None` for the end of the current block.
    pub(super) hoisting: Option<usize>,
    pub(super) vars: BTreeMap<Var, Variable<'ctx>>,
    pub(super) ranges: Ranges,
    pub(super) buffers: HashMap<BufferId, PointerValue<'ctx>>,
    pub(super) environment: Environment<'ctx>,
}

/// A loop variable with a known value.
#[derive(Clone, Copy)]
pub(super) struct Variable<'ctx> {
    pub(super) value: IntValue<'ctx>,
    /// The level of its loop.
    pub(super) level: usize,
}

/// The arguments of every function of a kernel besides buffers and variables.
#[derive(Clone, Copy)]
pub(super) struct Environment<'ctx> {
    /// The shared part of the workspace.
    pub(super) workspace: PointerValue<'ctx>,
    /// The worker's part of the workspace.
    pub(super) private: PointerValue<'ctx>,
    /// The address for the number of a failed read.
    pub(super) error: PointerValue<'ctx>,
    pub(super) pool: PointerValue<'ctx>,
}

/// The captured variables of a function.
pub(super) struct Captures {
    pub(super) buffers: Vec<BufferId>,
    pub(super) vars: Vec<Var>,
    /// The buffers that the function writes.
    written: BTreeSet<BufferId>,
}

/// Kernels with more trees are emitted in pieces.
const WHOLE: usize = 128;

/// The function that callers see: `int32_t NAME(void *const *buffers, void *workspace, tw_pool
/// *pool)`.
pub(super) struct Exported<'ctx> {
    pub(super) function: FunctionValue<'ctx>,
    /// The caller's list of buffers.
    pub(super) list: PointerValue<'ctx>,
    /// The positions of buffers in the list; those of run-time numbers follow.
    pub(super) positions: HashMap<BufferId, usize>,
    environment: Environment<'ctx>,
}

/// Emits a function of a kernel and its callees.
pub(super) fn kernel<'ctx>(
    ir: Ir<'_, 'ctx>,
    lowered: &LoweredNest,
    interface: &Interface,
    function: Function,
) -> Result<()> {
    let nest = lowered.as_nest();
    let nodes = match function {
        Function::Prepare => &nest.prepare,
        Function::Compute => &nest.body,
    };
    let exported = Exported::new(&ir, interface, function)?;
    let frame = Frame::new(exported.function, exported.environment, nest.ranges());
    let plan = WorkspaceLayout::of(lowered);
    let mut emitter = Emitter { ir, nest, interface, plan, frame, last: Vec::new(), operations: 0 };
    emitter.ir.target.annotate(exported.function);
    match nodes.len() > WHOLE {
        true => emitter.pieces(nodes, &exported)?,
        false => emitter.whole(nodes, &exported)?,
    }
    let error = exported.environment.error;
    let code = emitter.ir.builder.build_load(emitter.ir.context.i32_type(), error, "")?;
    emitter.ir.builder.build_return(Some(&code))?;
    Ok(())
}

impl<'ctx> Exported<'ctx> {
    /// Declares the function, and starts it.
    fn new(ir: &Ir<'_, 'ctx>, interface: &Interface, function: Function) -> Result<Self> {
        let pointer = ir.context.ptr_type(AddressSpace::default());
        let kind = ir.context.i32_type().fn_type(&[pointer.into(); 3], false);
        let function = ir.module.add_function(&interface.function(function), kind, None);
        ir.builder.position_at_end(ir.context.append_basic_block(function, ""));
        let [list, workspace, pool] = [0, 1, 2].map(|n| parameter(function, n));
        let (list, workspace, pool) = (list?, workspace?, pool?);
        let error = ir.builder.build_alloca(ir.context.i32_type(), "")?;
        ir.builder.build_store(error, ir.i32(0))?;
        let shared = ir.i64(interface.workspace.shared_bytes);
        let byte = ir.context.i8_type().into();
        let private = memory::element_address(ir, byte, workspace, shared)?;
        let parameters = interface.parameters.iter().enumerate();
        let positions = parameters.map(|(position, parameter)| (parameter.id, position)).collect();
        let environment = Environment { workspace, private, error, pool };
        Ok(Self { function, list, positions, environment })
    }

    /// Loads the run-time numbers that callers pass: the last entry of the list points to them.
    pub(super) fn numbers(
        &self,
        ir: &Ir<'_, 'ctx>,
        list: PointerValue<'ctx>,
        nest: &LoopNest,
    ) -> Result<Vec<(Var, IntValue<'ctx>)>> {
        let passed: Vec<Var> = nest.passed_numbers().collect();
        if passed.is_empty() {
            return Ok(Vec::new());
        }
        let pointer = ir.context.ptr_type(AddressSpace::default());
        let last = ir.i64(self.positions.len() as i64);
        let slot = memory::element_address(ir, pointer.into(), list, last)?;
        let numbers = ir.builder.build_load(pointer, slot, "")?.into_pointer_value();
        let kind = ir.context.i64_type();
        let load = |(position, var): (usize, Var)| {
            let position = ir.i64(position as i64);
            let address = memory::element_address(ir, kind.into(), numbers, position)?;
            Ok((var, ir.builder.build_load(kind, address, "")?.into_int_value()))
        };
        passed.into_iter().enumerate().map(load).collect()
    }

    /// Loads a buffer's address from the list.
    pub(super) fn load(
        &self,
        ir: &Ir<'_, 'ctx>,
        list: PointerValue<'ctx>,
        id: BufferId,
    ) -> Result<PointerValue<'ctx>> {
        let position = self.positions.get(&id).ok_or_else(|| defect("no such parameter"))?;
        let pointer = ir.context.ptr_type(AddressSpace::default());
        let slot = memory::element_address(ir, pointer.into(), list, ir.i64(*position as i64))?;
        Ok(ir.builder.build_load(pointer, slot, "")?.into_pointer_value())
    }
}

/// The number that is the end of the part of the workspace whose size depends on sizes.
pub(super) fn run_time_end(nest: &LoopNest) -> Option<Var> {
    let is_end = |number: &&RunTimeNumber| matches!(number.source, NumberSource::End { .. });
    nest.numbers.iter().filter(is_end).map(|number| number.var).next_back()
}

/// Declares `void name(buffers.., variables.., workspace, private, error, pool, begin, end)`.
pub(super) fn declare_inner<'ctx>(
    ir: &Ir<'_, 'ctx>,
    name: &str,
    captures: &Captures,
) -> FunctionValue<'ctx> {
    let pointer: BasicMetadataTypeEnum<'ctx> = ir.context.ptr_type(AddressSpace::default()).into();
    let number: BasicMetadataTypeEnum<'ctx> = ir.context.i64_type().into();
    let mut kinds = vec![pointer; captures.buffers.len()];
    kinds.extend(captures.vars.iter().map(|_| number));
    kinds.extend([pointer; 4]);
    kinds.extend([number; 2]);
    let kind = ir.context.void_type().fn_type(&kinds, false);
    ir.module.add_function(name, kind, Some(Linkage::Internal))
}

pub(super) fn parameter<'ctx>(
    function: FunctionValue<'ctx>,
    number: u32,
) -> Result<PointerValue<'ctx>> {
    let value = function.get_nth_param(number).map(PointerValue::try_from);
    value.and_then(std::result::Result::ok).ok_or_else(|| defect("a parameter is a pointer"))
}

impl Captures {
    /// All buffers that nodes mention.
    pub(super) fn of(nodes: &[Node]) -> Self {
        let mut captures = Self { buffers: Vec::new(), vars: Vec::new(), written: BTreeSet::new() };
        let mut mentioned = BTreeSet::new();
        captures.collect(nodes, &mut mentioned);
        captures.buffers = mentioned.into_iter().collect();
        captures
    }

    fn collect(&mut self, nodes: &[Node], mentioned: &mut BTreeSet<BufferId>) {
        for node in nodes {
            match node {
                Node::Loop(inner) => self.collect(&inner.body, mentioned),
                Node::Guard(guard) => self.collect(&guard.body, mentioned),
                Node::Store(store) => {
                    self.written.insert(store.buffer);
                    mentioned.insert(store.buffer);
                    mentioned.extend(store.reads().into_iter().map(|(_, read)| read.tensor));
                }
                Node::Barrier => {}
                Node::Prefetch(prefetch) => {
                    mentioned.insert(prefetch.buffer);
                }
            }
        }
    }

    /// The index of the first parameter after buffers and variables.
    pub(super) fn count(&self) -> u32 {
        (self.buffers.len() + self.vars.len()) as u32
    }
}

impl<'ctx> Frame<'ctx> {
    /// Starts the body of an internal function.
    pub(super) fn enter(
        ir: &Ir<'_, 'ctx>,
        function: FunctionValue<'ctx>,
        captures: &Captures,
        ranges: Ranges,
    ) -> Result<Self> {
        ir.builder.position_at_end(ir.context.append_basic_block(function, "entry"));
        let mut buffers = HashMap::new();
        for (number, id) in (0..).zip(&captures.buffers) {
            buffers.insert(*id, parameter(function, number)?);
        }
        let mut vars = BTreeMap::new();
        for (number, var) in (captures.buffers.len() as u32..).zip(&captures.vars) {
            let value = function.get_nth_param(number).map(IntValue::try_from);
            let value = value.and_then(std::result::Result::ok);
            let value = value.ok_or_else(|| defect("a variable is a number"))?;
            vars.insert(*var, Variable { value, level: 0 });
        }
        let environment = Environment::of(function, captures.count())?;
        Ok(Self { vars, buffers, ..Self::new(function, environment, ranges) })
    }

    /// A function without captures.
    fn new(function: FunctionValue<'ctx>, environment: Environment<'ctx>, ranges: Ranges) -> Self {
        Self {
            function,
            levels: Vec::new(),
            hoisting: None,
            vars: BTreeMap::new(),
            ranges,
            buffers: HashMap::new(),
            environment,
        }
    }
}

impl<'ctx> Environment<'ctx> {
    /// The parameters of a function from the given one on.
    pub(super) fn of(function: FunctionValue<'ctx>, first: u32) -> Result<Self> {
        Ok(Self {
            workspace: parameter(function, first)?,
            private: parameter(function, first + 1)?,
            error: parameter(function, first + 2)?,
            pool: parameter(function, first + 3)?,
        })
    }

    /// As arguments, followed by an empty range of iterations.
    pub(super) fn arguments(&self, ir: &Ir<'_, 'ctx>) -> Vec<BasicMetadataValueEnum<'ctx>> {
        let mut arguments = self.pointers().to_vec();
        arguments.extend([ir.i64(0), ir.i64(0)].map(BasicMetadataValueEnum::from));
        arguments
    }

    /// As arguments.
    pub(super) fn pointers(&self) -> [BasicMetadataValueEnum<'ctx>; 4] {
        [self.workspace, self.private, self.error, self.pool].map(BasicMetadataValueEnum::from)
    }
}

impl<'ctx> Emitter<'_, 'ctx> {
    /// Emits all nodes as one function, and calls it.
    fn whole(&mut self, nodes: &[Node], exported: &Exported<'ctx>) -> Result<()> {
        let mut captures = Captures::of(nodes);
        captures.buffers.retain(|id| exported.positions.contains_key(id));
        let mut args: Vec<BasicMetadataValueEnum<'ctx>> = Vec::new();
        for id in &captures.buffers {
            args.push(exported.load(&self.ir, exported.list, *id)?.into());
        }
        for (var, value) in exported.numbers(&self.ir, exported.list, self.nest)? {
            captures.vars.push(var);
            args.push(value.into());
        }
        args.extend(exported.environment.arguments(&self.ir));
        let name = exported.function.get_name().to_string_lossy();
        let inner = self.body(&format!("{name}.body"), nodes, &captures)?;
        self.ir.builder.build_call(inner, &args, "")?;
        Ok(())
    }

    /// Emits nodes as a function of their captures.
    pub(super) fn body(
        &mut self,
        name: &str,
        nodes: &[Node],
        captures: &Captures,
    ) -> Result<FunctionValue<'ctx>> {
        let here = self.block()?;
        let function = declare_inner(&self.ir, name, captures);
        self.describe(function, captures)?;
        let frame = Frame::enter(&self.ir, function, captures, self.nest.ranges())?;
        let outer = std::mem::replace(&mut self.frame, frame);
        self.open_level()?;
        self.at_level(0, Self::computed_numbers)?;
        self.nodes(nodes)?;
        self.ir.builder.build_return(None)?;
        self.close_level();
        self.frame = outer;
        self.ir.builder.position_at_end(here);
        Ok(function)
    }

    /// Adds attributes to the parameters of an internal function.
    pub(super) fn describe(
        &self,
        function: FunctionValue<'ctx>,
        captures: &Captures,
    ) -> Result<()> {
        self.ir.target.annotate(function);
        for (number, id) in (0..).zip(&captures.buffers) {
            let place = AttributeLoc::Param(number);
            let buffer = self.buffer(*id)?;
            // A part of a larger tensor: only its first element is known to be there.
            let bytes = if buffer.run_time.is_some() { 1 } else { buffer.bytes() };
            let bytes = u64::try_from(bytes).unwrap_or(0);
            self.ir.attribute(function, place, "noalias", 0);
            self.ir.attribute(function, place, "nonnull", 0);
            self.ir.attribute(function, place, "noundef", 0);
            self.ir.attribute(function, place, "dereferenceable", bytes.max(1));
            if !captures.written.contains(id) {
                self.ir.attribute(function, place, "readonly", 0);
            }
        }
        // The shared and the private part of the workspace do not overlap.
        for number in [0, 1] {
            let place = AttributeLoc::Param(captures.count() + number);
            self.ir.attribute(function, place, "noalias", 0);
        }
        Ok(())
    }

    /// Computes the run-time numbers that follow from others, at the start of a function.
    fn computed_numbers(&mut self) -> Result<()> {
        for number in &self.nest.numbers {
            let value = match &number.source {
                NumberSource::Size(_) | NumberSource::Stride(..) => continue,
                NumberSource::Product(factors) => self.product(factors)?,
                NumberSource::End { start, bytes, extents } => {
                    let start = self.scalar_index(start, Active::SCALAR)?;
                    let elements = self.product(extents)?;
                    let bytes = self.ir.builder.build_int_mul(elements, self.ir.i64(*bytes), "")?;
                    let end = self.ir.builder.build_int_add(start, bytes, "")?;
                    let above = self.ir.i64(ALIGNMENT - 1);
                    let above = self.ir.builder.build_int_add(end, above, "")?;
                    self.ir.builder.build_and(above, self.ir.i64(-ALIGNMENT), "")?
                }
            };
            self.frame.vars.insert(number.var, Variable { value, level: 0 });
        }
        if let Some(end) = run_time_end(self.nest) {
            let shared = Index::constant(self.plan.size.shared_bytes);
            let start = Index::axis(end).add(&shared);
            let start = start.ok_or_else(|| defect("a workspace that overflows"))?;
            let bytes = self.scalar_index(&start, Active::SCALAR)?;
            let byte = self.ir.context.i8_type().into();
            let workspace = self.frame.environment.workspace;
            self.frame.environment.private =
                memory::element_address(&self.ir, byte, workspace, bytes)?;
        }
        Ok(())
    }

    fn product(&mut self, factors: &[Index]) -> Result<IntValue<'ctx>> {
        factors.iter().try_fold(self.ir.i64(1), |product, factor| {
            let factor = self.scalar_index(factor, Active::SCALAR)?;
            Ok(self.ir.builder.build_int_mul(product, factor, "")?)
        })
    }

    /// The address of a buffer.
    pub(super) fn pointer(&mut self, id: BufferId) -> Result<PointerValue<'ctx>> {
        if let Some(pointer) = self.frame.buffers.get(&id) {
            return Ok(*pointer);
        }
        match self.buffer(id)?.memory {
            Some(Memory::Stack | Memory::Shared) => self.stack_buffer(id),
            Some(Memory::Workspace) if self.buffer(id)?.run_time.is_some() => {
                let start = self.buffer(id)?.run_time.as_ref().and_then(|s| s.start.clone());
                let start = start.ok_or_else(|| defect("a buffer without a place"))?;
                let start = start.add(&Index::constant(self.plan.size.shared_bytes));
                let start = start.ok_or_else(|| defect("a workspace that overflows"))?;
                let workspace = self.frame.environment.workspace;
                let pointer = self.at_level(0, |emitter| {
                    let bytes = emitter.scalar_index(&start, Active::SCALAR)?;
                    let byte = emitter.ir.context.i8_type().into();
                    memory::element_address(&emitter.ir, byte, workspace, bytes)
                })?;
                self.frame.buffers.insert(id, pointer);
                Ok(pointer)
            }
            Some(Memory::Workspace) => {
                let Environment { workspace, private, .. } = self.frame.environment;
                let (part, bytes) = match self.plan.offset(id) {
                    Some(WorkspaceOffset::Shared(bytes)) => (workspace, bytes),
                    Some(WorkspaceOffset::Private(bytes)) => (private, bytes),
                    None => return Err(defect("a buffer without a place in the workspace")),
                };
                let pointer = self.at_level(0, |emitter| {
                    let (ir, byte) = (&emitter.ir, emitter.ir.context.i8_type().into());
                    memory::element_address(ir, byte, part, ir.i64(bytes))
                })?;
                self.frame.buffers.insert(id, pointer);
                Ok(pointer)
            }
            Some(Memory::Caller) => {
                Err(Error::Build("the nest uses a buffer that is no parameter".into()))
            }
            None => Err(defect("a buffer without memory")),
        }
    }

    /// The address of a buffer on the stack of the current function.
    pub(super) fn stack_buffer(&mut self, id: BufferId) -> Result<PointerValue<'ctx>> {
        if let Some(pointer) = self.frame.buffers.get(&id) {
            return Ok(*pointer);
        }
        let buffer = self.buffer(id)?;
        let elements = u32::try_from(buffer.elements());
        let elements = elements.map_err(|_| Error::Build("a stack buffer is too large".into()))?;
        let kind = memory::storage(&self.ir, buffer.dtype).array_type(elements);
        let name = super::label(&buffer.name);
        let pointer =
            self.at_level(0, |emitter| Ok(emitter.ir.builder.build_alloca(kind, &name)?))?;
        if let Some(alloca) = pointer.as_instruction() {
            let aligned = alloca.set_alignment(64);
            aligned.map_err(|_| defect("a stack buffer cannot be aligned"))?;
        }
        self.frame.buffers.insert(id, pointer);
        Ok(pointer)
    }
}
