//! Code generation from loop nests to C99 and device dialects of C.
//!
//! [`emit`] writes a [`LoweredNest`] as one C file that only needs the standard library, compiles
//! without warnings, and has no undefined behavior for any data. It is the portable target, and the
//! one to read when debugging a schedule.
//!
//! [`emit_device`] writes a nest that was lowered for a device as kernels in OpenCL C, CUDA C++ or
//! HIP, together with its launches. Statements are the same; dialects define the differences.
//!
//! [`header`], [`wrapper`] and [`rust_module`] write an [`Interface`] for callers. They also work
//! for object files of other code generators.
//!
//! Nothing here does I/O, and the same nest always gives the same text.

#![forbid(unsafe_code)]

mod dialect;
mod emitter;
mod error;
mod expr;
mod header;
mod helpers;
mod index;
mod kernel;
mod launch;
mod names;
mod narrow;
mod nodes;
mod numbers;
mod processor;
mod rust;
mod rust_sized;
mod sized;
mod sizes;
mod tensor;
mod text;
mod types;
mod wrapper;

pub use dialect::{CUDA_FIBRES, Dialect};
pub use error::EmitError;
pub use header::{POOL, header, interface_version};
pub use names::{c_names, rust_names};
pub use processor::Requirement;
pub use rust::{element_type, rust_module};
pub use types::memory_type;
pub use wrapper::wrapper;

use tensorwright_lang::program::{SizeRange, index_text};
use tensorwright_schedule::interface::{DeviceProgram, Function, LaunchPlan};
use tensorwright_schedule::nest::{BufferId, Memory, NumberSource, Owner, Uses, Var};
use tensorwright_schedule::workspace::WorkspaceLayout;
use tensorwright_schedule::{Interface, LoopNest, LoweredNest};

use crate::dialect::C99;
use crate::emitter::Emitter;
use crate::names::Names;

/// A kernel in C.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CSource {
    /// The source file. It does not include the header, but declares the same things.
    pub code: String,
    /// The header for callers.
    pub header: String,
}

/// Options of C emission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmitOptions {
    /// Whether the kernel's own buffers are filled with bytes `0xff` when their lifetime begins, on
    /// the stack and in the workspace, so that uninitialized reads yield conspicuous values such as
    /// NaN. For tests.
    pub poison: bool,
}

impl EmitOptions {
    /// Options with poisoned buffers.
    #[must_use]
    pub fn poisoned() -> Self {
        Self { poison: true }
    }
}

/// Writes a nest as C.
///
/// # Errors
/// The nest violates an invariant of lowering.
pub fn emit(nest: &LoweredNest) -> Result<CSource, EmitError> {
    emit_with(nest, EmitOptions::default())
}

/// Writes a nest as C, with options.
///
/// # Errors
/// As [`emit`].
pub fn emit_with(lowered: &LoweredNest, options: EmitOptions) -> Result<CSource, EmitError> {
    let (nest, interface, plan) =
        (lowered.as_nest(), Interface::of(lowered), WorkspaceLayout::of(lowered));
    if interface.is_sized() && interface.has_prepare {
        return Err(EmitError::malformed("a preparation for sizes that vary"));
    }
    let names = Names::of(nest, &interface);
    let mut emitter = Emitter::new(nest, &interface, &names, &plan, options, &C99);
    let mut functions = Vec::new();
    if interface.has_prepare {
        functions.push(emitter.function(Function::Prepare)?);
    }
    functions.push(emitter.function(Function::Compute)?);
    functions.push(wrapper::wrapper_functions(&interface, None));

    let header = header(&interface, None);
    let mut parts =
        vec![title(nest, &interface.symbol, &names), header.clone(), wrapper::INCLUDES.to_owned()];
    parts.push(emitter.helpers.text(&C99));
    parts.extend(functions);
    parts.retain(|part| !part.is_empty());
    Ok(CSource { code: parts.join("\n"), header })
}

/// Writes a nest that was lowered for a device in a device dialect of C.
///
/// # Errors
/// The nest was not lowered for a device, or violates an invariant of lowering.
pub fn emit_device(lowered: &LoweredNest, dialect: Dialect) -> Result<DeviceProgram, EmitError> {
    let (nest, interface, plan) =
        (lowered.as_nest(), Interface::of(lowered), WorkspaceLayout::of(lowered));
    if interface.is_sized() {
        return Err(EmitError::Sized);
    }
    if nest.launches.is_none() {
        return Err(EmitError::malformed("it was not lowered for a device"));
    }
    let device = dialect.syntax();
    let names = Names::for_device(nest, &interface, &device.reserved());
    let launches = LaunchPlan::of(lowered, &interface);
    // Index arithmetic uses 32 bits if no value needs more.
    let written = |is_narrow: bool| {
        let options = EmitOptions::default();
        let mut emitter =
            Emitter::new(nest, &interface, &names, &plan, options, device.as_syntax());
        emitter.is_narrow = is_narrow;
        let mut kernels = Vec::new();
        for (plan, node, launch) in &launches {
            kernels.push(emitter.launched(plan, node, launch, device)?);
        }
        let fits = emitter.widest.get() <= i128::from(i32::MAX);
        Ok((emitter.helpers.text(device.as_syntax()), kernels, fits))
    };
    let (helpers, kernels, fits) = written(true)?;
    let (helpers, kernels) = match fits {
        true => (helpers, kernels),
        false => written(false).map(|(helpers, kernels, _)| (helpers, kernels))?,
    };
    let mut parts = vec![helpers];
    parts.extend(kernels);
    parts.retain(|part| !part.is_empty());
    let text = parts.join("\n");
    let preamble = device.preamble(&text);
    let source = [title(nest, &interface.symbol, &names), preamble, text].join("\n");
    let plans = launches.into_iter().map(|(plan, ..)| plan).collect();
    Ok(DeviceProgram::new(source, interface, plans))
}

/// The leading comment, which lists the buffers.
fn title(nest: &LoopNest, symbol: &str, names: &Names) -> String {
    let mut text = format!("/* {symbol}: a kernel made by Tensorwright.\n\n");
    for number in &nest.numbers {
        if let NumberSource::Size(size) = &number.source {
            let SizeRange { least, most, multiple, .. } = size.range;
            let note = match multiple {
                1 => String::new(),
                _ => format!(", a multiple of {multiple}, by which it is divided here"),
            };
            text += &format!("   {:<9}  {}: {least} to {most}{note}\n", "size", size.name);
        }
    }
    let mut uses = Uses::mentioned(&nest.prepare);
    uses.extend(Uses::mentioned(&nest.body));
    let is_parameter = |id: &BufferId| nest.parameters.contains(id);
    let others = uses.into_iter().filter(|id| !is_parameter(id));
    for id in nest.parameters.iter().copied().chain(others) {
        let Some(buffer) = nest.buffers.get(id.0 as usize) else { continue };
        let what = match (buffer.owner, buffer.memory) {
            (Owner::Input, _) => "input",
            (Owner::Output, _) => "output",
            (Owner::Prepared, _) => "prepared",
            (_, Some(Memory::Stack)) if nest.launches.is_some() => "private",
            (_, Some(Memory::Stack)) => "stack",
            (_, Some(Memory::Shared)) => "shared",
            _ => "workspace",
        };
        let extents = (0..buffer.shape.len()).map(|dimension| {
            let var = |var: Var| nest.var_name(var).to_owned();
            index_text(&buffer.extent(dimension), &var, &|id| names.buffer(id).to_owned())
        });
        let (name, ctype) = (names.buffer(id), types::type_text(buffer.dtype, extents));
        text += &format!("   {what:<9}  {name}: {ctype}\n");
    }
    text + "*/\n"
}
