//! The README of a package.

use super::tables::prepared_bytes;
use crate::buckets::Kind;
use crate::compile::{Built, Kernels, Origin};
use crate::operator::{Case, Operator};
use crate::plan::Plan;

/// The text.
pub(crate) fn readme(plan: &Plan, kernels: &[Vec<Kernels>]) -> String {
    let name = &plan.name;
    let levels: Vec<String> = plan
        .levels
        .iter()
        .map(|level| format!("{} ({})", level.name(), level.requirement()))
        .collect();
    let mut text = format!(
        "{name}: kernels made by Tensorwright\n\n\
         {name}.h       the functions in C; how to call them is said there\n\
         lib{name}.a    the same kernels to link statically (-l{name} -lm)\n\
         lib{name}.so   and as a shared library\n\
         {name}/        a Rust crate with safe functions\n\n\
         Nothing else is needed but the C library. Levels: {}; the best one that the processor\n\
         has is used.\n",
        levels.join(", ")
    );
    for (operator, kernels) in plan.operators.iter().zip(kernels) {
        text += &format!("\n{name}_{}\n", operator.name);
        for (case, kernels) in operator.cases.iter().zip(kernels) {
            text += &of_case(plan, operator, case, kernels);
        }
    }
    text
}

fn of_case(plan: &Plan, operator: &Operator, case: &Case, kernels: &Kernels) -> String {
    let threads = if case.threads == 1 { "1 thread" } else { &format!("{} threads", case.threads) };
    let mut text = format!("  {}, schedules for {threads}\n", case.words(&operator.sizes));
    if let Some(varying) = &case.varying {
        let values: Vec<String> = varying.buckets.values().iter().map(i64::to_string).collect();
        let between = match varying.buckets.variation.kind {
            Kind::Sliced => "slices of kernels, or padding",
            Kind::Padded => "padding, because it is reduced over",
        };
        let name = operator.sizes.get(varying.place).map_or("", |size| size.text.as_str());
        text += &format!("    kernels for {name} = {}\n", values.join(" "));
        text += &format!("    other values of {name}: {between}\n");
    }
    for (level, kernels) in plan.levels.iter().zip(kernels) {
        let prepared = prepared_bytes(kernels);
        if prepared > 0 {
            text += &format!("    {:<7} {prepared} bytes of prepared constants\n", level.name());
        }
        for (kernel, (value, _)) in kernels.iter().zip(&case.programs) {
            let bucket = case.varying.as_ref().map_or(String::new(), |_| format!("[{value}] "));
            text += &format!("    {:<7} {bucket}{}\n", level.name(), of_kernel(kernel));
        }
    }
    text
}

fn of_kernel(kernel: &Built) -> String {
    let origin = match &kernel.origin {
        Origin::Record(trial, _) => format!("tuned: {trial}"),
        Origin::Verified(trial) => format!("tuned elsewhere, verified: {trial}"),
        Origin::Untuned => "untuned".to_owned(),
    };
    let workspace = kernel.interface.workspace;
    let (shared, private) = (workspace.shared_bytes, workspace.private_bytes);
    let per_worker = if private > 0 { format!(" and {private} per worker") } else { String::new() };
    format!("{origin}; workspace {shared} bytes{per_worker}; code {} bytes", kernel.object.len())
}
