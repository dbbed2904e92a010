//! Reserved names: system headers and libraries, and C library functions.
//!
//! A package must not hide them: a compiler takes the first `stdio.h` on its path, a linker the
//! first `libm`, and a program has one function of each name.

/// Headers of the C library, of compilers, and other well-known ones.
const HEADERS: &str = include_str!("headers.txt");

/// Libraries of usual systems, by their `-l` names.
const LIBRARIES: &str = include_str!("libraries.txt");

/// Functions of the C library with `_` in their names, which packages could also export.
const FUNCTIONS: &str = include_str!("functions.txt");

/// Rust's built-in crates.
const CRATES: [&str; 5] = ["alloc", "core", "proc_macro", "std", "test"];

/// The prefix of internal names in generated code.
const OWN: &str = "tw";

/// The system names that a package would hide, as the end of a sentence; `None` without any.
#[must_use]
pub(crate) fn hidden_by_package(name: &str) -> Option<String> {
    if is_header(name) {
        return Some(format!(
            "`{name}.h` is a header of the system, which the package's would hide"
        ));
    }
    if is_library(name) {
        return Some(format!(
            "`-l{name}` is a library of the system, which the package's would hide"
        ));
    }
    if CRATES.contains(&name) {
        return Some(format!("`{name}` is a crate that comes with Rust"));
    }
    let is_own = name == OWN || name.strip_prefix(OWN).is_some_and(|rest| rest.starts_with('_'));
    is_own
        .then(|| "names that begin with `tw_` are those of the code that packages share".to_owned())
}

/// A replacement for a reserved package name.
#[must_use]
pub(crate) fn other_name(name: &str) -> String {
    let lower = name.to_lowercase();
    let rest = lower.strip_prefix(OWN).map_or(lower.as_str(), |rest| rest.trim_start_matches('_'));
    match rest {
        "" => "kernels".to_owned(),
        rest if lower.starts_with("tw_") => format!("{rest}_kernels"),
        _ => format!("{lower}_kernels"),
    }
}

/// Whether there is a system header `NAME.h`.
#[must_use]
pub fn is_header(name: &str) -> bool {
    is_in(HEADERS, name)
}

/// Whether there is a system library `libNAME`.
#[must_use]
pub fn is_library(name: &str) -> bool {
    is_in(LIBRARIES, name)
}

/// Whether the C library has a function with the name.
#[must_use]
pub(crate) fn is_function(name: &str) -> bool {
    is_in(FUNCTIONS, name)
}

fn is_in(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_hide_something_are_known() {
        for name in ["stdio", "math", "m", "c", "pthread", "z", "time", "std", "tw", "tw_x"] {
            assert!(hidden_by_package(name).is_some(), "{name}");
            assert_eq!(hidden_by_package(&other_name(name)), None, "{name}");
        }
        for name in ["kernels", "gemm", "two", "mm", "stdio_kernels", "layer"] {
            assert_eq!(hidden_by_package(name), None);
        }
        assert!(is_function("sem_wait") && is_function("pthread_create"));
        assert!(!is_function("kernels_gemm"));
    }
}
