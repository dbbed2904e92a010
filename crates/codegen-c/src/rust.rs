//! Emits a Rust module with a safe interface to a compiled kernel.

use std::collections::BTreeMap;

use tensorwright_lang::dtype::DType;
use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::{Argument, Function, Number, Parameter};
use tensorwright_schedule::nest::Owner;
use tensorwright_schedule::workspace::ALIGNMENT;

use crate::names::{rust_identifier, rust_names};
use crate::processor::Requirement;
use crate::rust_sized::{self, SizedFunctions};
use crate::sizes::{Language, Sizes};
use crate::types::type_text;

/// The number of parameters that triggers a clippy lint.
const MANY: usize = 7;

/// A Rust module that declares a compiled kernel and wraps it in safe functions. It compiles in
/// editions 2021 and 2024 and has no dependencies; 16-bit floats are `u16`.
///
/// If sizes vary, functions take them first. One is for dense slices, and another one for rows that
/// lie apart.
#[must_use]
pub fn rust_module(interface: &Interface, processor: &Requirement) -> String {
    let module = Module::of(interface);
    let mut text = module.documentation();
    text += "use std::ffi::c_void;\nuse std::fmt;\n\n";
    text += &module.declarations();
    text += &module.common();
    text += &processor.rust_function();
    if interface.is_sized() {
        return text + &module.sized();
    }
    if module.has_constants {
        text += &module.prepared();
        text += &module.prepares_itself();
    }
    text + &module.kernel()
}

struct Module<'a> {
    interface: &'a Interface,
    /// The parameters of the definition with their names.
    arguments: Vec<(Argument<'a>, String)>,
    has_constants: bool,
    /// The names of the sizes that vary, and of the parameter with strides.
    sizes: Vec<String>,
    strides: String,
    /// The name of the function.
    name: String,
    /// The name of the function that takes prepared constants.
    on_prepared: String,
}

impl<'a> Module<'a> {
    fn of(interface: &'a Interface) -> Self {
        let signature = interface.signature();
        let varying = interface.numbers.iter().filter_map(|number| match number {
            Number::Size { name, .. } => Some(name.as_str()),
            _ => None,
        });
        // The functions use these names themselves.
        let own: &[&str] = if interface.is_sized() { &rust_sized::NAMES } else { &[] };
        let all = own.iter().copied().chain(signature.iter().map(Argument::name)).chain(varying);
        let mut names = rust_names(all).into_iter().skip(own.len());
        let arguments = signature.into_iter().zip(names.by_ref()).collect();
        let (sizes, strides) = (names.collect(), "strides".to_owned());
        let has_constants = interface.has_constants();
        let [name, on_prepared] = ["", "_prepared"].map(|end| {
            rust_identifier(&(interface.symbol.clone() + end), |name| own.contains(&name))
        });
        Self { interface, arguments, has_constants, sizes, strides, name, on_prepared }
    }

    fn documentation(&self) -> String {
        let (name, symbol) = (&self.name, self.interface.function(Function::Compute));
        format!(
            "//! `{name}`: a kernel made by Tensorwright.\n//!\n\
             //! The program has to be linked with the compiled kernel, which exports the symbol\n\
             //! `{symbol}`; `cargo:rustc-link-arg` in a build script does that for an object file.\n\
             #![allow(dead_code, reason = \"the module may have more than the program uses\")]\n\n"
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
        text += &one(&self.interface.function(Function::Compute), "kernel");
        if self.interface.has_prepare {
            text += &one(&self.interface.function(Function::Prepare), "prepare_kernel");
        }
        text + "}\n\n"
    }

    /// The common part of all modules.
    fn common(&self) -> String {
        if !self.interface.is_sized() {
            return COMMON.to_owned();
        }
        let [variants, messages] = rust_sized::ERRORS;
        let (variant, message) = ("    /// This processor,", "            Error::Processor => {");
        let text = COMMON.replace(variant, &format!("{variants}{variant}"));
        text.replace(message, &format!("{messages}{message}"))
    }

    /// The sizes as functions of the language print them.
    fn sized_by(&self) -> Sizes<'_> {
        Sizes { interface: self.interface, names: self.sizes.clone(), language: Language::Rust }
    }

    /// The functions, if sizes vary.
    fn sized(&self) -> String {
        let strided = rust_identifier(&(self.interface.symbol.clone() + "_strided"), |_| false);
        let sizes = self.sized_by();
        let mut legend = sizes.legend("/// - ");
        sizes.conditions().iter().for_each(|one| legend += &format!("/// - for `{one}`\n"));
        legend += &self.legend(|_| true);
        let list = self.list(|_| true);
        let lint = self.lint(list.len() + self.sizes.len() + 1);
        let is_fixed = |argument: &Argument<'_>| matches!(argument, Argument::Fixed(_));
        let functions = SizedFunctions {
            sizes,
            arguments: &self.arguments,
            name: &self.name,
            strided: [strided, self.strides.clone()],
            list,
            legend,
            lint: &lint,
            checks: self.scalar_checks(is_fixed),
            pointers: self.pointers(Function::Compute).concat(),
        };
        functions.text()
    }

    /// The structure of prepared inputs.
    fn prepared(&self) -> String {
        let lines = self.interface.prepared_bytes / ALIGNMENT;
        let prepare = match self.interface.has_prepare {
            true => format!(
                "        let mut lines = vec![Line([0; 64]); {lines}];\n        \
                 let prepared: *mut Line = lines.as_mut_ptr();\n{}",
                indent(&self.invocation(Function::Prepare))
            ),
            false => "        let lines = Vec::new();\n".to_owned(),
        };
        format!(
            "/// Inputs that do not change between calls, in the layout that the kernel wants.\n\
             #[derive(Debug, Clone)]\npub struct Prepared {{\n    lines: Vec<Line>,\n}}\n\n\
             impl Prepared {{\n    /// Brings inputs into the layout of the kernel.\n    ///\n\
             {}    ///\n    /// # Errors\n    \
             /// If a slice has another length than the type says, or the processor is not one that\n    \
             /// the kernel is for.\n\
             {}    pub fn new({}) -> Result<Self, Error> {{\n{}{prepare}        Ok(Self {{ lines }})\n    }}\n}}\n\n",
            indent(&self.legend(Argument::is_const)),
            indent(&self.lint(self.list(Argument::is_const).len())),
            self.list(Argument::is_const).join(", "),
            indent(&self.checks(Argument::is_const)),
        )
    }

    /// The function that prepares constants for one call.
    fn prepares_itself(&self) -> String {
        let (name, core, list) = (&self.name, &self.on_prepared, self.list(|_| true));
        let all: Vec<&str> = self.chosen(|_| true).map(|(_, name)| name).collect();
        let constants: Vec<&str> = self.chosen(Argument::is_const).map(|(_, name)| name).collect();
        format!(
            "/// Runs the kernel in the calling thread, after preparing its constants for this call alone.\n///\n{}\
             ///\n/// # Errors\n/// As [`{core}`].\n{}\
             pub fn {name}({}) -> Result<(), Error> {{\n    let prepared = Prepared::new({})?;\n    \
             self::{core}({}, &prepared)\n}}\n\n",
            self.legend(|_| true),
            self.lint(list.len()),
            list.join(", "),
            constants.join(", "),
            all.join(", ")
        )
    }

    /// The function that runs the kernel.
    fn kernel(&self) -> String {
        let (mut list, mut start) = (self.list(|_| true), self.checks(|_| true));
        let (mut name, mut what) = (&self.name, "");
        if self.has_constants {
            list.push("prepared: &Prepared".to_owned());
            name = &self.on_prepared;
            what = " on constants that were prepared";
            start += match self.interface.has_prepare {
                true => "    let prepared: *mut Line = prepared.lines.as_ptr().cast_mut();\n",
                // It takes unprepared constants.
                false => "    let _ = prepared;\n",
            };
        }
        format!(
            "/// Runs the kernel in the calling thread{what}.\n///\n{}///\n/// # Errors\n\
             /// If a slice has another length than its type says, a subscript that is computed from\n\
             /// data is out of bounds, or the processor is not one that the kernel is for.\n\
             {}pub fn {name}({}) -> Result<(), Error> {{\n{start}{}    Ok(())\n}}\n",
            self.legend(|_| true),
            self.lint(list.len()),
            list.join(", "),
            self.invocation(Function::Compute)
        )
    }

    /// The parameters that satisfy a condition.
    fn chosen(
        &self,
        is_chosen: impl Fn(&Argument<'a>) -> bool,
    ) -> impl Iterator<Item = (&Argument<'a>, &str)> {
        let named = self.arguments.iter().map(|(argument, name)| (argument, name.as_str()));
        named.filter(move |(argument, _)| is_chosen(argument))
    }

    fn legend(&self, is_chosen: impl Fn(&Argument<'a>) -> bool) -> String {
        let one = |(argument, name): (&Argument<'_>, &str)| {
            let note = match argument {
                Argument::Fixed(scalar) => format!(", {}", scalar.value),
                Argument::Passed(_) => String::new(),
            };
            let extents = self.sized_by().extents(argument);
            format!("/// - `{name}`: `{}`{note}\n", type_text(argument.dtype(), extents))
        };
        self.chosen(is_chosen).map(one).collect()
    }

    fn lint(&self, count: usize) -> String {
        let lint = "#[allow(clippy::too_many_arguments, reason = \"one per tensor\")]\n";
        if count > MANY { lint.to_owned() } else { String::new() }
    }

    fn list(&self, is_chosen: impl Fn(&Argument<'a>) -> bool) -> Vec<String> {
        let one = |(argument, name): (&Argument<'_>, &str)| {
            let element = element_type(argument.dtype());
            match (argument.is_output(), argument.shape().is_empty()) {
                (false, true) => format!("{name}: {element}"),
                (false, false) => format!("{name}: &[{element}]"),
                (true, true) => format!("{name}: &mut {element}"),
                (true, false) => format!("{name}: &mut [{element}]"),
            }
        };
        self.chosen(is_chosen).map(one).collect()
    }

    /// Checks of the CPU, of compiled-in scalars, and of slice lengths.
    fn checks(&self, is_chosen: impl Fn(&Argument<'a>) -> bool) -> String {
        let processor = "    if !runs_here() {\n        return Err(Error::Processor);\n    }\n";
        processor.to_owned() + &self.scalar_checks(is_chosen)
    }

    /// Checks of compiled-in scalars and of slice lengths.
    fn scalar_checks(&self, is_chosen: impl Fn(&Argument<'a>) -> bool) -> String {
        let one = |(argument, name): (&Argument<'_>, &str)| match argument {
            Argument::Fixed(scalar) => {
                format!("    check_scalar(\"{name}\", i128::from({name}), {})?;\n", scalar.value)
            }
            Argument::Passed(parameter) if parameter.shape.is_empty() => String::new(),
            Argument::Passed(parameter) => {
                format!("    check(\"{name}\", {name}.len(), {})?;\n", parameter.elements())
            }
        };
        self.chosen(is_chosen).map(one).collect()
    }

    /// The arguments that a kernel function receives.
    fn pointers(&self, function: Function) -> Vec<String> {
        let names: BTreeMap<_, &str> = self
            .chosen(|_| true)
            .filter_map(|(argument, name)| match argument {
                Argument::Passed(parameter) => Some((parameter.id, name)),
                Argument::Fixed(_) => None,
            })
            .collect();
        let pointer = |parameter: &Parameter| {
            pointer(parameter, names.get(&parameter.id).copied().unwrap_or_default(), function)
        };
        self.interface.parameters.iter().map(pointer).collect()
    }

    /// The call of the compiled function.
    fn invocation(&self, function: Function) -> String {
        let pointers = self.pointers(function);
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
}

/// The argument that a kernel function receives for a parameter.
fn pointer(parameter: &Parameter, name: &str, function: Function) -> String {
    let is_scalar = parameter.shape.is_empty();
    let pointer = match (parameter.prepared_at, parameter.owner) {
        (Some(offset), _) => match offset / ALIGNMENT {
            0 => "prepared.cast()".to_owned(),
            line => format!("prepared.wrapping_add({line}).cast()"),
        },
        _ if function == Function::Prepare && !parameter.is_const => {
            "std::ptr::null_mut()".to_owned()
        }
        (_, Owner::Input) if is_scalar => {
            format!("std::ptr::from_ref(&{name}).cast_mut().cast()")
        }
        (_, Owner::Input) => format!("{name}.as_ptr().cast_mut().cast()"),
        _ if is_scalar => format!("std::ptr::from_mut({name}).cast()"),
        _ => format!("{name}.as_mut_ptr().cast()"),
    };
    format!("        {pointer},\n")
}

/// Indents lines by one level.
fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// The Rust type of an element in memory.
#[must_use]
pub fn element_type(dtype: DType) -> &'static str {
    dtype.row().rust
}

/// The common part of all modules.
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
    /// An integer scalar is not the number that the kernel is for.
    Scalar {
        /// The name of the parameter.
        parameter: &'static str,
        /// The number that the kernel is for.
        expected: i128,
        /// The number that it was called with.
        actual: i128,
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
            Error::Scalar { parameter, expected, actual } => {
                write!(f, "`{parameter}` is {actual}, and the kernel is for {expected}")
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

fn check_scalar(parameter: &'static str, actual: i128, expected: i128) -> Result<(), Error> {
    if actual == expected { Ok(()) } else { Err(Error::Scalar { parameter, expected, actual }) }
}

fn finish(status: i32) -> Result<(), Error> {
    if status == 0 { Ok(()) } else { Err(Error::OutOfBounds { read: status - 1 }) }
}

"#;
