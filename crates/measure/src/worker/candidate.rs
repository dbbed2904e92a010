//! [`Candidate`]: machine code in this process, with memory to work on.
#![allow(unsafe_code, reason = "calls machine code with pointers")]

use std::ffi::c_void;
use std::fs::File;
use std::io;

use tensorwright_codegen_llvm::jit::{Jit, LoadedCode};
use tensorwright_runtime::{Pool, abi};

use super::compare::{self, Tensor};
use super::memory::{Frozen, Region, Reused, UNWRITTEN};
use crate::protocol::{Interface, Parameter, Verdict};
use crate::shared::Layout;

/// The memory that candidates use one after the other.
#[derive(Debug)]
pub(super) struct Arena {
    inputs: Vec<Frozen>,
    outputs: Vec<Region>,
    expected: Vec<Tensor>,
    workspace: Reused,
}

impl Arena {
    /// Reads inputs and expected results from the shared file.
    pub(super) fn new(layout: &Layout, shared: &File) -> io::Result<Self> {
        let read = |part: &crate::shared::Part| {
            let mut region = Region::new(part.bytes)?;
            part.read(shared, region.bytes_mut())?;
            region.freeze()
        };
        let inputs = layout.inputs.iter().map(read).collect::<io::Result<_>>()?;
        let outputs = layout.outputs.iter().map(|(values, _)| Region::new(values.bytes));
        let outputs = outputs.collect::<io::Result<_>>()?;
        let expected = layout.outputs.iter().map(|(values, tolerances)| {
            Ok(Tensor { dtype: values.dtype, values: read(values)?, tolerances: read(tolerances)? })
        });
        let expected = expected.collect::<io::Result<_>>()?;
        Ok(Self { inputs, outputs, expected, workspace: Reused::default() })
    }

    /// Fills the outputs with what is expected nowhere, and the workspace with no numbers: what the
    /// candidate before this one has left must not pass for its own.
    pub(super) fn spoil(&mut self, candidate: &Candidate) {
        self.workspace.spoil(candidate.workspace);
        for (output, expected) in self.outputs.iter_mut().zip(&self.expected) {
            let pairs = output.bytes_mut().iter_mut().zip(expected.values.bytes());
            pairs.for_each(|(byte, expected)| *byte = !expected);
        }
    }

    /// What a candidate has written behind the end of, if it has.
    pub(super) fn overrun(&self, candidate: &Candidate) -> Option<String> {
        let output = self.outputs.iter().position(|output| !output.is_intact());
        let output = output.map(|place| format!("output {place}"));
        let prepared = candidate.prepared.iter().any(|region| !region.is_intact());
        let prepared = prepared.then(|| "a buffer that it prepares".to_owned());
        let workspace = !self.workspace.is_intact_behind(candidate.workspace);
        let workspace = workspace.then(|| "its workspace".to_owned());
        let what = output.or(prepared).or(workspace)?;
        Some(format!("the kernel writes behind the end of {what}"))
    }

    /// How the outputs differ from what is expected, by more than rounding errors that exceed those of
    /// the program's own sums by a factor.
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
    compute: abi::Kernel,
    prepare: Option<abi::Kernel>,
    parameters: Vec<Parameter>,
    workspace: usize,
    error_growth: f64,
    /// One region per prepared buffer; in the order of the parameters.
    prepared: Vec<Region>,
    /// Frees the code when it goes.
    _code: LoadedCode,
}

impl Candidate {
    /// Links an object, and makes sure that there is memory for it.
    pub(super) fn load(
        jit: &Jit,
        interface: &Interface,
        object: &[u8],
        arena: &mut Arena,
    ) -> Result<Self, Verdict> {
        let unlinkable = |error: &dyn std::fmt::Display| Verdict::Unlinkable(error.to_string());
        let code = jit.load(object).map_err(|error| unlinkable(&error))?;
        let function = |name: &str| {
            // SAFETY: the emitters give these functions this type; the pointer is kept beside the
            // code. That an object may lie about it is why this process is a sandbox.
            unsafe { code.function::<abi::Kernel>(name) }.map_err(|error| unlinkable(&error))
        };
        let compute = function(&interface.symbol)?;
        let prepare = interface.has_prepare.then(|| format!("{}_prepare", interface.symbol));
        let prepare = prepare.map(|name| function(&name)).transpose()?;
        let fits = |parameter: &Parameter| match *parameter {
            Parameter::Input(place) => place < arena.inputs.len(),
            Parameter::Output(place) => place < arena.outputs.len(),
            Parameter::Prepared(_) => true,
        };
        if !interface.parameters.iter().all(fits) {
            return Err(unlinkable(&"the kernel takes tensors that the program does not have"));
        }
        let too_large = |bytes: u64| {
            Verdict::TooLarge(format!("the schedule needs {bytes} bytes, more than there may be"))
        };
        let size = |bytes: u64| usize::try_from(bytes).map_err(|_| too_large(bytes));
        let mut prepared = Vec::new();
        for parameter in &interface.parameters {
            if let Parameter::Prepared(bytes) = *parameter {
                let mut region = Region::new(size(bytes)?).map_err(|_| too_large(bytes))?;
                // Not zeros: a kernel must not count on what preparation did not write.
                region.bytes_mut().fill(UNWRITTEN);
                prepared.push(region);
            }
        }
        let workspace = size(interface.workspace)?;
        arena.workspace.at_least(workspace).map_err(|_| too_large(interface.workspace))?;
        arena.workspace.spoil(workspace);
        let parameters = interface.parameters.clone();
        let error_growth = interface.error_growth.max(1.0);
        Ok(Self { compute, prepare, parameters, workspace, error_growth, prepared, _code: code })
    }

    /// By how much rounding errors may exceed those of the program's own sums.
    pub(super) fn error_growth(&self) -> f64 {
        self.error_growth
    }

    /// Prepares what is prepared once, ahead of all calls.
    pub(super) fn prepare(
        &mut self,
        arena: &mut Arena,
        pool: Option<&Pool>,
    ) -> Result<(), Verdict> {
        match self.prepare {
            Some(prepare) => self.invoke(prepare, arena, pool),
            None => Ok(()),
        }
    }

    /// Computes the outputs.
    pub(super) fn call(&mut self, arena: &mut Arena, pool: Option<&Pool>) -> Result<(), Verdict> {
        self.invoke(self.compute, arena, pool)
    }

    fn invoke(
        &mut self,
        function: abi::Kernel,
        arena: &mut Arena,
        pool: Option<&Pool>,
    ) -> Result<(), Verdict> {
        let mut prepared = self.prepared.iter_mut();
        let pointer = |parameter: &Parameter| -> *mut c_void {
            match *parameter {
                // Only read through; the pages are read-only.
                Parameter::Input(place) => arena.inputs[place].pointer().cast_mut().cast(),
                Parameter::Output(place) => arena.outputs[place].pointer().cast(),
                Parameter::Prepared(_) => {
                    prepared.next().map_or(std::ptr::null_mut(), |region| region.pointer().cast())
                }
            }
        };
        let buffers: Vec<*mut c_void> = self.parameters.iter().map(pointer).collect();
        let workspace = arena.workspace.at_least(self.workspace);
        let workspace = workspace.map_err(|error| Verdict::TooLarge(error.to_string()))?;
        let pool = pool.map_or(std::ptr::null_mut(), Pool::as_abi);
        // SAFETY: every parameter has memory of the size that its tensor has in the program, the
        // workspace that of the plan for the workers of this pool, and all of it is this process's
        // alone. What is not known is whether the code keeps to its interface: finding that out is
        // what this process is for, and all it could harm.
        let status = unsafe { function(buffers.as_ptr(), workspace.pointer().cast(), pool) };
        match status {
            0 => Ok(()),
            _ => Err(Verdict::Wrong(format!("the kernel reports a failed read (status {status})"))),
        }
    }
}
