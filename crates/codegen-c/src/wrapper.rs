//! Emits the functions of the C interface, which call the kernel.
//!
//! ```c
//! int gemm_call(const float *A, const float *B, float *C) {
//!     return gemm_run(A, B, C, NULL, NULL);
//! }
//! ```
//!
//! The kernel takes buffers by position, and the list depends on sizes and schedules. The wrapper
//! hides this from callers. Its variables begin with `tw_`, which parameters never do.

use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::{Argument, Function, Number, Parameter};
use tensorwright_schedule::workspace::ALIGNMENT;

use crate::header::{Signature, header};
use crate::processor::Requirement;
use crate::sized;

/// The return value on an unsupported CPU, as in packages.
const NO_PROCESSOR: i32 = -5;

/// The system headers that definitions need.
pub(crate) const INCLUDES: &str = "\
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
";

/// C source of the functions that [`header`] declares. They call the kernel of an object file;
/// generated C contains the same functions (see [`emit`](crate::emit)).
#[must_use]
pub fn wrapper(interface: &Interface, processor: &Requirement) -> String {
    let functions = wrapper_functions(interface, Some(processor));
    let mut kernels = String::new();
    let prepare = interface.has_prepare.then_some(Function::Prepare);
    for function in [Function::Compute].into_iter().chain(prepare) {
        kernels += &format!(
            "int32_t {}(void *const *buffers, void *workspace, tw_pool *pool);\n",
            interface.function(function)
        );
    }
    format!(
        "{}\n{INCLUDES}\n/* In the object file that this belongs to; another one has another name for it. */\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n{kernels}#ifdef __cplusplus\n}}\n#endif\n\n{functions}",
        header(interface, Some(processor))
    )
}

/// The definitions of the functions that [`header`] declares.
pub(crate) fn wrapper_functions(interface: &Interface, processor: Option<&Requirement>) -> String {
    let wrapper = Wrapper::of(interface);
    let name = &interface.symbol;
    let mut text =
        format!("uint32_t {name}_interface(void) {{\n    return {name}_INTERFACE;\n}}\n\n");
    text += &match wrapper.signature.sizes.vary() {
        true => sized::workspace_bytes(&wrapper.signature),
        false => wrapper.workspace_bytes(),
    };
    if wrapper.needs_workspace() || interface.has_prepare {
        text += &wrapper.allocate();
    }
    if wrapper.signature.sizes.vary() {
        text += &sized::distances(interface);
    }
    if wrapper.signature.has_constants {
        text += &format!(
            "int64_t {name}_prepared_bytes(void) {{\n    return {};\n}}\n\n",
            wrapper.prepared_bytes()
        );
        text += &wrapper.prepare();
    }
    text += &wrapper.run();
    text += &wrapper.call();
    // Last, because it includes headers with many macros.
    text + &match processor {
        Some(processor) => processor.c_functions(name).trim_end().to_owned() + "\n",
        None => format!(
            "const char *{name}_target(void) {{\n    return \"any, as C\";\n}}\n\n\
             int {name}_runs_here(void) {{\n    return 1;\n}}\n"
        ),
    }
}

struct Wrapper<'a> {
    interface: &'a Interface,
    signature: Signature<'a>,
}

impl<'a> Wrapper<'a> {
    fn of(interface: &'a Interface) -> Self {
        Self { interface, signature: Signature::of(interface) }
    }

    fn needs_workspace(&self) -> bool {
        let is_end = |number: &Number| matches!(number, Number::End { .. });
        self.interface.workspace.bytes(1) > 0 || self.interface.numbers.iter().any(is_end)
    }

    /// The bytes of prepared memory: a line with a tag, and the buffers.
    fn prepared_bytes(&self) -> i64 {
        if self.interface.has_prepare { ALIGNMENT + self.interface.prepared_bytes } else { 0 }
    }

    fn workspace_bytes(&self) -> String {
        let workspace = self.interface.workspace;
        let (shared, private) = (workspace.shared_bytes, workspace.private_bytes);
        let body = match private {
            0 => format!("(void)workers;\n    return {shared};"),
            _ => format!("return {shared} + INT64_C({private}) * (workers > 1 ? workers : 1);"),
        };
        format!("{} {{\n    {body}\n}}\n\n", self.signature.workspace_bytes())
    }

    fn allocate(&self) -> String {
        let limit = match self.signature.sizes.vary() {
            true => "    if ((uint64_t)bytes > SIZE_MAX - 63) {\n        return NULL;\n    }\n",
            false => "",
        };
        format!(
            "/* Memory at a multiple of 64; `start` is what to free. */\n\
             static void *{}_allocate(int64_t bytes, void **start) {{\n{limit}    \
             *start = malloc((size_t)bytes + 63);\n    \
             if (*start == NULL) {{\n        return NULL;\n    }}\n    \
             return (char *)*start + (64 - (uintptr_t)*start % 64) % 64;\n}}\n\n",
            self.interface.symbol
        )
    }

    /// The early returns on an unsupported CPU or a mismatched scalar.
    fn refusals(&self, mismatches: &[String]) -> String {
        let name = &self.interface.symbol;
        let mut text =
            format!("    if (!{name}_runs_here()) {{\n        return {NO_PROCESSOR};\n    }}\n");
        if !mismatches.is_empty() {
            text +=
                &format!("    if ({}) {{\n        return -2;\n    }}\n", mismatches.join(" || "));
        }
        text
    }

    /// A call that allocates the workspace of a call with the pool.
    fn allocation(&self) -> String {
        let name = &self.interface.symbol;
        if self.signature.sizes.vary() {
            return format!("{name}_allocate(tw_bytes, &tw_memory)");
        }
        format!(
            "{name}_allocate({name}_workspace_bytes(pool != NULL ? pool->workers : 1), &tw_memory)"
        )
    }

    /// A hash that identifies the preparation.
    fn tag(&self) -> String {
        format!("    const uint32_t tw_tag = 0x{:08x}u;\n", self.interface.preparation)
    }

    /// The call of a kernel function.
    fn kernel(&self, function: Function, workspace: &str) -> String {
        let mut pointers: Vec<String> =
            self.interface.parameters.iter().map(|p| self.pointer(p, function)).collect();
        pointers.extend(self.signature.sizes.vary().then(|| "(void *)tw_numbers".to_owned()));
        format!(
            "    void *const tw_buffers[] = {{{}}};\n    const int tw_status = {}(tw_buffers, {workspace}, pool);\n",
            pointers.join(", "),
            self.interface.function(function)
        )
    }

    fn prepare(&self) -> String {
        let mismatches = Signature::mismatches(self.signature.constants());
        let mut text = format!("{} {{\n", self.signature.prepare()) + &self.refusals(&mismatches);
        if !self.interface.has_prepare {
            for (_, name) in self.signature.constants() {
                text += &format!("    (void){name};\n");
            }
            return text + "    (void)prepared;\n    (void)pool;\n    return 0;\n}\n\n";
        }
        text += "    if (prepared == NULL) {\n        return -3;\n    }\n    \
                 if ((uintptr_t)prepared % 64 != 0) {\n        return -4;\n    }\n";
        let workspace = if self.needs_workspace() { "tw_workspace" } else { "NULL" };
        if self.needs_workspace() {
            text += &format!(
                "    void *tw_memory = NULL;\n    void *tw_workspace = {};\n    \
                 if (tw_workspace == NULL) {{\n        return -1;\n    }}\n",
                self.allocation()
            );
        }
        // Zeroes the padding of layouts.
        text += &format!("    memset(prepared, 0, {});\n", self.prepared_bytes());
        text += &self.kernel(Function::Prepare, workspace);
        text += &self.tag();
        text +=
            "    if (tw_status == 0) {\n        memcpy(prepared, &tw_tag, sizeof tw_tag);\n    }\n";
        text += if self.needs_workspace() { "    free(tw_memory);\n" } else { "" };
        text + "    return tw_status;\n}\n\n"
    }

    fn run(&self) -> String {
        let (signature, has_prepare) = (&self.signature, self.interface.has_prepare);
        let mut text = format!("{} {{\n", signature.run());
        let mut mismatches = Signature::mismatches(&signature.arguments);
        if signature.sizes.vary() {
            let (name, sizes) = (&self.interface.symbol, signature.sizes.names.join(", "));
            mismatches.push(format!("!{name}_allows({sizes})"));
        }
        text += &self.refusals(&mismatches);
        let prepared =
            if signature.has_constants { " || (uintptr_t)prepared % 64 != 0" } else { "" };
        text += &format!(
            "    if ((uintptr_t)workspace % 64 != 0{prepared}) {{\n        return -4;\n    }}\n"
        );
        if has_prepare {
            text += &self.prepare_here();
        }
        if signature.sizes.vary() {
            text += &sized::numbers(signature, self.needs_workspace());
        }
        if self.needs_workspace() {
            let undo = if has_prepare { "            free(tw_prepared);\n" } else { "" };
            text += &format!(
                "    void *tw_memory = NULL;\n    if (workspace == NULL) {{\n        \
                 workspace = {};\n        \
                 if (workspace == NULL) {{\n{undo}            return -1;\n        }}\n    }}\n",
                self.allocation()
            );
        }
        text += &self.kernel(Function::Compute, "workspace");
        text += if self.needs_workspace() { "    free(tw_memory);\n" } else { "" };
        text += if has_prepare { "    free(tw_prepared);\n" } else { "" };
        text + "    return tw_status;\n}\n\n"
    }

    /// Prepares constants for this call, unless the caller did.
    fn prepare_here(&self) -> String {
        let name = &self.interface.symbol;
        let constants: Vec<&str> =
            self.signature.constants().map(|(_, name)| name.as_str()).collect();
        let tag = self.tag();
        format!(
            "{tag}    void *tw_prepared = NULL;\n    if (prepared == NULL) {{\n        \
             void *tw_own = {name}_allocate({}, &tw_prepared);\n        \
             if (tw_own == NULL) {{\n            return -1;\n        }}\n        \
             const int tw_failed = {name}_prepare({}, tw_own, pool);\n        \
             if (tw_failed != 0) {{\n            free(tw_prepared);\n            return tw_failed;\n        }}\n        \
             prepared = tw_own;\n    }} else if (memcmp(prepared, &tw_tag, sizeof tw_tag) != 0) {{\n        \
             return -6;\n    }}\n",
            self.prepared_bytes(),
            constants.join(", ")
        )
    }

    fn call(&self) -> String {
        let signature = &self.signature;
        let names = signature.arguments.iter().map(|(_, name)| name);
        let mut list: Vec<&str> =
            signature.sizes.names.iter().chain(names).map(String::as_str).collect();
        list.extend((signature.has_constants || signature.sizes.vary()).then_some("NULL"));
        format!(
            "{} {{\n    return {}_run({}, NULL, NULL);\n}}\n\n",
            signature.call(),
            self.interface.symbol,
            list.join(", ")
        )
    }

    /// The argument that a kernel function receives for a parameter.
    fn pointer(&self, parameter: &Parameter, function: Function) -> String {
        if let Some(offset) = parameter.prepared_at {
            return format!("(char *)prepared + {}", ALIGNMENT + offset);
        }
        let is_this =
            |(argument, _): &&(Argument<'_>, String)| *argument == Argument::Passed(parameter);
        let name = self.signature.arguments.iter().find(is_this).map_or("", |(_, name)| name);
        match function {
            Function::Prepare if !parameter.is_const => "NULL".to_owned(),
            _ if parameter.is_scalar_input() => format!("&{name}"),
            _ => format!("(void *){name}"),
        }
    }
}
