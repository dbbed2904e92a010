//! Reports reads of tensors that later statements compute, and whether reordering helps.

use std::collections::{HashMap, HashSet};

use super::scope::Scope;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::Symbol;
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Stmt};

impl Scope<'_> {
    /// E0211 for a statement that reads a tensor before it is computed; `targets` are the tensors
    /// that the reading statement computes.
    pub(super) fn read_too_early(
        &self,
        symbol: Symbol,
        span: Span,
        targets: &[&str],
    ) -> Diagnostic {
        let tensor = self.tensor(symbol);
        let (name, later) = (&tensor.name, tensor.span);
        let needs = self.may_scan_module().then(|| Needs::of(&self.def.body));
        let closes = |target: &&&str| needs.as_ref().is_some_and(|needs| needs.reach(name, target));
        if let Some(target) = targets.iter().find(closes) {
            let message = format!("`{target}` and `{name}` are computed from each other");
            return Diagnostic::new(Code::UsedBeforeDefined, span, message)
                .here(format!("`{target}` needs `{name}`"))
                .label(later, format!("and `{name}` needs `{target}`"))
                .help(format!(
                    "no order of the statements helps, and a recurrence is one statement for one \
                     tensor: write what computes `{name}` in place of `{name}` here, so that `{target}` \
                     reads only itself; or compute one step in each call, and pass `{target}` and \
                     `{name}` from one call to the next"
                ));
        }
        let message = format!("`{name}` is read before it is computed");
        Diagnostic::new(Code::UsedBeforeDefined, span, message)
            .here("it has no value yet")
            .label(later, "it is computed here")
            .help("move the statement that computes it up")
    }
}

/// The names used by the statements that compute each tensor.
struct Needs<'a>(HashMap<&'a str, HashSet<&'a str>>);

impl<'a> Needs<'a> {
    fn of(body: &'a [Stmt]) -> Self {
        let mut needs: HashMap<&str, HashSet<&str>> = HashMap::new();
        for stmt in body {
            match stmt {
                Stmt::Comprehension(stmt) => {
                    let names = needs.entry(&stmt.target.name).or_default();
                    let start = stmt.scan.iter().map(|scan| &scan.start);
                    let positions = stmt.scatter.iter().map(|scatter| &scatter.at);
                    let sides = std::iter::once(&stmt.rhs).chain(start).chain(positions);
                    sides.for_each(|side| mentioned(side, names));
                }
                Stmt::Call(call) => {
                    for target in &call.targets {
                        let names = needs.entry(&target.name).or_default();
                        call.args.iter().for_each(|arg| mentioned(arg, names));
                    }
                }
            }
        }
        Self(needs)
    }

    /// Whether one tensor transitively depends on another.
    fn reach(&self, from: &str, to: &str) -> bool {
        let (mut seen, mut open) = (HashSet::new(), vec![from]);
        while let Some(name) = open.pop() {
            let Some(needed) = self.0.get(name).filter(|_| seen.insert(name)) else { continue };
            if needed.contains(to) {
                return true;
            }
            open.extend(needed);
        }
        false
    }
}

fn mentioned<'a>(expr: &'a Expr, names: &mut HashSet<&'a str>) {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => {}
        ExprKind::Name(name) => {
            names.insert(name);
        }
        ExprKind::DimOf(tensor, _) => {
            names.insert(&tensor.name);
        }
        ExprKind::Apply(callee, args) => {
            names.insert(&callee.name);
            args.iter().for_each(|arg| mentioned(arg, names));
        }
        ExprKind::Unary(_, operand) => mentioned(operand, names),
        ExprKind::Arith(_, lhs, rhs)
        | ExprKind::Compare(_, lhs, rhs)
        | ExprKind::Logic(_, lhs, rhs) => {
            mentioned(lhs, names);
            mentioned(rhs, names);
        }
        ExprKind::Select(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().for_each(|it| mentioned(it, names));
        }
    }
}
