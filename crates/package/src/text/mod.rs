//! Generated texts of a package.
//!
//! | file | text |
//! | --- | --- |
//! | `header.rs` | the C header |
//! | `dispatch.rs`, `dispatch.c`, `prepare.c` | the C dispatcher |
//! | `tables.rs` | the dispatcher's tables |
//! | `rust.rs`, `rust_common.rs.txt` | the Rust module |
//! | `crate_files.rs` | the crate around it |
//! | `readme.rs` | the package's README |

pub(crate) mod crate_files;
pub(crate) mod dispatch;
pub(crate) mod header;
pub(crate) mod readme;
pub(crate) mod rust;
mod tables;

use crate::operator::{Operator, Parameter};
use tensorwright_codegen_c::memory_type;

/// Error codes of functions: name, number, meaning.
pub(crate) const ERRORS: [(&str, i32, &str); 7] = [
    ("MEMORY", -1, "there is no memory for the workspace"),
    ("SIZES", -2, "there is no kernel for these sizes"),
    ("NULL", -3, "a pointer is null"),
    ("ALIGNMENT", -4, "a pointer is not aligned"),
    ("PROCESSOR", -5, "the processor, or its system, lacks instructions"),
    ("PREPARED", -6, "memory was prepared for other sizes or another level"),
    ("LEVEL", -7, "there is no such level"),
];

/// The sizes as parameters of a C function.
fn size_list(operator: &Operator) -> Vec<String> {
    operator.extents().iter().map(|size| format!("int64_t {}", size.c)).collect()
}

/// A parameter of a C function.
fn c_parameter(parameter: &Parameter) -> String {
    let (ctype, name) = (memory_type(parameter.dtype), &parameter.name.c);
    match parameter.is_output {
        _ if parameter.is_scalar_input() => format!("{ctype} {name}"),
        true => format!("{ctype} *{name}"),
        false => format!("const {ctype} *{name}"),
    }
}

/// The parameter lists of the functions of an operator in C.
struct Signatures {
    /// Of the computing function.
    run: String,
    /// Of the preparing function.
    prepare: String,
    /// Of functions that only select a kernel, without and with further parameters.
    sizes: String,
    elements: String,
    workspace: String,
}

impl Signatures {
    fn of(operator: &Operator) -> Self {
        let sizes = size_list(operator);
        let list = |more: Vec<String>| [sizes.clone(), more].concat().join(", ");
        let all: Vec<String> = operator.parameters.iter().map(c_parameter).collect();
        let prepares: Vec<String> = operator.prepares().map(c_parameter).collect();
        let selectors: Vec<String> = operator.selectors().map(c_parameter).collect();
        let own = |text: &[&str]| text.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let prepared =
            if operator.has_constants() { own(&["const void *prepared"]) } else { vec![] };
        let common = own(&["void *workspace", "tw_pool *pool"]);
        let void = |list: String| if list.is_empty() { "void".to_owned() } else { list };
        Self {
            run: list([all, prepared, common].concat()),
            prepare: list([prepares, own(&["void *prepared", "tw_pool *pool"])].concat()),
            sizes: void(list(selectors.clone())),
            elements: list([selectors.clone(), own(&["int32_t parameter"])].concat()),
            workspace: list([selectors, own(&["int32_t workers"])].concat()),
        }
    }

    /// The C prototypes that every package has for an operator.
    fn prototypes(&self, name: &str, operator: &Operator) -> String {
        let mut text = format!(
            "int32_t {name}({});\nint64_t {name}_elements({});\nint64_t {name}_workspace_bytes({});\n",
            self.run, self.elements, self.workspace
        );
        if operator.has_constants() {
            text += &format!(
                "int64_t {name}_prepared_bytes({});\nint32_t {name}_prepare({});\n",
                self.sizes, self.prepare
            );
        }
        text
    }
}
