//! Lowers `argmax=!` and `argmin=!` to two plain reductions.
//!
//! They compute the extreme, and its first position:
//!
//! ```text
//! at_value(m) max=! A(m,n)
//! at(m) min=! A(m,n) == at_value(m) || A(m,n) != A(m,n) ? n : 2147483647
//! ```
//!
//! As in PyTorch and NumPy the first of several equal extremes counts, and a NaN is the extreme:
//! then nothing is equal to it, and the first NaN counts.

use std::collections::HashSet;

use super::ast::{Comprehension, Def, Dim, Expr, ExprKind, Ident, Stmt};
use crate::builtin::CONSTANTS;
use crate::diagnostic::{Code, Diagnostic};
use crate::ops::{AssignOp, CompareOp, LogicOp, ReductionOp};
use crate::source::Span;

/// Lowers the `argmax=!` and `argmin=!` statements of a definition.
pub(super) fn expand(def: &mut Def, diagnostics: &mut Vec<Diagnostic>) {
    let asks = |stmt: &Stmt| matches!(stmt, Stmt::Comprehension(stmt) if stmt.position);
    if !def.body.iter().any(asks) {
        return;
    }
    let mut names = Names::of(def);
    let mut body = Vec::with_capacity(def.body.len() + 1);
    for stmt in std::mem::take(&mut def.body) {
        match stmt {
            Stmt::Comprehension(stmt) if stmt.position => match names.reduced(&stmt) {
                Ok(var) => body.extend(names.expanded(stmt, var)),
                Err(problem) => {
                    diagnostics.push(problem);
                    body.push(Stmt::Comprehension(Comprehension { position: false, ..stmt }));
                }
            },
            stmt => body.push(stmt),
        }
    }
    def.body = body;
}

/// The names of a definition.
struct Names {
    /// Tensors, scalars and sizes: all that are not index variables.
    fixed: HashSet<String>,
    /// All other names in use.
    free: HashSet<String>,
}

impl Names {
    fn of(def: &Def) -> Self {
        let mut fixed: HashSet<String> = HashSet::new();
        for param in &def.params {
            fixed.insert(param.name.name.clone());
            fixed.extend(param.dims.iter().filter_map(|dim| match dim {
                Dim::Name(name) => Some(name.name.clone()),
                Dim::Literal(..) => None,
            }));
        }
        fixed.extend(def.returns.iter().map(|result| result.name.clone()));
        let mut free = HashSet::new();
        for stmt in &def.body {
            match stmt {
                Stmt::Comprehension(stmt) => {
                    fixed.insert(stmt.target.name.clone());
                    free.extend(variables(&stmt.rhs).into_iter().map(str::to_owned));
                }
                Stmt::Call(call) => fixed.extend(call.targets.iter().map(|it| it.name.clone())),
            }
        }
        Self { fixed, free }
    }

    /// The single index variable that is only on the right side.
    fn reduced(&self, stmt: &Comprehension) -> Result<String, Diagnostic> {
        let op = if is_max(stmt) { "argmax=!" } else { "argmin=!" };
        if let Some(span) = stmt.scan.as_ref().map(|scan| scan.span) {
            return Err(misplaced(op, span));
        }
        if let Some(span) = stmt.scatter.first().map(|scatter| scatter.span) {
            return Err(misplaced(op, span));
        }
        let is_left = |name: &str| stmt.indices.iter().any(|index| index.name == name);
        let mut found: Vec<&str> = Vec::new();
        for name in variables(&stmt.rhs) {
            let constant = CONSTANTS.iter().any(|(constant, _)| *constant == name);
            if !constant && !self.fixed.contains(name) && !is_left(name) && !found.contains(&name) {
                found.push(name);
            }
        }
        if let [one] = found.as_slice() {
            return Ok((*one).to_owned());
        }
        let message = match found.as_slice() {
            [] => format!("`{op}` has no index variable whose position it could find"),
            several => format!(
                "`{op}` goes over {} index variables, {}",
                several.len(),
                several.join(", ")
            ),
        };
        let help = "a position is the value of one index variable that stands on the right only: \
                    `at(m) argmax=! A(m,n)`";
        Err(Diagnostic::new(Code::PositionVariable, stmt.span, message)
            .here("which position?")
            .help(help))
    }

    /// The statements of the extreme and of its position.
    fn expanded(&mut self, stmt: Comprehension, var: String) -> [Stmt; 2] {
        let span = stmt.span;
        let made = |kind| Expr { kind, span };
        let boxed = |kind| Box::new(Expr { kind, span });
        let target = Ident { name: self.fresh(&stmt.target.name), span: stmt.target.span };
        let names = stmt.indices.iter().map(|index| made(ExprKind::Name(index.name.clone())));
        let names: Vec<Expr> = names.collect();
        let extreme = match names.is_empty() {
            true => ExprKind::Name(target.name.clone()),
            false => ExprKind::Apply(Ident { name: target.name.clone(), span }, names),
        };
        let value = || Box::new(stmt.rhs.clone());
        let has_it = ExprKind::Compare(CompareOp::Eq, value(), boxed(extreme));
        let is_nan = ExprKind::Compare(CompareOp::Ne, value(), value());
        let counts = ExprKind::Logic(LogicOp::Or, boxed(has_it), boxed(is_nan));
        let nowhere = ExprKind::Int(i32::MAX.unsigned_abs().into());
        let position = ExprKind::Select(boxed(counts), boxed(ExprKind::Name(var)), boxed(nowhere));
        let first = AssignOp::Reduce { op: ReductionOp::Min, initialize: true };
        let place =
            Comprehension { position: false, op: first, rhs: made(position), ..stmt.clone() };
        let extreme = Comprehension { position: false, target, ..stmt };
        [Stmt::Comprehension(extreme), Stmt::Comprehension(place)]
    }

    /// A fresh name.
    fn fresh(&mut self, target: &str) -> String {
        let taken = |name: &String| self.fixed.contains(name) || self.free.contains(name);
        let numbered = (2..).map(|number| format!("{target}_value{number}"));
        let mut names = std::iter::once(format!("{target}_value")).chain(numbered);
        let name = names.find(|name| !taken(name)).unwrap_or_default();
        self.fixed.insert(name.clone());
        name
    }
}

fn is_max(stmt: &Comprehension) -> bool {
    matches!(stmt.op, AssignOp::Reduce { op: ReductionOp::Max, .. })
}

fn misplaced(op: &str, span: Span) -> Diagnostic {
    let message = format!("`{op}` is neither a recurrence nor a scatter");
    Diagnostic::new(Code::PositionVariable, span, message)
        .here("not with a position")
        .help("compute the position in a statement of its own")
}

/// The bare names of an expression, in the order of the text.
fn variables(expr: &Expr) -> Vec<&str> {
    let mut names = Vec::new();
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        if let ExprKind::Name(name) = &expr.kind {
            names.push(name.as_str());
        }
        open.extend(expr.operands().into_iter().rev());
    }
    names
}
