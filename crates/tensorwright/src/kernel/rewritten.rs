//! Error bounds of rewritten programs on given inputs.
//!
//! Rewrites such as Winograd's algorithm round differently from the program. Their errors are
//! bounded by running the lowered loops, the same statements that are compiled, through the
//! reference's error analysis: valid for any data, and as slow as the reference.

use tensorwright_lang::diagnostic::Diagnostic;
use tensorwright_lang::program::{Index, Program};
use tensorwright_reference::{Memory, Run, Write};
use tensorwright_schedule::LoweredNest;
use tensorwright_schedule::nest::{Loop, Node, Store};

use crate::Inputs;

/// The most statements to run: a few times those of the reference.
const MOST_STATEMENTS: u64 = 200_000_000;

/// Widens the tolerances of a run to those of rewritten loops. Returns `false`, without changes, if
/// the loops would take too long.
///
/// # Errors
/// Invalid inputs, and out-of-bounds reads.
#[allow(clippy::result_large_err)]
pub fn allow_for_rewriting(
    run: &mut Run,
    program: &Program,
    nest: &LoweredNest,
    inputs: &Inputs,
) -> Result<bool, Diagnostic> {
    let nest = nest.as_nest();
    let all: Vec<_> = nest.buffers.iter().map(|b| (b.dtype, b.shape.clone())).collect();
    let memory = Memory::new(program, inputs, &all)?;
    let point = vec![0; nest.vars.len()];
    let mut walk = Walk { memory, point, left: MOST_STATEMENTS };
    if !walk.nodes(&nest.prepare)? || !walk.nodes(&nest.body)? {
        return Ok(false);
    }
    for (output, id) in run.outputs.iter_mut().zip(&program.outputs) {
        match walk.memory.output(*id) {
            Some(rewritten) => output.allow_for(&rewritten),
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// An execution of the loops. Functions return whether it completed.
struct Walk<'a> {
    memory: Memory<'a>,
    /// The values of all loop variables.
    point: Vec<i64>,
    /// The remaining statement budget.
    left: u64,
}

#[allow(clippy::result_large_err)]
impl Walk<'_> {
    fn nodes(&mut self, nodes: &[Node]) -> Result<bool, Diagnostic> {
        for node in nodes {
            let ended = match node {
                Node::Loop(l) => self.iterations(l)?,
                Node::Guard(guard) if !self.memory.holds(&guard.conditions, &self.point)? => true,
                Node::Guard(guard) => self.nodes(&guard.body)?,
                Node::Store(store) => self.store(store)?,
                _ => true,
            };
            if !ended {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn iterations(&mut self, l: &Loop) -> Result<bool, Diagnostic> {
        for value in 0..l.extent {
            self.set(l.var.0, value);
            if self.left == 0 || !self.nodes(&l.body)? {
                return Ok(false);
            }
            self.left -= 1;
        }
        Ok(true)
    }

    fn store(&mut self, store: &Store) -> Result<bool, Diagnostic> {
        let Some(lanes) = store.lanes else { return self.write(store, &store.mask) };
        for lane in 0..lanes.count {
            self.set(lanes.var.0, lane);
            if !self.write(store, &store.mask)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write(&mut self, store: &Store, mask: &[Index]) -> Result<bool, Diagnostic> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        if self.memory.holds(mask, &self.point)? {
            let Store { buffer, subscripts, combine, value, .. } = store;
            let write = Write { tensor: *buffer, subscripts, combine: *combine, value };
            self.memory.write(write, &self.point)?;
        }
        Ok(true)
    }

    fn set(&mut self, var: u32, value: i64) {
        if let Some(slot) = self.point.get_mut(var as usize) {
            *slot = value;
        }
    }
}
