//! Emits contributions as statements.

use std::collections::BTreeMap;

use tensorwright_lang::ops::AssignOp;
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{
    Comprehension, Expr, ExprKind, RangeConstraint, ScatterClause,
};
use tensorwright_lang::syntax::print_expr;

use crate::bounds::Range;
use crate::build;
use crate::poly::{IndexSum, Poly};
use crate::ranges::{Access, accesses_of};
use crate::scope::Scope;
use crate::transpose::Contribution;
use crate::tree;

/// Longer sums of contributions are split into several statements.
const MAX_SUM: usize = 100;

/// Merges elementwise contributions into as few sums as the length limit allows.
pub(crate) fn joined(contributions: Vec<Contribution>) -> Vec<Contribution> {
    let mut sums: Vec<Contribution> = Vec::new();
    let is_choice = |c: &Contribution| matches!(c.value.kind, ExprKind::Select(..));
    let (choices, plain): (Vec<_>, Vec<_>) = contributions.into_iter().partition(is_choice);
    for contribution in plain.into_iter().chain(choices) {
        let length = |expr: &Expr| print_expr(expr).chars().count();
        match sums.last_mut() {
            Some(sum) if length(&sum.value) + length(&contribution.value) <= MAX_SUM => {
                let other = with_indices(&contribution, &sum.indices);
                sum.value = build::add(sum.value.clone(), other);
            }
            _ => sums.push(contribution),
        }
    }
    sums
}

/// The value of a contribution with its indices renamed.
pub(crate) fn with_indices(contribution: &Contribution, indices: &[String]) -> Expr {
    let names: BTreeMap<&str, &String> =
        contribution.indices.iter().map(String::as_str).zip(indices).collect();
    let new = |name: &str| names.get(name).map(|new| (*new).clone());
    tree::rename(&contribution.value, &new)
}

/// `name(indices) op value where ...`
pub(crate) fn statement(
    scope: &Scope,
    name: &str,
    op: AssignOp,
    contribution: &Contribution,
) -> Comprehension {
    let Contribution { indices, reduced, ranges, scatter, value } = contribution;
    let vars = indices.iter().chain(reduced);
    let stated = vars.filter_map(|var| {
        let range = ranges.get(var)?;
        (!is_inferred(scope, value, var, range)).then(|| constraint(var, range))
    });
    Comprehension {
        target: build::ident(name),
        indices: indices.iter().map(|index| build::ident(index)).collect(),
        op,
        position: false,
        rhs: value.clone(),
        scan: None,
        scatter: scatter.iter().map(clause).collect(),
        constraints: stated.collect(),
        span: Span::default(),
    }
}

/// `var = at`
fn clause((var, at): &(String, Expr)) -> ScatterClause {
    ScatterClause { var: build::ident(var), at: at.clone(), span: Span::default() }
}

/// `var in lo:hi`
pub(crate) fn constraint(var: &str, range: &Range) -> RangeConstraint {
    let Range { lo, hi } = range.clone();
    RangeConstraint { var: build::ident(var), lo, hi, span: Span::default() }
}

/// Whether range inference gives exactly this range: some unguarded subscript is the bare variable,
/// and no such subscript contradicts it.
pub(crate) fn is_inferred(scope: &Scope, value: &Expr, var: &str, range: &Range) -> bool {
    let hi = Poly::of(&range.hi);
    let accesses = accesses_of(scope, value);
    let plain: Vec<&Access<'_>> =
        accesses.iter().filter(|a| build::as_name(&a.subscript) == Some(var)).collect();
    build::is_int(&range.lo, 0)
        && plain.iter().any(|access| access.guards.is_empty())
        && plain.iter().all(|access| Poly::of(&access.extent) == hi)
}
