//! Assembles the gradient definition: signature, forward values and statements.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::Module;
use tensorwright_lang::diagnostic::{Code, Diagnostic};
use tensorwright_lang::syntax::ast::{Comprehension, Def, Dim, Expr, ExprKind, Param, Stmt};
use tensorwright_lang::syntax::print_def;

use crate::bounds::Range;
use crate::build;
use crate::cse::{hoist_calls, reuse_assigned};
use crate::gradient::{Gradient, Input, Output};
use crate::poly::{IndexSum, Poly};
use crate::recompute::{needed_for, needed_with};
use crate::reverse::{Reverse, active};
use crate::saved;
use crate::scope::{Scope, Tensor};
use crate::tree;
use crate::versions::Versions;
use crate::wrt::{self, WrtParams};

/// Differentiates from the results back to the inputs and assembles the gradient.
pub(crate) fn assemble(
    module: &Module,
    def: &Def,
    mut versions: Versions,
    wrt: &WrtParams,
    keep: SavePolicy,
) -> Result<Gradient, Vec<Diagnostic>> {
    let active = active(&versions, &wrt.names);
    let mut scope = versions.scope.clone();
    let cotangents = cotangents(&mut scope, &mut versions, &active);
    let given: BTreeMap<String, String> =
        cotangents.iter().map(|c| (c.value.clone(), c.name.clone())).collect();
    let mut reverse = Reverse::new(scope, &versions, &active, given);
    reverse.run().map_err(|diagnostic| vec![diagnostic])?;
    let mut outputs = Vec::new();
    for input in &wrt.names {
        let is_result = def.returns.iter().any(|result| result.name == *input);
        let like = if is_result { format!("d_{input}_in") } else { format!("d_{input}") };
        let name = reverse.scope.fresh(&like);
        if reverse.settle_input(input, &name) {
            outputs.push(Output { name, of: input.clone() });
        } else if wrt.named {
            return Err(vec![wrt::independent(def, input)]);
        }
    }
    if outputs.is_empty() {
        return Err(vec![wrt::nothing(def)]);
    }
    let Reverse { mut scope, statements, .. } = reverse;
    let statements = reuse_assigned(&scope, without_unused(statements, &outputs));
    let saved = match keep {
        SavePolicy::RecomputeAll => BTreeSet::new(),
        SavePolicy::SaveWorthwhile => {
            let again = needed_for(&scope, &versions, tree::mentioned(&statements));
            let compared = saved::compared(&scope, again.iter().chain(&statements));
            let candidates = saved::candidates(def, &scope, &versions);
            candidates.difference(&compared).cloned().collect()
        }
    };
    let mut body = needed_with(&scope, &versions, tree::mentioned(&statements), &saved);
    body.extend(statements);
    let body = hoist_calls(&mut scope, body);
    let results = versions.results.iter().map(|(_, last)| last.clone()).collect();
    let parts = Parts { def, scope, cotangents, outputs, saved, results };
    parts.finish(module, body, wrt)
}

/// Which forward values the caller saves for the gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SavePolicy {
    /// None: the gradient recomputes all of them.
    RecomputeAll,
    /// Those that are cheaper to save than to recompute; see `saved`.
    SaveWorthwhile,
}

/// The gradient of a result, supplied by the caller.
struct Cotangent {
    name: String,
    result: String,
    /// The final version of the result.
    value: String,
}

/// Names and shapes for the gradients of results. An extent that is not a size gets a name: `out_h`
/// for the extent of `out` along `h`.
fn cotangents(
    scope: &mut Scope,
    versions: &mut Versions,
    active: &BTreeSet<String>,
) -> Vec<Cotangent> {
    let mut found = Vec::new();
    let mut sizes: Vec<(Poly, String)> = Vec::new();
    for (result, value) in versions.results.clone() {
        let Some(tensor) = scope.tensor(&value).cloned() else { continue };
        if !active.contains(&value) || !tensor.dtype.is_float() {
            continue;
        }
        for (dim, extent) in tensor.shape.iter().flatten().enumerate() {
            let is_size = match &extent.kind {
                ExprKind::Name(name) => scope.sizes.contains(name),
                kind => matches!(kind, ExprKind::Int(_)),
            };
            let extent = Poly::of(extent);
            if !is_size && !sizes.iter().any(|(known, _)| *known == extent) {
                let along = versions.index_of(&value, dim);
                let name = scope.fresh(&format!("{result}_{along}"));
                scope.sizes.insert(name.clone());
                sizes.push((extent, name));
            }
        }
        let name = scope.fresh(&format!("d_{result}"));
        found.push(Cotangent { name, result, value });
    }
    name_extents(scope, versions, &sizes);
    for cotangent in &found {
        if let Some(tensor) = scope.tensor(&cotangent.value).cloned() {
            scope.tensors.insert(cotangent.name.clone(), tensor);
        }
    }
    found
}

/// Refers to named extents by their names.
fn name_extents(scope: &mut Scope, versions: &mut Versions, sizes: &[(Poly, String)]) {
    let named = |extent: &Expr| {
        let extent = Poly::of(extent);
        sizes.iter().find(|(known, _)| *known == extent).map(|(_, name)| build::name(name))
    };
    for Tensor { shape, .. } in scope.tensors.values_mut() {
        for extent in shape.iter_mut().flatten() {
            *extent = named(extent).unwrap_or_else(|| extent.clone());
        }
    }
    for var in versions.steps.iter_mut().flat_map(|step| &mut step.vars) {
        if let Some(Range { hi, .. }) = &mut var.range {
            *hi = named(hi).unwrap_or_else(|| hi.clone());
        }
    }
}

/// Removes gradients that no requested gradient depends on.
fn without_unused(statements: Vec<Comprehension>, outputs: &[Output]) -> Vec<Comprehension> {
    let mut needed: BTreeSet<String> = outputs.iter().map(|output| output.name.clone()).collect();
    let mut kept = Vec::new();
    for stmt in statements.into_iter().rev() {
        if needed.contains(&stmt.target.name) {
            needed.extend(tree::mentioned([&stmt]));
            kept.push(stmt);
        }
    }
    kept.reverse();
    kept
}

struct Parts<'d> {
    def: &'d Def,
    scope: Scope,
    cotangents: Vec<Cotangent>,
    outputs: Vec<Output>,
    /// The forward values that the caller may supply.
    saved: BTreeSet<String>,
    /// The final versions of the results.
    results: Vec<String>,
}

impl Parts<'_> {
    fn finish(
        mut self,
        module: &Module,
        body: Vec<Comprehension>,
        wrt: &WrtParams,
    ) -> Result<Gradient, Vec<Diagnostic>> {
        let (params, body) = self.signature(body);
        let name = build::fresh_def_name(module, &format!("{}_grad", self.def.name.name));
        let cotangent = |name: &str| self.cotangents.iter().find(|c| c.name == name);
        let mut returned = self.results.len();
        let inputs = params.iter().map(|param| match cotangent(&param.name.name) {
            Some(Cotangent { name, result, .. }) => {
                Input::Cotangent { name: name.clone(), of: result.clone() }
            }
            None if self.saved.contains(&param.name.name) => {
                let name = param.name.name.clone();
                let place = self.results.iter().position(|result| *result == name);
                returned += usize::from(place.is_none());
                Input::Saved { name, place: place.unwrap_or(returned - 1) }
            }
            None => Input::Value(param.name.name.clone()),
        });
        let inputs = inputs.collect();
        let def = Def {
            name: build::ident(&name),
            params,
            returns: self.outputs.iter().map(|output| build::ident(&output.name)).collect(),
            body: body.into_iter().map(Stmt::Comprehension).collect(),
            span: self.def.span,
        };
        let of: Vec<&str> = self.outputs.iter().map(|output| output.of.as_str()).collect();
        let title =
            format!("# The gradient of `{}` with respect to {}.\n", self.def.name.name, list(&of));
        let source = title + &print_def(&def);
        // Checked here, so that a defect of this crate cannot return invalid text.
        match Module::parse("gradient", &source) {
            Ok(_) => Ok(Gradient { source, name, inputs, outputs: self.outputs }),
            Err(problems) => Err(vec![self.not_expressible(&problems.to_string(), wrt)]),
        }
    }

    /// The parameters whose values or sizes the body uses.
    fn signature(&mut self, body: Vec<Comprehension>) -> (Vec<Param>, Vec<Comprehension>) {
        let used = tree::mentioned(&body);
        let mut params: Vec<Param> = self
            .def
            .params
            .iter()
            .filter(|param| used.contains(&param.name.name))
            .map(|param| Param { is_const: false, ..param.clone() })
            .collect();
        let saved = self.saved.iter().filter(|name| used.contains(*name));
        let cotangents = self.cotangents.iter().map(|cotangent| &cotangent.name);
        let given = saved.chain(cotangents.filter(|name| used.contains(*name)));
        let needed: Vec<Param> = given.map(|name| self.supplied_param(name)).collect();
        let declared: BTreeSet<String> = params.iter().chain(&needed).flat_map(sizes_of).collect();
        let mut body = body;
        for param in &self.def.params {
            for (dim, size) in param.dims.iter().enumerate() {
                let Dim::Name(size) = size else { continue };
                if declared.contains(&size.name) || !tree::mentioned(&body).contains(&size.name) {
                    continue;
                }
                // Unread; needed only for its size.
                let extent = ExprKind::DimOf(build::ident(&param.name.name), dim as u32);
                let is_size = |expr: &Expr| build::as_name(expr) == Some(size.name.as_str());
                let mut with = |expr: &Expr| is_size(expr).then(|| build::expr(extent.clone()));
                body = body.iter().map(|stmt| tree::replaced(stmt, &mut with)).collect();
                if !params.iter().any(|own| own.name == param.name) {
                    params.push(Param { is_const: false, ..param.clone() });
                }
            }
        }
        let order = |param: &Param| self.def.params.iter().position(|p| p.name == param.name);
        params.sort_by_key(order);
        params.extend(needed);
        (params, body)
    }

    /// The parameter for a value that the caller supplies.
    fn supplied_param(&self, name: &str) -> Param {
        let tensor = self.scope.tensor(name);
        let shape = tensor.map(|tensor| tensor.shape.as_slice()).unwrap_or_default();
        let dims = shape.iter().flatten().map(|extent| match &extent.kind {
            ExprKind::Int(value) => Dim::Literal(*value as i64, extent.span),
            _ => Dim::Name(build::ident(build::as_name(extent).unwrap_or_default())),
        });
        Param {
            is_const: false,
            dtype: self.scope.dtype(name),
            dims: dims.collect(),
            name: build::ident(name),
            span: self.def.span,
        }
    }

    fn not_expressible(&self, problems: &str, wrt: &WrtParams) -> Diagnostic {
        let name = &self.def.name.name;
        let message = format!("the gradient of `{name}` cannot be expressed in the language");
        let first = problems.lines().next().unwrap_or_default();
        let help = match wrt.named {
            true => {
                "split long expressions into statements of their own, and state ranges with `where`"
            }
            false => {
                "name the inputs that it is needed for, split long expressions into statements of their own, or state ranges with `where`"
            }
        };
        Diagnostic::new(Code::NotDifferentiable, self.def.name.span, message)
            .here("its text would not be a valid program")
            .note(first.to_owned())
            .help(help)
    }
}

fn sizes_of(param: &Param) -> Vec<String> {
    let names = param.dims.iter().filter_map(|dim| match dim {
        Dim::Name(size) => Some(size.name.clone()),
        Dim::Literal(..) => None,
    });
    names.collect()
}

/// `A, B and C`
fn list(names: &[&str]) -> String {
    match names {
        [names @ .., last] if !names.is_empty() => format!("{} and {last}", names.join(", ")),
        names => names.concat(),
    }
}
