//! From a lowered loop nest to LLVM IR with explicit vectors.
//!
//! The code is emitted the way the machine should run it, because only `sroa` and `early-cse` run
//! after us: no pass hoists, unrolls or vectorizes.
//!
//! | file | concern |
//! | --- | --- |
//! | `function.rs` | the exported function, the internal one with `noalias` pointers |
//! | `loops.rs` | loops, guards, prefetches |
//! | `parallel.rs` | the task of a parallel loop, and how it is run |
//! | `pieces.rs` | kernels of many trees, as several functions |
//! | `hoist.rs` | what depends on outer loops only is computed there, once |
//! | `index.rs` | index arithmetic, addresses |
//! | `mask.rs` | which lanes take part |
//! | `access.rs` | how the lanes of an access lie in memory |
//! | `memory.rs` | loads and stores |
//! | `read.rs` | reads of an expression, checked where the subscript is data |
//! | `store.rs` | statements |
//! | `running.rs` | statements whose lanes are steps of a recurrence |
//! | `expr.rs`, `arith.rs` | expressions, operators |
//! | `cast.rs`, `half.rs` | conversions; the 16-bit floats |
//! | `ir.rs` | instructions on scalars and vectors alike |
//!
//! A statement with [lanes](tensorwright_schedule::nest::Lanes) is widened: an expression that
//! mentions the lane variable becomes a vector, any other one stays a scalar until it meets one.

mod access;
mod arith;
mod cast;
mod expr;
mod function;
mod half;
mod hoist;
mod horizontal;
mod idle;
mod index;
mod ir;
mod loops;
mod mask;
mod memory;
mod parallel;
mod pieces;
mod read;
mod running;
mod store;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::TargetMachine;
use inkwell::values::VectorValue;
use tensorwright_schedule::interface::Function;
use tensorwright_schedule::nest::{Buffer, BufferId, Lanes};
use tensorwright_schedule::workspace::WorkspaceLayout;
use tensorwright_schedule::{Interface, LoopNest, LoweredNest, limits};

use crate::error::{Error, Result};
use crate::processor::Processor;
use function::Frame;
use ir::Ir;
use running::Last;

/// The number of expressions and accesses that a nest may always have. Code generation takes tens of
/// microseconds for each, so more is a schedule that unrolls without bounds.
const MAX_OPERATIONS: usize = 100_000;

/// Emits the functions of a lowered nest.
pub(crate) fn emit<'ctx>(
    context: &'ctx Context,
    lowered: &LoweredNest,
    interface: &Interface,
    target: &Processor,
    machine: &TargetMachine,
) -> Result<Module<'ctx>> {
    let module = context.create_module(&interface.symbol);
    target.prepare(&module, machine);
    let prepare = interface.has_prepare.then_some(Function::Prepare);
    for function in [Function::Compute].into_iter().chain(prepare) {
        let builder = context.create_builder();
        let ir = Ir { context, module: &module, builder, target };
        function::kernel(ir, lowered, interface, function)?;
    }
    Ok(module)
}

/// The name of a value in the IR, for people who read it.
fn label(name: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut label: String = name.chars().map(valid).collect();
    if label.is_empty() || label.starts_with(|c: char| c.is_ascii_digit()) {
        label.insert(0, '_');
    }
    label
}

/// The state of emission.
struct Emitter<'a, 'ctx> {
    ir: Ir<'a, 'ctx>,
    nest: &'a LoopNest,
    interface: &'a Interface,
    plan: WorkspaceLayout,
    /// The function that is being written.
    frame: Frame<'ctx>,
    /// The last results of recurrences that are in registers.
    last: Vec<Last<'ctx>>,
    operations: usize,
}

/// The lanes that an expression is evaluated for.
#[derive(Clone, Copy)]
struct Active<'ctx> {
    /// `None` outside of vector statements.
    lanes: Option<Lanes>,
    /// The lanes that take part; `None` if all do.
    mask: Option<VectorValue<'ctx>>,
}

impl<'ctx> Active<'ctx> {
    const SCALAR: Self = Self { lanes: None, mask: None };
}

impl<'a> Emitter<'a, '_> {
    fn buffer(&self, id: BufferId) -> Result<&'a Buffer> {
        let found = self.nest.buffers.get(id.0 as usize);
        found.ok_or_else(|| Error::Build("the nest mentions a buffer that it does not have".into()))
    }

    /// Counts an operation against the limit.
    fn charge(&mut self) -> Result<()> {
        self.operations += 1;
        // What a program needs by itself is always allowed.
        let most = MAX_OPERATIONS.max(self.nest.own.parts.saturating_mul(limits::GROWTH));
        if self.operations > most {
            return Err(Error::TooLarge(format!(
                "the kernel has more than {most} operations; unroll less"
            )));
        }
        Ok(())
    }
}
