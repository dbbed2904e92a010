//! Emits CPU functions: computation, preparation and parallel loop bodies.
//!
//! The body of a parallel loop is outlined into a function that the pool calls with ranges of
//! iterations. A structure passes the variables that it captures:
//!
//! ```c
//! struct gemm_parallel_1 {
//!     const float *A;
//!     float *C;
//! };
//!
//! static void gemm_parallel_1(void *context, int64_t begin, int64_t end, int32_t worker) {
//!     const struct gemm_parallel_1 *task = context;
//!     const float *restrict A = task->A;
//!     ...
//!     for (int64_t i = begin; i < end; ++i) {
//! ```

use tensorwright_schedule::interface::Function;
use tensorwright_schedule::nest::{BufferId, Loop, Node, Owner, Span, Uses};

use crate::emitter::{Emitter, Variable};
use crate::error::EmitError;
use crate::helpers::Helper;
use crate::types::memory_type;

impl Emitter<'_> {
    /// A function of the kernel's interface, preceded by those of its parallel loops.
    pub(crate) fn function(&mut self, function: Function) -> Result<String, EmitError> {
        let nodes = match function {
            Function::Prepare => &self.nest.prepare,
            Function::Compute => &self.nest.body,
        };
        self.function = function;
        let name = self.interface.function(function);
        let uses = Uses::of(nodes);
        self.lines
            .open(&format!("int32_t {name}(void *const *buffers, void *workspace, tw_pool *pool)"));
        let start = self.lines.here();
        self.enter_numbers();
        self.parameters(&uses)?;
        if uses.checks {
            self.lines.line("int32_t error = 0;");
        }
        self.silence(&uses, nodes);
        self.lines.line("");
        self.nodes(nodes)?;
        self.lines.line(if uses.checks { "return error;" } else { "return 0;" });
        self.declare_numbers(start)?;
        self.lines.close();
        self.scope.clear();

        let function = std::mem::take(&mut self.lines).into_text();
        let mut parts = std::mem::take(&mut self.tasks);
        parts.push(function);
        Ok(parts.join("\n"))
    }

    /// Declares the parameters and the top-level buffers.
    fn parameters(&mut self, uses: &Uses) -> Result<(), EmitError> {
        let interface = self.interface;
        for (number, parameter) in interface.parameters.iter().enumerate() {
            if uses.buffers.contains(&parameter.id) {
                let id = parameter.id;
                let (ctype, name) = (self.pointer(id)?, self.names.buffer(id));
                self.lines.line(format!("{ctype}restrict {name} = buffers[{number}];"));
            }
        }
        for id in uses.buffers.iter().filter(|id| interface.position(**id).is_none()) {
            self.declare(*id)?;
        }
        Ok(())
    }

    /// Silences warnings about unused parameters.
    fn silence(&mut self, uses: &Uses, nodes: &[Node]) {
        if !uses.buffers.iter().any(|id| self.interface.position(*id).is_some()) {
            self.lines.line("(void)buffers;");
        }
        let is_ours = |id: &BufferId| self.has_place(*id);
        if !uses.buffers.iter().any(is_ours) && !self.declares_workspace(nodes) {
            self.lines.line("(void)workspace;");
        }
        if !uses.parallel {
            self.lines.line("(void)pool;");
        }
    }

    /// Whether a loop among the nodes declares a buffer of the workspace.
    fn declares_workspace(&self, nodes: &[Node]) -> bool {
        nodes.iter().any(|node| match node {
            Node::Loop(inner) => {
                self.is_in_workspace(inner) || self.declares_workspace(&inner.body)
            }
            Node::Guard(guard) => self.declares_workspace(&guard.body),
            _ => false,
        })
    }

    /// Whether the loop itself declares a buffer of the workspace.
    fn is_in_workspace(&self, inner: &Loop) -> bool {
        let used = Uses::of(&inner.body).buffers;
        inner.locals.iter().any(|id| used.contains(id) && self.has_place(*id))
    }

    /// The type of a pointer to a buffer, as in `const float *`.
    pub(crate) fn pointer(&self, id: BufferId) -> Result<String, EmitError> {
        let buffer = self.buffer(id)?;
        let is_const = match buffer.owner {
            Owner::Input => true,
            Owner::Prepared => self.function == Function::Compute,
            _ => false,
        };
        let constness = if is_const { "const " } else { "" };
        Ok(format!("{constness}{} *", memory_type(buffer.dtype)))
    }

    /// A pool call for the iterations of a loop.
    pub(crate) fn parallel_loop(&mut self, parallel: &Loop) -> Result<(), EmitError> {
        if self.in_task {
            return Err(EmitError::malformed("a parallel loop inside a parallel loop"));
        }
        let mut uses = Uses::of(&parallel.body);
        uses.vars.remove(&parallel.var);
        for local in &parallel.locals {
            uses.buffers.remove(local);
        }
        if uses.buffers.is_empty() {
            // A loop that accesses no outer buffer has no effect.
            return Ok(());
        }
        let workspace = self.is_in_workspace(parallel) || self.declares_workspace(&parallel.body);
        let prefix = self.interface.prefix(self.function);
        let name = format!("{prefix}_parallel_{}", self.tasks.len() + 1);
        let task = Task { name, uses, workspace };

        let caller = std::mem::take(&mut self.lines);
        let mut fields = self.task_fields(&task)?;
        self.task_function(&task, &mut fields, parallel)?;
        let function = std::mem::take(&mut self.lines).into_text();
        self.task_structure(&task, &fields, parallel);
        let structure = std::mem::replace(&mut self.lines, caller).into_text();
        self.leave();
        self.tasks.push(structure + "\n" + &function);
        self.task_call(&task, &fields, parallel)
    }

    fn task_fields(&self, task: &Task) -> Result<Vec<Field>, EmitError> {
        let mut fields = Vec::new();
        for id in &task.uses.buffers {
            let (ctype, name) = (self.pointer(*id)?, self.names.buffer(*id).to_owned());
            fields.push(Field { is_pointer: true, ctype, name });
        }
        let is_captured = |v: &&Variable| task.uses.vars.contains(&v.var);
        let loops = self.scope.iter().filter(|v| !self.nest.is_number(v.var));
        for Variable { name, .. } in loops.filter(is_captured) {
            let ctype = "int64_t ".to_owned();
            fields.push(Field { is_pointer: false, ctype, name: name.clone() });
        }
        if task.workspace {
            let (ctype, name) = ("void *".to_owned(), "workspace".to_owned());
            fields.push(Field { is_pointer: false, ctype, name });
        }
        Ok(fields)
    }

    fn task_function(
        &mut self,
        task: &Task,
        fields: &mut Vec<Field>,
        parallel: &Loop,
    ) -> Result<(), EmitError> {
        let Task { name, uses, .. } = task;
        let range = self.iterations(parallel)?;
        let var = self.enter(parallel.var, range);
        self.lines.open(&format!(
            "static void {name}(void *context, int64_t begin, int64_t end, int32_t worker)"
        ));
        self.lines.line(format!("struct {name} *task = context;"));
        for Field { is_pointer, ctype, name } in fields.iter() {
            let restrict = if *is_pointer { "restrict " } else { "" };
            self.lines.line(format!("{ctype}{restrict}{name} = task->{name};"));
        }
        let start = self.lines.here();
        if uses.checks {
            self.lines.line("int32_t error = 0;");
        }
        if !task.workspace {
            self.lines.line("(void)worker;");
        }
        self.lines.open(&format!("for (int64_t {var} = begin; {var} < end; ++{var})"));
        self.in_task = true;
        self.iteration(parallel)?;
        self.in_task = false;
        self.lines.close();
        if uses.checks {
            self.lines.open("if (error != 0)");
            self.lines.line("task->error = error;");
            self.lines.close();
        }
        for name in self.captured_numbers(start) {
            fields.push(Field { is_pointer: false, ctype: "int64_t ".to_owned(), name });
        }
        self.lines.close();
        Ok(())
    }

    /// The structure that a task captures. The variable of the loop is in scope.
    fn task_structure(&mut self, task: &Task, fields: &[Field], parallel: &Loop) {
        let Task { name, uses, .. } = task;
        let var = self.variable(parallel.var).map_or("?", |variable| &variable.name);
        let what = format!("/* Iterations `begin` to below `end` of the loop over {var}. */");
        self.lines.line(what);
        self.lines.open(&format!("struct {name}"));
        for Field { ctype, name, .. } in fields {
            self.lines.line(format!("{ctype}{name};"));
        }
        if uses.checks {
            self.lines.line("volatile int32_t error;");
        }
        self.lines.close_with("};");
    }

    fn task_call(
        &mut self,
        task: &Task,
        fields: &[Field],
        parallel: &Loop,
    ) -> Result<(), EmitError> {
        let Task { name, uses, .. } = task;
        let mut values: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        values.extend(uses.checks.then_some("0"));
        let count = match parallel.span.as_deref() {
            Some(Span { begin, end, .. }) if begin.as_constant() == Some(0) => {
                self.index(end)?.into_code()
            }
            Some(_) => return Err(EmitError::malformed("a parallel loop that begins late")),
            None => parallel.extent.to_string(),
        };
        let run = self.helper(Helper::Run);
        self.lines.open("");
        self.lines.line(format!("struct {name} context = {{{}}};", values.join(", ")));
        self.lines.line(format!("{run}(pool, {name}, &context, {count});"));
        if uses.checks {
            self.lines.line("error = error != 0 ? error : context.error;");
        }
        self.lines.close();
        Ok(())
    }
}

/// The outlined function of a parallel loop.
struct Task {
    name: String,
    uses: Uses,
    /// Whether it declares buffers of the workspace.
    workspace: bool,
}

/// A captured variable of an outlined function.
struct Field {
    is_pointer: bool,
    /// The type, including the separator before the name.
    ctype: String,
    name: String,
}
