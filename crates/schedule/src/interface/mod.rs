//! The calling convention of a kernel, as serializable data.
//!
//! Emitters, loaders, packages and measurements share this one description.
//!
//! A kernel exports a function that computes and, if inputs are prepared ahead of all calls, one that
//! prepares. Both take a pointer per [parameter](Interface::parameters), a
//! [workspace](Interface::workspace) and something that runs parallel loops, and return zero or the
//! number of the [checked read](Interface::checked) that failed.
//!
//! The parameters of these functions vary with sizes and schedules, so only generated code calls
//! them. Their names contain a hash of their parameters: an object and a wrapper that do not match
//! do not link. Users call functions with the [signature](Interface::signature) of the definition,
//! which never varies.

mod argument;
mod formula;
mod identifier;
mod launches;
mod numbers;
mod version;

pub use argument::{Argument, in_order};
pub use formula::{Formula, Part};
pub use identifier::{alphanumeric, identifier, stem};
pub use launches::{DeviceProgram, LaunchPlan};
pub use numbers::{Condition, Number};
pub use version::version;

use serde::{Deserialize, Serialize};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{FixedScalar, Read};
use tensorwright_lang::source::Span;

use crate::LoweredNest;
use crate::nest::{Buffer, BufferId, LoopNest, Node, Owner, Uses, for_each_store};
use crate::workspace::{ALIGNMENT, Workspace, WorkspaceLayout};

/// How a kernel is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interface {
    /// The prefix of the names of all functions.
    pub symbol: String,
    /// Whether there is a function that prepares.
    pub has_prepare: bool,
    /// The parameters of both functions, in order: inputs, then outputs, then prepared buffers.
    pub parameters: Vec<Parameter>,
    /// The numbers that are known at run time alone: a last parameter points to the values of those
    /// that are [passed](Interface::passed_numbers). Empty if sizes are fixed.
    #[serde(default)]
    pub numbers: Vec<Number>,
    /// The sizes for which the kernel is right, beyond their ranges: those that satisfy all of
    /// these. Callers check them.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The parameters of the definition that are compiled into the loops. They are not passed to
    /// either function.
    pub fixed: Vec<FixedScalar>,
    /// The working memory of a call.
    pub workspace: Workspace,
    /// The size of the memory of all prepared buffers; zero if there are none.
    pub prepared_bytes: i64,
    /// A hash of the preparation: buffers that were prepared in another way have another hash.
    pub preparation: u32,
    /// The reads that the kernel checks at run time, by number, and the writes of scatters. Copies
    /// of one read of the source text (after unrolling, for example) share a number.
    pub checked: Vec<CheckedRead>,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Parameter {
    /// Its buffer in the nest. An input or output has the number of its tensor in the program.
    pub id: BufferId,
    /// The name in the source text.
    pub name: String,
    /// The type of the elements.
    pub dtype: DType,
    /// The extents of dense, row-major memory; empty for one element. If sizes vary, the largest.
    pub shape: Vec<i64>,
    /// The extents as functions of [numbers](Interface::numbers); empty if sizes are fixed.
    #[serde(default)]
    pub extents: Vec<Formula>,
    /// Whether it is an input, an output or a prepared buffer.
    pub owner: Owner,
    /// Whether it is an input whose values do not change between calls.
    pub is_const: bool,
    /// Whether the computation needs it. Inputs that were prepared may be unused.
    pub in_body: bool,
    /// Whether the preparation needs it.
    pub in_prepare: bool,
    /// The offset in the memory of all prepared buffers, if it is one.
    pub prepared_at: Option<i64>,
}

/// A read, or a write of a scatter, that the kernel checks at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckedRead {
    /// The buffer.
    pub buffer: BufferId,
    /// Its location in the source text.
    pub place: Span,
}

/// A function of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Function {
    /// Fills the prepared buffers.
    Prepare,
    /// Computes the outputs.
    Compute,
}

impl Interface {
    /// The interface of a lowered nest.
    #[must_use]
    pub fn of(lowered: &LoweredNest) -> Self {
        let nest = lowered.as_nest();
        let mut prepared_bytes: i64 = 0;
        let (body, prepare) = (Uses::of(&nest.body).buffers, Uses::of(&nest.prepare).buffers);
        let parameter = |id: &BufferId| {
            let buffer = nest.buffers.get(id.0 as usize)?;
            let is_prepared = buffer.owner == Owner::Prepared;
            let prepared_at = is_prepared.then_some(prepared_bytes);
            if is_prepared {
                let lines = buffer.bytes().saturating_add(ALIGNMENT - 1) / ALIGNMENT;
                prepared_bytes = prepared_bytes.saturating_add(lines * ALIGNMENT);
            }
            Some(Parameter {
                id: *id,
                name: buffer.name.clone(),
                dtype: buffer.dtype,
                shape: buffer.shape.clone(),
                extents: extents(nest, buffer),
                owner: buffer.owner,
                is_const: nest.constants.contains(id),
                // The caller owns an output even if it is never written.
                in_body: body.contains(id) || buffer.owner == Owner::Output,
                in_prepare: prepare.contains(id),
                prepared_at,
            })
        };
        let parameters = nest.parameters.iter().filter_map(parameter).collect();
        Self {
            symbol: stem(&nest.name),
            has_prepare: !nest.prepare.is_empty(),
            parameters,
            numbers: numbers::of(nest),
            conditions: numbers::conditions(nest),
            fixed: nest.fixed.clone(),
            workspace: WorkspaceLayout::of(lowered).size,
            prepared_bytes,
            preparation: version(&nest.preparation()),
            checked: checked_reads(nest),
        }
    }

    /// The linker symbol of a function: the kernel's name, the function and the hash of its
    /// parameters.
    #[must_use]
    pub fn function(&self, function: Function) -> String {
        let what = match function {
            Function::Compute => "kernel",
            Function::Prepare => "preparation",
        };
        format!("{}_{what}_{:08x}", self.symbol, self.passed())
    }

    /// The prefix of all names that belong to a function.
    #[must_use]
    pub fn prefix(&self, function: Function) -> String {
        match function {
            Function::Compute => self.symbol.clone(),
            Function::Prepare => format!("{}_prepare", self.symbol),
        }
    }

    /// A hash of the parameters: buffers and their sizes, in order, and the workspace.
    fn passed(&self) -> u32 {
        let mut parameters = Vec::new();
        for Parameter { dtype, shape, owner, prepared_at, .. } in &self.parameters {
            parameters.push((dtype, shape, owner, prepared_at));
        }
        let Workspace { shared_bytes, private_bytes } = self.workspace;
        let numbers = match self.numbers.as_slice() {
            [] => String::new(),
            numbers => format!(" {numbers:?} {:?}", self.conditions),
        };
        let prepared = self.prepared_bytes;
        version(&format!("{parameters:?} {shared_bytes} {private_bytes} {prepared}{numbers}"))
    }

    /// The parameters of the definition, in its order: inputs, then outputs. Sizes and schedules
    /// never change their names, types or order.
    #[must_use]
    pub fn signature(&self) -> Vec<Argument<'_>> {
        let explicit = self.parameters.iter().filter(|parameter| parameter.is_explicit());
        in_order(explicit.map(Argument::Passed), &self.fixed, Argument::Fixed)
    }

    /// Whether the definition has inputs that can be prepared, whether or not the schedule prepares
    /// them.
    #[must_use]
    pub fn has_constants(&self) -> bool {
        self.signature().iter().any(Argument::is_const)
    }

    /// The inputs and outputs that a function needs.
    pub fn explicit(&self, function: Function) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(move |p| p.is_explicit() && p.is_needed_by(function))
    }

    /// The position of a buffer among the parameters.
    #[must_use]
    pub fn position(&self, id: BufferId) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.id == id)
    }

    /// The number of a checked read.
    #[must_use]
    pub fn check_number(&self, read: &Read) -> Option<usize> {
        self.checked.iter().position(|known| known.is(read))
    }

    /// The checked read that a status refers to; `None` for success and for invalid statuses.
    #[must_use]
    pub fn failed_read(&self, status: i32) -> Option<CheckedRead> {
        let number = usize::try_from(status).ok()?.checked_sub(1)?;
        self.checked.get(number).copied()
    }
}

impl Parameter {
    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> i64 {
        self.shape.iter().fold(1, |product: i64, extent| product.saturating_mul(*extent))
    }

    /// The number of bytes.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        self.elements().saturating_mul(self.dtype.bytes() as i64)
    }

    /// Whether a function needs it.
    #[must_use]
    pub fn is_needed_by(&self, function: Function) -> bool {
        match function {
            Function::Compute => self.in_body,
            Function::Prepare => self.in_prepare,
        }
    }

    /// Whether it is a scalar input, which is passed by value in typed interfaces.
    #[must_use]
    pub fn is_scalar_input(&self) -> bool {
        self.owner == Owner::Input && self.shape.is_empty()
    }

    /// Whether it is an input or an output.
    #[must_use]
    pub fn is_explicit(&self) -> bool {
        self.prepared_at.is_none()
    }
}

impl CheckedRead {
    fn is(&self, read: &Read) -> bool {
        (self.buffer, self.place) == (read.tensor, read.place.0)
    }
}

/// The extents of a buffer as functions of run-time numbers.
fn extents(nest: &LoopNest, buffer: &Buffer) -> Vec<Formula> {
    let Some(shape) = &buffer.run_time else { return Vec::new() };
    shape.extents.iter().map(|extent| numbers::formula(nest, extent)).collect()
}

/// The reads of a nest that are checked at run time, in the order of their numbers.
fn checked_reads(nest: &LoopNest) -> Vec<CheckedRead> {
    let mut found: Vec<CheckedRead> = Vec::new();
    let mut collect = |nodes: &[Node]| {
        for_each_store(nodes, &mut |store| {
            let mut add = |read: &Read| {
                if !read.checked.is_empty() && !found.iter().any(|known| known.is(read)) {
                    found.push(CheckedRead { buffer: read.tensor, place: read.place.0 });
                }
            };
            store.reads().into_iter().for_each(|(_, read)| add(read));
            store.checked_element().iter().for_each(add);
        });
    };
    collect(&nest.body);
    collect(&nest.prepare);
    found
}

#[cfg(test)]
mod tests {
    use tensorwright_lang::Module;

    use super::*;
    use crate::{Schedule, canonical, lower};

    #[test]
    fn what_a_caller_sees() {
        let text = "def float_t(float(N) A, int32(N) I, int32(N) J, const float(N,N) W) -> (B) {
            B(i) +=! A(I(J(j))) * W(i,j)
        }";
        let program = Module::parse("t.tc", text).unwrap().bind("float_t", [("N", 5)]).unwrap();
        let schedule = Schedule::parse("W: layout [d1, d0]").unwrap();
        let nest = lower(schedule.apply(canonical(&program)).unwrap()).unwrap();
        let interface = Interface::of(&nest);

        assert_eq!(interface.symbol, "float_t");
        assert_eq!(interface.prefix(Function::Prepare), "float_t_prepare");
        let function = interface.function(Function::Prepare);
        assert!(function.starts_with("float_t_preparation_"), "{function}");
        let signature = interface.signature();
        let signature: Vec<&str> = signature.iter().map(Argument::name).collect();
        assert_eq!(signature, ["A", "I", "J", "W", "B"]);
        assert!(interface.has_constants());
        let names = |function| -> Vec<&str> {
            interface.explicit(function).map(|parameter| parameter.name.as_str()).collect()
        };
        assert_eq!(names(Function::Compute), ["A", "I", "J", "B"]);
        assert_eq!(names(Function::Prepare), ["W"]);
        let laid = interface.parameters.last().unwrap();
        assert_eq!((laid.name.as_str(), laid.prepared_at, laid.bytes()), ("W.laid", Some(0), 100));
        assert_eq!((interface.has_prepare, interface.prepared_bytes), (true, 128));

        // The element of `A`, then the element of `I` that selects it.
        let failed = |status| {
            let read = interface.failed_read(status)?;
            Some(nest.as_nest().buffer(read.buffer).name.as_str())
        };
        assert_eq!([0, 1, 2, 3, -1].map(failed), [None, Some("A"), Some("I"), None, None]);
    }

    /// The interface of a definition for sizes, with a schedule.
    fn interface(text: &str, sizes: &[(&str, i64)], schedule: &str) -> Interface {
        let module = Module::parse("t.tc", text).unwrap();
        let program = module.bind("f", sizes.iter().copied()).unwrap();
        let schedule = Schedule::parse(schedule).unwrap();
        Interface::of(&lower(schedule.apply(canonical(&program)).unwrap()).unwrap())
    }

    #[test]
    fn numbers_in_the_loops_stay_parameters() {
        let text =
            "def f(int a, float(N) x, int k, int s) -> (z) { z(i) = x(i) + float(i >= k ? a : s) }";
        for sizes in
            [&[("N", 3)][..], &[("N", 1), ("k", 0)], &[("N", 1), ("a", 1), ("k", 2), ("s", 3)]]
        {
            let interface = interface(text, sizes, "");
            let signature = interface.signature();
            let names: Vec<&str> = signature.iter().map(Argument::name).collect();
            assert_eq!(names, ["a", "x", "k", "s", "z"], "{sizes:?}");
            assert_eq!(interface.fixed.len() + 1, sizes.len());
        }
    }

    #[test]
    fn functions_that_are_passed_something_else_have_another_name() {
        let text = "def f(float(N) x, const float(N,N) w) -> (y) { y(i) +=! x(j) * w(i,j) }";
        let name = |size, schedule| {
            let interface = interface(text, &[("N", size)], schedule);
            interface.function(Function::Compute)
        };
        assert_eq!(name(5, ""), name(5, "y: split j 2"));
        assert_ne!(name(5, ""), name(6, ""));
        assert_ne!(name(5, ""), name(5, "w: layout [d1, d0]"));
    }
}
