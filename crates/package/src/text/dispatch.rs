//! The C dispatcher of a package, which selects and runs kernels.

use super::{ERRORS, Signatures, header, tables};
use crate::compile::Kernels;
use crate::operator::{Operator, Parameter};
use crate::plan::Plan;

/// The common source.
const DISPATCH: &str = include_str!("dispatch.c");

/// The common source for constants.
const PREPARE: &str = include_str!("prepare.c");

/// The source. Only functions of the header are exported.
pub(crate) fn dispatch(plan: &Plan, kernels: &[Vec<Kernels>]) -> String {
    let all = || kernels.iter().flatten().flatten().flatten();
    let slots = all().map(|kernel| kernel.slots.len()).max().unwrap_or(0).max(1);
    let parameters = plan.operators.iter().map(|operator| operator.parameters.len()).max();
    let versions: Vec<&str> = plan
        .levels
        .iter()
        .map(|level| level.requirement().strip_prefix("x86-64-v").unwrap_or("1"))
        .collect();
    let mut text = header::header(plan);
    text += "\n#include <cpuid.h>\n#include <stddef.h>\n#include <stdlib.h>\n#include <string.h>\n\n\
             #define tw_hidden __attribute__((visibility(\"hidden\")))\n\
             #define tw_exported __attribute__((visibility(\"default\")))\n\nenum {\n";
    for (error, number, _) in ERRORS {
        text += &format!("    tw_error_{} = {number},\n", error.to_lowercase());
    }
    text += &format!(
        "    tw_level_count = {},\n    tw_most_slots = {slots},\n    tw_most_parameters = {}\n}};\n\n\
         static const int tw_level_versions[tw_level_count] = {{{}}};\n\n{DISPATCH}\n",
        plan.levels.len(),
        parameters.unwrap_or(0).max(1),
        versions.join(", ")
    );
    if plan.operators.iter().any(Operator::has_constants) {
        text += PREPARE;
        text += "\n";
    }
    for (operator, kernels) in plan.operators.iter().zip(kernels) {
        text += &tables::tables(plan, operator, kernels);
    }
    plan.operators.iter().for_each(|operator| text += &functions(plan, operator));
    text + &common(plan)
}

/// The package-level functions.
fn common(plan: &Plan) -> String {
    let name = &plan.name;
    let levels: Vec<String> =
        plan.levels.iter().map(|level| format!("\"{}\"", level.name())).collect();
    format!(
        "tw_exported const char *{name}_error_text(int32_t code) {{\n    return tw_text_of(code);\n}}\n\n\
         tw_exported int32_t {name}_level(void) {{\n    return tw_current_level();\n}}\n\n\
         tw_exported int32_t {name}_set_level(int32_t level) {{\n    return tw_use_level(level);\n}}\n\n\
         tw_exported const char *{name}_level_name(int32_t level) {{\n    \
         static const char *const names[tw_level_count] = {{{}}};\n    \
         return level >= 0 && level < tw_level_count ? names[level] : NULL;\n}}\n",
        levels.join(", ")
    )
}

/// The functions of an operator.
fn functions(plan: &Plan, operator: &Operator) -> String {
    let (table, name) = (&operator.name, format!("{}_{}", plan.name, operator.name));
    let signatures = Signatures::of(operator);
    // A C array needs an element.
    let listed = |list: Vec<String>| if list.is_empty() { "0".to_owned() } else { list.join(", ") };
    let sizes = listed(operator.sizes.iter().map(|size| size.c.clone()).collect());
    let sizes = format!("    const int64_t tw_sizes[] = {{{sizes}}};\n");
    let pointers = |is_given: &dyn Fn(&Parameter) -> bool| {
        let one = |parameter: &Parameter| match is_given(parameter) {
            true => pointer(parameter),
            false => "NULL".to_owned(),
        };
        let list = listed(operator.parameters.iter().map(one).collect());
        format!("    void *const tw_pointers[] = {{{list}}};\n")
    };
    let prepared = if operator.has_constants() { "prepared" } else { "NULL" };
    let mut text = format!(
        "tw_exported uint32_t {name}_interface(void) {{\n    return {name}_INTERFACE;\n}}\n\n\
         tw_exported int32_t {name}({}) {{\n{sizes}{}    \
         return tw_run(&tw_operator_{table}, tw_sizes, tw_pointers, {prepared}, workspace, pool);\n}}\n\n\
         tw_exported int64_t {name}_elements({}) {{\n{sizes}    \
         return tw_elements(&tw_operator_{table}, tw_sizes, parameter);\n}}\n\n\
         tw_exported int64_t {name}_workspace_bytes({}) {{\n{sizes}    \
         return tw_workspace_bytes(&tw_operator_{table}, tw_sizes, workers);\n}}\n\n",
        signatures.run,
        pointers(&|_| true),
        signatures.elements,
        signatures.workspace
    );
    if operator.has_constants() {
        text += &format!(
            "tw_exported int64_t {name}_prepared_bytes({}) {{\n{sizes}    \
             return tw_prepared_bytes(&tw_operator_{table}, tw_sizes);\n}}\n\n\
             tw_exported int32_t {name}_prepare({}) {{\n{sizes}{}    \
             return tw_prepare(&tw_operator_{table}, tw_sizes, tw_pointers, prepared, pool);\n}}\n\n",
            signatures.sizes,
            signatures.prepare,
            pointers(&|parameter| parameter.is_const)
        );
    }
    text
}

/// The argument passed on for a parameter.
fn pointer(parameter: &Parameter) -> String {
    let name = &parameter.name.c;
    match parameter.is_output {
        true => name.clone(),
        false if parameter.is_scalar_input() => format!("(void *)&{name}"),
        false => format!("(void *){name}"),
    }
}
