//! Loop nests to readable C99.
//!
//! [`emit`] writes a lowered [`LoopNest`] as one C file that needs nothing but the standard
//! library, compiles without warnings, and has no undefined behaviour whatever the data. It is the
//! portable target, and the one to read when a schedule does not do what it should.
//!
//! [`header`], [`wrapper`] and [`rust_module`] describe the interface of the kernel. They serve for
//! object files that other code generators make as well; [`Interface`] and the names are what they, and others
//! that write such text, are made from.
//!
//! Nothing here does I/O, and the same nest always gives the same text.

#![forbid(unsafe_code)]

mod emitter;
mod error;
mod expr;
mod header;
mod helpers;
mod index;
mod interface;
mod kernel;
mod names;
mod nodes;
mod processor;
mod rust;
mod text;
mod types;
mod uses;

pub use emitter::checked_reads;
pub use error::EmitError;
pub use header::{POOL, header, wrapper};
pub use interface::{Interface, Parameter};
pub use names::{c_names, rust_names, symbol};
pub use processor::Processor;
pub use rust::{element_type, rust_module};
pub use types::memory_type;

use tensorwright_schedule::LoopNest;
use tensorwright_schedule::nest::{BufferId, Scope};
use tensorwright_schedule::workspace::Plan;

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

/// How a nest is written as C.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether buffers of the kernel's own are filled with bytes `0xff` where their life begins, on the
    /// stack and in the workspace: what reads them before it writes them gets numbers that show, such as
    /// no number at all. For tests.
    pub poison: bool,
}

impl Options {
    /// With buffers that are filled where their life begins.
    #[must_use]
    pub fn poisoned() -> Self {
        Self { poison: true }
    }
}

/// Writes a nest as C.
///
/// # Errors
/// If the nest is not lowered, or breaks a rule that lowering keeps.
pub fn emit(nest: &LoopNest) -> Result<CSource, EmitError> {
    emit_with(nest, Options::default())
}

/// Writes a nest as C, with options.
///
/// # Errors
/// As [`emit`].
pub fn emit_with(nest: &LoopNest, options: Options) -> Result<CSource, EmitError> {
    if !nest.is_lowered() {
        return Err(EmitError::NotLowered);
    }
    let (names, plan) = (Names::of(nest), Plan::of(nest));
    let mut emitter = Emitter::new(nest, &names, &plan, options);
    let mut functions = Vec::new();
    if !nest.prepare.is_empty() {
        functions.push(emitter.function(true)?);
    }
    functions.push(emitter.function(false)?);
    functions.push(header::wrapper_functions(nest, None));

    let header = header(nest, None);
    let mut parts = vec![title(nest, &names), header.clone(), header::INCLUDES.to_owned()];
    parts.push(emitter.helpers.text());
    parts.extend(functions);
    parts.retain(|part| !part.is_empty());
    Ok(CSource { code: parts.join("\n"), header })
}

/// The comment at the top: the buffers that a reader will meet.
fn title(nest: &LoopNest, names: &Names) -> String {
    let mut text = format!("/* {}: a kernel made by Tensorwright.\n\n", symbol(nest));
    let mut uses = uses::Uses::mentioned(&nest.prepare);
    uses.extend(uses::Uses::mentioned(&nest.body));
    let is_parameter = |id: &BufferId| nest.parameters.contains(id);
    let others = uses.into_iter().filter(|id| !is_parameter(id));
    for id in nest.parameters.iter().copied().chain(others) {
        let Some(buffer) = nest.buffers.get(id.0 as usize) else { continue };
        let scope = match buffer.scope {
            Scope::Input => "input",
            Scope::Output => "output",
            Scope::Prepared => "prepared",
            Scope::Stack => "stack",
            _ => "workspace",
        };
        let (name, ctype) = (names.buffer(id), interface::type_text(buffer));
        text += &format!("   {scope:<9}  {name}: {ctype}\n");
    }
    text + "*/\n"
}
