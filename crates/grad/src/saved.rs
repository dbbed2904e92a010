//! Selects the forward values to save rather than recompute.
//!
//! A value is saved if reading it is cheaper than recomputing it and it takes no more memory than a
//! parameter or a result:
//!
//! - a result, which the caller has anyway: the gradient of a softmax reads the softmax;
//! - a reduction with no more elements than a parameter or a result, such as the means and
//!   variances of a norm, the row sums of attention, or the product before an activation.
//!
//! Values that are compared with recomputed ones are never saved, such as a maximum with the terms
//! that may attain it.
//!
//! Everything else is recomputed: an elementwise value costs about as much as its memory traffic,
//! and attention scores are many times larger than the inputs and outputs.

use std::collections::BTreeSet;

use tensorwright_lang::Module;
use tensorwright_lang::syntax::ast::{Comprehension, Def, Expr, ExprKind, Stmt};
use tensorwright_lang::syntax::print_def;

use crate::build;
use crate::gradient::{Forward, Gradient, Input};
use crate::poly::{IndexSum, Poly};
use crate::recompute::needed_for;
use crate::scope::Scope;
use crate::tree;
use crate::versions::Versions;

/// The values worth saving, if the gradient needs them. The shape of each can be declared in a
/// parameter.
pub(crate) fn candidates(def: &Def, scope: &Scope, versions: &Versions) -> BTreeSet<String> {
    let is_param = |name: &str| def.params.iter().any(|param| param.name.name == name);
    if def.returns.iter().any(|result| is_param(&result.name)) {
        return BTreeSet::new();
    }
    let is_size = |extent: &Expr| match &extent.kind {
        ExprKind::Name(name) => scope.sizes.contains(name),
        kind => matches!(kind, ExprKind::Int(_)),
    };
    let shape = |name: &str| -> Option<Vec<Poly>> {
        let shape = &scope.tensor(name)?.shape;
        let extents = shape.iter().map(|extent| extent.as_ref().filter(|extent| is_size(extent)));
        extents.map(|extent| extent.map(Poly::of)).collect()
    };
    let is_result = |name: &str| versions.results.iter().any(|(_, last)| last == name);
    let kept = def.params.iter().map(|param| param.name.name.as_str());
    let kept = kept.chain(versions.results.iter().map(|(_, last)| last.as_str()));
    let kept: Vec<Vec<Poly>> = kept.filter_map(shape).collect();
    let is_small =
        |name: &str| shape(name).is_some_and(|own| kept.iter().any(|other| is_part(&own, other)));
    let steps = versions.steps.iter();
    let reduced = steps.filter(|step| step.vars.iter().any(|var| !var.spatial));
    let reduced: BTreeSet<&str> = reduced.map(|step| step.stmt.target.name.as_str()).collect();
    let targets = versions.steps.iter().map(|step| step.stmt.target.name.as_str());
    let is_worth = |name: &&str| {
        let is_helper = versions.helpers.values().any(|helper| helper == name);
        !is_helper
            && shape(name).is_some()
            && (is_result(name) || reduced.contains(name) && is_small(name))
    };
    targets.filter(is_worth).map(str::to_owned).collect()
}

/// Tensors that statements compare with others. A saved and a recomputed sum may differ in the last
/// digits, so compared tensors are not saved: of `x(n,d) == top(n)`, either neither or both are
/// recomputed.
pub(crate) fn compared<'s>(
    scope: &Scope,
    statements: impl IntoIterator<Item = &'s Comprehension>,
) -> BTreeSet<String> {
    let tensors = |side: &Expr| -> Vec<String> {
        let names = tree::names(side).into_iter().filter(|name| scope.tensor(name).is_some());
        names.map(str::to_owned).collect()
    };
    let mut found = BTreeSet::new();
    for side in statements.into_iter().flat_map(tree::sides) {
        tree::walk(side, &mut |part| {
            if let ExprKind::Compare(_, a, b) = &part.kind {
                let (a, b) = (tensors(a), tensors(b));
                if !a.is_empty() && !b.is_empty() {
                    found.extend(a.into_iter().chain(b));
                }
            }
        });
    }
    found
}

/// Whether all extents of a shape are among those of another one.
fn is_part(own: &[Poly], other: &[Poly]) -> bool {
    let mut rest = other.to_vec();
    own.iter().all(|extent| match rest.iter().position(|known| known == extent) {
        Some(place) => {
            rest.swap_remove(place);
            true
        }
        None => false,
    })
}

/// The forward definition that also returns the saved values, after its own results; `None` if all
/// saved values are results.
pub(crate) fn forward(
    module: &Module,
    def: &Def,
    versions: &Versions,
    gradient: &Gradient,
) -> Option<Forward> {
    let results = versions.results.len();
    let taken = gradient.inputs.iter().filter_map(|input| match input {
        Input::Saved { name, place } if *place >= results => Some(name.clone()),
        _ => None,
    });
    let saved: Vec<String> = taken.collect();
    if saved.is_empty() {
        return None;
    }
    let values = versions.results.iter().map(|(_, last)| last.clone());
    let returns: Vec<String> = values.chain(saved.iter().cloned()).collect();
    let body = needed_for(&versions.scope, versions, returns.iter().cloned().collect());
    let name = build::fresh_def_name(module, &format!("{}_saving", def.name.name));
    let made = Def {
        name: build::ident(&name),
        params: def.params.clone(),
        returns: returns.iter().map(|name| build::ident(name)).collect(),
        body: body.into_iter().map(Stmt::Comprehension).collect(),
        span: def.span,
    };
    let title = format!("# `{}`, with {} for its gradient.\n", def.name.name, saved.join(", "));
    Some(Forward { source: title + &print_def(&made), name })
}
