//! What emission knows at a point of the nest.

use tensorwright_lang::program::Read;
use tensorwright_schedule::interface::Function;
use tensorwright_schedule::nest::{Buffer, BufferId, Launch, Var};
use tensorwright_schedule::workspace::WorkspaceLayout;
use tensorwright_schedule::{Interface, LoopNest};

use crate::EmitOptions;
use crate::dialect::{DeviceSyntax, Syntax};
use crate::error::EmitError;
use crate::helpers::{Helper, Helpers};
use crate::names::Names;
use crate::text::Lines;

/// A variable that is in scope.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) var: Var,
    pub(crate) name: String,
    /// It is at least zero and below this.
    pub(crate) extent: i64,
}

/// The kernel that is being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel<'a> {
    /// How it is launched.
    pub(crate) launch: &'a Launch,
    /// Its language.
    pub(crate) device: &'static dyn DeviceSyntax,
}

/// The state of emission.
#[derive(Debug)]
pub(crate) struct Emitter<'a> {
    pub(crate) nest: &'a LoopNest,
    pub(crate) interface: &'a Interface,
    pub(crate) names: &'a Names,
    pub(crate) plan: &'a WorkspaceLayout,
    pub(crate) options: EmitOptions,
    pub(crate) dialect: &'a dyn Syntax,
    /// The launch whose kernel is being written; `None` for a processor.
    pub(crate) launch: Option<Kernel<'a>>,
    /// Whether index arithmetic is done in 32 bits, but for that on data.
    pub(crate) is_narrow: bool,
    /// The largest number that index arithmetic came to, but for that on data.
    pub(crate) widest: std::cell::Cell<i128>,
    pub(crate) helpers: Helpers,
    /// The variables in scope, outermost first.
    pub(crate) scope: Vec<Variable>,
    /// The functions of parallel loops, finished.
    pub(crate) tasks: Vec<String>,
    /// The lines of the function that is being written.
    pub(crate) lines: Lines,
    /// The function that is being written is that of a parallel loop.
    pub(crate) in_task: bool,
    /// Which function of the kernel is being written, or what it calls.
    pub(crate) function: Function,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        nest: &'a LoopNest,
        interface: &'a Interface,
        names: &'a Names,
        plan: &'a WorkspaceLayout,
        options: EmitOptions,
        dialect: &'a dyn Syntax,
    ) -> Self {
        Self {
            nest,
            interface,
            names,
            plan,
            options,
            dialect,
            launch: None,
            is_narrow: false,
            widest: std::cell::Cell::new(0),
            helpers: Helpers::default(),
            scope: Vec::new(),
            tasks: Vec::new(),
            lines: Lines::default(),
            in_task: false,
            function: Function::Compute,
        }
    }

    pub(crate) fn buffer(&self, id: BufferId) -> Result<&'a Buffer, EmitError> {
        let found = self.nest.buffers.get(id.0 as usize);
        found.ok_or_else(|| EmitError::malformed("it mentions a buffer that is not there"))
    }

    /// A variable in scope.
    pub(crate) fn variable(&self, var: Var) -> Result<&Variable, EmitError> {
        let found = self.scope.iter().rev().find(|variable| variable.var == var);
        found.ok_or_else(|| {
            let name = self.nest.vars.get(var.0 as usize).map_or("?", |name| &**name);
            EmitError::malformed(format!("`{name}` is used outside of its loop"))
        })
    }

    /// The type of index variables.
    pub(crate) fn index_type(&self) -> &'static str {
        if self.is_narrow { "int32_t" } else { "int64_t" }
    }

    /// Puts a variable in scope and gives it a name.
    pub(crate) fn enter(&mut self, var: Var, extent: i64) -> String {
        self.widest.set(self.widest.get().max(i128::from(extent)));
        let wanted = self.nest.vars.get(var.0 as usize).map_or("i", |name| &**name);
        let in_scope = |name: &str| self.scope.iter().any(|variable| variable.name == name);
        let name = self.names.variable(wanted, in_scope);
        self.scope.push(Variable { var, name: name.clone(), extent });
        name
    }

    /// Takes the variable that was put in scope last out of it.
    pub(crate) fn leave(&mut self) {
        self.scope.pop();
    }

    /// The name of a function that the code calls.
    pub(crate) fn helper(&mut self, helper: Helper) -> String {
        self.helpers.name(helper)
    }

    /// The error code of a checked read.
    pub(crate) fn error_code(&self, read: &Read) -> Result<usize, EmitError> {
        let number = self.interface.check_number(read);
        number.map(|number| number + 1).ok_or_else(|| {
            EmitError::malformed("it checks a read that is not among those that are checked")
        })
    }
}
