//! Semantic checks that need no sizes: names, types, statements, calls.

mod call;
mod coerce;
mod elaborate;
mod order;
mod scan;
mod scatter;
mod scope;
mod statement;
mod taint;
mod unknown;
mod use_before_def;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use crate::diagnostic::{Code, Diagnostic, MAX_DIAGNOSTICS, Severity};
use crate::hir::{Def, Stmt, Symbol, Tensor};
use crate::source::Span;
use crate::syntax::ast;

use scope::{Scope, Signature};

/// Checks all definitions of a module. A definition that has errors or calls itself gives `None`.
pub(crate) fn check(module: &ast::Module) -> (Vec<Option<Def>>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (number, def) in module.defs.iter().enumerate() {
        if let Some(first) = by_name.get(def.name.name.as_str()) {
            let message = format!("there are two `def`s of the name `{}`", def.name.name);
            diagnostics.push(
                Diagnostic::new(Code::DuplicateDef, def.name.span, message)
                    .here("again here")
                    .label(module.defs[*first].name.span, "first here"),
            );
        } else {
            by_name.insert(&def.name.name, number);
        }
    }
    let (order, cycles) = order::callees_first(module, &by_name);
    diagnostics.extend(cycles);
    let mut checked: Vec<Option<Def>> = module.defs.iter().map(|_| None).collect();
    let mut signatures: Vec<Option<Signature>> = vec![None; module.defs.len()];
    let suggestions = Cell::new(MAX_DIAGNOSTICS as u32);
    for number in order {
        let (def, found) = check_def(&module.defs[number], &by_name, &signatures, &suggestions);
        let broken = found.iter().any(|diagnostic| diagnostic.severity() == Severity::Error);
        diagnostics.extend(found);
        if let Some(mut def) = def.filter(|_| !broken) {
            def.expanded = expanded(&def, &checked);
            signatures[number] = Some(signature(&def));
            checked[number] = Some(def);
        }
    }
    (checked, diagnostics)
}

/// Marks the callers of marked definitions, and all duplicates of a name.
pub(crate) fn spread(module: &ast::Module, broken: &mut [bool]) {
    let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut callers: HashMap<&str, Vec<&str>> = HashMap::new();
    for (number, def) in module.defs.iter().enumerate() {
        named.entry(&def.name.name).or_default().push(number);
        for stmt in &def.body {
            if let ast::Stmt::Call(call) = stmt {
                callers.entry(&call.callee.name).or_default().push(&def.name.name);
            }
        }
    }
    let is_marked = |numbers: &[usize]| numbers.len() > 1 || numbers.iter().any(|n| broken[*n]);
    let marked = named.iter().filter(|(_, numbers)| is_marked(numbers));
    let mut open: Vec<&str> = marked.map(|(name, _)| *name).collect();
    while let Some(name) = open.pop() {
        for number in named.remove(name).unwrap_or_default() {
            broken[number] = true;
            open.extend(callers.get(name).into_iter().flatten());
        }
    }
}

/// The number of statements after inlining; callees have been counted before.
fn expanded(def: &Def, checked: &[Option<Def>]) -> usize {
    let count = |stmt: &Stmt| match stmt {
        Stmt::Comprehension(_) => 1,
        Stmt::Call(call) => {
            let callee = checked.get(call.callee).and_then(Option::as_ref);
            callee.map_or(0, |callee| callee.expanded)
        }
    };
    def.body.iter().map(count).fold(0, usize::saturating_add)
}

fn signature(def: &Def) -> Signature {
    Signature {
        params: def.tensors[..def.params].to_vec(),
        results: def.returns.iter().map(|r| def.tensors[r.0 as usize].clone()).collect(),
    }
}

fn check_def(
    def: &ast::Def,
    by_name: &HashMap<&str, usize>,
    signatures: &[Option<Signature>],
    suggestions: &Cell<u32>,
) -> (Option<Def>, Vec<Diagnostic>) {
    let mut scope = Scope::new(def, by_name, signatures, suggestions);
    let mut open = statement::OpenReductions::new();
    let mut body = Vec::with_capacity(def.body.len());
    let mut whole = true;
    for stmt in &def.body {
        let checked = match stmt {
            ast::Stmt::Comprehension(stmt) => {
                let tainted = scope.taints_target(stmt);
                let checked = match tainted {
                    true => None,
                    false => statement::check(&mut scope, &mut open, stmt),
                };
                if let Some(symbol) = scope.tensor_named(&stmt.target.name) {
                    scope.assigned[symbol.0 as usize] = true;
                }
                checked.map(Stmt::Comprehension)
            }
            ast::Stmt::Call(call) => {
                let tainted = scope.taints_targets(call);
                let checked = if tainted { None } else { call::check(&mut scope, call) };
                for target in &call.targets {
                    if let Some(symbol) = scope.tensor_named(&target.name) {
                        scope.assigned[symbol.0 as usize] = true;
                        open.remove(&symbol);
                    }
                }
                checked
            }
        };
        match checked {
            Some(stmt) => body.push(stmt),
            None => whole = false,
        }
    }
    let returns = results(&mut scope);
    unused(&mut scope, def);
    let Scope { tensors, sizes, params, diagnostics, .. } = scope;
    let checked = returns.filter(|_| whole).map(|returns| Def {
        name: def.name.name.clone(),
        span: def.span,
        sizes,
        tensors,
        params,
        returns,
        body,
        expanded: 0,
    });
    (checked, diagnostics)
}

/// Checks that each result is computed, and listed once.
fn results(scope: &mut Scope<'_>) -> Option<Vec<Symbol>> {
    let def = scope.def;
    let mut written: HashSet<&str> = HashSet::new();
    for stmt in &def.body {
        match stmt {
            ast::Stmt::Comprehension(stmt) => written.extend([stmt.target.name.as_str()]),
            ast::Stmt::Call(call) => written.extend(call.targets.iter().map(|t| t.name.as_str())),
        }
    }
    let mut listed: HashMap<&str, Span> = HashMap::new();
    let mut results = Vec::with_capacity(def.returns.len());
    let mut good = true;
    for name in &def.returns {
        if let Some(first) = listed.insert(&name.name, name.span) {
            let message = format!("the result `{}` is listed twice", name.name);
            scope.report(
                Diagnostic::new(Code::DuplicateOutput, name.span, message)
                    .here("again here")
                    .label(first, "first here"),
            );
            good = false;
            continue;
        }
        let is_written = written.contains(name.name.as_str());
        match scope.tensor_named(&name.name).filter(|_| is_written) {
            Some(symbol) => results.push(symbol),
            None => {
                never_assigned(scope, name);
                good = false;
            }
        }
    }
    good.then_some(results)
}

fn never_assigned(scope: &mut Scope<'_>, name: &ast::Ident) {
    let message = format!("no statement computes the result `{}`", name.name);
    let written = || scope.tensors[scope.params..].iter();
    let near = scope.suggest(&name.name, written().map(|tensor| tensor.name.as_str()));
    let place = written().find(|t| Some(&t.name) == near.as_ref()).map(|tensor| tensor.span);
    let mut diagnostic =
        Diagnostic::new(Code::OutputNeverAssigned, name.span, message).here("promised here");
    if let Some(place) = place {
        diagnostic = diagnostic.label(place, "this is computed, and not a result");
    }
    diagnostic = match near {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")).fix(name.span, near),
        None => diagnostic.help(format!("add a statement such as `{}(...) = ...`", name.name)),
    };
    scope.report(diagnostic);
}

/// Whether only this parameter determines a size that a statement uses.
fn gives_a_size(def: &ast::Def, number: usize) -> bool {
    let names = |param: &ast::Param| -> Vec<String> {
        let name = |dim: &ast::Dim| match dim {
            ast::Dim::Name(name) => Some(name.name.clone()),
            ast::Dim::Literal(..) => None,
        };
        param.dims.iter().filter_map(name).collect()
    };
    let is_mentioned = |size: &str| {
        def.body.iter().any(|stmt| match stmt {
            ast::Stmt::Comprehension(stmt) => {
                let ends = stmt.constraints.iter().flat_map(|c| [&c.lo, &c.hi]);
                let mut sides = ends.chain([&stmt.rhs]);
                sides.any(|side| side.first_mention(size).is_some())
            }
            ast::Stmt::Call(_) => false,
        })
    };
    let is_own = |size: &String| {
        let others = def.params.iter().enumerate().filter(|(other, _)| *other != number);
        others.into_iter().all(|(_, other)| !names(other).contains(size))
    };
    let own = def.params.get(number).map(names).unwrap_or_default();
    own.iter().any(|size| is_own(size) && is_mentioned(size))
}

/// Warnings about inputs and tensors that nothing reads.
fn unused(scope: &mut Scope<'_>, def: &ast::Def) {
    let has_errors = scope.diagnostics.iter().any(|d| d.severity() == Severity::Error);
    if has_errors || !scope.tainted.is_empty() {
        return;
    }
    let unused: Vec<(usize, Tensor)> = scope
        .tensors
        .iter()
        .enumerate()
        .filter(|(number, tensor)| !scope.used[*number] && !scope.is_result(&tensor.name))
        .filter(|(number, _)| !gives_a_size(def, *number))
        .map(|(number, tensor)| (number, tensor.clone()))
        .collect();
    for (number, tensor) in unused {
        let diagnostic = if number < scope.params {
            let message = format!("no statement reads the input `{}`", tensor.name);
            Diagnostic::new(Code::UnusedInput, tensor.span, message)
                .here("never read")
                .help("remove it if it is not needed")
        } else {
            let message = format!("`{}` is computed and never used", tensor.name);
            Diagnostic::new(Code::UnusedResult, tensor.span, message)
                .here("neither read nor returned")
                .help("list it among the results, or remove it")
        };
        scope.report(diagnostic);
    }
}
