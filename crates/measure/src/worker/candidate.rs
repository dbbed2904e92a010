//! [`Candidate`]: machine code in this process, with memory to work on.
#![allow(unsafe_code, reason = "calls machine code with pointers")]

use std::ffi::c_void;
use std::fs::File;
use std::io;

use tensorwright::Program;
use tensorwright::ir::TensorId;
use tensorwright_codegen_llvm::JitKernel;
use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_runtime::Pool;
use tensorwright_schedule::interface::{Function, Parameter};
use tensorwright_schedule::nest::Owner;

use super::compare::{self, Tensor};
use super::memory::{ReadOnlyRegion, Region, Reused, UNWRITTEN};
use crate::protocol::{Description, Verdict};
use crate::shared::Layout;

/// The memory that candidates use in turn.
#[derive(Debug)]
pub(super) struct Arena {
    inputs: Vec<ReadOnlyRegion>,
    outputs: Vec<Region>,
    expected: Vec<Tensor>,
    workspace: Reused,
    /// The outputs of the program, in order.
    output_ids: Vec<TensorId>,
    /// The number of workers, each with its part of the workspace.
    workers: i32,
}

impl Arena {
    /// Reads inputs and expected results of a program from the shared file.
    pub(super) fn new(
        program: &Program,
        layout: &Layout,
        workers: i32,
        shared: &File,
    ) -> io::Result<Self> {
        let inputs = layout
            .inputs
            .iter()
            .map(|part| ReadOnlyRegion::filled(part.bytes, |bytes| part.read(shared, bytes)));
        let inputs = inputs.collect::<io::Result<_>>()?;
        let outputs = layout.outputs.iter().map(|(values, _)| Region::new(values.bytes));
        let outputs = outputs.collect::<io::Result<_>>()?;
        let expected = Tensor::outputs(layout, shared)?;
        let (workspace, output_ids) = (Reused::default(), program.ir().outputs.clone());
        Ok(Self { inputs, outputs, expected, workspace, output_ids, workers })
    }

    /// The memory of a parameter, unless the candidate owns it.
    fn slot(&self, parameter: &Parameter) -> Option<Slot> {
        let slot = match parameter.owner {
            Owner::Input => Slot::Input(parameter.id.0 as usize),
            Owner::Output => {
                Slot::Output(self.output_ids.iter().position(|id| *id == parameter.id)?)
            }
            _ => return None,
        };
        let exists = match slot {
            Slot::Input(place) => place < self.inputs.len(),
            Slot::Output(place) => place < self.outputs.len(),
            Slot::Prepared(_) => true,
        };
        exists.then_some(slot)
    }

    /// Overwrites the outputs with wrong values and the workspace with NaNs, so that stale results
    /// of an earlier candidate cannot pass.
    pub(super) fn poison(&mut self, candidate: &Candidate) {
        self.workspace.poison(candidate.workspace);
        for (output, expected) in self.outputs.iter_mut().zip(&self.expected) {
            let pairs = output.bytes_mut().iter_mut().zip(expected.values.bytes());
            pairs.for_each(|(byte, expected)| *byte = !expected);
        }
    }

    /// The buffer that a candidate has overrun, if any.
    pub(super) fn overrun(&self, candidate: &Candidate) -> Option<String> {
        let output = self.outputs.iter().position(|output| !output.is_intact());
        let output = output.map(|place| format!("output {place}"));
        let prepared = candidate.prepared.iter().any(|region| !region.is_intact());
        let prepared = prepared.then(|| "a buffer that it prepares".to_owned());
        let workspace = !self.workspace.is_intact_behind(candidate.workspace);
        let workspace = workspace.then(|| "its workspace".to_owned());
        let what = output.or(prepared).or(workspace)?;
        Some(format!("the kernel writes past the end of {what}"))
    }

    /// How the outputs differ from the expected values, beyond `error_growth` times the tolerance.
    pub(super) fn mismatch(&self, error_growth: f64) -> Option<String> {
        let pairs = self.outputs.iter().zip(&self.expected).enumerate();
        pairs.into_iter().find_map(|(place, (output, expected))| {
            let difference = compare::difference(expected, output.bytes(), error_growth)?;
            Some(format!("output {place}: {difference}"))
        })
    }
}

/// Machine code in this process.
#[derive(Debug)]
pub(super) struct Candidate {
    kernel: JitKernel,
    /// The memory of each parameter.
    slots: Vec<Slot>,
    workspace: usize,
    error_growth: f64,
    /// One region per prepared buffer.
    prepared: Vec<Region>,
}

/// The memory of a parameter.
#[derive(Debug, Clone, Copy)]
enum Slot {
    /// An input of the program, by its index.
    Input(usize),
    /// An output of the program, by its index.
    Output(usize),
    /// A region of the candidate's own.
    Prepared(usize),
}

impl Candidate {
    /// Links an object and provides memory for it.
    pub(super) fn load(
        jit: &Jit,
        description: &Description,
        object: &[u8],
        arena: &mut Arena,
    ) -> Result<Self, Verdict> {
        let unlinkable = |error: &dyn std::fmt::Display| Verdict::Unlinkable(error.to_string());
        let interface = &description.interface;
        let kernel = JitKernel::load(jit, interface, object).map_err(|error| unlinkable(&error))?;
        let too_large = |bytes: i64| {
            Verdict::TooLarge(format!("the schedule needs {bytes} bytes, more than there may be"))
        };
        let size = |bytes: i64| usize::try_from(bytes).map_err(|_| too_large(bytes));
        let (mut slots, mut prepared) = (Vec::new(), Vec::new());
        for parameter in &interface.parameters {
            if parameter.owner != Owner::Prepared {
                let slot = arena.slot(parameter);
                let unknown = "the kernel takes tensors that the program does not have";
                slots.push(slot.ok_or_else(|| unlinkable(&unknown))?);
                continue;
            }
            let bytes = parameter.bytes();
            let mut region = Region::new(size(bytes)?).map_err(|_| too_large(bytes))?;
            // Not zeros: a kernel must not rely on bytes that preparation did not write.
            region.bytes_mut().fill(UNWRITTEN);
            slots.push(Slot::Prepared(prepared.len()));
            prepared.push(region);
        }
        let bytes = interface.workspace.bytes(arena.workers);
        let workspace = size(bytes)?;
        arena.workspace.at_least(workspace).map_err(|_| too_large(bytes))?;
        arena.workspace.poison(workspace);
        let error_growth = description.error_growth.max(1.0);
        Ok(Self { kernel, slots, workspace, error_growth, prepared })
    }

    /// The factor by which rounding errors may exceed those of the program's own sums.
    pub(super) fn error_growth(&self) -> f64 {
        self.error_growth
    }

    /// Runs the preparation, once before all calls.
    pub(super) fn prepare(
        &mut self,
        arena: &mut Arena,
        pool: Option<&Pool>,
    ) -> Result<(), Verdict> {
        self.invoke(Function::Prepare, arena, pool)
    }

    /// Computes the outputs.
    pub(super) fn call(&mut self, arena: &mut Arena, pool: Option<&Pool>) -> Result<(), Verdict> {
        self.invoke(Function::Compute, arena, pool)
    }

    fn invoke(
        &mut self,
        function: Function,
        arena: &mut Arena,
        pool: Option<&Pool>,
    ) -> Result<(), Verdict> {
        let pointer = |slot: &Slot| -> *mut c_void {
            match *slot {
                // Only read; the pages are read-only.
                Slot::Input(place) => arena.inputs[place].pointer().cast_mut().cast(),
                Slot::Output(place) => arena.outputs[place].pointer().cast(),
                Slot::Prepared(place) => self.prepared[place].pointer().cast(),
            }
        };
        let buffers: Vec<*mut c_void> = self.slots.iter().map(pointer).collect();
        let workspace = arena.workspace.at_least(self.workspace);
        let workspace = workspace.map_err(|error| Verdict::TooLarge(error.to_string()))?;
        let workspace = workspace.pointer().cast();
        let pool = pool.map_or(std::ptr::null_mut(), Pool::as_abi);
        // SAFETY: every parameter has memory of the size of its tensor, the workspace has the size
        // that the interface asks for with this pool, and this process owns all of it. Whether the
        // code keeps to its interface is unknown: this process exists to find that out, and the
        // code can harm only it.
        let status = unsafe {
            match function {
                Function::Prepare => self.kernel.prepare(&buffers, workspace, pool),
                Function::Compute => self.kernel.call(&buffers, workspace, pool),
            }
        };
        let status = status.map_err(|error| Verdict::Unlinkable(error.to_string()))?;
        match status {
            0 => Ok(()),
            _ => Err(Verdict::Wrong(format!("the kernel reports a failed read (status {status})"))),
        }
    }
}
