//! Gradients of recurrences: reverse recurrences.
//!
//! ```text
//! y(n,t) = a * y(n,t-1) + x(n,t) scan t from s(n)
//!
//! d_y_all(n,t) = d_y(n,t) + d_y_all(n,t+1) * a scan t from 0
//! d_x(n,t) = d_y_all(n,t)
//! d_s(n) +=! t - 1 < 0 ? d_y_all(n,t) * a : 0
//! ```

use tensorwright_lang::diagnostic::{Code, Diagnostic};
use tensorwright_lang::ops::{ArithOp, AssignOp, CompareOp};
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{Comprehension, Expr, ExprKind, ScanClause};

use crate::build;
use crate::emit;
use crate::ranges::{Step, Variable};
use crate::scope::Scope;
use crate::transpose::Contribution;
use crate::tree;

/// The right side of a recurrence in terms of other tensors: the start replaces the read where
/// there is no earlier element.
pub(crate) fn with_start(step: &Step) -> Result<Expr, Diagnostic> {
    let stmt = &step.stmt;
    let Some(scan) = &stmt.scan else { return Ok(stmt.rhs.clone()) };
    let place = stmt.indices.iter().position(|index| index.name == scan.var.name);
    let var = step.vars.iter().find(|var| var.name == scan.var.name);
    let (Some(place), Some(var)) = (place, var) else { return Ok(stmt.rhs.clone()) };
    let range = var.range.clone().ok_or_else(|| unclear(var))?;
    Ok(tree::replace(&stmt.rhs, &mut |expr| match &expr.kind {
        ExprKind::Apply(callee, args) if callee.name == stmt.target.name => {
            let position = args.get(place)?.clone();
            let exists = match &position.kind {
                ExprKind::Arith(ArithOp::Sub, ..) => {
                    build::compare(CompareOp::Ge, position, range.lo.clone())
                }
                _ => build::compare(CompareOp::Lt, position, range.hi.clone()),
            };
            Some(build::select(exists, expr.clone(), scan.start.clone()))
        }
        _ => None,
    }))
}

fn unclear(var: &Variable) -> Diagnostic {
    let name = &var.name;
    let message = format!("the range of `{name}` cannot be expressed in sizes");
    Diagnostic::new(Code::NotDifferentiable, var.span, message)
        .here("where does the recurrence begin?")
        .help(format!("state it: `where {name} in 0:...`"))
}

/// The gradient of all elements of a recurrence, including what they pass back to each other. The
/// first contribution comes from outside; `None` if the rest is not a recurrence.
pub(crate) fn statement(
    scope: &Scope,
    name: &str,
    step: &Step,
    contributions: Vec<Contribution>,
) -> Option<Comprehension> {
    let scan = step.stmt.scan.as_ref()?;
    let place = step.stmt.indices.iter().position(|index| index.name == scan.var.name)?;
    let mut all = contributions.into_iter();
    let mut sum = all.next()?;
    for contribution in all {
        if !contribution.reduced.is_empty() {
            return None;
        }
        let value = emit::with_indices(&contribution, &sum.indices);
        sum.value = build::add(sum.value, value);
    }
    let mut stmt = emit::statement(scope, name, AssignOp::Assign, &sum);
    let (var, start, span) =
        (build::ident(sum.indices.get(place)?), build::int(0), Span::default());
    stmt.scan = Some(ScanClause { var, start, span });
    Some(stmt)
}
