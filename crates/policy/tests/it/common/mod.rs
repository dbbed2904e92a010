//! The example programs, bound to the sizes of their golden cases.

use std::collections::BTreeMap;
use std::path::Path;

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;

/// An example program.
pub(crate) struct Example {
    /// The file and the definition.
    pub(crate) name: String,
    /// The program.
    pub(crate) program: Program,
}

/// Every definition of the examples, with the sizes of its first golden case.
pub(crate) fn examples() -> Vec<Example> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = std::fs::read_to_string(examples.join("golden/cases.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut found: Vec<Example> = Vec::new();
    for case in cases.as_array().unwrap() {
        let (file, def) = (case["file"].as_str().unwrap(), case["def"].as_str().unwrap());
        let name = format!("{file} {def}");
        if found.iter().any(|example| example.name == name) {
            continue;
        }
        let source = std::fs::read_to_string(examples.join("kernels").join(file)).unwrap();
        let sizes: BTreeMap<String, i64> = serde_json::from_value(case["sizes"].clone()).unwrap();
        let module = Module::parse(file, &source).unwrap_or_else(|e| panic!("{e}"));
        let program = module.bind(def, sizes).unwrap_or_else(|e| panic!("{e}"));
        found.push(Example { name, program });
    }
    assert!(found.len() > 20, "{} examples", found.len());
    found
}
