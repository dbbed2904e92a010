//! Tests every example kernel without a schedule against the reference.
#![allow(unsafe_code, reason = "tests call generated code")]

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{Inputs, difference, program, scheduled};
use tensorwright_lang::dtype::DType;
use tensorwright_reference::{Buffer, npy};

#[test]
fn every_example_gives_what_the_reference_gives() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = std::fs::read_to_string(examples.join("golden/cases.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut failures = Vec::new();
    for case in cases.as_array().unwrap() {
        let (file, def) = (case["file"].as_str().unwrap(), case["def"].as_str().unwrap());
        let source = std::fs::read_to_string(examples.join("kernels").join(file)).unwrap();
        let sizes: BTreeMap<String, i64> = serde_json::from_value(case["sizes"].clone()).unwrap();
        let sizes: Vec<(&str, i64)> =
            sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let program = program(&source, Some(def), &sizes);
        let strings = |key: &str| -> BTreeMap<String, String> {
            serde_json::from_value(case[key].clone()).unwrap_or_default()
        };
        let dtypes = strings("dtypes");
        let input = |(name, file): (String, String)| {
            let bytes = std::fs::read(examples.join("golden").join(file)).unwrap();
            let buffer: Buffer = npy::decode(&bytes).unwrap();
            let dtype = dtypes.get(&name).and_then(|dtype| DType::from_name(dtype));
            let buffer = dtype.map_or(buffer.clone(), |dtype| buffer.convert(dtype).unwrap());
            (name, buffer)
        };
        let inputs: Inputs = strings("inputs").into_iter().map(input).collect();
        let nest = scheduled(&program, "");
        if let Some(difference) = difference(&program, &nest, &inputs, "native") {
            failures.push(format!("{file} {def}: {difference}\n{nest}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
