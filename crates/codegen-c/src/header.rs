//! The C interface of a kernel: its header, and functions with typed parameters.

use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::{Function, Parameter};
use tensorwright_schedule::nest::Owner;

use crate::names::Names;
use crate::processor::Requirement;
use crate::types::{memory_type, type_text};

/// The C header of a kernel. It serves for generated C and for object files alike, and C++ may
/// include it too. It says for which processor an object file is; generated C is for any.
#[must_use]
pub fn header(interface: &Interface, processor: Option<&Requirement>) -> String {
    let (name, names) = (&interface.symbol, Names::of_parameters(interface));
    let guard = format!("TW_KERNEL_{}_H", name.to_uppercase());
    let mut text = format!(
        "#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{POOL}\n"
    );
    text += &target_declarations(name, processor);
    text += &typed_declarations(interface, &names, processor);
    text += &raw_declarations(interface, &names);
    text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
}

/// C source of the functions with typed parameters that [`header`] declares. They call the raw
/// kernel, so that it does for object files what [`emit`](crate::emit) does for generated C.
#[must_use]
pub fn wrapper(interface: &Interface, processor: &Requirement) -> String {
    let processor = Some(processor);
    let functions = wrapper_functions(interface, processor);
    format!("{}\n{INCLUDES}\n{functions}", header(interface, processor))
}

/// What calls return on a processor that a kernel is not for, as those of packages do.
const NO_PROCESSOR: i32 = -5;

/// The system headers that definitions need.
pub(crate) const INCLUDES: &str = "\
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
";

/// The declaration of `tw_pool`, as every header has it.
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

/// The declarations of the functions that say what a kernel needs of a processor.
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

/// The declarations of the functions with typed parameters.
fn typed_declarations(
    interface: &Interface,
    names: &Names,
    processor: Option<&Requirement>,
) -> String {
    let name = &interface.symbol;
    let mut text = String::new();
    if interface.has_prepare {
        text += &format!(
            "/* Some inputs do not change between calls and are brought into another layout once.\n   \
             {name}_prepare_call does that; `prepared` is memory of {name}_prepared_bytes() bytes\n   \
             at a multiple of 64. It returns what {name}_call returns. */\n\
             int64_t {name}_prepared_bytes(void);\n\
             int {name}_prepare_call({});\n\n",
            parameter_list(interface, names, Function::Prepare)
        );
    }
    text += &format!("/* Runs the kernel in the calling thread.\n\n{}\n", legend(interface, names));
    text += "   Returns 0; -1 if there is no memory for the workspace";
    if processor.is_some() {
        text += &format!("; {NO_PROCESSOR} if {name}_runs_here() is 0");
    }
    if !interface.checked.is_empty() {
        text += ";\n   1 + n if a subscript that is computed from data is out of bounds in read n \
                 of the kernel";
    }
    let list = parameter_list(interface, names, Function::Compute);
    text + &format!(". */\nint {name}_call({list});\n\n")
}

/// What the parameters are, one per line.
fn legend(interface: &Interface, names: &Names) -> String {
    let mut text = String::new();
    for parameter in interface.explicit(Function::Compute) {
        let name = names.buffer(parameter.id);
        let direction = if parameter.owner == Owner::Output { "out" } else { "in" };
        let ctype = type_text(parameter.dtype, &parameter.shape);
        text += &format!("   {direction:<4} {name}: {ctype}\n");
    }
    text
}

/// The parameters of the call of the kernel, or of preparation.
fn parameter_list(interface: &Interface, names: &Names, function: Function) -> String {
    let mut list: Vec<String> = Vec::new();
    for parameter in interface.explicit(function) {
        let (name, ctype) = (names.buffer(parameter.id), memory_type(parameter.dtype));
        list.push(match parameter.owner {
            _ if parameter.is_scalar_input() => format!("{ctype} {name}"),
            Owner::Input => format!("const {ctype} *{name}"),
            _ => format!("{ctype} *{name}"),
        });
    }
    if interface.has_prepare {
        let constness = if function == Function::Compute { "const " } else { "" };
        list.push(format!("{constness}void *prepared"));
    }
    if list.is_empty() { "void".to_owned() } else { list.join(", ") }
}

/// The declarations of the functions that take buffers by number.
fn raw_declarations(interface: &Interface, names: &Names) -> String {
    let name = &interface.symbol;
    let order: Vec<&str> = interface.parameters.iter().map(|p| names.buffer(p.id)).collect();
    let mut text = format!(
        "/* The kernel itself. `buffers` points to {}; `workspace` to\n   \
         {name}_workspace_bytes(workers) bytes at a multiple of 64; `pool` may be null, and\n   \
         parallel loops then run in the calling thread. */\n\
         int32_t {name}(void *const *buffers, void *workspace, tw_pool *pool);\n\
         int64_t {name}_workspace_bytes(int32_t workers);\n",
        order.join(", ")
    );
    if interface.has_prepare {
        let prepare = interface.function(Function::Prepare);
        text +=
            &format!("int32_t {prepare}(void *const *buffers, void *workspace, tw_pool *pool);\n");
    }
    text
}

/// The definitions of the functions with typed parameters.
pub(crate) fn wrapper_functions(interface: &Interface, processor: Option<&Requirement>) -> String {
    let (name, names) = (&interface.symbol, Names::of_parameters(interface));
    let (shared, private) = (interface.workspace.shared_bytes, interface.workspace.private_bytes);
    let mut text = match processor {
        Some(processor) => processor.c_functions(name),
        None => format!(
            "const char *{name}_target(void) {{\n    return \"any, as C\";\n}}\n\n\
             int {name}_runs_here(void) {{\n    return 1;\n}}\n\n"
        ),
    };
    text += &format!("int64_t {name}_workspace_bytes(int32_t workers) {{\n");
    text += &match private {
        0 => format!("    (void)workers;\n    return {shared};\n}}\n"),
        _ => {
            format!("    return {shared} + INT64_C({private}) * (workers > 1 ? workers : 1);\n}}\n")
        }
    };
    if interface.has_prepare {
        text += &format!(
            "\nint64_t {name}_prepared_bytes(void) {{\n    return {};\n}}\n",
            interface.prepared_bytes
        );
        text += &wrapper_function(interface, &names, processor, Function::Prepare);
    }
    text + &wrapper_function(interface, &names, processor, Function::Compute)
}

fn wrapper_function(
    interface: &Interface,
    names: &Names,
    processor: Option<&Requirement>,
    function: Function,
) -> String {
    let kernel = interface.function(function);
    let list = parameter_list(interface, names, function);
    let pointers: Vec<String> =
        interface.parameters.iter().map(|p| pointer(p, names, function)).collect();
    let mut text = format!("\nint {kernel}_call({list}) {{\n");
    if processor.is_some() {
        let name = &interface.symbol;
        text +=
            &format!("    if (!{name}_runs_here()) {{\n        return {NO_PROCESSOR};\n    }}\n");
    }
    text += &format!("    void *const buffers[] = {{{}}};\n", pointers.join(", "));
    if function == Function::Prepare {
        // Padding of the layout is never random.
        text += &format!("    memset(prepared, 0, {});\n", interface.prepared_bytes);
    }
    let bytes = interface.workspace.bytes(1);
    if bytes == 0 {
        return text + &format!("    return {kernel}(buffers, NULL, NULL);\n}}\n");
    }
    text + &format!(
        "    /* Room to start at a multiple of 64. */\n    \
         void *memory = malloc({bytes} + 63);\n    \
         if (memory == NULL) {{\n        return -1;\n    }}\n    \
         void *workspace = (char *)memory + (64 - (uintptr_t)memory % 64) % 64;\n    \
         const int status = {kernel}(buffers, workspace, NULL);\n    \
         free(memory);\n    return status;\n}}\n"
    )
}

/// What a function passes to the kernel for a parameter.
fn pointer(parameter: &Parameter, names: &Names, function: Function) -> String {
    let name = names.buffer(parameter.id);
    match parameter.prepared_at {
        Some(0) => "(void *)prepared".to_owned(),
        Some(offset) => format!("(char *)prepared + {offset}"),
        None if !parameter.is_needed_by(function) => "NULL".to_owned(),
        None if parameter.is_scalar_input() => format!("&{name}"),
        None if parameter.owner == Owner::Input => format!("(void *){name}"),
        None => name.to_owned(),
    }
}
