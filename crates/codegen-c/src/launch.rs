//! Emits device kernels: one function per launch.
//!
//! ```c
//! __kernel void gemm_1(__global const float *restrict A, .., __global uchar *workspace, __global int *status) {
//!     __local float A_pack[64];
//!     const int m_0 = get_group_id(1);
//!     float C_tile[4];
//!     for (int k_0 = 0; k_0 < 3; ++k_0) {
//!         barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
//!         {
//!             const int t_1 = get_local_id(1);
//!             ...
//! ```
//!
//! A block loop becomes the block index. A thread loop becomes the thread index, under a condition
//! if the block has more threads than the loop has iterations. The first thread executes the code
//! outside of thread loops, except for loops, guards and barriers that all threads execute.

use tensorwright_schedule::interface::LaunchPlan;
use tensorwright_schedule::nest::{
    Body, Dim, Launch, Loop, LoopKind, Memory, Node, Uses, for_each_loop,
};

use crate::dialect::DeviceSyntax;
use crate::emitter::{Emitter, Kernel, below};
use crate::error::EmitError;
use crate::tensor::holds_tensors;
use crate::types::memory_type;

impl<'a> Emitter<'a> {
    /// The kernel of a launch.
    pub(crate) fn launched(
        &mut self,
        plan: &LaunchPlan,
        node: &Node,
        launch: &'a Launch,
        device: &'static dyn DeviceSyntax,
    ) -> Result<String, EmitError> {
        self.function = plan.function;
        self.launch = Some(Kernel { launch, device });
        let tree = std::slice::from_ref(node);
        let uses = Uses::of(tree);
        self.signature(plan, device)?;
        let shared = match device.tensors().filter(|_| holds_tensors(tree, device)) {
            Some(tensors) => tensors.shared(),
            None => device.shared(),
        };
        for id in Uses::mentioned(tree) {
            let buffer = self.buffer(id)?;
            if buffer.memory == Some(Memory::Shared) {
                let (ctype, name) = (memory_type(buffer.dtype), self.names.buffer(id));
                let elements = buffer.elements().max(1);
                self.lines.line(format!("{shared}{ctype} {name}[{elements}];"));
            }
        }
        for id in uses.buffers.iter().filter(|id| self.interface.position(**id).is_none()) {
            self.declare(*id)?;
        }
        if uses.checks {
            self.lines.line("int32_t error = 0;");
        }
        self.together(tree)?;
        if uses.checks {
            self.lines.open("if (error != 0)");
            self.lines.line("*status = error;");
            self.lines.close();
        }
        self.lines.close();
        self.launch = None;
        Ok(std::mem::take(&mut self.lines).into_text())
    }

    fn signature(&mut self, plan: &LaunchPlan, device: &dyn DeviceSyntax) -> Result<(), EmitError> {
        let (global, restrict) = (device.global(), device.restrict());
        let mut arguments = Vec::new();
        for position in &plan.parameters {
            let parameter = self.interface.parameters.get(*position);
            let id = parameter.ok_or_else(|| EmitError::malformed("a parameter is missing"))?.id;
            let name = self.names.buffer(id);
            arguments.push(format!("{global}{}{restrict}{name}", self.pointer(id)?));
        }
        arguments.push(format!("{global}{} *workspace", device.byte()));
        arguments.push(format!("{global}int32_t *status"));
        let start = device.kernel(&plan.kernel, plan.block);
        self.lines.open(&format!("{start}({})", arguments.join(", ")));
        Ok(())
    }

    /// Nodes that all threads of a block execute together.
    fn together(&mut self, nodes: &[Node]) -> Result<(), EmitError> {
        let Some(kernel) = self.launch else { return self.nodes(nodes) };
        let is_bound = |node: &Node| is_bound(node, kernel.device);
        if kernel.launch.threads() == 1 && !nodes.iter().any(is_bound) {
            return self.nodes(nodes);
        }
        let mut nodes = nodes;
        while let Some((first, rest)) = nodes.split_first() {
            match first {
                Node::Barrier => self.lines.line(kernel.device.barrier()),
                Node::Loop(l) if is_bound(first) => self.a_bound_loop(l)?,
                Node::Guard(guard) if is_bound(first) => {
                    let conditions = self.conditions(&guard.conditions)?;
                    self.lines.open(&format!("if ({conditions})"));
                    self.together(&guard.body)?;
                    self.lines.close();
                }
                _ => {
                    let others = rest.iter().take_while(|node| !is_bound(node)).count();
                    let (alone, rest) = nodes.split_at(1 + others);
                    self.first_thread(alone, kernel)?;
                    nodes = rest;
                    continue;
                }
            }
            nodes = rest;
        }
        Ok(())
    }

    /// Nodes that only the first thread of a block executes.
    fn first_thread(&mut self, nodes: &[Node], kernel: Kernel<'a>) -> Result<(), EmitError> {
        let conditions = idle(kernel, &[]);
        if conditions.is_empty() {
            return self.nodes(nodes);
        }
        self.lines.open(&format!("if ({})", conditions.join(" && ")));
        self.nodes(nodes)?;
        self.lines.close();
        Ok(())
    }

    /// A bound loop, or a loop around bound loops.
    fn a_bound_loop(&mut self, l: &Loop) -> Result<(), EmitError> {
        let Some(kernel) = self.launch else { return self.nodes(&l.body) };
        match l.kind {
            LoopKind::Block(dim) => {
                let name = self.enter(l.var, below(l.extent));
                let (ctype, number) = (self.index_type(), kernel.device.block(dim));
                let start = self.lines.here();
                self.declare_locals(l)?;
                self.together(&l.body)?;
                self.lines.declare(start, &name, &format!("const {ctype} {name} = {number};"));
                self.leave();
                Ok(())
            }
            LoopKind::Thread(_) | LoopKind::Tensor => {
                let dims = dims(l, kernel.device);
                let conditions = idle(kernel, &dims);
                let opening = match conditions.is_empty() {
                    true => String::new(),
                    false => format!("if ({})", conditions.join(" && ")),
                };
                self.lines.open(&opening);
                match kernel.device.tensors().filter(|_| l.kind == LoopKind::Tensor) {
                    Some(tensors) => self.tensor_op(l, tensors)?,
                    None => self.thread_loop(l)?,
                }
                self.lines.close();
                Ok(())
            }
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Unrolled | LoopKind::Vectorized => {
                self.loop_head(l)?;
                self.declare_locals(l)?;
                self.together(&l.body)?;
                self.lines.close();
                self.leave();
                Ok(())
            }
        }
    }

    /// An iteration of a thread loop.
    pub(crate) fn thread_loop(&mut self, l: &Loop) -> Result<(), EmitError> {
        let (Some(kernel), LoopKind::Thread(dim)) = (self.launch, l.kind) else {
            return Err(EmitError::malformed("a thread loop outside of a launch"));
        };
        let name = self.enter(l.var, below(l.extent));
        let (ctype, number) = (self.index_type(), kernel.device.thread(dim));
        let start = self.lines.here();
        let is_cut = l.extent < kernel.launch.block[dim.place()];
        if is_cut {
            self.lines.open(&format!("if ({name} < {})", l.extent));
        }
        self.iteration(l)?;
        if is_cut {
            self.lines.close();
        }
        self.lines.declare(start, &name, &format!("const {ctype} {name} = {number};"));
        self.leave();
        Ok(())
    }
}

/// Whether a node is or contains a bound loop, a barrier or a tensor operation.
fn is_bound(node: &Node, device: &dyn DeviceSyntax) -> bool {
    let tree = std::slice::from_ref(node);
    let mut found = holds_barrier(node) || holds_tensors(tree, device);
    for_each_loop(tree, &mut |l| found |= l.kind.is_bound());
    found
}

fn holds_barrier(node: &Node) -> bool {
    let any = |body: &Body| body.iter().any(holds_barrier);
    match node {
        Node::Barrier => true,
        Node::Loop(l) => any(&l.body),
        Node::Guard(guard) => any(&guard.body),
        Node::Store(_) | Node::Prefetch(_) => false,
    }
}

/// The directions of a thread loop and of those inside it. Tensor operations use a warp in
/// direction x.
fn dims(outermost: &Loop, device: &dyn DeviceSyntax) -> Vec<Dim> {
    let (mut found, has_tensors) = (Vec::new(), device.tensors().is_some());
    let mut add = |l: &Loop| match l.kind {
        LoopKind::Thread(dim) => found.push(dim),
        LoopKind::Tensor if has_tensors => found.push(Dim::X),
        _ => {}
    };
    add(outermost);
    for_each_loop(&outermost.body, &mut add);
    found
}

/// The conditions that select one thread in directions without a loop.
fn idle(kernel: Kernel<'_>, dims: &[Dim]) -> Vec<String> {
    let is_idle = |dim: &Dim| kernel.launch.block[dim.place()] > 1 && !dims.contains(dim);
    let all = Dim::ALL.into_iter().map(|(_, dim)| dim).filter(is_idle);
    all.map(|dim| format!("{} == 0", kernel.device.thread(dim))).collect()
}
