//! Rejects plain subscripts with different extents for one index variable.
//!
//! Taking the smaller range silently would compute a part of what was meant.

use super::bounds::Statement;
use super::undetermined::{clause, with_fix};
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::infer::{Access, Disagreement, SettledRange, disagreements};
use crate::program::TensorId;

/// Rejects a statement in which plain subscripts disagree about a variable without a `where`.
pub(super) fn same_extents(
    statement: &Statement<'_>,
    settled: &[SettledRange],
    dtype: &impl Fn(TensorId) -> DType,
) -> Result<(), Vec<Diagnostic>> {
    let found = disagreements(settled, statement.accesses, dtype);
    let errors: Vec<Diagnostic> = found.iter().map(|it| disagree(statement, it, settled)).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn disagree(
    statement: &Statement<'_>,
    disagreement: &Disagreement,
    settled: &[SettledRange],
) -> Diagnostic {
    let Disagreement { var, narrow, wide } = *disagreement;
    let (narrow, wide) = (&statement.accesses[narrow], &statement.accesses[wide]);
    let name = &statement.stmt.vars[var].name;
    let limit = |access: &Access<'_>| {
        format!(
            "{} in dimension {} of `{}`",
            access.extent,
            access.dimension,
            statement.tensor_name(access)
        )
    };
    let message = format!("`{name}` has two extents: {} and {}", limit(wide), limit(narrow));
    let here = |access: &Access<'_>| format!("`{name}` below {} here", access.extent);
    let mut diagnostic =
        Diagnostic::new(Code::ExtentsDisagree, narrow.span, message).here(here(narrow));
    if wide.span != narrow.span {
        diagnostic = diagnostic.label(wide.span, here(wide));
    }
    let extent = statement.site.extent(narrow).unwrap_or_else(|| narrow.extent.to_string());
    // Other subscripts may limit the variable, too.
    let hi = settled[var].range.hi;
    let end = if hi == narrow.extent { extent } else { hi.to_string() };
    let (text, fix) = clause(statement, &[(name.clone(), end)]);
    let tensor = statement.tensor_name(narrow);
    if narrow.extent == 1 && !narrow.is_target {
        diagnostic = diagnostic.note(format!(
            "nothing is broadcast by itself: to use the one element of `{tensor}` for all `{name}`, write `0` for `{name}` there"
        ));
    }
    with_fix(
        diagnostic
            .help(format!("make them equal, or say that the smaller range is meant: `{text}`")),
        fix,
    )
}
