//! Emits LLVM IR with explicit vectors for a lowered nest.
//!
//! The IR is emitted in its final form, because only `sroa` and `early-cse` run afterwards: no pass
//! hoists, unrolls or vectorizes.
//!
//! | file | concern |
//! | --- | --- |
//! | `function.rs` | the exported function, the internal one with `noalias` pointers |
//! | `loops.rs` | loops, guards, prefetches |
//! | `parallel.rs` | the outlined task of a parallel loop |
//! | `pieces.rs` | large kernels, split into several functions |
//! | `hoist.rs` | hoisting of loop-invariant code |
//! | `index.rs` | index arithmetic, addresses |
//! | `mask.rs` | active lanes |
//! | `access.rs` | access patterns of lanes |
//! | `memory.rs` | loads and stores |
//! | `read.rs` | reads of an expression, checked where the subscript is data |
//! | `store.rs` | statements |
//! | `running.rs` | statements whose lanes are steps of a recurrence |
//! | `expr.rs`, `arith.rs` | expressions, operators |
//! | `cast.rs`, `narrow.rs` | conversions; storage-only floats |
//! | `ir.rs` | instructions on scalars and vectors |
//!
//! A statement with [lanes](tensorwright_schedule::nest::Lanes) is widened: an expression that
//! mentions the lane variable becomes a vector; other expressions stay scalar until they are
//! combined with a vector.

mod access;
mod arith;
mod cast;
mod expr;
mod function;
mod hoist;
mod horizontal;
mod idle;
mod index;
mod ir;
mod loops;
mod mask;
mod memory;
mod narrow;
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

/// The expressions and accesses that are always allowed. Each takes tens of microseconds of code
/// generation, so more indicates excessive unrolling.
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

/// The name of a value in the IR, for readers.
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
    /// The function under construction.
    frame: Frame<'ctx>,
    /// The latest results of recurrences in registers.
    last: Vec<Last<'ctx>>,
    operations: usize,
}

/// The lanes for which an expression is evaluated.
#[derive(Clone, Copy)]
struct Active<'ctx> {
    /// `None` outside of vector statements.
    lanes: Option<Lanes>,
    /// The mask of active lanes; `None` for all.
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
        // The size of the program itself is always allowed.
        let most = MAX_OPERATIONS.max(self.nest.own.parts.saturating_mul(limits::GROWTH));
        if self.operations > most {
            return Err(Error::TooLarge(format!(
                "the kernel has more than {most} operations; unroll less"
            )));
        }
        Ok(())
    }
}
