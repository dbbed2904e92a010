//! The forward statements that a gradient recomputes.

use std::collections::BTreeSet;

use tensorwright_lang::syntax::ast::Comprehension;

use crate::emit;
use crate::ranges::Step;
use crate::scope::Scope;
use crate::tree;
use crate::versions::Versions;

/// The forward statements that the given values depend on.
pub(crate) fn needed_for(
    scope: &Scope,
    versions: &Versions,
    needed: BTreeSet<String>,
) -> Vec<Comprehension> {
    needed_with(scope, versions, needed, &BTreeSet::new())
}

/// The forward statements that the given values depend on, if some values are supplied.
pub(crate) fn needed_with(
    scope: &Scope,
    versions: &Versions,
    mut needed: BTreeSet<String>,
    given: &BTreeSet<String>,
) -> Vec<Comprehension> {
    let mut kept = Vec::new();
    for step in versions.steps.iter().rev() {
        let target = &step.stmt.target.name;
        if needed.contains(target) && !given.contains(target) {
            let stmt = with_ranges(scope, versions, step);
            needed.extend(tree::mentioned([&stmt]));
            kept.push(stmt);
        }
    }
    kept.reverse();
    kept
}

/// A forward statement. If its tensor has several versions, states the ranges that another version
/// determined.
fn with_ranges(scope: &Scope, versions: &Versions, step: &Step) -> Comprehension {
    let mut stmt = step.stmt.clone();
    stmt.rhs = tree::unplaced(&stmt.rhs);
    if !versions.renamed.contains(&stmt.target.name) {
        return stmt;
    }
    for var in step.vars.iter().filter(|var| var.spatial) {
        let Some(range) = &var.range else { continue };
        let is_stated = stmt.constraints.iter().any(|given| given.var.name == var.name);
        if !is_stated && !emit::is_inferred(scope, &stmt.rhs, &var.name, range) {
            stmt.constraints.push(emit::constraint(&var.name, range));
        }
    }
    stmt
}
