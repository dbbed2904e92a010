//! Reciprocals of divisors that many elements share.
//!
//! ```text
//! y(n,d) = e(n,d) / total(n)              total_inverse(n) = 1 / total(n)
//!                                    ->   d_e(n,d) = d_y(n,d) * total_inverse(n) + ...
//! ```
//!
//! The gradient divides by the same divisor several times. A divisor shared by many elements is
//! inverted once and multiplied with: a division costs about ten multiplications. That rounds once
//! more, so it is limited to types with precision and exponent range to spare.

use std::collections::BTreeSet;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, AssignOp};
use tensorwright_lang::syntax::ast::ExprKind;

use crate::build;
use crate::derivative::inverse_name;
use crate::ranges::Step;
use crate::scope::Application;
use crate::tree;
use crate::versions::Versions;

/// Adds the statements that compute inverses, each after the statement of its value. Unused ones
/// are removed at the end.
pub(crate) fn add_inverses(versions: &mut Versions) {
    let shared: BTreeSet<String> =
        versions.steps.iter().flat_map(|step| shared_divisors(versions, step)).collect();
    let mut steps = Vec::with_capacity(versions.steps.len());
    for step in std::mem::take(&mut versions.steps) {
        let value = step.stmt.target.name.clone();
        let inverse = shared.contains(&value).then(|| inverse(versions, &step));
        steps.push(step);
        steps.extend(inverse);
    }
    versions.steps = steps;
}

/// The divisors of a statement that several of its elements share.
fn shared_divisors(versions: &Versions, step: &Step) -> Vec<String> {
    let mut found = Vec::new();
    tree::walk(&step.stmt.rhs, &mut |part| {
        if let ExprKind::Arith(ArithOp::Div, _, divisor) = &part.kind
            && let Some(Application::Read(name, subscripts)) = versions.scope.applied(divisor)
            && matches!(versions.scope.dtype(name), DType::Float | DType::Double)
            && step
                .vars
                .iter()
                .any(|var| !subscripts.iter().any(|at| tree::mentions(at, &var.name)))
            && is_plain(versions, name)
        {
            found.push(name.to_owned());
        }
    });
    found
}

/// Whether a single statement assigns the whole value.
fn is_plain(versions: &Versions, value: &str) -> bool {
    let mut writers = versions.steps.iter().filter(|step| step.stmt.target.name == value);
    let is_plain = |step: &Step| step.stmt.scan.is_none() && step.stmt.scatter.is_empty();
    writers.next().is_some_and(is_plain) && writers.next().is_none()
}

/// `value_inverse(...) = 1 / value(...)`
fn inverse(versions: &mut Versions, step: &Step) -> Step {
    let value = &step.stmt.target.name;
    let name = versions.scope.fresh(&inverse_name(value));
    if let Some(tensor) = versions.scope.tensor(value).cloned() {
        versions.scope.tensors.insert(name.clone(), tensor);
    }
    versions.helpers.insert(inverse_name(value), name.clone());
    let mut other = step.clone();
    let is_left = |var: &str| step.stmt.indices.iter().any(|index| index.name == var);
    other.vars.retain(|var| is_left(&var.name));
    other.stmt.constraints.retain(|given| is_left(&given.var.name));
    other.stmt.rhs = build::div(build::int(1), build::apply(value, tree::element(&step.stmt)));
    other.stmt.op = AssignOp::Assign;
    other.stmt.target.name = name;
    other
}
