//! What a caller of a kernel sees, whichever language it is written in: which parameters each
//! function takes, and how large the memory is that the caller supplies.

use tensorwright_schedule::LoopNest;
use tensorwright_schedule::nest::{Buffer, BufferId, Scope};
use tensorwright_schedule::workspace::{ALIGNMENT, Plan};

use crate::emitter::checked_reads;
use crate::uses::Uses;

/// The interface of a kernel.
#[derive(Debug)]
#[non_exhaustive]
pub struct Interface<'a> {
    /// The loops.
    pub nest: &'a LoopNest,
    /// The workspace.
    pub plan: Plan,
    /// The parameters, by position.
    pub parameters: Vec<Parameter<'a>>,
    /// The size of all prepared buffers; zero if there are none.
    pub prepared_bytes: i64,
    /// The number of reads that are checked.
    pub checked: usize,
}

/// A parameter of a kernel.
#[derive(Debug)]
#[non_exhaustive]
pub struct Parameter<'a> {
    /// Its buffer.
    pub id: BufferId,
    /// What it holds, and whose it is.
    pub buffer: &'a Buffer,
    /// Whether the kernel needs it. Inputs that were prepared may not be needed any more.
    pub in_body: bool,
    /// Whether preparation needs it.
    pub in_prepare: bool,
    /// Where it starts in the memory of all prepared buffers, if it is one.
    pub prepared_at: Option<i64>,
}

impl<'a> Interface<'a> {
    /// The interface of a lowered nest.
    #[must_use]
    pub fn of(nest: &'a LoopNest) -> Self {
        let (body, prepare) = (Uses::of(&nest.body).buffers, Uses::of(&nest.prepare).buffers);
        let mut prepared_bytes: i64 = 0;
        let mut parameters = Vec::new();
        for id in &nest.parameters {
            let Some(buffer) = nest.buffers.get(id.0 as usize) else { continue };
            let is_prepared = buffer.scope == Scope::Prepared;
            let prepared_at = is_prepared.then_some(prepared_bytes);
            if is_prepared {
                let lines = buffer.bytes().saturating_add(ALIGNMENT - 1) / ALIGNMENT;
                prepared_bytes = prepared_bytes.saturating_add(lines * ALIGNMENT);
            }
            parameters.push(Parameter {
                id: *id,
                buffer,
                // An output is the caller's, whether it is written or not.
                in_body: body.contains(id) || buffer.scope == Scope::Output,
                in_prepare: prepare.contains(id),
                prepared_at,
            });
        }
        let (plan, checked) = (Plan::of(nest), checked_reads(nest).len());
        Self { nest, plan, parameters, prepared_bytes, checked }
    }

    /// Whether some inputs are prepared once, ahead of all calls.
    #[must_use]
    pub fn has_prepare(&self) -> bool {
        !self.nest.prepare.is_empty()
    }
}

impl Parameter<'_> {
    /// Whether it is a single number that goes in, and is passed by value.
    #[must_use]
    pub fn is_scalar_input(&self) -> bool {
        self.buffer.scope == Scope::Input && self.buffer.shape.is_empty()
    }

    /// Whether it is an input or an output.
    #[must_use]
    pub fn is_explicit(&self) -> bool {
        self.prepared_at.is_none()
    }
}

/// The type of a buffer as source text writes it, such as `float(16, 3)`.
pub(crate) fn type_text(buffer: &Buffer) -> String {
    if buffer.shape.is_empty() {
        return buffer.dtype.to_string();
    }
    let extents: Vec<String> = buffer.shape.iter().map(i64::to_string).collect();
    format!("{}({})", buffer.dtype, extents.join(", "))
}
