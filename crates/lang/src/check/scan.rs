//! Checks `scan` statements: `y(t) = a * y(t-1) + x(t) scan t from 0`.

use super::coerce;
use super::elaborate::{Elaborator, Recurrence};
use super::scope::Scope;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, Scan, Symbol, Ty, Var, VarId};
use crate::ops::AssignOp;
use crate::syntax::ast::{self, ScanClause};

/// Checks that the statement assigns, and that its left side has the scan variable.
pub(super) fn clause_fits(
    scope: &mut Scope<'_>,
    stmt: &ast::Comprehension,
    clause: &ScanClause,
) -> Option<()> {
    if stmt.op != AssignOp::Assign {
        let symbol = stmt.op.symbol();
        let message = format!("a recurrence assigns, and this one reduces with `{symbol}`");
        scope.report(
            Diagnostic::new(Code::ScanReduces, clause.span, message)
                .here("a recurrence")
                .help("write `=`, and the operator on the right side: `y(t) = y(t-1) + x(t)`"),
        );
        return None;
    }
    let name = &clause.var.name;
    if stmt.indices.iter().any(|index| index.name == *name) {
        return Some(());
    }
    let message = format!("`{name}` is not an index variable of the left side");
    let diagnostic = Diagnostic::new(Code::ScanVariable, clause.var.span, message)
        .here("the recurrence would go along this");
    let left: Vec<&str> = stmt.indices.iter().map(|index| index.name.as_str()).collect();
    let diagnostic = match (scope.suggest(name, left.iter().copied()), left.as_slice()) {
        (Some(near), _) => {
            diagnostic.help(format!("did you mean `{near}`?")).fix(clause.var.span, near)
        }
        (None, []) => diagnostic.help("a scalar has no elements that could follow each other"),
        (None, _) => diagnostic.help(format!("its index variables are `{}`", left.join("`, `"))),
    };
    scope.report(diagnostic);
    None
}

/// The start of a recurrence with its type, if there is one.
#[allow(
    clippy::option_option,
    reason = "the outer says that there was no error, as everywhere here"
)]
pub(super) fn start<'a>(
    elaborator: &mut Elaborator<'_, 'a>,
    stmt: &'a ast::Comprehension,
) -> Option<Option<(Expr, Ty)>> {
    let Some(clause) = &stmt.scan else { return Some(None) };
    let name = &clause.var.name;
    if let Some(place) = clause.start.first_mention(name) {
        let message = format!("the start of the recurrence depends on `{name}`");
        elaborator.report(
            Diagnostic::new(Code::ScanStart, place, message)
                .here("this changes along the recurrence")
                .help("the start is one value for everything before the first element"),
        );
        return None;
    }
    if let Some(recurrence) = &mut elaborator.recurrence {
        recurrence.in_start = true;
    }
    elaborator.value(&clause.start).map(Some)
}

/// Checks that a recurrence reads itself, and reduces nothing.
pub(super) fn is_recurrence(
    scope: &mut Scope<'_>,
    stmt: &ast::Comprehension,
    recurrence: &Recurrence<'_>,
    vars: &[Var],
) -> Option<()> {
    let target = &stmt.target.name;
    if let Some(var) = vars.get(stmt.indices.len()) {
        let message =
            format!("`{}` stands only on the right, and a recurrence reduces nothing", var.name);
        scope.report(
            Diagnostic::new(Code::ScanReduces, var.span, message)
                .here("not on the left")
                .label(recurrence.clause.span, "a recurrence")
                .help("compute the sum in a statement before this one, and read its result"),
        );
        return None;
    }
    if recurrence.reads > 0 {
        return Some(());
    }
    let indices: Vec<String> = stmt
        .indices
        .iter()
        .map(|index| match index.name == recurrence.clause.var.name {
            true => format!("{} - 1", index.name),
            false => index.name.clone(),
        })
        .collect();
    let message = format!("this recurrence never reads `{target}`, which it computes");
    scope.report(
        Diagnostic::new(Code::ScanWithoutRead, recurrence.clause.span, message)
            .here("nothing depends on an earlier element")
            .help(format!("read `{target}({})`, or remove the clause", indices.join(", "))),
    );
    None
}

/// The checked clause.
pub(super) fn checked(
    scope: &mut Scope<'_>,
    stmt: &ast::Comprehension,
    target: Symbol,
    recurrence: &Recurrence<'_>,
    start: (Expr, Ty),
) -> Option<Scan> {
    let clause = recurrence.clause;
    let position = stmt.indices.iter().position(|index| index.name == clause.var.name)?;
    let start = coerce::of_target(scope, target, start, clause.start.span)?;
    Some(Scan { var: VarId(position as u32), backwards: recurrence.is_backwards(), start })
}
