//! Checks scatters: `count(b) +=! 1 scatter b = bin(i)`.

use super::elaborate::Elaborator;
use super::scope::Scope;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, Scatter, VarId};
use crate::ops::AssignOp;
use crate::syntax::ast::{Comprehension, ScatterClause};

/// Checks that the statement is a reduction, and that the scatter variables are on its left side
/// and used nowhere else.
pub(super) fn clauses_fit(scope: &mut Scope<'_>, stmt: &Comprehension) -> Option<()> {
    let Some(first) = stmt.scatter.first() else { return Some(()) };
    if stmt.op == AssignOp::Assign {
        let message = "a scatter combines values, and `=` does not say how";
        scope.report(
            Diagnostic::new(Code::ScatterAssigns, first.span, message)
                .here("several values may go to one element")
                .help("write `+=!` for a sum (or `*=!`, `min=!`, `max=!`)"),
        );
        return None;
    }
    // Stops at the first error: valid clauses are at most as many as dimensions.
    for (number, clause) in stmt.scatter.iter().enumerate() {
        let before = stmt.scatter[..number].iter().find(|it| it.var.name == clause.var.name);
        clause_fits(scope, stmt, clause, before)?;
    }
    Some(())
}

fn clause_fits(
    scope: &mut Scope<'_>,
    stmt: &Comprehension,
    clause: &ScatterClause,
    before: Option<&ScatterClause>,
) -> Option<()> {
    let name = &clause.var.name;
    if let Some(before) = before {
        let message = format!("`{name}` is scattered twice");
        scope.report(
            Diagnostic::new(Code::ScatterVariable, clause.var.span, message)
                .here("again here")
                .label(before.var.span, "first here")
                .help("each dimension has one position"),
        );
        return None;
    }
    let left: Vec<&str> = stmt.indices.iter().map(|index| index.name.as_str()).collect();
    if !left.contains(&name.as_str()) {
        let message = format!("`{name}` is not an index variable of the left side");
        let diagnostic = Diagnostic::new(Code::ScatterVariable, clause.var.span, message)
            .here("values would be scattered along this");
        let diagnostic = match (scope.suggest(name, left.iter().copied()), left.as_slice()) {
            (Some(near), _) => {
                diagnostic.help(format!("did you mean `{near}`?")).fix(clause.var.span, near)
            }
            (None, []) => diagnostic.help("a scalar has no elements that could be chosen"),
            (None, _) => {
                diagnostic.help(format!("its index variables are `{}`", left.join("`, `")))
            }
        };
        scope.report(diagnostic);
        return None;
    }
    depends_on_none(scope, stmt, clause)
}

/// Checks that neither the value nor a position depends on a scatter variable.
fn depends_on_none(
    scope: &mut Scope<'_>,
    stmt: &Comprehension,
    clause: &ScatterClause,
) -> Option<()> {
    let name = &clause.var.name;
    let positions = || stmt.scatter.iter().filter_map(|other| other.at.first_mention(name));
    if let Some(place) = positions().next() {
        let message = format!("a position of the scatter depends on `{name}`, which it decides");
        scope.report(
            Diagnostic::new(Code::ScatterPosition, place, message)
                .here(format!("`{name}` has no value yet"))
                .label(clause.span, "decided here")
                .help("use the other index variables, and tensors that are read at them"),
        );
        return None;
    }
    let Some(place) = stmt.rhs.first_mention(name) else { return Some(()) };
    let message = format!("the value of the scatter depends on `{name}`");
    scope.report(
        Diagnostic::new(Code::ScatterValue, place, message)
            .here("each value is computed once, and then goes to its position")
            .label(clause.span, "this is its position")
            .help(format!("write the position itself in place of `{name}`")),
    );
    None
}

/// The checked clauses.
pub(super) fn checked<'a>(
    elaborator: &mut Elaborator<'_, 'a>,
    stmt: &'a Comprehension,
) -> Option<Vec<Scatter>> {
    let clauses: Vec<Option<Scatter>> =
        stmt.scatter.iter().map(|clause| position(elaborator, stmt, clause)).collect();
    clauses.into_iter().collect()
}

fn position<'a>(
    elaborator: &mut Elaborator<'_, 'a>,
    stmt: &'a Comprehension,
    clause: &'a ScatterClause,
) -> Option<Scatter> {
    let dimension = stmt.indices.iter().position(|index| index.name == clause.var.name)?;
    let at = elaborator.subscript(&clause.at)?;
    Some(Scatter { var: VarId(dimension as u32), at, span: clause.span })
}

/// The positions as value expressions, for walks over a statement.
pub(super) fn positions(scatter: &[Scatter]) -> Vec<Expr> {
    scatter.iter().map(|it| Expr::Int(it.at.clone(), None, it.span)).collect()
}
