//! The multi-stage applications of Anderson et al. 2021, with benchmark sizes.

use std::path::Path;

use serde_json::Value;
use tensorwright::{Module, Program};

/// An application.
pub(super) struct Application {
    pub(super) name: String,
    pub(super) program: Program,
}

/// The suites with their workloads; an empty list means all.
const SUITES: [(&str, &[&str]); 2] = [
    ("applications", &[]),
    ("imaging", &["harris", "stencil_chain32", "depthwise_separable", "conv_layer_relu"]),
];

/// All applications whose name contains a text.
pub(super) fn applications(only: &str) -> Result<Vec<Application>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for (suite, names) in SUITES {
        let file = root.join("bench/workloads").join(suite).with_extension("json");
        let text = std::fs::read_to_string(&file);
        let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
        let workloads: Vec<Value> =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        for workload in workloads {
            let field = |name: &str| workload[name].as_str().unwrap_or_default().to_owned();
            let name = field("name");
            if (names.is_empty() || names.contains(&name.as_str())) && name.contains(only) {
                let (path, def, size) = (root.join(field("file")), field("def"), field("size"));
                let program = program(&name, &path, &def, &size)?;
                found.push(Application { name, program });
            }
        }
    }
    match found.is_empty() {
        true => Err(format!("no application has `{only}` in its name")),
        false => Ok(found),
    }
}

fn program(name: &str, path: &Path, def: &str, size: &str) -> Result<Program, String> {
    let wrong = |what: &dyn std::fmt::Display| format!("{name}: {what}");
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let pairs = size.split(',').filter_map(|size| size.split_once('='));
    let sizes = pairs.map(|(name, size)| Ok((name.to_owned(), size.parse::<i64>()?)));
    let sizes: Result<Vec<(String, i64)>, std::num::ParseIntError> = sizes.collect();
    let sizes = sizes.map_err(|error| wrong(&error))?;
    let module = Module::parse(name, &text).map_err(|error| wrong(&error))?;
    let def = module.def(def).map_err(|error| wrong(&error))?;
    def.bind(sizes).map_err(|error| wrong(&error))
}
