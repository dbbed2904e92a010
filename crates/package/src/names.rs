//! The symbols that a package exports.

use crate::operator::Operator;

/// The package-level functions.
pub(crate) fn of_package(package: &str) -> Vec<String> {
    ["error_text", "level", "level_name", "set_level"]
        .map(|end| format!("{package}_{end}"))
        .to_vec()
}

/// The functions of an operator, the computing one first.
pub(crate) fn of_operator(package: &str, operator: &Operator) -> Vec<String> {
    let name = format!("{package}_{}", operator.name);
    let mut symbols = vec![name.clone()];
    let ends = ["elements", "workspace_bytes", "interface", "INTERFACE"];
    symbols.extend(ends.map(|end| format!("{name}_{end}")));
    if operator.has_constants() {
        symbols.extend([format!("{name}_prepared_bytes"), format!("{name}_prepare")]);
    }
    symbols
}
