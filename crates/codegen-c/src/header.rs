//! Emits the header of a kernel, for C and C++.
//!
//! The declarations depend only on the definition. Sizes and schedules change the implementation
//! and the return values, in [`wrapper`](mod@crate::wrapper), and the comments.

use tensorwright_lang::program::Scalar;
use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::{Argument, version};

use crate::names::Names;
use crate::processor::Requirement;
use crate::sizes::{Language, Sizes};
use crate::types::{literal, memory_type, type_text};

/// The version of the calling convention, which is hashed into every interface. Incremented when
/// the meaning of a parameter or return value changes.
const CONVENTION: u32 = 2;

/// The C header of a kernel, for generated C and for object files; C++ may include it too. It names
/// the CPU that an object file requires; generated C is portable.
#[must_use]
pub fn header(interface: &Interface, processor: Option<&Requirement>) -> String {
    let name = &interface.symbol;
    let signature = Signature::of(interface);
    // Two definitions may differ only in upper and lower case.
    let guard = format!("TW_KERNEL_{name}_H");
    let mut text = format!(
        "#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{POOL}\n"
    );
    text += &format!(
        "/* The interface: a number of the parameters below, whatever the sizes and the schedule.\n   \
         Call nothing else if {name}_interface() returns another one: the library has other parameters. */\n\
         #define {name}_INTERFACE 0x{:08x}u\nuint32_t {name}_interface(void);\n\n",
        signature.version()
    );
    text += &target_declarations(name, processor);
    text += &signature.declarations();
    text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
}

/// The declaration of `tw_pool` in every header.
pub const POOL: &str = "\
#ifndef TW_KERNEL_ABI
#define TW_KERNEL_ABI

/* Runs iterations begin to below end of a parallel loop. */
typedef void (*tw_task)(void *context, int64_t begin, int64_t end, int32_t worker);

/* Threads that share the iterations of parallel loops. */
typedef struct tw_pool {
    /* Calls the task until it has covered 0 to below count, each number once. */
    void (*run)(struct tw_pool *self, tw_task task, void *context, int64_t count);
    /* Tasks get worker numbers from 0 to below this; no two at a time get the same. */
    int32_t workers;
} tw_pool;

#endif
";

/// The hash of these declarations.
#[must_use]
pub fn interface_version(declarations: &str) -> u32 {
    version(&format!("{CONVENTION}\n{declarations}"))
}

/// The declarations of the functions that report CPU requirements.
fn target_declarations(name: &str, processor: Option<&Requirement>) -> String {
    let needs = match processor {
        Some(processor) => format!(
            "/* The object file is for a processor as {name}_target() names it:\n   {}.\n   \
             {name}_runs_here() is 1 if this one is, and 0 if not: the kernel must not be called then. */\n",
            processor.requirement()
        ),
        None => format!(
            "/* As C, the kernel is for any processor: {name}_target() says so, and {name}_runs_here() is 1. */\n"
        ),
    };
    format!("{needs}const char *{name}_target(void);\nint {name}_runs_here(void);\n\n")
}

/// The parameters of a definition in C, and its functions.
pub(crate) struct Signature<'a> {
    pub(crate) interface: &'a Interface,
    /// The parameters with their names.
    pub(crate) arguments: Vec<(Argument<'a>, String)>,
    pub(crate) has_constants: bool,
    pub(crate) sizes: Sizes<'a>,
}

impl<'a> Signature<'a> {
    pub(crate) fn of(interface: &'a Interface) -> Self {
        let names = Names::of_parameters(interface);
        let named = |argument| {
            let name = match argument {
                Argument::Passed(parameter) => names.buffer(parameter.id),
                Argument::Fixed(scalar) => names.fixed(scalar.place),
            };
            (argument, name.to_owned())
        };
        let arguments = interface.signature().into_iter().map(named).collect();
        let sizes = Sizes { interface, names: names.sizes(interface), language: Language::C };
        let has_constants = interface.has_constants() && !sizes.vary();
        Self { interface, arguments, has_constants, sizes }
    }

    /// The names of the constants.
    pub(crate) fn constants(&self) -> impl Iterator<Item = &(Argument<'a>, String)> {
        self.arguments.iter().filter(|(argument, _)| argument.is_const())
    }

    /// The prototype of the function with only the parameters of the definition.
    pub(crate) fn call(&self) -> String {
        format!("int {}_call({})", self.interface.symbol, self.parameters().join(", "))
    }

    /// The sizes that vary, and the parameters of the definition.
    fn parameters(&self) -> Vec<String> {
        let sizes = self.sizes.parameters();
        sizes.into_iter().chain(self.arguments.iter().map(parameter)).collect()
    }

    /// The prototype of the function that also takes prepared constants, workspace and pool.
    pub(crate) fn run(&self) -> String {
        let mut list = self.parameters();
        list.extend(self.sizes.vary().then(|| "const int64_t *strides".to_owned()));
        list.extend(self.has_constants.then(|| "const void *prepared".to_owned()));
        format!(
            "int {}_run({}, void *workspace, tw_pool *pool)",
            self.interface.symbol,
            list.join(", ")
        )
    }

    /// The prototype of the function that prepares constants.
    pub(crate) fn prepare(&self) -> String {
        let list: Vec<String> = self.constants().map(parameter).collect();
        format!(
            "int {}_prepare({}, void *prepared, tw_pool *pool)",
            self.interface.symbol,
            list.join(", ")
        )
    }

    /// The hash of the interface.
    pub(crate) fn version(&self) -> u32 {
        let mut prototypes = vec![self.call(), self.run()];
        prototypes.extend(self.has_constants.then(|| self.prepare()));
        prototypes.extend(self.sizes.vary().then(|| self.strides()));
        interface_version(&prototypes.join("\n"))
    }

    /// The prototype of the function that returns the size of the workspace.
    pub(crate) fn workspace_bytes(&self) -> String {
        let mut list = self.sizes.parameters();
        list.push("int32_t workers".to_owned());
        format!("int64_t {}_workspace_bytes({})", self.interface.symbol, list.join(", "))
    }

    /// The dimensions with strides, by the name of the parameter: `x: 0 1, y: 0`.
    fn strides(&self) -> String {
        let one = |(argument, name): &(Argument<'_>, String)| {
            let dimensions = 0..argument.shape().len().saturating_sub(1);
            let dimensions: Vec<String> = dimensions.map(|number| number.to_string()).collect();
            (!dimensions.is_empty()).then(|| format!("{name}: {}", dimensions.join(" ")))
        };
        let all: Vec<String> = self.arguments.iter().filter_map(one).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    }

    fn declarations(&self) -> String {
        let name = &self.interface.symbol;
        let scalar = match self.interface.fixed.is_empty() {
            true => "",
            false => "\n     -2     a scalar is not the number that the kernel is for",
        };
        let size = match self.sizes.vary() {
            false => "",
            true => {
                "\n     -2     a size is not one of these, or a tensor or the workspace has more than 2^62 bytes"
            }
        };
        let mut text = format!(
            "/* Runs the kernel in the calling thread.\n\n{}\n   Tensors are dense and row by row, and outputs \
             overlap nothing. Returns 0, or\n     \
             1 + n  a subscript that is computed from data is out of bounds in read n of the kernel\n     \
             -1     there is no memory{scalar}{size}\n     \
             -5     {name}_runs_here() is 0 */\n{};\n\n",
            self.legend(),
            self.call()
        );
        if self.sizes.vary() {
            return text + &self.sized_run();
        }
        let null =
            if self.has_constants { "Each of the last three" } else { "Both of the last two" };
        text += &format!(
            "/* The same with memory and threads of the caller. {null} may be null. `workspace` is memory of\n   \
             {name}_workspace_bytes(workers) bytes (which may be 0) at a multiple of 64, otherwise -4 is \
             returned;\n   if it is null, the call allocates. `pool` runs parallel loops; if it is null, they \
             run in the\n   calling thread. */\n{};\n{};\n",
            self.run(),
            self.workspace_bytes()
        );
        if self.has_constants {
            text += &format!(
                "\n/* Constants in the layout that the kernel wants: `prepared` is memory of \
                 {name}_prepared_bytes() bytes\n   (0 if there is nothing to prepare) at a multiple of 64, which \
                 {name}_prepare fills once, for all\n   calls of {name}_run. Those take the constants with it, \
                 since kernels may read some as they are. They\n   return -6 for memory that {name}_prepare of \
                 this kernel has not filled, and with null they prepare\n   for themselves, every time. Returns \
                 what {name}_call returns, and -3 if `prepared` is null. */\n\
                 int64_t {name}_prepared_bytes(void);\n{};\n",
                self.prepare()
            );
        }
        text
    }

    /// The declarations of the functions that also take memory and threads, if sizes vary.
    fn sized_run(&self) -> String {
        let (name, strides) = (&self.interface.symbol, self.strides());
        format!(
            "/* The same with memory and threads of the caller, on tensors that may be parts of larger ones. Each \
             of\n   the last three may be null. `strides` has the distances between neighbors, in elements, from \
             -2^48\n   to 2^48, in all dimensions but the last, which is always contiguous. In order, they are for\n     \
             {strides}\n   If it is null, tensors are dense. `workspace` is memory of {name}_workspace_bytes(.., \
             workers)\n   bytes (which may be 0) at a multiple of 64, otherwise -4 is returned; if it is null, the \
             call\n   allocates. That function returns -2 for the sizes that the others refuse. `pool` runs \
             parallel\n   loops; if it is null, they run in the calling thread. */\n{};\n{};\n",
            self.run(),
            self.workspace_bytes()
        )
    }

    /// A description of the parameters, one per line.
    fn legend(&self) -> String {
        let mut sizes = self.sizes.legend("   size ");
        for condition in self.sizes.conditions() {
            sizes += &format!("   for  {condition}\n");
        }
        let one = |(argument, name): &(Argument<'_>, String)| {
            let direction = if argument.is_output() { "out" } else { "in" };
            let ctype = type_text(argument.dtype(), self.sizes.extents(argument));
            let note = match argument {
                Argument::Fixed(scalar) => format!(", {}", scalar.value),
                _ if argument.is_const() && self.has_constants => ", constant".to_owned(),
                _ => String::new(),
            };
            format!("   {direction:<4} {name}: {ctype}{note}\n")
        };
        sizes + &self.arguments.iter().map(one).collect::<String>()
    }

    /// Conditions under which scalars differ from those that the kernel was compiled for.
    pub(crate) fn mismatches<'s>(
        arguments: impl IntoIterator<Item = &'s (Argument<'a>, String)>,
    ) -> Vec<String>
    where
        'a: 's,
    {
        let one = |(argument, name): &(Argument<'a>, String)| match argument {
            Argument::Fixed(scalar) => {
                let value = literal(Scalar::integer(scalar.dtype, i128::from(scalar.value)));
                Some(format!("{name} != {value}"))
            }
            Argument::Passed(_) => None,
        };
        arguments.into_iter().filter_map(one).collect()
    }
}

/// A parameter of a C function.
fn parameter((argument, name): &(Argument<'_>, String)) -> String {
    let ctype = memory_type(argument.dtype());
    match argument.is_output() {
        _ if argument.is_scalar_input() => format!("{ctype} {name}"),
        true => format!("{ctype} *{name}"),
        false => format!("const {ctype} *{name}"),
    }
}
