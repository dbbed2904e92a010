//! Checks the gradients of all example kernels against finite differences.
//!
//! Kernels without a gradient are listed with the reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{Buffers, Case, Verdict, in_double};
use tensorwright_reference::npy;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[test]
fn gradients_agree_with_finite_differences() {
    let text = std::fs::read_to_string(examples().join("golden/cases.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut failures = Vec::new();
    let mut refused = String::new();
    for case in cases.as_array().unwrap() {
        let (file, def) = (case["file"].as_str().unwrap(), case["def"].as_str().unwrap());
        // Its 32 stages take the interpreter a minute; `stencil` is the same 32 times.
        let def = if def == "stencil_chain" { "stencil" } else { def };
        let path = examples().join("kernels").join(file);
        let text = in_double(&std::fs::read_to_string(path).unwrap());
        let sizes = serde_json::from_value(case["sizes"].clone()).unwrap();
        let files: BTreeMap<String, String> =
            serde_json::from_value(case["inputs"].clone()).unwrap_or_default();
        let mut inputs = Buffers::new();
        for (name, file) in files {
            let bytes = std::fs::read(examples().join("golden").join(file)).unwrap();
            let buffer = npy::decode(&bytes).unwrap();
            if !buffer.dtype().is_float() {
                inputs.insert(name, buffer);
            }
        }
        let index_inputs = BTreeMap::new();
        let case = Case { text, def, sizes, inputs, index_inputs, seed: 1 };
        match case.compare() {
            Ok(Verdict::Refused(reason)) => refused += &format!("{file} {def}: {reason}\n"),
            Ok(Verdict::Agrees(0)) => failures.push(format!("{file} {def}: kinks everywhere")),
            Ok(Verdict::Agrees(_)) => {}
            Err(error) => failures.push(format!("{file} {def}: {error}")),
        }
    }
    insta::assert_snapshot!("refused_examples", refused);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
