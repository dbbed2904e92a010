//! The Cargo files of a package's Rust crate.

/// `Cargo.toml`: a separate workspace, so that it builds in any location.
pub(crate) fn cargo_toml(name: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\ndescription = \"Kernels made by Tensorwright\"\n\
         version = \"0.1.0\"\nedition = \"2021\"\nrust-version = \"1.82\"\npublish = false\n\
         links = \"{name}\"\n\n[workspace]\n"
    )
}

/// `build.rs`: the library's location.
pub(crate) fn build_script(name: &str) -> String {
    format!(
        "//! Links the library with the kernels, which lies beside this file.\n\n\
         fn main() {{\n    let folder = std::env::var(\"CARGO_MANIFEST_DIR\").unwrap_or_default();\n    \
         println!(\"cargo:rerun-if-changed=lib{name}.a\");\n    \
         println!(\"cargo:rustc-link-search=native={{folder}}\");\n    \
         println!(\"cargo:rustc-link-lib=static={name}\");\n    \
         println!(\"cargo:rustc-link-lib=m\");\n}}\n"
    )
}

/// The crate documentation in `lib.rs`.
pub(crate) fn crate_documentation(name: &str) -> String {
    format!("//! `{name}`: kernels made by Tensorwright, as safe functions.\n\n")
}
