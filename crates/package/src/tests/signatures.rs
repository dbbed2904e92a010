//! Signatures are independent of sizes; names that hide system names are rejected.

use std::path::Path;

use crate::Plan;
use tensorwright::{Diagnostics, Module, Source};
use tensorwright_tuner::Manifest;

/// The plan of a manifest with operators of one text.
fn plan(manifest: &str, text: &str) -> Result<Plan, Diagnostics> {
    let manifest = Manifest::parse(Source::new("kernels.toml", manifest))?;
    Plan::new(&manifest, "kernels", &mut |file| Module::parse(file, text))
}

/// The error of a manifest with one definition.
fn refusal(manifest: &str) -> String {
    let text = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
    let operator = "[[operator]]\nfile = \"gemm.tc\"\nsizes = { M = 4, N = 4, K = 4 }\n";
    match plan(&manifest.replace("OPERATOR", operator), text) {
        Ok(plan) => format!("{} is a package", plan.name()),
        Err(error) => error.to_string(),
    }
}

/// Everything in a header but comments.
fn declarations(header: &str) -> String {
    let parts = header.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, rest)| rest));
    parts.collect()
}

/// The public part of a module.
fn public(module: &str) -> String {
    let lines = module.lines().map(str::trim).filter(|line| line.starts_with("pub fn"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The declarations in C and Rust of a package with one definition.
fn signatures(file: &str, text: &str, def: &str, sizes: &str) -> Option<(String, String)> {
    let operator =
        format!("[[operator]]\nfile = \"{file}\"\ndef = \"{def}\"\nsizes = {{ {sizes} }}\n");
    let plan = plan(&operator, text).ok()?;
    Some((declarations(&plan.header()), public(&plan.rust_module())))
}

#[test]
fn sizes_and_given_scalars_change_no_signature() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels");
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let (file, text) = (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        let module = Module::parse(&file, &text).unwrap();
        for def in module.defs() {
            let mut known = None;
            for size in [1, 2, 3, 5, 8, 16, 31, 64] {
                for scalars in [&[][..], &def.integer_scalars()] {
                    let names = def.sizes().into_iter().map(|name| format!("{name} = {size}"));
                    let scalars = scalars.iter().map(|name| format!("{name} = 1"));
                    let sizes = names.chain(scalars).collect::<Vec<_>>().join(", ");
                    let found = signatures(&file, &text, def.name(), &sizes);
                    let Some(found) = found else { continue };
                    let known = known.get_or_insert_with(|| found.clone());
                    assert_eq!(found, *known, "{file}, {}, {sizes}", def.name());
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn parameters_keep_their_places_and_names() {
    let text = "def axpy(const float(B,H) b, int k, float(B,H) h) -> (z) { z(i,j) = i >= k ? b(i,j) : h(i,j) }";
    for sizes in ["B = 2, H = 4", "B = 1, H = 1, k = 0"] {
        let (c, rust) = signatures("axpy.tc", text, "axpy", sizes).unwrap();
        let expected = "int32_t kernels_axpy(int64_t B, int64_t H, const float *b, int32_t k, const float *h, \
                        float *z, const void *prepared, void *workspace, tw_pool *pool);";
        assert!(c.contains(expected), "{c}");
        let expected = "int32_t kernels_axpy_prepare(int64_t B, int64_t H, const float *b, int32_t k, \
                        void *prepared, tw_pool *pool);";
        assert!(c.contains(expected), "{c}");
        assert!(c.contains(
            "int64_t kernels_axpy_elements(int64_t B, int64_t H, int32_t k, int32_t parameter);"
        ));
        let expected = "pub fn axpy(size_b: i64, size_h: i64, b: &[f32], k: i32, h: &[f32], z: &mut [f32], \
                        prepared: Option<&AxpyPrepared>) -> Result<(), Error> {";
        assert!(rust.contains(expected), "{rust}");
    }
}

#[test]
fn names_that_would_hide_those_of_the_system_are_refused() {
    for name in ["stdio", "m", "std", "tw_x", "Layer"] {
        let manifest = format!("[package]\nname = \"{name}\"\nOPERATOR");
        insta::assert_snapshot!(format!("package_{name}"), refusal(&manifest));
    }
    let manifest = "[package]\nname = \"sem\"\nOPERATORname = \"wait\"\n";
    insta::assert_snapshot!("operator_of_the_c_library", refusal(manifest));
    assert_eq!(refusal("[package]\nname = \"mm\"\nOPERATOR"), "mm is a package");
}
