//! C99 for CPUs, with the standard library only.

use super::Syntax;

/// C99.
#[derive(Debug)]
pub(crate) struct C99;

impl Syntax for C99 {
    fn function(&self) -> &'static str {
        "static inline"
    }

    fn math(&self, name: &str, is_single: bool) -> String {
        if is_single { format!("{name}f") } else { name.to_owned() }
    }

    fn to_bits(&self, bits: &str, value: &str) -> String {
        format!("memcpy(&{bits}, &{value}, sizeof {bits});")
    }

    fn to_float(&self, value: &str, bits: &str) -> String {
        format!("memcpy(&{value}, &{bits}, sizeof {value});")
    }
}
