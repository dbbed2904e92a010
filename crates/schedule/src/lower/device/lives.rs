//! Moves buffers that outlive the loops of a launch to the workspace.
//!
//! ```text
//! for i.0 in 0..1 {                                 float t[8];                       in the workspace
//!   float t[8];                              ->     thread.x for i { t(i) = ..; }     one launch
//!   thread.x for i { t(i) = ..; }                   thread.x for i { .. t(i) ..; }    another one
//!   thread.x for i { .. t(i) ..; }
//! }
//! ```
//!
//! Earlier passes have removed loops of one iteration and unrolled loops, so their bodies may be at
//! the top level now. Only a launch of one block can be cut like that, because blocks are
//! outermost: each such buffer has one copy.

use crate::lower::LowerError;
use crate::nest::{LoopNest, Memory, Uses};

pub(in crate::lower) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    let mut free = Uses::of(&nest.prepare).buffers;
    free.extend(Uses::of(&nest.body).buffers);
    for id in free {
        let buffer = &mut nest.buffers[id.0 as usize];
        if buffer.owner.is_kernel() {
            buffer.memory = Some(Memory::Workspace);
        }
    }
    Ok(())
}
