//! The texts of a package.
//!
//! | file | text |
//! | --- | --- |
//! | `header.rs` | the C header |
//! | `dispatch.rs`, `dispatch.c`, `prepare.c` | the C source that finds kernels and runs them |
//! | `tables.rs` | what that source knows of the kernels |
//! | `rust.rs`, `rust_common.rs.txt` | the Rust module |
//! | `crate_files.rs` | the crate around it |
//! | `readme.rs` | what is inside, for people |

pub(crate) mod crate_files;
pub(crate) mod dispatch;
pub(crate) mod header;
pub(crate) mod readme;
pub(crate) mod rust;
mod tables;

use crate::operator::{Operator, Parameter};
use tensorwright_codegen_c::memory_type;

/// What a function returns if it is no success: the name, the number, what it means.
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
    operator.sizes.iter().map(|size| format!("int64_t {}", size.c)).collect()
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
    /// Of the function that computes.
    run: String,
    /// Of the one that prepares constants.
    prepare: String,
    /// Of those that only look at sizes, without and with something behind them.
    sizes: String,
    elements: String,
    workspace: String,
}

impl Signatures {
    fn of(operator: &Operator) -> Self {
        let sizes = size_list(operator);
        let list = |more: Vec<String>| [sizes.clone(), more].concat().join(", ");
        let explicit = |constant: bool| {
            let wanted = move |parameter: &&Parameter| !constant || parameter.is_const;
            operator.parameters.iter().filter(wanted).map(c_parameter).collect::<Vec<_>>()
        };
        let own = |text: &[&str]| text.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let prepared =
            if operator.has_constants() { own(&["const void *prepared"]) } else { vec![] };
        let common = own(&["void *workspace", "tw_pool *pool"]);
        let void = |list: String| if list.is_empty() { "void".to_owned() } else { list };
        Self {
            run: list([explicit(false), prepared, common].concat()),
            prepare: list([explicit(true), own(&["void *prepared", "tw_pool *pool"])].concat()),
            sizes: void(list(vec![])),
            elements: list(own(&["int32_t parameter"])),
            workspace: list(own(&["int32_t workers"])),
        }
    }
}
