//! A Rust module with a safe interface to a compiled kernel.

use std::collections::BTreeMap;

use tensorwright_lang::dtype::DType;
use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::{Function, Parameter};
use tensorwright_schedule::nest::{BufferId, Owner};
use tensorwright_schedule::workspace::ALIGNMENT;

use crate::names::{rust_identifier, rust_names};
use crate::processor::Requirement;
use crate::types::type_text;

/// The number of parameters from which on clippy wonders.
const MANY: usize = 8;

/// A Rust module that declares a compiled kernel and wraps it in safe functions. It compiles in
/// editions 2021 and 2024 and has no dependencies; 16-bit floats are `u16`.
#[must_use]
pub fn rust_module(interface: &Interface, processor: &Requirement) -> String {
    let module = Module::of(interface);
    let mut text = module.documentation();
    text += "use std::ffi::c_void;\nuse std::fmt;\n\n";
    text += &module.declarations();
    text += COMMON;
    text += &processor.rust_function();
    if module.interface.has_prepare {
        text += &module.prepared();
    }
    text + &module.kernel()
}

struct Module<'a> {
    interface: &'a Interface,
    /// The name of the function.
    name: String,
    names: BTreeMap<BufferId, String>,
}

impl<'a> Module<'a> {
    fn of(interface: &'a Interface) -> Self {
        let parameters = &interface.parameters;
        let names = rust_names(parameters.iter().map(|parameter| parameter.name.as_str()));
        let names = parameters.iter().map(|parameter| parameter.id).zip(names).collect();
        Self { interface, name: rust_identifier(&interface.symbol, |_| false), names }
    }

    fn documentation(&self) -> String {
        let (name, symbol) = (&self.name, &self.interface.symbol);
        format!(
            "//! `{name}`: a kernel made by Tensorwright.\n//!\n\
             //! The program has to be linked with the compiled kernel, which exports the symbol\n\
             //! `{symbol}`; `cargo:rustc-link-arg` in a build script does that for an object file.\n\n"
        )
    }

    fn declarations(&self) -> String {
        let one = |symbol: &str, name: &str| {
            format!(
                "    #[link_name = \"{symbol}\"]\n    fn {name}(\n        \
                 buffers: *const *mut c_void,\n        workspace: *mut c_void,\n        \
                 pool: *mut c_void,\n    ) -> i32;\n"
            )
        };
        let mut text = "unsafe extern \"C\" {\n".to_owned();
        text += &one(&self.interface.symbol, "kernel");
        if self.interface.has_prepare {
            text += &one(&self.interface.function(Function::Prepare), "prepare_kernel");
        }
        text + "}\n\n"
    }

    /// The structure of prepared inputs.
    fn prepared(&self) -> String {
        let lines = self.interface.prepared_bytes / ALIGNMENT;
        format!(
            "/// Inputs that do not change between calls, in the layout that the kernel wants.\n\
             #[derive(Debug, Clone)]\npub struct Prepared {{\n    lines: Vec<Line>,\n}}\n\n\
             impl Prepared {{\n    /// Brings inputs into the layout of the kernel.\n    ///\n\
             {}    ///\n    /// # Errors\n    \
             /// If a slice has another length than the type says, or the processor is not one that\n    \
             /// the kernel is for.\n\
             {}    pub fn new({}) -> Result<Self, Error> {{\n{}    \
             let mut lines = vec![Line([0; 64]); {lines}];\n        \
             let prepared: *mut Line = lines.as_mut_ptr();\n{}        Ok(Self {{ lines }})\n    }}\n}}\n\n",
            indent(&self.legend(Function::Prepare)),
            indent(&self.lint(Function::Prepare)),
            self.parameter_list(Function::Prepare).join(", "),
            indent(&self.checks(Function::Prepare)) + "    ",
            indent(&self.invocation(Function::Prepare)),
        )
    }

    /// The function that runs the kernel.
    fn kernel(&self) -> String {
        let mut list = self.parameter_list(Function::Compute);
        let mut start = self.checks(Function::Compute);
        if self.interface.has_prepare {
            list.push("prepared: &Prepared".to_owned());
            start += "    let prepared: *mut Line = prepared.lines.as_ptr().cast_mut();\n";
        }
        format!(
            "/// Runs the kernel in the calling thread.\n///\n{}///\n/// # Errors\n\
             /// If a slice has another length than its type says, a subscript that is computed from\n\
             /// data is out of bounds, or the processor is not one that the kernel is for.\n\
             {}pub fn {}({}) -> Result<(), Error> {{\n{start}{}    Ok(())\n}}\n",
            self.legend(Function::Compute),
            self.lint(Function::Compute),
            self.name,
            list.join(", "),
            self.invocation(Function::Compute)
        )
    }

    fn name(&self, parameter: &Parameter) -> &str {
        self.names.get(&parameter.id).map_or("unknown", String::as_str)
    }

    fn legend(&self, function: Function) -> String {
        let one = |p: &Parameter| {
            format!("/// - `{}`: `{}`\n", self.name(p), type_text(p.dtype, &p.shape))
        };
        self.interface.explicit(function).map(one).collect()
    }

    fn lint(&self, function: Function) -> String {
        let many = self.interface.explicit(function).count() + 1 > MANY - 1;
        let lint = "#[allow(clippy::too_many_arguments, reason = \"one per tensor\")]\n";
        if many { lint.to_owned() } else { String::new() }
    }

    fn parameter_list(&self, function: Function) -> Vec<String> {
        let one = |p: &Parameter| {
            let (name, element) = (self.name(p), element_type(p.dtype));
            match (p.owner, p.shape.is_empty()) {
                (Owner::Input, true) => format!("{name}: {element}"),
                (Owner::Input, false) => format!("{name}: &[{element}]"),
                (_, true) => format!("{name}: &mut {element}"),
                (_, false) => format!("{name}: &mut [{element}]"),
            }
        };
        self.interface.explicit(function).map(one).collect()
    }

    /// Checks of the processor and of the lengths of slices.
    fn checks(&self, function: Function) -> String {
        let processor = "    if !runs_here() {\n        return Err(Error::Processor);\n    }\n";
        let slices = self.interface.explicit(function).filter(|p| !p.shape.is_empty());
        let one = |p: &Parameter| {
            let (name, elements) = (self.name(p), p.elements());
            format!("    check(\"{name}\", {name}.len(), {elements})?;\n")
        };
        processor.to_owned() + &slices.map(one).collect::<String>()
    }

    /// The call of the compiled function.
    fn invocation(&self, function: Function) -> String {
        let pointers: Vec<String> =
            self.interface.parameters.iter().map(|p| self.pointer(p, function)).collect();
        let lines = self.interface.workspace.bytes(1) / ALIGNMENT;
        let kernel = match function {
            Function::Compute => "kernel",
            Function::Prepare => "prepare_kernel",
        };
        format!(
            "    let buffers: [*mut c_void; {}] = [\n{}    ];\n    \
             let mut workspace: Vec<Line> = Vec::with_capacity({lines});\n    \
             // SAFETY: every buffer is as long as the kernel expects, the workspace is as large\n    \
             // and as aligned, and a null pool means the calling thread.\n    \
             let status = unsafe {{\n        {kernel}(\n            buffers.as_ptr(),\n            \
             workspace.as_mut_ptr().cast(),\n            std::ptr::null_mut(),\n        )\n    }};\n    \
             finish(status)?;\n",
            pointers.len(),
            pointers.concat()
        )
    }

    fn pointer(&self, parameter: &Parameter, function: Function) -> String {
        let name = self.name(parameter);
        let is_scalar = parameter.shape.is_empty();
        let pointer = match (parameter.prepared_at, parameter.owner) {
            (Some(offset), _) => match offset / ALIGNMENT {
                0 => "prepared.cast()".to_owned(),
                line => format!("prepared.wrapping_add({line}).cast()"),
            },
            _ if !parameter.is_needed_by(function) => "std::ptr::null_mut()".to_owned(),
            (_, Owner::Input) if is_scalar => {
                format!("std::ptr::from_ref(&{name}).cast_mut().cast()")
            }
            (_, Owner::Input) => format!("{name}.as_ptr().cast_mut().cast()"),
            _ if is_scalar => format!("std::ptr::from_mut({name}).cast()"),
            _ => format!("{name}.as_mut_ptr().cast()"),
        };
        format!("        {pointer},\n")
    }
}

/// Puts lines one level further to the right.
fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// The Rust type of an element in memory.
#[must_use]
pub fn element_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::Int8 => "i8",
        DType::Int16 => "i16",
        DType::Int32 => "i32",
        DType::Int64 => "i64",
        DType::UInt8 => "u8",
        DType::UInt16 | DType::Half | DType::BFloat16 => "u16",
        DType::UInt32 => "u32",
        DType::UInt64 => "u64",
        DType::Float => "f32",
        DType::Double => "f64",
    }
}

/// What every module has.
const COMMON: &str = r#"/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A slice has the wrong length.
    Length {
        /// The name of the parameter.
        parameter: &'static str,
        /// The length that it ought to have.
        expected: usize,
        /// The length that it has.
        actual: usize,
    },
    /// A subscript that is computed from data is out of bounds. The outputs hold anything.
    OutOfBounds {
        /// The number of the read in the kernel.
        read: i32,
    },
    /// This processor, or its system, lacks instructions that the kernel uses.
    Processor,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Length { parameter, expected, actual } => {
                write!(f, "`{parameter}` has {actual} elements and ought to have {expected}")
            }
            Error::OutOfBounds { read } => {
                write!(f, "a subscript of read {read} is out of bounds")
            }
            Error::Processor => {
                write!(f, "this processor lacks what the kernel needs: {TARGET}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Memory at a multiple of 64 bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line(#[allow(dead_code, reason = "only the kernel looks inside")] [u8; 64]);

fn check(parameter: &'static str, actual: usize, expected: usize) -> Result<(), Error> {
    if actual == expected { Ok(()) } else { Err(Error::Length { parameter, expected, actual }) }
}

fn finish(status: i32) -> Result<(), Error> {
    if status == 0 { Ok(()) } else { Err(Error::OutOfBounds { read: status - 1 }) }
}

"#;
