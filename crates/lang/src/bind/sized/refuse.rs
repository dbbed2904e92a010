//! E1011: what cannot be proven for all sizes.

use super::environment::{Environment, Followed};
use crate::bind::proofs::{Ends, Proofs};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::Comprehension;
use crate::infer::{Access, index_axes};
use crate::program::{AxisId, Index, TensorId, sized_text};
use crate::source::Span;

/// The names of the sizes in indices, or of all sizes if there is none: `` `N` and `M` ``.
fn names(proofs: &Proofs<'_>, indices: &[&Index]) -> Vec<String> {
    let found = proofs.names(indices);
    if found.is_empty() {
        return proofs.sizes.iter().map(|size| format!("`{}`", size.name)).collect();
    }
    found
}

fn and(names: &[String]) -> String {
    match names {
        [] => "sizes".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The advice to use numbers.
fn one_value(names: &[String]) -> String {
    let each = if names.len() > 1 { " each" } else { "" };
    format!("give {} one value{each}", and(names))
}

/// The sizes that an access depends on.
fn of_access(proofs: &Proofs<'_>, access: &Access<'_, Index>, ranges: &[Ends]) -> Vec<String> {
    let axes = index_axes(&access.index);
    let settled = ranges.iter().enumerate().filter(|(var, _)| axes >> var & 1 == 1);
    let ends = settled.filter_map(|(_, range)| range.as_ref()).flat_map(|(lo, hi)| [lo, hi]);
    let indices: Vec<&Index> = [&*access.index, &access.extent].into_iter().chain(ends).collect();
    names(proofs, &indices)
}

fn subscript(env: &Environment<'_>, stmt: &Comprehension, index: &Index) -> String {
    let var = |axis: AxisId| {
        stmt.vars.get(axis.0 as usize).map_or_else(String::new, |var| var.name.clone())
    };
    let tensor = |id: TensorId| env.flat.tensors[id.0 as usize].name.clone();
    sized_text(index, env.proofs.sizes, &var, &tensor)
}

fn tensor_name<'a>(
    env: &'a Environment<'_>,
    it: &'a Followed<'_>,
    access: &Access<'_, Index>,
) -> &'a str {
    let tensor = it.site.tensor_of(access.span, access.is_target);
    &tensor.unwrap_or(&env.flat.tensors[access.tensor.0 as usize]).name
}

/// An access that limits a variable in a way that is not known for all sizes.
pub(super) fn limit(
    env: &Environment<'_>,
    it: Followed<'_>,
    access: &Access<'_, Index>,
    var: usize,
) -> Diagnostic {
    let names = of_access(env.proofs, access, &[]);
    let var = &it.stmt.vars[var].name;
    let message = format!("the range of `{var}` is not known for all {}", and(&names));
    let text = subscript(env, it.stmt, &access.index);
    let (dimension, tensor) = (access.dimension, tensor_name(env, &it, access));
    let extent = subscript(env, it.stmt, &access.extent);
    let error = Diagnostic::new(Code::VaryingSize, access.span, message).here(format!(
        "`{text}` in dimension {dimension} of `{tensor}` (extent {extent}) has no formula for its limit"
    ));
    error.help(format!("give the range with `where {var} in 0:...`, or {}", one_value(&names)))
}

/// An access that may leave its tensor for some sizes.
pub(super) fn bounds(
    env: &Environment<'_>,
    it: Followed<'_>,
    access: &Access<'_, Index>,
    ranges: &[Ends],
) -> Diagnostic {
    let names = of_access(env.proofs, access, ranges);
    let text = subscript(env, it.stmt, &access.index);
    let (dimension, tensor) = (access.dimension, tensor_name(env, &it, access));
    let extent = subscript(env, it.stmt, &access.extent);
    let message = format!(
        "cannot prove for all {} that `{text}` stays in dimension {dimension} of `{tensor}` (extent {extent})",
        and(&names)
    );
    Diagnostic::new(Code::VaryingSize, access.span, message)
        .here("may be out of bounds for some sizes")
        .help(format!("state the condition in the form of the subscript, or {}", one_value(&names)))
}

/// A statement that follows no formulas of sizes.
pub(super) fn statement(proofs: &Proofs<'_>, indices: &[&Index], span: Span) -> Diagnostic {
    let names = names(proofs, indices);
    let message = format!("the ranges here are not known for all {}", and(&names));
    Diagnostic::new(Code::VaryingSize, span, message)
        .here("no formula of sizes was found")
        .help(one_value(&names))
}
