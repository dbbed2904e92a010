//! The state of C emission.

use tensorwright_lang::program::{Interval, Read};
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
    /// Its values.
    pub(crate) range: Interval,
}

/// The values of a variable that is at least zero and below an extent.
pub(crate) fn below(extent: i64) -> Interval {
    Interval { lo: 0, hi: i128::from(extent) - 1 }
}

/// The device kernel under construction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel<'a> {
    /// Its launch.
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
    /// The launch of the kernel; `None` for a CPU.
    pub(crate) launch: Option<Kernel<'a>>,
    /// Whether index arithmetic uses 32 bits, except for values from data.
    pub(crate) is_narrow: bool,
    /// The largest value of index arithmetic so far, except for values from data.
    pub(crate) widest: std::cell::Cell<i128>,
    pub(crate) helpers: Helpers,
    /// The variables in scope, outermost first.
    pub(crate) scope: Vec<Variable>,
    /// The finished functions of parallel loops.
    pub(crate) tasks: Vec<String>,
    /// The lines of the current function.
    pub(crate) lines: Lines,
    /// Whether the current function belongs to a parallel loop.
    pub(crate) in_task: bool,
    /// The current function of the kernel, or the one that calls the current function.
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

    /// Enters the scope of a variable and names it.
    pub(crate) fn enter(&mut self, var: Var, range: Interval) -> String {
        self.widest.set(self.widest.get().max(range.hi + 1));
        let wanted = self.nest.vars.get(var.0 as usize).map_or("i", |name| &**name);
        let in_scope = |name: &str| self.scope.iter().any(|variable| variable.name == name);
        let name = self.names.variable(wanted, in_scope);
        self.scope.push(Variable { var, name: name.clone(), range });
        name
    }

    /// Leaves the scope of the innermost variable.
    pub(crate) fn leave(&mut self) {
        self.scope.pop();
    }

    /// The name of a helper function.
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
